// The partition map: a cell for each partition, coloured by its lag.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.module.js";
import { atLeast, dash, plural } from "./format.js";

// step is the colour of a lag: 0, below 10, 100, 1000, 10000, or more.
export const step = (lag) => (lag <= 0 ? 0 : Math.min(5, Math.floor(Math.log10(lag)) + 1));
const steps = ["0", "1+", "10+", "100+", "1k+", "10k+"];

// stateOf returns a word for what stops a partition, as status does.
export function stateOf(d, n) {
  const note = d.notes[n] || {};
  if (note.err) return "unknown";
  if (note.quarantine) return "quarantined";
  if (note.halt) return "halted";
  if (note.held === "block") return "blocked";
  if (note.held === "pause") return "paused";
  if (note.not_reading) return "not reading";
  if (note.running_since) return "running long";
  return d.owner[n] < 0 ? "no owner" : "ok";
}

const letters = { unknown: "?", quarantined: "Q", halted: "H", blocked: "B", paused: "P", "not reading": "N", "running long": "R", "no owner": "–", ok: "" };

// lagOf is the lag of a partition, if known.
const lagOf = (d, n) => ((d.notes[n] || {}).err ? dash : atLeast(d.lag[n], (d.notes[n] || {}).lag_more));

export const ownerName = (d, n) => (d.owner[n] < 0 ? "no owner" : d.owners[d.owner[n]]);

// marks gives each owner a letter, the same while the set of owners is.
export function marks(d) {
  const names = [...d.owners].sort();
  return Object.fromEntries(names.map((name, i) => [name, { letter: i < 26 ? String.fromCharCode(65 + i) : String(i + 1), colour: `o${i % 8}` }]));
}

// useFlashes returns the partitions whose owner or epoch has just changed.
function useFlashes(d) {
  const before = useRef(null);
  const [flashes, set] = useState({});
  useEffect(() => {
    const was = before.current;
    before.current = { owner: d.owner.map((_, n) => ownerName(d, n)), epoch: d.epoch };
    if (!was || was.owner.length !== d.owner.length) return;
    const changed = d.owner.map((_, n) => n).filter((n) => was.owner[n] !== before.current.owner[n] || was.epoch[n] !== d.epoch[n]);
    if (changed.length) set((f) => ({ ...f, ...Object.fromEntries(changed.map((n) => [n, (f[n] || 0) + 1])) }));
  }, [d]);
  return flashes;
}

export function Map({ d, chosen, choose }) {
  const flashes = useFlashes(d);
  const cells = useRef(null);
  const owners = marks(d);
  const size = d.owner.length > 512 ? "small" : d.owner.length > 128 ? "middle" : "large";
  function move(e) {
    const all = [...cells.current.children], now = all.indexOf(document.activeElement);
    if (now < 0) return;
    const top = all[0].offsetTop, row = Math.max(1, all.findIndex((c) => c.offsetTop > top)), wide = all.at(-1).offsetTop === top ? all.length : row;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, ArrowDown: now + wide, ArrowUp: now - wide, Home: 0, End: all.length - 1 }[e.key];
    if (to === undefined || !all[to]) return;
    e.preventDefault();
    all[to].focus();
  }
  return html`<div class=${`map ${size}`}>
    <div class="cells" ref=${cells} role="group" aria-label=${`partition map of ${plural(d.owner.length, "partition")}; arrow keys move`} onKeyDown=${move}>
      ${d.owner.map((_, n) => {
        const state = stateOf(d, n), owner = ownerName(d, n), note = d.notes[n] || {};
        const text = `partition ${n}: ${owner}, lag ${lagOf(d, n)}, ${state}${note.pin ? `, pinned to ${note.pin}` : ""}`;
        const mark = owners[owner] || { letter: "", colour: "none" };
        return html`<button type="button" key=${`${n}/${flashes[n] || 0}`} data-partition=${n} data-lag=${d.lag[n]} data-owner=${d.owner[n] < 0 ? "" : owner} data-state=${state}
          class=${`cell l${step(d.lag[n])} ${mark.colour} ${state === "ok" ? "" : "odd"} ${flashes[n] ? "flash" : ""}`} title=${text} aria-label=${text}
          aria-pressed=${chosen === n} tabindex=${(chosen ?? 0) === n ? 0 : -1} onClick=${() => choose(chosen === n ? null : n)}>
          <span class="n">${n}</span><span class="lag">${lagOf(d, n)}</span><span class="state">${letters[state]}</span><span class="mark">${mark.letter}</span></button>`;
      })}</div>
    <div class="legend"><span class="steps" aria-label="colours of lags">lag ${steps.map((t, i) => html`<i class=${`cell l${i}`}>${t}</i>`)}</span>
      <span class="states">${["quarantined", "halted", "blocked", "paused", "not reading", "running long", "no owner"].map((s) => html`<span><b>${letters[s]}</b> ${s}</span>`)}</span>
      <span class="owners">${Object.entries(owners).sort(([a], [b]) => a.localeCompare(b)).map(([name, m]) => html`<span class=${m.colour}><b>${m.letter}</b> ${name} <span class="pale">${d.owner.filter((i) => d.owners[i] === name).length}</span></span>`)}</span></div>
  </div>`;
}
