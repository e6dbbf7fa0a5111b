// The form above a list.
import { html, useState } from "./vendor/preact-htm.module.js";

// useFilter keeps the filter as last submitted.
export function useFilter(empty) {
  const [filter, set] = useState(empty);
  return [filter, set];
}

// fields are {name, label, size}.
export function Filters({ fields, filter, set, busy, again, children }) {
  const submit = (e) => {
    e.preventDefault();
    const form = new FormData(e.target);
    const next = Object.fromEntries(fields.map((f) => [f.name, form.get(f.name)]));
    if (fields.every((f) => next[f.name] === filter[f.name])) again();
    else set({ ...filter, ...next });
  };
  return html`<form class="filters" role="search" onSubmit=${submit} autocomplete="off">
    ${fields.map((f) => html`<label class="field">${f.label} <input name=${f.name} size=${f.size || 12} defaultValue=${filter[f.name]} inputmode=${f.number ? "numeric" : undefined} /></label>`)}
    <button type="submit">${busy ? "…" : "Search"}</button>${children}</form>`;
}
