// Files of the clocks: an image, a video and an offline page. clocks.js loads this script on first use.

import { arrangeDials } from "./dials.js";
import { element } from "./element.js";
import { makePng } from "./mark.js";
import { recordCanvas, save } from "./video.js";

function recordClocks(s) {
  if (s.recorder) return s.recorder();
  const stop = element("button", { type: "button", textContent: s.texts.stop, onclick: () => s.recorder?.() });
  const style = getComputedStyle(s.root), [text, background] = ["text", "background"].map((name) => style.getPropertyValue(`--st-${name}-color`).trim());
  s.recorder = recordCanvas(s.canvas, { text, background }, style.fontFamily, s.data.file, () => {
    s.recorder = null;
    stop.remove();
  });
  s.root.querySelector(".rv-tools").prepend(stop);
  if (!s.playing) s.ui.play.click();
}

async function savePage(s) {
  const fetchText = async (name) => {
    const answer = await fetch(new URL(name, import.meta.url));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return answer.text();
  };
  const style = getComputedStyle(s.root);
  // Join the scripts into one module, where each uses the names of those before it without importing them.
  const scripts = await Promise.all(["element.js", "dials.js", "clocks.js"].map(fetchText));
  const source = scripts.join("").replace(/^import .*$/gm, "");
  const names = ["background-color", "text-color", "border-color", "primary-color"].map((name) => `--st-${name}:${style.getPropertyValue(`--st-${name}`)}`).join(";");
  const data = JSON.stringify({ ...s.data, start: { m: s.m, n: s.n }, alone: true }).replaceAll("<", "\\u003c");
  save(new Blob([`<!DOCTYPE html><html lang="${document.documentElement.lang}"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>RoPE Viz</title>
<body style="${names};--st-font:sans-serif;margin:16px;background:var(--st-background-color)"><div class="rv-clocks"></div>
<script type="module">${source}
show({ root: document.querySelector(".rv-clocks"), memory: {} }, ${data});</script>`], { type: "text/html" }), `${s.data.file}.html`);
}

export function downloadClocks(s, kind) {
  // Dials that have not been in view are not painted yet.
  if (s.stale) arrangeDials(s);
  s.drawExact();
  if (kind === "png") return makePng(s.canvas).then((blob) => save(blob, `${s.data.file}.png`));
  return kind === "video" ? recordClocks(s) : savePage(s);
}
