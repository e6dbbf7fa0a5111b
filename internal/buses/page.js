// The page of webhook buses: topics, subscribers with the one that is furthest behind first, and one of them.
import { html } from "../vendor/preact-htm.module.js";
import { list } from "../api.js";
import { confirm } from "../dialog.js";
import { dash } from "../format.js";
import { Ago, Number, Table, Text, Trouble, useList } from "../parts.js";

const every = 5000; // ms between two looks
const most = 200; // subscribers that are listed
const tones = { failing: "warn", waiting: "warn", paused: "warn", disabled: "bad", unreadable: "bad" };
const numbers = ["events", "length", "queued", "sent", "failed", "dropped", "dead"], bad = ["failed", "dropped", "dead"];

const heads = (names) => names.map((name) => ({ text: name, number: numbers.includes(name) }));

// cells are values of a row, by name: a number, the time of the oldest event, a state, or a text.
const cells = (names, row) => names.map((name) => {
  if (numbers.includes(name)) return html`<td data-label=${name} class="right"><${Number} of=${row[name]} warn=${bad.includes(name)} /></td>`;
  if (name === "oldest") return html`<td data-label=${name}><${Ago} t=${row[name]} /></td>`;
  if (name === "state") return html`<td data-label=${name}><span class=${`tag ${tones[row.state] || ""}`} title=${row.by}>${row.state}${row.why ? `: ${row.why}` : ""}</span></td>`;
  return html`<td data-label=${name} class="payload">${row[name] || dash}</td>`;
});

function Topics({ topics }) {
  const names = ["publisher", "events", "length", "oldest"];
  return html`<${Table} label="topics" head=${["topic", ...heads(names)]} empty=${topics.length === 0 && "There is no topic."}>
    ${topics.map((t) => html`<tr key=${`${t.bus}/${t.topic}`} data-topic=${t.topic}><th scope="row">${t.bus}/${t.topic}</th>${cells(names, t)}</tr>`)}<//>`;
}

function Subscribers({ all, actions, again }) {
  const names = ["state", "queued", "oldest", "sent", "failed", "dropped", "dead", "error"];
  return html`<${Table} label="subscribers" head=${["subscriber", ...heads(names), ...(actions ? [""] : [])]} empty=${all.length === 0 && "There is no subscriber."}>
    ${all.map((s) => {
      const on = `${s.bus}/${s.subscriber}`, held = s.state === "paused" || s.state === "disabled";
      const act = (button, text, lasting) => confirm({ title: `${button} ${on}?`, text, button, action: button.toLowerCase(), lasting, body: { scope: `processor:${on}` }, then: again });
      return html`<tr key=${on} data-subscriber=${on}><th scope="row"><a href=${`#/webhook/${on}`}>${on}</a></th>${cells(names, s)}
        ${actions && html`<td>${!held && html`<button type="button" onClick=${() => act("Pause", "No request begins; what is published meanwhile waits.", true)}>Pause</button>`}
          ${s.state !== "ok" && html`<button type="button" onClick=${() => act("Resume", "It goes on, and its next attempt is made now.")}>Resume</button>`}</td>`}</tr>`;
    })}<//>`;
}

// One is a subscriber as the command line prints it.
function One({ s, on }) {
  return html`<section data-one=${on}><h2>${on}</h2>
    ${s ? html`<${Text} of=${{ text: JSON.stringify(s) }} json=${true} />` : html`<p class="hint">It is none of these subscribers.</p>`}
    <p><a href=${`#/dead/${on}`}>Dead letters</a></p></section>`;
}

export function View({ sample, about, actions }) {
  const turn = Math.floor(sample.at / every);
  const { value: topics, err } = useList((signal) => list("webhook/topics", {}, signal), [turn]);
  const { value: all, err: other, again } = useList((signal) => list("webhook/subs", { limit: most }, signal), [turn]);
  return html`<div class="bar"><h1>Webhooks</h1></div><${Trouble} err=${err || other} />
    ${topics && html`<section><h2>Topics</h2><${Topics} topics=${topics} /></section>`}
    ${all && html`<section><h2>Subscribers</h2><${Subscribers} all=${all} actions=${actions} again=${again} />
      ${all.length === most && html`<p class="hint">These are the ${most} that are furthest behind.</p>`}</section>`}
    ${all && about && html`<${One} s=${all.find((s) => `${s.bus}/${s.subscriber}` === about)} on=${about} />`}`;
}
