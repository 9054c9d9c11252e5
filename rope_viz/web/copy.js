// A button that copies a text to the clipboard and confirms it.

import { makeCopyButton } from "./tools.js";

const STYLE = "width:100%;min-height:40px;font:600 14px var(--st-font);cursor:pointer;color:var(--st-background-color);background:var(--st-primary-color);border:0;border-radius:8px";

export default function render({ parentElement, data }) {
  const root = parentElement.querySelector(".rv-copy");
  root.__text = data.text;
  if (root.__label === data.label) return;
  root.__label = data.label;
  const button = makeCopyButton(data.label, () => root.__text);
  button.style.cssText = STYLE;
  root.replaceChildren(button);
}
