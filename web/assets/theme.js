import { html, useEffect, useState } from "./vendor/preact-htm.module.js";

const themeKey = "runnel-theme";
const next = { auto: "light", light: "dark", dark: "auto" };

// Theme is the button that chooses light, dark, or the system's scheme.
export function Theme() {
  const [theme, set] = useState(localStorage.getItem(themeKey) || "auto");
  useEffect(() => {
    localStorage.setItem(themeKey, theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  return html`<button type="button" class="quiet theme" onClick=${() => set(next[theme])} aria-label=${`colours: ${theme}; change`}>${theme}</button>`;
}
