import { html } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { dash, moment } from "./format.js";
import { Table, Trouble, useList } from "./parts.js";

export function Audit() {
  const { value, busy, err, again } = useList((signal) => list("audit", { limit: 100 }, signal), []);
  const all = value ? value.list : [];
  return html`<div class="bar"><h1>Audit</h1><button type="button" onClick=${again}>${busy ? "…" : "Look again"}</button></div>
    <p class="hint">What was done from the dashboard, the newest first.</p>
    <${Trouble} err=${err} />
    <${Table} label="actions" head=${["time", "who", "from", "what", "on", "outcome", "result", "why"]} empty=${value && all.length === 0 && "Nothing was done yet."}>
      ${all.map((a) => html`<tr key=${a.id} data-audit=${a.what}><th scope="row"><time>${moment(a.at)}</time></th><td data-label="who">${a.who || dash}</td><td data-label="from">${a.from}</td>
        <td data-label="what">${a.what}</td><td data-label="on" title=${a.detail || undefined}>${a.on || dash}</td>
        <td data-label="outcome"><span class=${`tag ${a.outcome === "done" ? "good" : a.outcome === "failed" ? "bad" : "warn"}`}>${a.outcome || "not noted"}</span></td>
        <td data-label="result" class="payload">${a.result || dash}</td><td data-label="why" class="payload">${a.why || dash}</td></tr>`)}<//>`;
}
