import { html, useState } from "./vendor/preact-htm.module.js";
import { Chart } from "./chart.js";
import { confirm } from "./dialog.js";
import { age, atLeast, count, dash, duration, orNull, plural, ranges, rate } from "./format.js";
import { live, moves, past } from "./live.js";
import { Map, ownerName, stateOf } from "./map.js";
import { Moves } from "./moves.js";
import { Ago, Figure, Number, Picker, processorsOf, Table } from "./parts.js";
import { useStore } from "./store.js";
import { Tables } from "./tables.js";

const scopeOf = (p) => `processor:${p.name}`;

// Held are the buttons that hold a scope back or resume it.
export function Held({ scope, what, rules }) {
  const has = (kind) => rules.some((r) => r.kind === kind && r.scope === scope);
  const body = { scope };
  return html`<span class="buttons">
    ${has("pause")
      ? html`<button type="button" onClick=${() => confirm({ title: `Resume ${what}?`, text: "It takes events again, unless something else holds it back.", button: "Resume", action: "resume", body })}>Resume</button>`
      : html`<button type="button" onClick=${() => confirm({ title: `Pause ${what}?`, text: "It takes no event until it is resumed; nothing is lost. Other processors go on.", button: "Pause", action: "pause", body, lasting: true })}>Pause</button>`}
    ${has("block")
      ? html`<button type="button" onClick=${() => confirm({ title: `Unblock ${what}?`, text: "A block is an administrator's.", button: "Unblock", action: "unblock", body })}>Unblock</button>`
      : html`<button type="button" onClick=${() => confirm({ title: `Block ${what}?`, text: "A block is an administrator's: it holds back as a pause does, and no resume lifts it.", button: "Block", action: "block", body, lasting: true, danger: true })}>Block</button>`}
  </span>`;
}

// Why shows the first line of an error; the rest, such as the stack of a panic, is folded.
function Why({ text }) {
  const [cause, ...rest] = text.split("\n");
  return rest.length === 0 ? cause : html`<details><summary>${cause}</summary><pre class="record">${rest.join("\n")}</pre></details>`;
}

function Partition({ d, n, actions, rules, name }) {
  const note = d.notes[n] || {}, state = stateOf(d, n), owner = ownerName(d, n);
  const release = (skip) => confirm({
    title: `Release partition ${n} of ${name}?`, danger: skip, action: "release", button: skip ? "Skip and release" : "Release",
    text: skip ? `${note.quarantine.event ? `Event ${note.quarantine.event} is passed over, unprocessed` : "The row whose end was the cause stays without one"}.` : "The event that was the cause is processed again. Mend the cause first.",
    body: { processor: name, partition: n, skip },
  });
  return html`<section class="partition" aria-label=${`partition ${n}`} data-chosen=${n}>
    <h3>Partition ${n} <span class=${`tag ${state === "ok" ? "good" : "warn"}`}>${state}</span></h3>
    ${!note.err && html`<dl class="figures">
      <${Figure} label="owner" tone="name">${owner}<//><${Figure} label="lease">${d.owner[n] < 0 ? dash : duration(d.lease[n])}<//>
      <${Figure} label="epoch">${d.epoch[n] || dash}<//><${Figure} label="lag">${atLeast(d.lag[n], note.lag_more)}<//>
      <${Figure} label="oldest">${age(d.age[n], d.lag[n])}<//><${Figure} label="pending">${count(orNull(d.pending[n]))}<//>
      <${Figure} label="done /s">${rate(d.done[n])}<//><${Figure} label="entries">${count(d.length[n])}<//>
      <${Figure} label="delayed">${count(d.delayed[n])}<//><${Figure} label="parked">${count(d.parked[n])}<//>
      <${Figure} label="dead">${count(d.dead[n])}<//><${Figure} label="lost">${count(d.lost[n])}<//>
      ${d.outboxes && d.outboxes[n] && html`<${Figure} label="in the outbox">${count(d.outboxes[n])}<//>`}
      ${note.pin && html`<${Figure} label="pinned to" tone="name">${note.pin}<//>`}
    </dl>`}
    ${note.err && html`<p class="trouble">${note.err}</p>`}
    ${note.running_since && html`<p>Its function has been running since <${Ago} t=${note.running_since} />.</p>`}
    ${note.forgotten && html`<p class="quarantine">Redis had forgotten events, found <${Ago} t=${note.forgotten.at} />: ${note.forgotten.text}</p>`}
    ${note.not_reading && html`<p class="trouble">Reads of its owner have failed since <${Ago} t=${note.not_reading} />: the log of worker ${owner} says why.</p>`}
    ${note.quarantine && html`<div class="quarantine">Quarantined <${Ago} t=${note.quarantine.at} /> by ${note.quarantine.worker || "?"}, at event <code>${note.quarantine.event || "none"}</code>: <${Why} text=${note.quarantine.reason} /></div>`}
    ${note.halt && html`<div class="quarantine">Worker ${note.halt.worker || "?"} halted <${Ago} t=${note.halt.at} />${note.halt.event && html` at event <code>${note.halt.event}</code>`}: <${Why} text=${note.halt.reason} />
      Mend what fails and start a worker${note.halt.event && html`, or pass the event over, unprocessed, while none runs: <code>processor reset ${name} --to ${note.halt.event}</code>`}</div>`}
    ${actions && html`<div class="buttons">${note.quarantine && html`<button type="button" onClick=${() => release(false)}>Release</button>${note.quarantine.event && html`<button type="button" class="danger" onClick=${() => release(true)}>Skip and release</button>`}`}
      <${Held} scope=${`partition:${name}/${n}`} what=${`partition ${n} of ${name}`} rules=${rules} /></div>`}
  </section>`;
}

// Linked is a number of events with a link to the page that lists them.
const Linked = ({ n, route, about }) => (n > 0 ? html`<a href=${`#/${route}/${about}`}><${Number} of=${n} field=${route} /></a>` : html`<${Number} of=${n} field=${route} />`);

function Members({ d }) {
  const owned = (m) => d.owner.flatMap((o, n) => (o >= 0 && d.owners[o] === m.worker ? [n] : []));
  return html`<section><h2>Members</h2><${Table} label="members" head=${["worker", "joined", "heartbeat", "owns", "assigned", "pinned", "executor"]} empty=${d.members.length === 0 && "No worker runs it."}>
    ${d.members.map((m) => html`<tr key=${m.executor} data-member=${m.worker}><th scope="row">${m.worker}${m.drained && html` <span class="tag warn">drained</span>`}</th>
      <td data-label="joined"><${Ago} t=${m.joined_at} /></td>
      <td data-label="heartbeat">${m.alive ? `expires in ${duration(m.heartbeat_left)}` : html`<span class="tag bad">dead</span>`}</td>
      <td data-label="owns">${ranges(owned(m))}</td><td data-label="assigned">${ranges(m.assigned)}</td><td data-label="pinned">${ranges(m.pinned)}</td>
      <td data-label="executor"><code>${m.executor}</code></td></tr>`)}<//></section>`;
}

export function Processor({ sample, about, actions }) {
  const [chosen, choose] = useState(null);
  const { hello } = useStore(live);
  const { at, series } = useStore(past);
  const log = useStore(moves).filter((m) => m.processor === about);
  const all = processorsOf(sample), p = all.find((x) => x.name === about);
  const picker = html`<${Picker} label="processor" route="processor" names=${all.map((x) => x.name)} value=${about} />`;
  if (!p) return html`<div class="bar"><h1>Processors</h1>${picker}</div><p class="empty">${about ? `There is no processor ${about}.` : "No processor has run yet."}</p>`;
  const t = p.totals, s = series[about] || { lag: [], appended: [], done: [] };
  const d = sample.detail && `${sample.detail.stream}/${sample.detail.processor}` === about ? sample.detail : null;
  const every = hello ? hello.every : 2000;
  return html`<div class="bar"><h1>${about}</h1>${picker}${actions && html`<${Held} scope=${scopeOf(p)} what=${about} rules=${sample.rules} />`}</div>
    ${p.members_err && html`<p class="trouble">${p.members_err}</p>`}
    <dl class="figures" data-processor=${about}>
      <${Figure} label="lag"><${Number} of=${t.lag} more=${t.lag_more} field="lag" /><//><${Figure} label="oldest">${age(t.age, t.lag)}<//>
      <${Figure} label="appended /s">${rate(p.rate)}<//><${Figure} label="done /s">${rate(p.done)}<//>
      <${Figure} label="pending"><${Number} of=${orNull(t.pending)} field="pending" /><//>
      <${Figure} label="owned" tone=${t.owned < p.partitions ? "warn" : ""}>${t.owned}/${p.partitions}<//>
      <${Figure} label="members">${p.members.length}<//><${Figure} label="generation">${p.generation}<//>
      <${Figure} label="parked"><${Linked} n=${t.parked} route="parked" about=${about} /><//>
      <${Figure} label="dead letters" tone=${t.dead ? "warn" : ""}><${Linked} n=${t.dead} route="dead" about=${about} /><//>
      <${Figure} label="lost"><${Number} of=${t.lost} field="lost" warn /><//><${Figure} label="quarantined" tone=${t.quarantined ? "bad" : ""}>${t.quarantined}<//>
      ${t.outputs && html`<${Figure} label="in outboxes"><${Number} of=${t.outputs} field="outputs" /><//>`}
    </dl>
    <section><h2>Partitions <span class="facts"><span>${plural(p.partitions, "partition")}, choose one to see all of it</span></span></h2>
      ${d ? html`<${Map} d=${d} chosen=${chosen} choose=${choose} />` : html`<p class="empty">Waiting for the partitions.</p>`}
      ${d && chosen !== null && chosen < d.owner.length && html`<${Partition} d=${d} n=${chosen} actions=${actions} rules=${sample.rules} name=${about} />`}</section>
    <div class="charts"><${Chart} title="Lag, in events" whole=${true} at=${at} every=${every} lines=${[{ label: "lag", colour: "--c3", fill: "--c3-pale", values: s.lag }]} />
      <${Chart} title="Events per second" at=${at} every=${every} lines=${[{ label: "appended", colour: "--c2", values: s.appended }, { label: "done", colour: "--c1", dash: [4, 3], values: s.done }]} /></div>
    <${Tables} key=${about} about=${about} />
    ${d && html`<${Members} d=${d} />`}
    <${Moves} log=${log} />`;
}
