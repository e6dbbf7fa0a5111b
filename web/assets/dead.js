import { html, useState } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { Choose, ChooseAll, Open, useChoice } from "./choice.js";
import { confirm } from "./dialog.js";
import { Filters, useFilter } from "./filters.js";
import { dash, plural } from "./format.js";
import { Ago, Picker, processorsOf, Table, Text, Trouble, useList } from "./parts.js";

function One({ processor, id, wide }) {
  const { value, err } = useList((signal) => list("dead", { processor, id }, signal), [processor, id]);
  const d = value && value.list[0];
  return html`<tr class="opened"><td colspan=${wide}><${Trouble} err=${err} />
    ${value && !d && html`<p class="empty">It is not there any more.</p>`}
    ${d && html`<dl class="pairs"><dt>event</dt><dd><code>${d.event}</code></dd><dt>reason</dt><dd>${d.reason || dash}</dd><dt>epoch</dt><dd>${d.epoch}</dd>
      <dt>first failure</dt><dd><${Ago} t=${d.first} /></dd><dt>last failure</dt><dd><${Ago} t=${d.last} /></dd>
      <dt>error</dt><dd><pre class="record">${d.error}</pre></dd>
      ${d.record && html`<dt>record</dt><dd><${Text} of=${d.record} json /></dd>`}${d.err && html`<dt>record</dt><dd class="warn">cannot be decoded: ${d.err}</dd>`}
      ${Object.entries(d.fields || {}).map(([name, t]) => html`<dt>field ${name}</dt><dd><${Text} of=${t} /></dd>`)}</dl>`}</td></tr>`;
}

export function Dead({ sample, about, actions }) {
  const [filter, set] = useFilter({ key: "", error: "", partition: "" });
  const [opened, open] = useState(null);
  const { value, busy, err, again } = useList((signal) => (about ? list("dead", { processor: about, ...filter, limit: 200 }, signal) : Promise.resolve(null)), [about, filter]);
  const letters = value ? value.list : [];
  const ids = letters.map((d) => d.id);
  const choice = useChoice(ids);
  const names = processorsOf(sample).map((p) => p.name);
  const then = () => (choice.none(), again());
  const retry = () => confirm({ title: `Retry ${plural(choice.ids.length, "dead letter")}?`, button: "Retry", action: "retry-dead", body: { processor: about, ids: choice.ids }, then,
    text: `${about} attempts their events anew, from attempt 1 and in order per key. No other processor sees them.` });
  const replay = () => confirm({ title: `Replay ${plural(choice.ids.length, "dead letter")}?`, button: "Replay", action: "replay", body: { processor: about, ids: choice.ids }, then,
    text: `Their events are appended to ${about.split("/")[0]} again, the oldest first: every processor of the stream gets them. The dead letters are removed.` });
  const drop = () => confirm({ title: `Drop ${plural(choice.ids.length, "dead letter")}?`, button: "Drop for good", danger: true, action: "drop", body: { processor: about, ids: choice.ids }, then,
    text: "They are deleted for good, with their events." });
  return html`<div class="bar"><h1>Dead letters</h1><${Picker} label="processor" route="dead" names=${names} value=${about} /></div>
    <${Filters} fields=${[{ name: "key", label: "key", size: 16 }, { name: "error", label: "error contains", size: 16 }, { name: "partition", label: "partition", size: 5, number: true }]} filter=${filter} set=${set} busy=${busy} again=${again} />
    <${Trouble} err=${err} />
    ${actions && html`<div class="buttons chosen"><${ChooseAll} choice=${choice} ids=${ids} />
      <button type="button" disabled=${choice.ids.length === 0} onClick=${retry}>Retry ${choice.ids.length || ""}</button>
      <button type="button" disabled=${choice.ids.length === 0} onClick=${replay}>Replay ${choice.ids.length || ""}</button>
      <button type="button" class="danger" disabled=${choice.ids.length === 0} onClick=${drop}>Drop ${choice.ids.length || ""}</button></div>`}
    <p class="hint" role="status">${value ? `${plural(letters.length, "dead letter")}${value.more ? ", the oldest; there are others" : ""}` : "\u00a0"}</p>
    <${Table} label="dead letters" head=${[...(actions ? [""] : []), "dead letter", "key", "attempts", "died", "error"]} empty=${value && letters.length === 0 && "No dead letter."}>
      ${letters.map((d) => {
        const id = d.id;
        return html`<tr key=${id} data-letter=${id}>${actions && html`<${Choose} choice=${choice} id=${id} what="dead letter" />`}
          <th scope="row"><${Open} id=${id} opened=${opened} open=${open} what="show dead letter" /></th>
          <td data-label="key">${d.key || dash}</td><td data-label="attempts">${d.attempts}</td><td data-label="died"><${Ago} t=${d.died} /></td>
          <td data-label="error" class="payload">${d.error || d.reason}</td></tr>
          ${opened === id && html`<${One} key=${id + " open"} processor=${about} id=${id} wide=${actions ? 6 : 5} />`}`;
      })}<//>`;
}
