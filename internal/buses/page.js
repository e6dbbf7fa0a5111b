// The page of webhook buses: topics, subscribers with the one that is furthest behind first, and one of them.
import { html } from "../vendor/preact-htm.module.js";
import { list } from "../api.js";
import { confirm } from "../dialog.js";
import { dash, duration, moment } from "../format.js";
import { Ago, Figure, Number, Table, Trouble, useList } from "../parts.js";

const every = 5000; // ms between two looks
const most = 200; // subscribers that are listed
const tones = { failing: "warn", waiting: "warn", paused: "warn", disabled: "bad", unreadable: "bad" };

const link = (...parts) => `#/webhook/${parts.map(encodeURIComponent).join("/")}`;

const State = ({ s }) => html`<span class=${`tag ${tones[s.state] || ""}`} title=${s.by}>${s.state}${s.why ? `: ${s.why}` : ""}</span>`;

function Topics({ topics }) {
  return html`<${Table} label="topics" head=${["topic", "publisher", { text: "events", number: true }, { text: "length", number: true }, "oldest", { text: "subscribers", number: true }]} empty=${topics.length === 0 && "There is no topic."}>
    ${topics.map((t) => html`<tr key=${`${t.bus}/${t.topic}`} data-topic=${t.topic}><th scope="row">${t.bus}/${t.topic}</th>
      <td data-label="publisher">${t.publisher || dash}</td><td data-label="events" class="right"><${Number} of=${t.events} /></td>
      <td data-label="length" class="right"><${Number} of=${t.length} /></td><td data-label="oldest"><${Ago} t=${t.oldest} /></td>
      <td data-label="subscribers" class="right"><${Number} of=${t.subscribers} /></td></tr>`)}<//>`;
}

function Subscribers({ all, actions, again }) {
  const number = (text) => ({ text, number: true });
  return html`<${Table} label="subscribers" head=${["subscriber", "state", number("queued"), "oldest", number("sent"), number("failed"), number("dropped"), number("dead"), "error", ...(actions ? [""] : [])]} empty=${all.length === 0 && "There is no subscriber."}>
    ${all.map((s) => {
      const on = `${s.bus}/${s.subscriber}`, held = s.state === "paused" || s.state === "disabled";
      const act = (button, text, lasting) => confirm({ title: `${button} ${on}?`, text, button, action: button.toLowerCase(), lasting, body: { scope: `processor:${on}` }, then: again });
      const cell = (name, warn) => html`<td data-label=${name} class="right"><${Number} of=${s[name]} warn=${warn} /></td>`;
      return html`<tr key=${on} data-subscriber=${on}><th scope="row"><a href=${link(s.bus, s.subscriber)}>${on}</a></th><td data-label="state"><${State} s=${s} /></td>
        ${cell("queued")}<td data-label="oldest"><${Ago} t=${s.oldest} /></td>${cell("sent")}${cell("failed", true)}${cell("dropped", true)}${cell("dead", true)}
        <td data-label="error" class="payload">${s.error || dash}</td>
        ${actions && html`<td>${!held && html`<button type="button" onClick=${() => act("Pause", "No request begins; what is published meanwhile waits.", true)}>Pause</button>`}
          ${s.state !== "ok" && html`<button type="button" onClick=${() => act("Resume", "It goes on, and its next attempt is made now.")}>Resume</button>`}</td>`}</tr>`;
    })}<//>`;
}

// shown returns a value of JSON for people.
function shown(name, v) {
  if (name === "timeout" || name === "took") return duration(v);
  if (typeof v === "boolean") return v ? "yes" : "no";
  return /^\d{4}-\d\d-\d\dT/.test(v) ? moment(v) : v;
}

// Fields are what an object has, but for what it contains, and errors, which may be long.
const Fields = ({ of }) => html`<dl class="figures">${Object.entries(of).filter(([name, v]) => typeof v !== "object" && name !== "error").map(([name, v]) =>
  html`<${Figure} key=${name} label=${name.replace("_", " ")} tone=${["why", "host"].includes(name) && "name"}>${shown(name, v)}<//>`)}</dl>`;

function One({ bus, name, turn }) {
  const { value: s, err } = useList((signal) => list("webhook/subs", { arg: name, bus }, signal), [bus, name, turn]);
  return html`<section data-one=${`${bus}/${name}`}><h2>${bus}/${name}</h2><${Trouble} err=${err} />
    ${s && html`<${Fields} of=${s} />
      <h3>Open batch</h3>${s.open ? html`<div data-open><${Fields} of=${s.open} /></div>` : html`<p class="hint">Nothing is on its way.</p>`}
      <h3>Last answer</h3>${s.last ? html`<div data-last><${Fields} of=${s.last} />${s.last.error && html`<p class="payload">${s.last.error}</p>`}</div>` : html`<p class="hint">Nothing has been sent.</p>`}
      <${Table} label="topics of the subscriber" head=${["topic", "behind", "ends with"]} empty=${s.topics.length === 0 && "It gets no topic."}>
        ${s.topics.map((t) => html`<tr key=${t.log}><th scope="row">${t.log}</th><td data-label="behind">${t.position}</td><td data-label="ends with">${t.end || dash}</td></tr>`)}<//>
      <p><a href=${`#/dead/${bus}/${name}`}>Dead letters</a></p>`}</section>`;
}

export function View({ sample, about, actions }) {
  const turn = Math.floor(sample.at / every);
  const { value: topics, err } = useList((signal) => list("webhook/topics", {}, signal), [turn]);
  const { value: all, err: other, again } = useList((signal) => list("webhook/subs", { limit: most }, signal), [turn]);
  const [bus, name] = about.split("/");
  return html`<div class="bar"><h1>Webhooks</h1></div><${Trouble} err=${err || other} />
    ${topics && html`<section><h2>Topics</h2><${Topics} topics=${topics} /></section>`}
    ${all && html`<section><h2>Subscribers</h2><${Subscribers} all=${all} actions=${actions} again=${again} />
      ${all.length === most && html`<p class="hint">These are the ${most} that are furthest behind.</p>`}</section>`}
    ${name && html`<${One} bus=${bus} name=${name} turn=${turn} />`}`;
}
