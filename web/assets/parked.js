import { html } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { Choose, ChooseAll, useChoice } from "./choice.js";
import { confirm } from "./dialog.js";
import { Filters, useFilter } from "./filters.js";
import { dash, duration, plural } from "./format.js";
import { Ago, Picker, processorsOf, Table, Trouble, useList } from "./parts.js";

export function Parked({ sample, about, actions }) {
  const [filter, set] = useFilter({ key: "", error: "", partition: "" });
  const { value, busy, err, again } = useList((signal) => (about ? list("parked", { processor: about, ...filter, limit: 200 }, signal) : Promise.resolve(null)), [about, filter]);
  const events = value ? value.list : [];
  const ids = events.map((e) => e.event || e.id);
  const choice = useChoice(ids);
  const then = () => (choice.none(), again());
  const body = { processor: about, ids: choice.ids };
  const now = () => confirm({ title: `Retry ${plural(choice.ids.length, "event")} now?`, button: "Retry now", action: "retry-now", body, then, text: "Those that wait for their next attempt do not wait any longer." });
  const drop = () => confirm({ title: `Give up ${plural(choice.ids.length, "event")}?`, button: "Give up for good", danger: true, action: "drop-parked", body, then, text: "They are not attempted again, and leave no dead letter." });
  return html`<div class="bar"><h1>Parked events</h1><${Picker} label="processor" route="parked" names=${processorsOf(sample).map((p) => p.name)} value=${about} /></div>
    <${Filters} fields=${[{ name: "key", label: "key", size: 16 }, { name: "error", label: "error contains", size: 16 }, { name: "partition", label: "partition", size: 5, number: true }]} filter=${filter} set=${set} busy=${busy} again=${again} />
    <${Trouble} err=${err} />
    ${actions && html`<div class="buttons chosen"><${ChooseAll} choice=${choice} ids=${ids} />
      <button type="button" disabled=${choice.ids.length === 0} onClick=${now}>Retry now ${choice.ids.length || ""}</button>
      <button type="button" class="danger" disabled=${choice.ids.length === 0} onClick=${drop}>Give up ${choice.ids.length || ""}</button></div>`}
    <p class="hint" role="status">${value ? `${plural(events.length, "event")}${value.more ? ", the oldest; there are others" : ""}` : "\u00a0"}</p>
    <${Table} label="parked events" head=${[...(actions ? [""] : []), "event", "key", "state", "attempts", "last failure", "error"]} empty=${value && events.length === 0 && "No event waits for another attempt."}>
      ${events.map((e) => {
        const id = e.event || e.id;
        return html`<tr key=${id} data-parked=${id}>${actions && html`<${Choose} choice=${choice} id=${id} what="event" />`}
          <th scope="row"><code>${id}</code></th><td data-label="key">${e.key || dash}</td>
          <td data-label="state">${e.state === "waiting" ? `waits ${duration(e.in)}` : e.state}</td><td data-label="attempts">${e.attempts}</td>
          <td data-label="last failure"><${Ago} t=${e.last} /></td><td data-label="error" class="payload">${e.error || dash}</td></tr>`;
      })}<//>`;
}
