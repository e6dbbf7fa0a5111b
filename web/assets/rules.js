import { html, useState } from "./vendor/preact-htm.module.js";
import { confirm } from "./dialog.js";
import { dash, moment } from "./format.js";
import { Ago, processorsOf, Table, Trouble } from "./parts.js";
import { Held } from "./processor.js";

const remove = { pause: ["resume", "Resume"], block: ["unblock", "Unblock"] };

export function Rules({ sample, actions }) {
  const scopes = ["app", ...sample.streams.map((s) => `stream:${s.stream}`), ...processorsOf(sample).map((p) => `processor:${p.name}`)];
  const [scope, setScope] = useState(scopes[0]);
  return html`<div class="bar"><h1>Rules</h1></div>
    <p class="hint">What is paused, blocked or quarantined takes no event; nothing is lost. A pause is an operator's, a block an administrator's; a quarantine began by itself, at a failure.</p>
    <${Trouble} err=${sample.rules_err} />
    ${actions && html`<div class="filters"><label class="field">scope <select value=${scope} onChange=${(e) => setScope(e.target.value)}>${scopes.map((s) => html`<option value=${s}>${s}</option>`)}</select></label>
      <${Held} scope=${scope} what=${scope === "app" ? "the whole app" : scope} rules=${sample.rules} /></div>`}
    <${Table} label="rules" head=${["scope", "kind", "who", "since", "until", "why", ...(actions ? [""] : [])]} empty=${sample.rules.length === 0 && "Nothing is paused, blocked or quarantined."}>
      ${sample.rules.map((r) => {
        const [action, word] = remove[r.kind] || ["release", "Release"];
        const [, processor, partition] = r.scope.match(/^partition:(.*)\/(\d+)$/) || [];
        const ask = r.kind === "quarantine"
          ? { title: `Release partition ${partition} of ${processor}?`, text: `Event ${r.event || "that was the cause"} is processed again. Mend the cause first.`, button: word, action, body: { processor, partition: Number(partition), skip: false } }
          : { title: `${word} ${r.scope}?`, text: "It takes events again, unless something else holds it back.", button: word, action, body: { scope: r.scope } };
        return html`<tr key=${`${r.kind} ${r.scope}`} data-rule=${`${r.kind} ${r.scope}`}><th scope="row">${r.kind === "quarantine" ? html`<a href=${`#/processor/${processor}`}>${r.scope}</a>` : r.scope}${r.absent && " (not there)"}</th><td data-label="kind"><span class="tag warn">${r.kind}</span></td><td data-label="who">${r.who}</td>
          <td data-label="since"><${Ago} t=${r.at} /></td><td data-label="until">${r.until ? moment(r.until) : r.kind === "quarantine" ? "resumed" : "removed"}</td><td data-label="why" class="payload">${r.event && html`at event <code>${r.event}</code>: `}${r.why || dash}</td>
          ${actions && html`<td><button type="button" onClick=${() => confirm(ask)}>${word}</button></td>`}</tr>`;
      })}<//>`;
}
