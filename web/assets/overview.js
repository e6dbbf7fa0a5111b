import { html } from "./vendor/preact-htm.module.js";
import { Chart, Spark } from "./chart.js";
import { atLeast, count, dash, duration, orNull, plural, rate } from "./format.js";
import { live, moves, past } from "./live.js";
import { Moves } from "./moves.js";
import { Age, Figure, Number, processorsOf, Rate, Table } from "./parts.js";
import { useStore } from "./store.js";

const colours = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];

// sum adds rates; an unknown rate makes the sum unknown.
const sum = (values) => values.reduce((a, v) => (a === null || v === null ? null : a + v), 0);

// concerns lists what needs attention.
function concerns(sample, all) {
  const out = [];
  const say = (tone, name, route, text) => out.push({ tone, name, href: `#/${route}/${name}`, text });
  for (const p of all) {
    const t = p.totals, dead = p.members.filter((m) => !m.alive).length;
    if (t.quarantined) say("bad", p.name, "processor", `${plural(t.quarantined, "partition")} quarantined`);
    if (t.halted) say("bad", p.name, "processor", `a worker halted at an event of ${plural(t.halted, "partition")}`);
    if (p.not_reading) say("bad", p.name, "processor", `${plural(p.not_reading, "partition")} not read by the owner`);
    if (p.members_err) say("bad", p.name, "processor", "membership cannot be read");
    if (t.unknown) say("bad", p.name, "processor", `${plural(t.unknown, "partition")} could not be looked at`);
    if (t.owned < p.partitions) say(t.lag > 0 ? "bad" : "warn", p.name, "processor", p.members.length ? `${plural(p.partitions - t.owned, "partition")} without owner` : "no worker runs it");
    if (t.outputs && dead === p.members.length) say("bad", p.name, "processor", `${plural(t.outputs, "output")} in outboxes, and no worker runs it`);
    if (dead) say("warn", p.name, "processor", `${plural(dead, "member")} without heartbeat`);
    if (t.forgotten) say("bad", p.name, "processor", `Redis has forgotten events of ${plural(t.forgotten, "partition")}`);
    if (t.lost) say("warn", p.name, "processor", `${plural(t.lost, "event")} lost`);
    if (t.dead) say("warn", p.name, "dead", plural(t.dead, "dead letter"));
    if (p.blocked) say("warn", p.name, "processor", `${plural(p.blocked, "partition")} blocked`);
    if (p.paused) say("warn", p.name, "processor", `${plural(p.paused, "partition")} paused`);
  }
  return out.sort((a, b) => (a.tone === "bad" ? 0 : 1) - (b.tone === "bad" ? 0 : 1));
}

function Figures({ sample, all }) {
  const total = (f) => all.reduce((n, p) => n + f(p.totals), 0);
  const more = all.some((p) => p.totals.lag_more), lag = total((t) => t.lag);
  const oldest = Math.max(0, ...all.map((p) => p.totals.age));
  const delayed = sample.streams.reduce((n, s) => n + s.delayed, 0);
  const dead = total((t) => t.dead), stopped = total((t) => t.quarantined);
  return html`<dl class="figures" aria-label="the app in numbers">
    <${Figure} label="lag"><span data-field="lag">${atLeast(lag, more)}</span><//>
    <${Figure} label="oldest">${lag > 0 ? duration(oldest) : dash}<//>
    <${Figure} label="appended /s">${rate(sum(sample.streams.map((s) => s.rate)))}<//>
    <${Figure} label=${all.length > 1 ? `done /s by all ${all.length}` : "done /s"}>${rate(sum(all.map((p) => p.done)))}<//>
    <${Figure} label="parked"><span data-field="parked">${count(total((t) => t.parked))}</span><//>
    <${Figure} label="delayed"><span data-field="delayed">${count(delayed)}</span><//>
    <${Figure} label="dead letters" tone=${dead ? "warn" : ""}><span data-field="dead">${count(dead)}</span><//>
    <${Figure} label="quarantined" tone=${stopped ? "bad" : ""}><span data-field="quarantined">${count(stopped)}</span><//>
  </dl>`;
}

function Charts({ all }) {
  const { at, series } = useStore(past);
  const { hello } = useStore(live);
  const every = hello ? hello.every : 2000;
  const shown = all.filter((p) => series[p.name]).sort((a, b) => b.totals.lag - a.totals.lag).slice(0, colours.length).sort((a, b) => a.name.localeCompare(b.name));
  const known = all.map((p) => series[p.name]).filter(Boolean);
  const added = (of, name) => at.map((_, i) => sum(of.map((s) => s[name][i])));
  return html`<div class="charts">
    <${Chart} title="Lag, in events" whole=${true} at=${at} every=${every} lines=${shown.map((p, i) => ({ label: p.name, colour: colours[i], values: series[p.name].lag }))} />
    <${Chart} title="Events per second" at=${at} every=${every} lines=${[
      { label: "appended, once per processor", colour: "--c2", values: added(known, "appended") },
      { label: "done, by all processors", colour: "--c1", dash: [4, 3], values: added(known, "done") },
    ]} />
  </div>`;
}

function Row({ p, lags }) {
  const t = p.totals;
  return html`<tr data-processor=${p.name}>
    <th scope="row"><a href=${`#/processor/${p.name}`}>${p.processor}</a>${p.blocked + p.paused > 0 && html` <span class="tag warn">${p.blocked ? "blocked" : "paused"}</span>`}${t.quarantined > 0 && html` <span class="tag bad">quarantined</span>`}</th>
    <td data-label="members" class="right"><${Number} of=${p.members.length} field="members" /></td>
    <td data-label="owned" class="right"><span class=${t.owned < p.partitions ? "warn" : ""}>${t.owned} of ${p.partitions}</span></td>
    <td data-label="lag" class="right"><${Number} of=${t.lag} more=${t.lag_more} field="lag" /></td>
    <td data-label="lag lately"><${Spark} values=${lags} /></td>
    <td data-label="oldest" class="right"><${Age} ms=${t.age} lag=${t.lag} /></td>
    <td data-label="done /s" class="right"><${Rate} of=${p.done} field="done" /></td>
    <td data-label="pending" class="right"><${Number} of=${orNull(t.pending)} field="pending" /></td>
    <td data-label="parked" class="right">${t.parked ? html`<a href=${`#/parked/${p.name}`}><${Number} of=${t.parked} field="parked" /></a>` : html`<${Number} of=${0} field="parked" />`}</td>
    <td data-label="dead" class="right">${t.dead ? html`<a href=${`#/dead/${p.name}`}><${Number} of=${t.dead} field="dead" warn /></a>` : html`<${Number} of=${0} field="dead" />`}</td>
    <td data-label="lost" class="right"><${Number} of=${t.lost} field="lost" warn /></td>
  </tr>`;
}

const number = (text) => ({ text, number: true });
const head = ["processor", number("members"), number("owned"), number("lag"), "lag lately", number("oldest"), number("done /s"), number("pending"), number("parked"), number("dead"), number("lost")];

export function Overview({ sample }) {
  const all = processorsOf(sample);
  const { series } = useStore(past);
  const worries = concerns(sample, all);
  const log = useStore(moves);
  return html`<h1 class="hidden">Overview</h1>
    <${Figures} sample=${sample} all=${all} />
    <section aria-label="what needs attention">${worries.length === 0
      ? html`<p class="calm">Nothing needs attention.</p>`
      : html`<ul class="concerns">${worries.map((w) => html`<li class=${w.tone}><a href=${w.href}><b>${w.name}</b> ${w.text}</a></li>`)}</ul>`}
      ${sample.rules_err && html`<p class="trouble">${sample.rules_err}</p>`}</section>
    <${Charts} all=${all} />
    ${sample.streams.map((s) => html`<section class="stream" key=${s.stream}>
      <h2><a href=${`#/events/${s.stream}`}>${s.stream}</a> <span class="facts"><span>${plural(s.partitions, "partition")}</span> <span>${plural(s.length, "entry").replace("entrys", "entries")}</span>
        <span>${`${rate(s.rate)} appended /s`}</span> ${s.delayed > 0 && html`<a href=${`#/delayed/${s.stream}`}>${count(s.delayed)} delayed</a>`} <span>${s.codec}</span></span></h2>
      ${s.processors.length === 0 ? html`<p class="empty">No processor has run yet.</p>` : html`<${Table} label=${`processors of ${s.stream}`} head=${head}>
        ${s.processors.map((p) => {
          const name = `${s.stream}/${p.processor}`;
          return html`<${Row} key=${name} p=${{ ...p, name }} lags=${(series[name] || { lag: [] }).lag} />`;
        })}<//>`}</section>`)}
    ${sample.streams.length === 0 && html`<p class="empty">This app has no stream yet: one is there once something was sent to it, or a worker has run.</p>`}
    <${Moves} log=${log} named />`;
}
