// Charts over time, drawn by uPlot; a time without a look is a gap.
import { html, useEffect, useRef } from "./vendor/preact-htm.module.js";
import { count, rate } from "./format.js";

// colours resolves names of style.css in the current scheme: a canvas cannot.
function colours(box, names) {
  const probe = box.appendChild(document.createElement("i"));
  const found = names.map((name) => {
    probe.style.color = `var(${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}

// gapped puts an empty point before each gap in time.
function gapped(at, columns, every) {
  const xs = [], ys = columns.map(() => []);
  at.forEach((t, i) => {
    if (i > 0 && t - at[i - 1] > 3 * every) {
      xs.push((at[i - 1] + every) / 1000);
      ys.forEach((y) => y.push(null));
    }
    xs.push(t / 1000);
    ys.forEach((y, k) => y.push(columns[k][i] ?? null));
  });
  return [xs, ...ys];
}

function options(box, lines, whole) {
  const text = whole ? (v) => (v === null ? "–" : count(v)) : (v) => (v === null ? "–" : rate(v) + "/s");
  const ink = colours(box, ["--pale", "--line", ...lines.flatMap((l) => [l.colour, l.fill].filter(Boolean))]);
  const axis = { stroke: ink["--pale"], grid: { stroke: ink["--line"], width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: box.clientWidth, height: 160, cursor: { y: false }, legend: { live: true },
    scales: { y: { range: (_, low, high) => [0, Math.max(whole ? 4 : 1, (high || 0) * 1.08)] } },
    axes: [
      { ...axis, values: (_, ts) => ts.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" })), space: 90, size: 28 },
      { ...axis, size: 48, values: (_, vs) => vs.map((v) => (v >= 10000 ? `${v / 1000}k` : String(Math.round(v * 100) / 100))) },
    ],
    series: [
      { label: "time", value: (_, t) => (t ? new Date(t * 1000).toLocaleTimeString("en-GB") : "–") },
      ...lines.map((l) => ({ label: l.label, stroke: ink[l.colour], width: 1.5, dash: l.dash, fill: l.fill && ink[l.fill], points: { show: false }, value: (_, v) => text(v) })),
    ],
  };
}

// Chart shows lines ({label, colour, values}) over the times at.
export function Chart({ title, at, lines, every, whole }) {
  const box = useRef(null), plot = useRef(null);
  const shape = lines.map((l) => l.label).join("\n");
  const data = () => gapped(at, lines.map((l) => l.values), every);
  useEffect(() => {
    const draw = () => {
      if (plot.current) plot.current.destroy();
      plot.current = new uPlot(options(box.current, lines, whole), data(), box.current);
    };
    draw();
    const seen = new ResizeObserver(() => plot.current && plot.current.setSize({ width: box.current.clientWidth, height: 160 }));
    seen.observe(box.current);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("themechange", draw);
    dark.addEventListener("change", draw);
    return () => {
      seen.disconnect();
      removeEventListener("themechange", draw);
      dark.removeEventListener("change", draw);
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    const u = plot.current;
    if (!u) return;
    u.setData(data());
    if (u.cursor.idx === null || u.cursor.idx === undefined) u.setLegend({ idx: u.data[0].length - 1 }); // the current values
  });
  const last = lines.map((l) => `${l.label} ${l.values.length ? (whole ? count(l.values.at(-1)) : rate(l.values.at(-1))) : "not known"}`).join(", ");
  return html`<figure class="chart" role="img" aria-label=${`${title} over time; now ${last}`}><figcaption>${title}</figcaption><div class="plot" ref=${box}></div></figure>`;
}

// Spark is a small line without axes.
export function Spark({ values }) {
  const shown = values.slice(-120), top = Math.max(1, ...shown.map((v) => v || 0));
  let path = "", pen = false;
  shown.forEach((v, i) => {
    if (v === null) pen = false;
    else {
      path += `${pen ? "L" : "M"}${((i / Math.max(1, shown.length - 1)) * 78 + 1).toFixed(1)} ${(17 - (v / top) * 15).toFixed(1)}`;
      pen = true;
    }
  });
  return html`<svg class="spark" viewBox="0 0 80 18" width="80" height="18" aria-hidden="true"><path d=${path} /></svg>`;
}
