import { html } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { Choose, ChooseAll, useChoice } from "./choice.js";
import { confirm } from "./dialog.js";
import { Filters, useFilter } from "./filters.js";
import { dash, duration, moment, plural } from "./format.js";
import { serverNow } from "./live.js";
import { Ago, Picker, Table, Trouble, useList, useTick } from "./parts.js";

export function Delayed({ sample, about, actions }) {
  const [filter, set] = useFilter({ partition: "" });
  const { value, busy, err, again } = useList((signal) => (about ? list("delayed", { stream: about, ...filter, limit: 200 }, signal) : Promise.resolve(null)), [about, filter]);
  useTick(1000);
  const events = value ? value.list : [];
  const ids = events.map((e) => e.id);
  const choice = useChoice(ids);
  const then = () => (choice.none(), again());
  const body = { stream: about, ids: choice.ids };
  const fire = () => confirm({ title: `Make ${plural(choice.ids.length, "event")} due now?`, button: "Fire", action: "fire", body, then, text: `They are appended to ${about} at once.` });
  const cancel = () => confirm({ title: `Cancel ${plural(choice.ids.length, "event")}?`, button: "Cancel for good", danger: true, action: "cancel", body, then, text: "They are taken back, for good." });
  return html`<div class="bar"><h1>Delayed events</h1><${Picker} label="stream" route="delayed" names=${sample.streams.map((s) => s.stream)} value=${about} /></div>
    <${Filters} fields=${[{ name: "partition", label: "partition", size: 5, number: true }]} filter=${filter} set=${set} busy=${busy} again=${again} />
    <${Trouble} err=${err} />
    ${actions && html`<div class="buttons chosen"><${ChooseAll} choice=${choice} ids=${ids} />
      <button type="button" disabled=${choice.ids.length === 0} onClick=${fire}>Fire ${choice.ids.length || ""}</button>
      <button type="button" class="danger" disabled=${choice.ids.length === 0} onClick=${cancel}>Cancel ${choice.ids.length || ""}</button></div>`}
    <p class="hint" role="status">${value ? `${plural(events.length, "event")}${value.more ? ", those that are due first; there are others" : ""}` : "\u00a0"}</p>
    <${Table} label="delayed events" head=${[...(actions ? [""] : []), "event", "due", "in", "sent", "key", "record"]} empty=${value && events.length === 0 && "No event waits for its time."}>
      ${events.map((e) => {
        const left = new Date(e.due).getTime() - serverNow();
        return html`<tr key=${e.id} data-delayed=${e.id}>${actions && html`<${Choose} choice=${choice} id=${e.id} what="event" />`}
          <th scope="row"><code>${e.id}</code></th><td data-label="due"><time>${moment(e.due)}</time></td><td data-label="in">${left > 0 ? duration(left) : "now"}</td>
          <td data-label="sent"><${Ago} t=${e.sent} /></td><td data-label="key">${e.key || dash}</td>
          <td data-label="record" class="payload">${e.err ? html`<span class="warn">cannot be decoded: ${e.err}</span>` : e.record.text}</td></tr>`;
      })}<//>`;
}
