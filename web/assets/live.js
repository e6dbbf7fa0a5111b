// What the server sends: the past once, and a sample at each look.
import { store } from "./store.js";

const keep = 15 * 60 * 1000;

// state is "connecting", "live", "trouble" (Redis does not answer) or "lost".
export const live = store({ state: "connecting", hello: null, sample: null, seen: 0, err: "" });
export const past = store({ at: [], series: {} });
export const moves = store([]);

// ahead is how far the clock of Redis, which dates everything, is ahead of the local one, in ms.
let ahead = 0;

export const serverNow = () => Date.now() + ahead;

let source = null;
let watched = "";
let again = 0;

function change(part) {
  live.set({ ...live.get(), ...part });
}

// watch makes samples carry the partitions of this processor, "" for none.
export function watch(processor) {
  if (source && processor === watched) return;
  watched = processor;
  open();
}

function open() {
  clearTimeout(again);
  if (source) source.close();
  source = new EventSource("api/live" + (watched ? "?processor=" + encodeURIComponent(watched) : ""));
  source.addEventListener("hello", (e) => {
    const hello = JSON.parse(e.data);
    past.set({ at: hello.memory.at, series: hello.memory.series });
    moves.set(hello.memory.moves);
    change({ hello: { app: hello.app, every: hello.every, actions: hello.actions } });
  });
  source.addEventListener("sample", (e) => {
    const sample = JSON.parse(e.data);
    ahead = sample.at - Date.now();
    remember(sample);
    change({ state: "live", sample, seen: Date.now(), err: "" });
  });
  source.addEventListener("trouble", (e) => change({ state: "trouble", err: JSON.parse(e.data).err }));
  source.onerror = () => {
    change({ state: "lost" });
    // The browser reconnects by itself, except after a refusal.
    if (source.readyState === EventSource.CLOSED) again = setTimeout(open, 3000);
  };
}

function remember(sample) {
  const { at, series } = past.get();
  if (at.at(-1) === sample.at) return; // part of the past already
  while (at.length && at.at(-1) > sample.at) { // the clock of Redis was set back
    at.pop();
    Object.values(series).forEach((one) => [one.lag, one.appended, one.done].forEach((c) => c.pop()));
  }
  const n = at.length;
  at.push(sample.at);
  for (const s of sample.streams) {
    for (const p of s.processors) {
      const name = `${s.stream}/${p.processor}`;
      const one = (series[name] ||= { lag: Array(n).fill(null), appended: Array(n).fill(null), done: Array(n).fill(null) });
      one.lag.push(p.totals.lag);
      one.appended.push(s.rate);
      one.done.push(p.done);
    }
  }
  while (at[0] < sample.at - keep) {
    at.shift();
    Object.values(series).forEach((one) => [one.lag, one.appended, one.done].forEach((c) => c.shift()));
  }
  Object.values(series).forEach((one) => [one.lag, one.appended, one.done].forEach((c) => c.length < at.length && c.push(null)));
  past.set({ at, series });
  if (sample.moves.length) moves.set([...moves.get(), ...sample.moves].slice(-200));
}
