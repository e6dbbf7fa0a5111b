// Numbers and times as the command line writes them.

export const dash = "–";

// count groups the digits of a whole number by three, from five digits on.
export function count(n) {
  if (n === null || n === undefined) return dash;
  const text = String(n);
  return text.length < 5 ? text : text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// orNull is null, which is shown as a dash, for a number below zero: Redis does not know it.
export const orNull = (n) => (n < 0 ? null : n);

// atLeast marks a number that is a lower bound.
export const atLeast = (n, more) => (more ? ">" : "") + count(n);

// rate is a number per second; null is unknown.
export function rate(v) {
  if (v === null || v === undefined) return dash;
  if (v >= 100) return count(Math.round(v));
  return v >= 10 || Number.isInteger(v) ? String(Math.round(v * 10) / 10) : v.toFixed(v < 1 ? 2 : 1);
}

// duration is a time in ms, in two units.
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s}s`;
  const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (m < 60) return `${m}m${s % 60}s`;
  if (h < 48) return `${h}h${m % 60}m`;
  return `${d}d${h % 24}h`;
}

// age is that of the oldest unacked event; without a lag there is none.
export const age = (ms, lag) => (lag > 0 ? duration(ms) : dash);

export const clock = (t) => new Date(t).toLocaleTimeString("en-GB");

// moment is a time of the server in full, if a Date can hold it.
export function moment(t) {
  const at = new Date(t);
  return isNaN(at) ? dash : at.toISOString().replace("T", " ").replace(/\.000Z$/, "Z");
}

const mostIndented = 1 << 20;

// indented puts JSON on many lines. It does not parse: that would round numbers, and drop all but
// the last of fields with one name. JSON nested so deeply that it would become long stays on its
// line.
export function indented(json) {
  let out = "", deep = 0, before = "";
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
    const opens = before === "{" || before === "[", closes = token === "}" || token === "]";
    if (closes) deep--;
    if (opens ? !closes : before === "," || closes) out += "\n" + "  ".repeat(Math.max(0, deep));
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") deep++;
    if (out.length > mostIndented) return json;
    before = token;
  }
  return out;
}

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

// ranges writes numbers as 0-3,7.
export function ranges(numbers) {
  const out = [];
  for (const n of numbers || []) {
    const last = out[out.length - 1];
    if (last && last[1] === n - 1) last[1] = n;
    else out.push([n, n]);
  }
  return out.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",") || dash;
}
