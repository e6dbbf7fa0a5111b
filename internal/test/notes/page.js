// The page of notes: a list, and a button that adds one.
import { html } from "../vendor/preact-htm.module.js";
import { list } from "../api.js";
import { confirm } from "../dialog.js";
import { Table, Trouble, useList } from "../parts.js";

export function View({ actions }) {
  const { value, err, again } = useList((signal) => list("notes/list", {}, signal), []);
  const add = () => confirm({ title: "Add a note?", text: "Others see it.", button: "Add", action: "notes/add", body: { on: "gate", arg: ["gate", "mind the step"] }, then: again });
  return html`<div class="bar"><h1>Notes</h1>${actions && html`<button type="button" onClick=${add}>Add</button>`}</div>
    <${Trouble} err=${err} />
    <${Table} label="notes" head=${["name", "text"]}>
      ${Object.entries(value || {}).map(([name, text]) => html`<tr key=${name}><th scope="row">${name}</th><td data-label="text">${text}</td></tr>`)}<//>`;
}
