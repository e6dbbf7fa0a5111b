import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact-htm.module.js";
import { Audit } from "./audit.js";
import { Dead } from "./dead.js";
import { Delayed } from "./delayed.js";
import { Dialogs } from "./dialog.js";
import { Events } from "./events.js";
import { extensions } from "./extensions.js";
import { live, watch } from "./live.js";
import { Overview } from "./overview.js";
import { Parked } from "./parked.js";
import { Connection, processorsOf } from "./parts.js";
import { Processor } from "./processor.js";
import { Rules } from "./rules.js";
import { useStore } from "./store.js";
import { Theme } from "./theme.js";

// A page shows nothing in particular, or the stream or processor in its address.
const pages = [
  { route: "overview", title: "Overview", view: Overview },
  { route: "processor", title: "Processors", view: Processor, of: "processor" },
  { route: "events", title: "Events", view: Events, of: "stream" },
  { route: "dead", title: "Dead letters", view: Dead, of: "processor", total: (t) => t.dead },
  { route: "parked", title: "Parked", view: Parked, of: "processor", total: (t) => t.parked },
  { route: "delayed", title: "Delayed", view: Delayed, of: "stream" },
  { route: "rules", title: "Rules", view: Rules },
  { route: "audit", title: "Audit", view: Audit },
  ...extensions,
];

function address() {
  let text = location.hash.replace(/^#\/?/, "");
  try {
    text = decodeURIComponent(text);
  } catch {} // written by hand
  const [route, ...of] = text.split("/");
  return { page: pages.find((p) => p.route === route) || pages[0], of: of.join("/") };
}

// subject returns what a page shows: what its address names, or the first with something to show.
function subject(page, of, sample) {
  if (of || !page.of || !sample) return of;
  if (page.of === "stream") {
    const found = (page.route === "delayed" && sample.streams.find((s) => s.delayed > 0)) || sample.streams[0];
    return found ? found.stream : "";
  }
  const all = processorsOf(sample);
  const found = (page.total && all.find((p) => page.total(p.totals) > 0)) || all[0];
  return found ? found.name : "";
}

function useAddress() {
  const [at, set] = useState(address());
  useEffect(() => {
    const changed = () => set(address());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return at;
}

// counted is the number beside a page's name.
function counted(page, sample) {
  if (!sample) return 0;
  if (page.total) return processorsOf(sample).reduce((n, p) => n + page.total(p.totals), 0);
  if (page.route === "delayed") return sample.streams.reduce((n, s) => n + s.delayed, 0);
  return page.route === "rules" ? sample.rules.length : 0;
}

function App() {
  const { sample, hello, err } = useStore(live);
  const { page, of } = useAddress();
  const about = subject(page, of, sample);
  const [broken, mended] = useErrorBoundary();
  useEffect(mended, [page, about]); // another page may work
  useEffect(() => watch(page.route === "processor" ? about : ""), [page, about]);
  useEffect(() => {
    document.title = `${page.title} · ${hello ? hello.app : "runnel"}`;
  }, [page, hello]);
  return html`<a class="skip" href="#main" onClick=${(e) => (e.preventDefault(), document.getElementById("main").focus())}>to the content</a>
    <header>
      <div class="title"><strong class="app">${hello ? hello.app : "runnel"}</strong>
        <span class="redis">${sample ? sample.redis : ""}</span></div>
      <${Connection} />
      <div class="right">${hello && html`<span class="mode">${hello.actions ? "actions allowed" : "read-only"}</span>`}<${Theme} /></div>
      <nav aria-label="pages">${pages.map((p) => {
        const n = counted(p, sample);
        return html`<a href=${`#/${p.route}`} class=${p === page ? "here" : ""} aria-current=${p === page ? "page" : undefined}>${p.title}${n > 0 && html` <b>${n}</b>`}</a>`;
      })}</nav>
    </header>
    <main id="main" tabindex="-1">
      ${broken && html`<p class="trouble" role="alert">${`This page is broken: ${broken.message}`}</p>`}
      ${!broken && !sample && html`<p class="empty">${err || "Waiting for the first look at the app."}</p>`}
      ${!broken && sample && html`<${page.view} key=${page.route + "/" + about} sample=${sample} about=${about} actions=${Boolean(hello && hello.actions)} />`}
    </main>
    <${Dialogs} />`;
}

render(html`<${App} />`, document.getElementById("app"));
