// Confirmation of actions: what will happen, who asks for it and why, and the token.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.module.js";
import { act, checkToken, token } from "./api.js";
import { store } from "./store.js";

const asked = store(null);
const told = store(null);
const whoKey = "runnel-who";

// confirm asks before an action. body is sent to the server; lasting asks for how long; then is
// called once the action is done.
export function confirm({ title, text, button, action, body, danger, lasting, then }) {
  asked.set({ title, text, button, action, body, danger, lasting, then });
}

function use(s) {
  const [v, set] = useState(s.get());
  useEffect(() => s.follow((x) => set(() => x)), [s]);
  return v;
}

export function Dialogs() {
  const question = use(asked);
  const message = use(told);
  return html`${question && html`<${Question} key=${question} ...${question} />`}
    <div class="told" role="status">${message && html`<p>${message} <button type="button" class="quiet" onClick=${() => told.set(null)}>close</button></p>`}</div>`;
}

function Question({ title, text, button, action, body, danger, lasting, then }) {
  const dialog = useRef(null);
  const [needsToken, setNeedsToken] = useState(!token.get());
  const [busy, setBusy] = useState(false);
  const [err, setErr] = useState("");
  useEffect(() => {
    const shown = dialog.current, back = document.activeElement;
    shown.showModal();
    return () => {
      shown.close(); // an open dialog keeps the focus inside
      back.focus();
    };
  }, []);
  async function submit(e) {
    e.preventDefault();
    const form = new FormData(e.target);
    const who = form.get("who").trim();
    localStorage.setItem(whoKey, who);
    setBusy(true);
    setErr("");
    try {
      if (needsToken) {
        token.set(form.get("token"));
        await checkToken().catch((problem) => {
          token.forget();
          throw problem;
        });
        setNeedsToken(false);
      }
      const done = await act(action, { ...body, who, why: form.get("why").trim(), for: lasting ? form.get("for").trim() : undefined });
      told.set(done.result + (done.audit ? `; the audit stream does not have it: ${done.audit}` : ""));
      asked.set(null);
      if (then) then();
    } catch (problem) {
      if (problem.status === 401) {
        token.forget();
        setNeedsToken(true);
      }
      // Unless refused, the action may have been done in part.
      if (then && (problem.status === 409 || !(problem.status < 500))) then();
      if (!dialog.current || !dialog.current.open) told.set(problem.message);
      setErr(problem.message);
      setBusy(false);
    }
  }
  return html`<dialog ref=${dialog} aria-labelledby="question" onCancel=${(e) => (e.preventDefault(), !busy && asked.set(null))}>
    <form onSubmit=${submit} autocomplete="off">
      <h2 id="question">${title}</h2>
      <p>${text}</p>
      ${lasting && html`<label class="field">for how long <input name="for" placeholder="until it is removed; or such as 10m" /></label>`}
      <label class="field">why <input name="why" maxlength="500" autofocus=${!needsToken} /></label>
      <label class="field">your name <input name="who" maxlength="100" defaultValue=${localStorage.getItem(whoKey) || ""} /></label>
      ${needsToken && html`<label class="field">token for actions <input name="token" type="password" required autofocus autocomplete="off" /></label>`}
      ${err && html`<p class="trouble" role="alert">${err}</p>`}
      <p class="hint">It is written to the audit stream.</p>
      <div class="buttons"><button type="button" onClick=${() => asked.set(null)} disabled=${busy}>Cancel</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy}>${busy ? "…" : button}</button></div>
    </form>
  </dialog>`;
}
