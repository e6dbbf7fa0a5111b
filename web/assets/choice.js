// Rows chosen for an action, and opened rows.
import { html, useState } from "./vendor/preact-htm.module.js";

// useChoice keeps the chosen IDs, as long as they are listed.
export function useChoice(ids) {
  const [chosen, set] = useState(() => new Set());
  const there = ids.filter((id) => chosen.has(id));
  return {
    ids: there,
    has: (id) => chosen.has(id),
    toggle: (id) => set((c) => (c.has(id) ? new Set([...c].filter((x) => x !== id)) : new Set([...c, id]))),
    all: (on) => set(new Set(on ? ids : [])),
    none: () => set(new Set()),
  };
}

export const ChooseAll = ({ choice, ids }) => html`<label class="field check"><input type="checkbox" checked=${ids.length > 0 && choice.ids.length === ids.length} disabled=${ids.length === 0} onChange=${(e) => choice.all(e.target.checked)} /> all that are listed</label>`;

export const Choose = ({ choice, id, what }) => html`<td class="choose"><input type="checkbox" aria-label=${`choose ${what} ${id}`} checked=${choice.has(id)} onChange=${() => choice.toggle(id)} /></td>`;

export const Open = ({ id, opened, open, what }) => html`<button type="button" class="quiet open" aria-expanded=${opened === id} aria-label=${`${what} ${id}`} onClick=${() => open(opened === id ? null : id)}>${id}</button>`;
