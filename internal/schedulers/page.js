// The page of schedulers: jobs, the grid of one with times in columns, and a run with its log.
import { html } from "../vendor/preact-htm.module.js";
import { list } from "../api.js";
import { confirm } from "../dialog.js";
import { dash, duration, moment } from "../format.js";
import { Figure, Table, Trouble, useList } from "../parts.js";

const every = 5000; // ms between two looks
const letters = { waiting: "w", held: "h", queued: "q", running: "R", retry: "r", success: "S", failed: "F", timeout: "T", crashed: "C", skipped: "k", cancelled: "x", cleared: "c" };
const tones = { failed: "bad", timeout: "bad", crashed: "bad", held: "warn", retry: "warn", running: "warn" };

const link = (...parts) => `#/schedule/${parts.map(encodeURIComponent).join("/")}`;
const short = (t) => t.replace(/:00Z$/, "Z").replace("T00:00Z", "");

function Jobs({ jobs, actions, again }) {
  return html`<${Table} label="jobs" head=${["job", "tasks", "last", "next", "last runs", "held", ...(actions ? [""] : [])]} empty=${jobs.length === 0 && "There is no job."}>
    ${jobs.map((j) => {
      const on = `${j.scheduler}/${j.job}`, next = j.triggers.filter((t) => t.at).map((t) => t.next).sort()[0], last = j.triggers.map((t) => t.last || "").sort().pop();
      const [button, text] = j.pause ? ["Resume", "Missed times are caught up as their trigger says."] : ["Pause", "Nothing of it starts; what runs goes on."];
      const what = { title: `${button} ${on}?`, text, button, action: button.toLowerCase(), lasting: !j.pause, body: { scope: `processor:${on}` }, then: again };
      return html`<tr key=${on} data-job=${on}><th scope="row"><a href=${link(j.scheduler, j.job)}>${on}</a></th><td data-label="tasks">${j.tasks}</td>
        <td data-label="last">${moment(last)}</td><td data-label="next">${moment(next)}</td>
        <td data-label="last runs">${Object.entries(j.last).map(([state, n]) => `${n} ${state}`).join(", ") || dash}</td>
        <td data-label="held">${j.pause ? html`<span class="tag warn">paused${j.pause.why ? `: ${j.pause.why}` : ""}</span>` : dash}</td>
        ${actions && html`<td><button type="button" onClick=${() => confirm(what)}>${button}</button></td>`}</tr>`;
    })}<//>`;
}

function Grid({ scheduler, job, turn }) {
  const on = `${scheduler}/${job}`;
  const { value: g, err } = useList((signal) => list("schedule/grid", { arg: job, scheduler }, signal), [on, turn]);
  const times = g ? [...g.times].reverse() : [];
  return html`<section data-grid=${on}><h2>${on}</h2><${Trouble} err=${err} />
    ${g && html`<${Table} label="grid" head=${["task", ...times.map(short)]} empty=${times.length === 0 && "Nothing has run yet."}>
      ${g.tasks.map((row) => html`<tr key=${row.task} data-task=${row.task}><th scope="row">${row.task}</th>
        ${times.map((t) => {
          const c = row.cells.find((one) => one.time === t);
          return html`<td key=${t} data-label=${short(t)}>${c ? html`<a class=${`tag ${tones[c.state] || ""}`} title=${`${c.state}, attempt ${c.generation}.${c.attempt}${c.error ? `: ${c.error}` : ""}${c.waits_for ? `, waits for ${c.waits_for.join(", ")}` : ""}`} href=${link(...on.split("/"), row.task, t)}>${letters[c.state] || "?"}</a>` : dash}</td>`;
        })}</tr>`)}<//>
      <p class="hint">${Object.entries(letters).map(([state, letter]) => `${letter} ${state}`).join(", ")}</p>`}</section>`;
}

function Run({ scheduler, job, task, time, actions, turn }) {
  const at = `${scheduler}/${job}/${task}`, arg = [`${job}/${task}`, time];
  const { value: runs, again } = useList((signal) => list("schedule/runs", { arg, scheduler }, signal), [at, time, turn]);
  const { value: log, err } = useList((signal) => list("schedule/logs", { arg, scheduler }, signal), [at, time, turn]);
  const r = log && runs && runs[0];
  const acts = [
    ["Activate", "activate", "It runs now, done or not, and then what hangs on it."],
    ["Clear", "clear", "What it has, and what hangs on it, is void."],
    ["Cancel", "cancel", "Its run ends, and nothing follows from it."],
  ];
  return html`<section data-run=${`${at}@${time}`}><h2>${task} at ${short(time)}</h2><${Trouble} err=${err} />
    ${r && html`<dl class="figures"><${Figure} label="state" tone="name">${r.state}<//><${Figure} label="attempt">${r.generation}.${r.attempt}<//>
        <${Figure} label="begun">${moment(r.begun)}<//><${Figure} label="took">${r.begun && r.ended ? duration(Date.parse(r.ended) - Date.parse(r.begun)) : dash}<//>
        <${Figure} label="priority">${r.priority}<//></dl>
      ${r.error && html`<p class="payload">${r.error}</p>`}
      ${r.waits_for && html`<p class="hint">It waits for ${r.waits_for.join(", ")}.</p>`}
      ${actions && html`<div class="filters">${acts.map(([button, kind, text]) => html`<button type="button" key=${kind} onClick=${() => confirm({ title: `${button} ${task} at ${short(time)}?`, text, button, action: `schedule/${kind}`, body: { on: at, arg, scheduler }, then: again })}>${button}</button>`)}</div>`}
      ${r.attempts && html`<${Table} label="attempts" head=${["attempt", "begun", "ended", "error"]}>${r.attempts.map((a) => html`<tr key=${a.attempt}><th scope="row">${a.attempt}</th>
        <td data-label="begun">${moment(a.begun)}</td><td data-label="ended">${moment(a.ended)}</td><td data-label="error" class="payload">${a.error || "interrupted, or its worker was lost"}</td></tr>`)}<//>`}
      <h3>Log</h3>${log.length ? html`<pre class="record" data-log>${log.map((l) => `${l.at.slice(11, 23)} ${l.attempt} ${l.from}: ${l.text}\n`).join("")}</pre>` : html`<p class="hint">It has written nothing, or that is older than a day.</p>`}`}</section>`;
}

export function View({ sample, about, actions }) {
  const turn = Math.floor(sample.at / every);
  const { value, err, again } = useList((signal) => list("schedule/jobs", {}, signal), [turn]);
  const [scheduler, job, task, time] = about.split("/");
  return html`<div class="bar"><h1>Schedule</h1></div><${Trouble} err=${err} />
    ${value && html`<${Jobs} jobs=${value} actions=${actions} again=${again} />`}
    ${job && html`<${Grid} scheduler=${scheduler} job=${job} turn=${turn} />`}
    ${time && html`<${Run} scheduler=${scheduler} job=${job} task=${task} time=${time} actions=${actions} turn=${turn} />`}`;
}
