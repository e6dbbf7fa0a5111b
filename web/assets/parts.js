// Small parts of several pages.
import { html, useEffect, useState } from "./vendor/preact-htm.module.js";
import { atLeast, count, dash, duration, indented, moment, rate } from "./format.js";
import { live, serverNow } from "./live.js";
import { useStore } from "./store.js";

export const processorsOf = (sample) =>
  sample.streams.flatMap((s) => s.processors.map((p) => ({ ...p, stream: s.stream, name: `${s.stream}/${p.processor}`, rate: s.rate })));

// Number is a count; zeros are pale, so that others stand out.
export const Number = ({ of: n, more, warn, field }) =>
  html`<span class=${`number ${n === 0 ? "zero" : warn ? "warn" : ""}`} data-field=${field} title=${more ? "at least: counting stopped at a limit" : undefined}
    >${n < 0 ? "?" : atLeast(n, more)}</span>`;

export const Rate = ({ of: v, field }) =>
  html`<span class=${`number ${v === 0 ? "zero" : ""}`} data-field=${field} title=${v === null ? "not known" : "per second"}>${rate(v)}</span>`;

export const Age = ({ ms, lag }) => html`<span class=${`number ${lag > 0 ? "" : "zero"}`}>${lag > 0 ? duration(ms) : dash}</span>`;

export const Figure = ({ label, children, tone }) => html`<div class=${`figure ${tone || ""}`}><dt>${label}</dt><dd>${children}</dd></div>`;

export function Ago({ t }) {
  if (!t) return html`<span class="zero">${dash}</span>`;
  const past = Math.max(0, serverNow() - new Date(t).getTime());
  return html`<time datetime=${t} title=${moment(t)}>${duration(past)} ago</time>`;
}

// useTick renders again every ms milliseconds.
export function useTick(ms) {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => set((n) => n + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

// Connection shows whether the numbers are current.
export function Connection() {
  const { state, seen, hello, err } = useStore(live);
  useTick(1000);
  const old = seen ? Date.now() - seen : 0;
  const late = hello && seen && old > 3 * hello.every + 1000;
  const [word, tone] =
    state === "live" && !late ? ["live", "good"] : state === "trouble" ? ["Redis does not answer", "bad"] : state === "connecting" ? ["connecting", "wait"] : ["reconnecting", "wait"];
  const text = seen && (state !== "live" || late) ? `${word}: the numbers are ${duration(old)} old` : word;
  return html`<span class=${`connection ${tone}`} role="status" title=${err || undefined}><i aria-hidden="true"></i>${text}</span>`;
}

// Picker chooses a stream or a processor by changing the address.
export function Picker({ label, route, names, value }) {
  return html`<label class="field">${label}
    <select value=${value} onChange=${(e) => (location.hash = `#/${route}/${e.target.value}`)}>
      ${!names.includes(value) && html`<option value=${value}>${value || "choose"}</option>`}
      ${names.map((n) => html`<option value=${n}>${n}</option>`)}
    </select></label>`;
}

// Table scrolls in its own box; on a phone its rows are cards.
export const Table = ({ head, label, children, empty }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
  <table><thead><tr>${head.map((t) => html`<th scope="col" class=${t.number ? "right" : ""}>${t.text ?? t}</th>`)}</tr></thead>
  <tbody>${children}</tbody></table>${empty && html`<p class="empty">${empty}</p>`}</div>`;

// Text shows a record or a field as text only; JSON is indented.
export function Text({ of: t, json }) {
  return html`<pre class="record">${json && !t.cut ? indented(t.text) : t.text}</pre>${t.cut && html`<p class="hint">${`the first part of ${count(t.size)} bytes`}</p>`}`;
}

// useList requests a list whenever the query changes; again requests it once more.
export function useList(ask, deps) {
  const [state, set] = useState({ busy: true, value: null, err: "" });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ctl = new AbortController();
    set((s) => ({ ...s, busy: true, err: "" }));
    ask(ctl.signal).then(
      (value) => set({ busy: false, value, err: "" }),
      (err) => err.name !== "AbortError" && set({ busy: false, value: null, err: err.message }),
    );
    return () => ctl.abort();
  }, [...deps, turn]);
  return { ...state, again: () => setTurn((n) => n + 1) };
}

export const Trouble = ({ err }) => err && html`<p class="trouble" role="alert">${err}</p>`;
