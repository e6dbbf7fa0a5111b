import { html } from "./vendor/preact-htm.module.js";
import { clock } from "./format.js";

export function Moves({ log, named }) {
  const shown = log.slice(-40).reverse();
  return html`<section><h2>Rebalances <span class="facts"><span>while a dashboard was open, the newest first</span></span></h2>
    ${shown.length === 0 ? html`<p class="empty">No partition has changed hands.</p>` : html`<ol class="moves" aria-live="polite">${shown.map((m) => html`<li key=${`${m.at}/${m.processor}/${m.partition}`}>
      <time>${clock(m.at)}</time> ${named && html`<a href=${`#/processor/${m.processor}`}>${m.processor}</a>`} <span>partition <b>${m.partition}</b></span>
      <span class="from">${m.from || "no owner"}</span> <span aria-label="to">→</span> <span class="to">${m.to || "no owner"}</span> <span class="pale">epoch ${m.epoch}</span></li>`)}</ol>`}</section>`;
}
