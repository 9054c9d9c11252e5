// Files of the clocks: an image, a video and an offline page. Loaded by clocks.js on first use.

function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function record(s, button) {
  if (s.recorder) return s.recorder.stop();
  const type = s.videoType;
  const recorder = (s.recorder = new MediaRecorder(s.canvas.captureStream(60), { mimeType: type, videoBitsPerSecond: 6e6 })), parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.onstop = () => {
    s.recorder = null;
    button.textContent = s.texts.video;
    save(new Blob(parts, { type }), `${s.data.file}.${type.slice(6).split(";")[0]}`);
  };
  recorder.start();
  button.textContent = s.texts.stop;
  if (!s.playing) s.ui.play.click();
  setTimeout(() => s.recorder === recorder && recorder.stop(), 10000);
}

async function page(s) {
  const read = async (name) => {
    const answer = await fetch(new URL(name, import.meta.url));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return answer.text();
  };
  const style = getComputedStyle(s.root);
  // Join both scripts into one module: the second uses the first one's names without importing them.
  const source = (await read("dials.js")) + (await read("clocks.js")).replace(/^import .*$/m, "").replace(/^export \{.*$/m, "");
  const names = ["background-color", "text-color", "border-color", "primary-color"].map((name) => `--st-${name}:${style.getPropertyValue(`--st-${name}`)}`).join(";");
  const data = JSON.stringify({ ...s.data, start: { m: s.m, n: s.n }, alone: true }).replaceAll("<", "\\u003c");
  save(new Blob([`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>RoPE Viz</title>
<body style="${names};--st-font:sans-serif;margin:16px;background:var(--st-background-color)"><div class="rv-clocks"></div>
<script type="module">${source}
show({ root: document.querySelector(".rv-clocks"), memory: {}, post: { put() {} } }, ${data});</script>`], { type: "text/html" }), `${s.data.file}.html`);
}

export function download(s, kind, button) {
  if (kind === "video") return record(s, button);
  if (kind === "html") return page(s);
  s.exact();
  s.canvas.toBlob((blob) => save(blob, `${s.data.file}.png`));
}
