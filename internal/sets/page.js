// The page of sets: a row for each stage, and an entity with its visits.
import { html, useState } from "../vendor/preact-htm.module.js";
import { list } from "../api.js";
import { confirm } from "../dialog.js";
import { count, dash, duration, moment } from "../format.js";
import { Ago, Figure, Number, Table, Text, Trouble, useList } from "../parts.js";
import { Held } from "../processor.js";

const every = 5000; // ms between two looks

const link = (set, id) => `#/stage/${[set, id].map(encodeURIComponent).join("/")}`;

const Linked = ({ n, route, about, warn }) => (n > 0 && about ? html`<a href=${`#/${route}/${about}`}><${Number} of=${n} warn=${warn} /></a>` : html`<${Number} of=${n} />`);

function Stages({ sets, actions, rules }) {
  const rows = sets.flatMap((s) => [{ ...s.touches, set: s.set }, ...s.stages.map((one) => ({ ...one, set: s.set, name: `${s.set}/${one.stage}` }))]);
  return html`<${Table} label="stages" head=${["stage", "waiting", "due", "late", "running", "failing", "dead", "held", ...(actions ? [""] : [])]} empty=${rows.length === 0 && "There is no set."}>
    ${rows.map((r) => html`<tr key=${r.name || r.set} data-stage=${r.name || r.set}><th scope="row">${r.name || `${r.set} (touches)`}</th>
      <td data-label="waiting"><${Number} of=${r.waiting} /></td><td data-label="due"><${Number} of=${r.due} /></td>
      <td data-label="late">${r.late > 0 ? duration(r.late) : dash}</td><td data-label="running"><${Number} of=${r.running} /></td>
      <td data-label="failing"><${Linked} n=${r.failing} route="parked" about=${r.name} /></td>
      <td data-label="dead"><${Linked} n=${r.dead} route="dead" about=${r.name} warn /></td>
      <td data-label="held">${r.held ? html`<span class="tag warn">${r.held}</span>` : dash}</td>
      ${actions && html`<td>${r.name && html`<${Held} scope=${`processor:${r.name}`} what=${r.name} rules=${rules} />`}</td>`}</tr>`)}<//>`;
}

function Find({ sets, set, id }) {
  const [name, choose] = useState(set || sets[0].set);
  const submit = (e) => {
    e.preventDefault();
    location.hash = link(name, new FormData(e.target).get("id"));
  };
  return html`<form class="filters" role="search" onSubmit=${submit} autocomplete="off">
    <label class="field">set <select value=${name} onChange=${(e) => choose(e.target.value)}>${sets.map((s) => html`<option value=${s.set}>${s.set}</option>`)}</select></label>
    <label class="field">ID <input name="id" size="24" required defaultValue=${id} /></label><button type="submit">Show</button></form>`;
}

const stateOf = (v) => (v.running ? "runs" : v.died ? "dead" : v.reason === "loop" ? "slowed down" : v.due ? "waits" : dash);

// Acts are what can be done with the visit of a stage, or with the touch.
function Acts({ e, v, then }) {
  const on = v.stage ? `${e.set}/${v.stage}` : e.set, what = `${v.stage || "touch"} of ${e.id}`;
  const again = v.died
    ? { title: `Retry ${what}?`, text: "Its attempts begin with 1 again.", button: "Retry", action: "retry-dead", body: { processor: on, ids: [e.id] }, then }
    : v.stage
      ? { title: `Visit ${e.id} by ${v.stage}?`, text: "The stage visits the entity now, if it wants it.", button: "Visit", action: "stage/visit", body: { on, arg: [on, e.id] }, then }
      : { title: `Touch ${e.id}?`, text: "All stages are asked whether they want to visit it.", button: "Touch", action: "stage/touch", body: { on, arg: [on, e.id] }, then };
  return html`<button type="button" disabled=${v.running} onClick=${() => confirm(again)}>${again.button}</button>`;
}

function Entity({ sets, set, id, actions, turn }) {
  const { value: e, err, again } = useList((signal) => list("stage/entity", { set, id }, signal), [set, id, turn]);
  const stages = (sets.find((s) => s.set === set) || { stages: [] }).stages.map((s) => s.stage);
  const visits = e ? ["", ...stages].map((stage) => e.visits.find((v) => v.stage === stage) || { stage }) : [];
  return html`<section data-entity=${id}><h2>${id}</h2><${Trouble} err=${err} />
    ${e && html`<dl class="figures"><${Figure} label="set" tone="name">${e.set}<//><${Figure} label="partition">${e.partition}<//>
        <${Figure} label="version">${e.version || dash}<//><${Figure} label="bytes">${count(e.bytes)}<//></dl>
      ${e.version === 0 && html`<p class="hint">It is not in Redis: it does not exist, or its set keeps entities elsewhere.</p>`}
      ${e.Text ? html`<${Text} of=${{ text: e.Text }} json=${true} />` : e.version > 0 && html`<p class="hint">It is too large to show here, or only the app knows its codec.</p>`}
      <${Table} label="visits" head=${["stage", "state", "next visit", "attempts", "last failure", "error", ...(actions ? [""] : [])]}>
        ${visits.map((v) => html`<tr key=${v.stage} data-visit=${v.stage}><th scope="row">${v.stage || "(touch)"}</th><td data-label="state">${stateOf(v)}</td>
          <td data-label="next visit">${v.due ? moment(v.due) : dash}</td><td data-label="attempts">${v.attempts || dash}</td>
          <td data-label="last failure"><${Ago} t=${v.last} /></td><td data-label="error" class="payload">${v.error || dash}</td>
          ${actions && html`<td><${Acts} e=${e} v=${v} then=${again} /></td>`}</tr>`)}<//>`}</section>`;
}

export function View({ sample, about, actions }) {
  const turn = Math.floor(sample.at / every);
  const { value, err } = useList((signal) => list("stage/ls", {}, signal), [turn]);
  const at = about.indexOf("/"), set = at < 0 ? about : about.slice(0, at), id = at < 0 ? "" : about.slice(at + 1);
  return html`<div class="bar"><h1>Sets</h1></div><${Trouble} err=${err} />
    ${value && html`<p class="hint">${value.map((s) => `${s.set}: ${count(s.entities)} entities${s.slowed ? `, ${count(s.slowed)} of them slowed down, since stages change them too often` : ""}`).join(" · ")}</p>
      <${Stages} sets=${value} actions=${actions} rules=${sample.rules} />
      ${value.length > 0 && html`<section><${Find} sets=${value} set=${set} id=${id} /></section>`}
      ${id && html`<${Entity} sets=${value} set=${set} id=${id} actions=${actions} turn=${turn} />`}`}`;
}
