import { html, useEffect, useState } from "./vendor/preact-htm.module.js";
import { list } from "./api.js";
import { Open } from "./choice.js";
import { Filters, useFilter } from "./filters.js";
import { dash, moment, plural } from "./format.js";
import { Picker, Table, Text, Trouble, useList } from "./parts.js";

function One({ stream, id }) {
  const { value, err } = useList((signal) => list("events", { stream, id }, signal), [stream, id]);
  const e = value && value.events[0];
  return html`<tr class="opened"><td colspan="4"><${Trouble} err=${err} />
    ${value && !e && html`<p class="empty">It is not in the stream any more.</p>`}
    ${e && e.err && html`<p class="trouble">It cannot be decoded: ${e.err}</p>`}
    ${e && e.record && html`<${Text} of=${e.record} json />`}</td></tr>`;
}

export function Events({ sample, about }) {
  const [filter, set] = useFilter({ key: "", partition: "", limit: "50" });
  const [opened, open] = useState(null);
  const { value, busy, err, again } = useList((signal) => (about ? list("events", { stream: about, ...filter }, signal) : Promise.resolve(null)), [about, filter]);
  // The number of new events is from the samples, not a request to Redis. The last sample before
  // the list may miss some events that the list has.
  const stream = sample.streams.find((s) => s.stream === about), appended = stream ? stream.appended : -1;
  const [since, setSince] = useState(appended);
  useEffect(() => setSince(appended), [value]);
  const more = appended >= 0 && since >= 0 ? Math.max(0, appended - since) : 0;
  const events = value ? value.events : [];
  const found = value && (value.complete ? `${plural(events.length, "event")}, all there are` : filter.key && events.length < filter.limit ? `${plural(events.length, "event")} among the latest ${value.searched}` : `the latest ${plural(events.length, "event")}`);
  return html`<div class="bar"><h1>Events</h1><${Picker} label="stream" route="events" names=${sample.streams.map((s) => s.stream)} value=${about} /></div>
    <${Filters} fields=${[{ name: "key", label: "key", size: 18 }, { name: "partition", label: "partition", size: 5, number: true }, { name: "limit", label: "at most", size: 4, number: true }]} filter=${filter} set=${set} busy=${busy} again=${again} />
    <${Trouble} err=${err} />
    <p class="hint"><span role="status">${found || (busy ? "Looking for events." : "\u00a0")}</span>${value && more > 0 && html` · <button type="button" class="quiet" onClick=${again}>up to ${plural(more, "event")} came since: look again</button>`}</p>
    <${Table} label="events" head=${["event", "time", "key", "record"]} empty=${value && events.length === 0 && "No event."}>
      ${events.map((e) => {
        const id = e.id;
        return html`<tr key=${id} data-event=${id}><th scope="row"><${Open} id=${id} opened=${opened} open=${open} what="show event" /></th>
          <td data-label="time"><time>${moment(e.at)}</time></td><td data-label="key">${e.key === null ? html`<span class="zero">?</span>` : e.key === "" ? dash : e.key}</td>
          <td data-label="record" class="payload">${e.err ? html`<span class="warn">cannot be decoded: ${e.err}</span>` : e.record.text}</td></tr>
          ${opened === id && html`<${One} key=${id + " open"} stream=${about} id=${id} />`}`;
      })}<//>`;
}
