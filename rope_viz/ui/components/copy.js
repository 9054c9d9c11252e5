// Buttons that copy a text, or the page's address, to the clipboard and confirm it.

import { text } from "./texts.js";
import { copying } from "./tools.js";

export default function render({ parentElement, data }) {
  const root = parentElement.querySelector(".rv-copy");
  const names = Object.keys(data.texts).join("\n");
  root.__texts = data.texts;
  if (root.__names === names) return;
  root.__names = names;
  root.replaceChildren();
  const style = "font:inherit;font-size:14px;min-height:40px;cursor:pointer;color:var(--st-text-color);background:var(--st-background-color);"
    + "border:1px solid var(--st-border-color);border-radius:8px;width:100%"
    + (data.primary ? ";font-weight:600;color:var(--st-background-color);background:var(--st-primary-color);border-color:transparent" : "");
  root.style.cssText += ";display:grid;gap:8px;font-family:var(--st-font)";
  for (const name of Object.keys(data.texts)) {
    const button = copying(name, () => root.__texts[name] ?? location.href, text("export.copy_link_refused"));
    button.style.cssText = style;
    root.append(button);
  }
}
