// The moving pictures in notebooks and on pages of others, as one module: rope_viz/widgets/module.py joins this script and what it
// imports. `default` is the interface of anywidget; a plain page calls `show`, a saved one `render` with a model that `makeModel` makes.

import showChart from "./chart.js";
import { listenToKeys } from "./chart_input.js";
import showClocks from "./clocks.js";
import { addStyle, element, isDark, makeStyle } from "./element.js";
import showHands from "./hands.js";
import { unpack } from "./message.js";
import { fillSliders, withNumber } from "./sliders.js";
import { STATES } from "./states.js";
import { text } from "./texts.js";
import { applySpec, isUnscaled } from "./unscaled.js";

const DRAW = { chart: showChart, clocks: showClocks, hands: showHands };
// Milliseconds until a kernel that does not answer is asked again.
const PATIENCE = 1000;

const decode = (encoded) => Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0)).buffer;
// The module itself holds a message as it is; a kernel packs and encodes it.
const readMessage = (held) => (typeof held === "string" ? unpack(decode(held)) : held);

// --- Colours: the page's own ground, and on it the colours for light or dark pages

// Read the colour of an element's ground as six digits, "" if it is not opaque.
function readGround(node) {
  const probe = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  probe.fillStyle = getComputedStyle(node).backgroundColor;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = probe.getImageData(0, 0, 1, 1).data;
  return alpha === 255 ? `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}` : "";
}

// Find the colour behind an element: that of the nearest parent which has one, else the browser's own.
function findGround(root) {
  for (let at = root.parentElement; at; at = at.parentElement ?? at.getRootNode().host) if (readGround(at)) return readGround(at);
  const plain = root.appendChild(element("i"));
  plain.style.background = "Canvas";
  const found = readGround(plain);
  plain.remove();
  return found;
}

function copyColours({ root, model }) {
  const ground = findGround(root), { style } = root;
  style.setProperty("--st-background-color", ground);
  const dark = isDark(root) ? 1 : 0;
  for (const [name, both] of Object.entries(model.get("_fixed").colours)) style.setProperty(`--st-${name}-color`, both[dark]);
  style.setProperty("--st-font", getComputedStyle(root.parentElement).fontFamily);
  return ground;
}

// Paint a message on the ground of the page.
function useGround(message, ground) {
  if (!message.figure) return { ...message, palette: { ...message.palette, background: [ground, ground] } };
  const { data, layout } = message.figure;
  return { ...message, figure: { data, layout: { ...layout, paper_bgcolor: ground, plot_bgcolor: ground } } };
}

// --- plotly.js: the page's, else the one that the kernel's package has

let plotly;

const providePlotly = (model) => (globalThis.Plotly ? null : (plotly ??= loadPlotly(model).catch((error) => ((plotly = null), Promise.reject(error)))));

async function loadPlotly(model) {
  if (!model.get("_plotly")) {
    await new Promise((resolve) => {
      model.on("change:_plotly", resolve);
      model.set("_needs_plotly", true);
      model.save_changes();
    });
  }
  const unpacked = await new Response(new Blob([decode(model.get("_plotly"))]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  // Where the page has a loader of modules, the library would register there instead of on the page.
  const src = URL.createObjectURL(new Blob([`(function (define, module, exports) {${unpacked}\n})();`], { type: "text/javascript" }));
  await new Promise((resolve, reject) => document.head.append(element("script", { src, onload: resolve, onerror: reject })));
  URL.revokeObjectURL(src);
}

// --- The picture

async function draw(s) {
  const { model, picture, place } = s, { message } = s;
  if (!message || !s.ground) return;
  picture.className = `rv-picture rv-${message.kind}`;
  if (message.kind === "chart") await providePlotly(model);
  if (message !== s.message) return;
  const shown = s.isMoved && isLocal(s) ? applySpec(message, s.spec, model.get("_fixed")) : message;
  await DRAW[message.kind](place, useGround(shown, s.ground));
}

// Whether the browser computes the picture itself.
const isLocal = ({ message, spec }) => message.kind !== "chart" && isUnscaled(spec);

function moveTo(s, name, value) {
  const frames = s.model.get("_frames")?.[name];
  s.isHeld = s.isMoved = true;
  s.spec = withNumber(s.spec, name, value);
  if (frames) {
    // The frames of one slider were drawn with the first values of the others.
    const measureGap = ([at]) => Math.abs(at - value), [at, picture] = frames.reduce((best, frame) => (measureGap(frame) < measureGap(best) ? frame : best));
    s.spec = withNumber(s.first, name, at);
    s.message = readMessage(picture);
    s.writeSliders(s.spec, name);
  }
  if (frames || isLocal(s)) draw(s);
  send(s);
}

// Send the embedding, one at a time: the next one once the picture of the last has come.
function send(s) {
  s.isWaiting = s.isBusy;
  if (s.isBusy) return;
  s.isBusy = true;
  s.timer = setTimeout(() => onAnswer(s), PATIENCE);
  s.model.set("spec", s.spec);
  s.model.save_changes();
}

function onAnswer(s) {
  clearTimeout(s.timer);
  s.isBusy = false;
  if (s.isWaiting) send(s);
  else onSpec(s); // Python may have refused the embedding, or assigned another
}

function onPicture(s) {
  s.message = readMessage(s.model.get("_picture"));
  // A picture that the browser computes itself is ahead of the kernel's until the last one has come.
  s.isMoved = s.isHeld || s.isWaiting;
  onAnswer(s);
  if (!s.isMoved || !isLocal(s)) draw(s);
}

function onSpec(s) {
  if (s.isHeld || s.isBusy) return;
  s.spec = s.model.get("spec");
  s.writeSliders(s.spec);
}

function showSliders(s) {
  s.sliders.replaceChildren();
  const rows = s.model.get("_sliders").filter(({ name }) => !s.model.isSaved || isLocal(s) || s.model.get("_frames")?.[name]);
  s.writeSliders = fillSliders(s.sliders, rows, (name, value) => moveTo(s, name, value), () => ((s.isHeld = false), send(s)));
  s.writeSliders(s.spec);
}

function render({ model, el }) {
  const root = element("div", { className: "rv-widget" }), picture = element("div"), sliders = element("div", { className: "rv-sliders" });
  const s = { model, root, picture, sliders, spec: model.get("spec"), first: model.get("spec"), message: readMessage(model.get("_picture")), isHeld: false, isMoved: model.isPlain };
  const onUse = (name, value) => {
    if (name !== "pin") return;
    model.set("pin", model.get("pin") === value ? null : value);
    model.save_changes();
  };
  s.place = { root: picture, memory: {}, data: {}, input: { listenToKeys }, send: onUse, requestPicture() {} };
  // JupyterLab's shortcuts would take the arrow keys and the space bar.
  root.dataset.lmSuppressShortcuts = "true";
  root.append(picture, sliders);
  el.append(root);
  const followPage = () => {
    const ground = root.clientWidth && copyColours(s);
    if (!ground || ground === s.ground) return;
    if (!s.ground && root.getRootNode() !== document) root.prepend(makeStyle());
    s.ground = ground;
    draw(s);
  };
  const observer = new ResizeObserver(followPage), themes = new MutationObserver(followPage), dark = matchMedia("(prefers-color-scheme: dark)");
  const listeners = { "change:_picture": () => onPicture(s), "change:spec": () => onSpec(s), "change:_sliders": () => showSliders(s) };
  showSliders(s);
  for (const [name, run] of Object.entries(listeners)) model.on(name, run);
  // Notebooks attach the element later and mark their theme on one of these.
  observer.observe(root);
  for (const node of [document.documentElement, document.body]) themes.observe(node, { attributes: true });
  dark.addEventListener("change", followPage);
  return () => {
    for (const [name, run] of Object.entries(listeners)) model.off(name, run);
    observer.disconnect();
    themes.disconnect();
    dark.removeEventListener("change", followPage);
    root.remove();
  };
}

// Make a model without a kernel from the values that one had.
export function makeModel(state) {
  const listeners = {};
  return {
    isSaved: true,
    isPlain: Boolean(state.isPlain),
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      listeners[`change:${name}`]?.forEach((run) => run());
    },
    save_changes() {},
    on: (name, run) => (listeners[name] ??= new Set()).add(run),
    off: (name, run) => listeners[name]?.delete(run),
  };
}

// Show "clocks" or "hands" of an embedding without scaling: { base, head_dim, context, target }, each of which may be left out.
export function show(el, name, spec = {}) {
  const state = STATES[name];
  if (!state) throw new TypeError(text("widget.unknown", { name, names: Object.keys(STATES).join(", ") }));
  const found = { ...state.spec, rotary_dim: spec.head_dim ?? state.spec.rotary_dim, target: spec.context ?? state.spec.target, ...spec };
  return render({ model: makeModel({ ...state, spec: found, isPlain: true }), el });
}

export default { render };

addStyle(`
.rv-widget { container-type: inline-size; padding: 8px 0; font-family: var(--st-font); color: var(--st-text-color); text-align: left; }
.rv-widget .rv-tools button { font: inherit; font-size: 14px; min-height: 32px; padding: 0 10px; color: inherit; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; cursor: pointer; }
@container (max-width: 900px) {
  .rv-widget .rv-hands { grid-template: auto / minmax(0, 1fr); }
  .rv-widget .rv-hands .rv-circle { grid-area: 1 / 1; margin: 0; }
  .rv-widget .rv-hands .rv-circle canvas { height: 320px; }
}
@container (max-width: 640px) { .rv-widget .rv-hands .rv-circle canvas { height: 208px; } }
`);
