import { html } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { Filters, useFilter } from "./filters.js";
import { count, dash, duration, moment, orNull } from "./format.js";
import { Table, Text, Trouble, useList } from "./parts.js";

const fields = [{ name: "key", label: "key", size: 18 }];

// Rows are the rows of a key.
const Rows = ({ of, name }) => html`<${Table} label="rows" head=${["table", "partition", "until", "row"]} empty=${of.length === 0 && `No row has the key ${name}.`}>
  ${of.map((r) => html`<tr key=${`${r.table}/${r.partition}`}><th scope="row">${r.table}</th><td data-label="partition">${r.partition}</td>
    <td data-label="until">${r.until ? moment(r.until) : dash}</td>
    <td data-label="row" class="payload">${r.err ? html`<span class="warn">cannot be decoded: ${r.err}</span>` : html`<${Text} of=${r.record} json />`}</td></tr>`)}<//>`;

// Tables are the tables of a processor, when the page was opened or searched, and the rows of a key.
export function Tables({ about }) {
  const [filter, set] = useFilter({ key: "" });
  const { value, busy, err, again } = useList((signal) => list("tables", { processor: about, ...filter }, signal), [about, filter]);
  if (!err && (!value || value.tables.length === 0)) return null;
  return html`<section aria-label="tables"><h2>Tables</h2><${Trouble} err=${err} />
    ${value && html`<${Table} label="tables" head=${["table", { text: "rows", number: true }, { text: "overdue", number: true }, { text: "bytes", number: true }, "codec", "TTL", "local"]}>
      ${value.tables.map((t) => html`<tr key=${t.table} data-table=${t.table}><th scope="row">${t.table}</th>
        ${t.err ? html`<td colspan="6" class="warn">${t.err}</td>` : html`<td data-label="rows" class="right">${count(t.rows)}</td><td data-label="overdue" class="right">${count(t.overdue)}</td>
        <td data-label="bytes" class="right">${count(orNull(t.bytes))}</td>
        <td data-label="codec">${t.codec}</td><td data-label="TTL">${t.ttl ? duration(t.ttl) : dash}</td><td data-label="local">${t.local ? "yes" : "no"}</td>`}</tr>`)}<//>`}
    <${Filters} fields=${fields} filter=${filter} set=${set} busy=${busy} again=${again} />
    ${value && filter.key && html`<${Rows} of=${value.rows} name=${filter.key} />`}</section>`;
}
