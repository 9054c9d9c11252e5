// A presented picture: its size, the keys, the swipe and the buttons of the thin bar; rope_viz/ui/app_shell.py mounts it.

import { addStyle, element } from "./element.js";
import { room } from "./fit.js";
import { Outbox } from "./outbox.js";
import { text } from "./texts.js";
import { formatValue } from "./track.js";

// The page's type is made for figures of this width and height: a larger screen scales it up, at most by MOST.
const WIDE = 800, HIGH = 450, MOST = 3;
// A finger that moves this far is one position; charts play this many positions a second.
const SWIPE = 24, RATE = 20;

const outbox = new Outbox();
let data = null, frame = 0, fraction = 0;

const findPicture = () => document.querySelector(`.st-key-present .rv-picture[data-picture="${data?.picture}"]`);
const findKnob = (name) => document.querySelector(`.st-key-present .rv-knob[data-knob="${name}"]`)?.__knob;
const isPresenting = () => Boolean(document.querySelector(".st-key-present"));

// --- Size

function resizePicture() {
  const root = findPicture();
  if (!isPresenting() || !root) return void (room.height && Object.assign(room, { scale: 1, height: 0 }));
  const scale = Math.min(MOST, Math.max(1, Math.min(innerWidth / WIDE, innerHeight / HIGH)));
  const bar = document.querySelector(".st-key-present-bar").getBoundingClientRect();
  const above = root.getBoundingClientRect().top, height = Math.floor((bar.top - above - 8) / scale);
  if (height < 40 || (height === room.height && scale === room.scale)) return;
  Object.assign(room, { scale, height });
  document.documentElement.style.setProperty("--rv-scale", scale);
  root.style.height = `${Math.round(height * scale)}px`;
  const place = root.__place;
  if (place?.message) place.show(place.message);
}

// The sentence, the sliders and the picture arrive one after the other.
new ResizeObserver(resizePicture).observe(document.body);
new MutationObserver(() => data && resizePicture()).observe(document.body, { subtree: true, childList: true });
addEventListener("resize", resizePicture);

// --- What the keys do

const listRound = (power) => [1, 2, 5].map((digit) => digit * 10 ** power);

// Find the next round value: 1, 2 or 5 times a power of ten for a base, a power of two for a length.
function findNextRound(value, way, isLength) {
  const powers = Array.from({ length: 24 }, (_, power) => power);
  const all = isLength ? powers.map((power) => 2 ** power) : powers.flatMap(listRound);
  return way > 0 ? all.find((each) => each > value) : all.findLast((each) => each < value);
}

const announce = (sentence) => (document.querySelector(".rv-present-says").textContent = sentence);

function stepKnob(name, way) {
  const found = findKnob(name);
  if (!found) return;
  const { low, high, label, unit } = found.data;
  const to = findNextRound(found.value, way, name !== "base") ?? found.value;
  found.moveTo(Math.min(high, Math.max(low, to)));
  announce(text("present.says", { label, value: formatValue(found.value, unit) }));
}

function movePosition(by) {
  if (data.clocks) return void findPicture()?.__clocks?.step(by);
  const found = findKnob(data.position);
  if (!found) return;
  stopPlaying();
  found.moveTo(Math.min(found.data.high, Math.max(found.data.low, found.value + by)));
}

const commitKnobs = () => document.querySelectorAll(".st-key-present .rv-knob").forEach((root) => root.__knob?.commit());

function stopPlaying() {
  if (!frame) return;
  cancelAnimationFrame(frame);
  frame = 0;
  showPlaying();
  commitKnobs();
}

function togglePlay() {
  if (data.clocks) return void findPicture()?.querySelector("[data-do=play]").click();
  const found = findKnob(data.position);
  if (frame) return stopPlaying();
  if (!found) return;
  let before = performance.now();
  const move = (now) => {
    fraction += (RATE * (now - before)) / 1000;
    before = now;
    frame = requestAnimationFrame(move);
    const whole = Math.floor(fraction);
    fraction -= whole;
    if (whole) found.moveTo(Math.min(found.data.high, found.value + whole));
    if (found.value === found.data.high || !found.root.isConnected) stopPlaying();
  };
  frame = requestAnimationFrame(move);
  showPlaying();
}

function showPlaying() {
  const node = document.querySelector(".rv-present [data-do=play]");
  if (node) Object.assign(node, { textContent: frame ? "❚❚" : "▶", ariaLabel: text(frame ? "present.pause" : "present.play") });
}

function endPresenting() {
  stopPlaying();
  if (document.fullscreenElement) document.exitFullscreen();
  outbox.send("leave", Date.now());
}

const canMove = () => data.clocks || Boolean(data.position);

// List the keys that have an effect here: [their name in the help, the keys].
function listKeys() {
  return [
    ...(canMove() ? [["space", text("present.key_space")], ["arrows", "← →"]] : []),
    ...(findKnob("base") ? [["base", "B"]] : []),
    ...(data.length ? [["length", "N"]] : []),
    ["help", "?"],
    ["escape", text("present.key_escape")],
  ];
}

addEventListener("keydown", (event) => {
  const { key, shiftKey, target } = event;
  if (!data || !isPresenting() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input[type=text]") || document.querySelector(".rv-present-keys:popover-open")) return;
  const isSlider = target.matches("input[type=range]"), isButton = target.matches("button, a");
  const act = {
    ...(canMove() && !isButton ? { " ": togglePlay } : {}),
    ...(canMove() && !isSlider ? { ArrowRight: () => movePosition(shiftKey ? 10 : 1), ArrowLeft: () => movePosition(shiftKey ? -10 : -1) } : {}),
    b: () => stepKnob("base", shiftKey ? -1 : 1),
    n: () => stepKnob(data.length, shiftKey ? -1 : 1),
    "?": () => document.querySelector(".rv-present [data-do=keys]").click(),
    Escape: endPresenting,
  }[key.length === 1 ? key.toLowerCase() : key];
  if (!act || (key === " " && event.repeat)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  act();
}, true);
// A key that is held down is one change: the page runs once it is released.
addEventListener("keyup", () => data && isPresenting() && !frame && commitKnobs(), true);

// The browser itself ends full screen by Esc, and then sends no key.
let wasFull = false;
document.addEventListener("fullscreenchange", () => {
  if (wasFull && !document.fullscreenElement && isPresenting()) outbox.send("leave", Date.now());
  wasFull = document.fullscreenElement === document.documentElement;
});

// --- A finger moves the position

let from = null;
addEventListener("touchstart", ({ touches, target }) => {
  const isPicture = data && isPresenting() && touches.length === 1 && target.closest?.(".rv-picture") && !target.closest("button, input");
  from = isPicture ? touches[0].clientX : null;
}, { capture: true, passive: true });
addEventListener("touchmove", ({ touches }) => {
  if (from === null || touches.length !== 1) return;
  const by = Math.trunc((from - touches[0].clientX) / SWIPE);
  if (!by) return;
  from -= by * SWIPE;
  movePosition(by);
}, { capture: true, passive: true });
for (const end of ["touchend", "touchcancel"]) addEventListener(end, () => from !== null && ((from = null), frame || commitKnobs()), { capture: true, passive: true });

// --- The bar

function buildKeysList() {
  const rows = listKeys().map(([name, keys]) => [element("dt", {}, ...keys.split(" ").map((each) => element("kbd", { textContent: each }))), element("dd", { textContent: text(`present.${name}`) })]);
  return [element("dl", {}, ...rows.flat()), ...(canMove() ? [element("p", { textContent: text("present.swipe") })] : [])];
}

function build(panel) {
  const makeButton = (name, content, label, act) => {
    const node = element("button", { type: "button", ariaLabel: label, title: label }, ...[content].flat());
    node.dataset.do = name;
    node.addEventListener("click", act);
    return node;
  };
  const help = element("div", { className: "rv-present-keys", popover: "auto", role: "dialog", ariaLabel: text("present.keys"), tabIndex: -1 });
  const makeCaps = () => listKeys().slice(0, -2).map(([, keys]) => element("kbd", { textContent: keys }));
  const opener = makeButton("keys", [], text("present.keys"), () => (help.replaceChildren(...buildKeysList()), help.togglePopover()));
  help.addEventListener("toggle", ({ newState }) => (newState === "open" ? help : opener).focus());
  panel.__refresh = () => {
    panel.querySelector("[data-do=play]").hidden = !data.position;
    opener.replaceChildren(element("span", { ariaHidden: "true" }, ...makeCaps(), element("kbd", { textContent: "?" })));
  };
  panel.append(makeButton("play", "▶", text("present.play"), togglePlay), opener, help, makeButton("close", "×", text("present.close"), endPresenting), element("div", { className: "rv-present-says", role: "status" }));
}

export default function render(component) {
  const panel = component.parentElement.querySelector(".rv-present");
  data = component.data;
  outbox.component = component;
  outbox.confirm(data.confirmed);
  if (!panel.hasChildNodes()) build(panel);
  panel.__refresh();
  // The sliders may arrive later.
  setTimeout(() => panel.isConnected && panel.__refresh(), 500);
  wasFull = document.fullscreenElement === document.documentElement;
  resizePicture();
}

addStyle(`
:root:has(.st-key-present) {
  --rv-top: 0px !important;
  :is(#rv-header, [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], #rv-chip) { display: none !important; }
  [data-testid="stMain"] { overflow: hidden; }
  [data-testid="stMainBlockContainer"] { max-width: none; padding: 20px 40px 0; }
}
.st-key-present {
  gap: 4px;
  h1 { font-size: 34px !important; padding-bottom: 14px !important; }
  p.rv-says { min-height: 0 !important; font-size: 20px; line-height: 1.3; }
  .rv-picture { overflow: hidden auto; min-height: 0 !important; }
  .rv-picture > :is(.rv-plot, canvas, .rv-scroll) { width: calc(100% / var(--rv-scale, 1)) !important; transform: scale(var(--rv-scale, 1)); transform-origin: 0 0; }
  .rv-plot, canvas { touch-action: none !important; }
  :is(.rv-tools, .rv-now, .rv-bar ~ .rv-bar) { display: none !important; }
}
.st-key-present-bar, .st-key-present .rv-clocks > .rv-bar:first-child { position: fixed; bottom: 0; height: 64px; box-sizing: border-box; z-index: 90; background: var(--rv-panel); border-top: 1px solid var(--rv-rule); }
.st-key-present-bar { left: 0; right: 0; width: 100%; flex-direction: row !important; align-items: center; justify-content: flex-end; gap: 24px; padding: 0 40px; overflow: visible; }
.st-key-present-bar .rv-across { grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); }
.st-key-present-bar .rv-knob { gap: 0 4px; label { white-space: nowrap; } input[type="text"] { width: 4.8em; padding: 0 6px; } .rv-name a { display: none; } }
.st-key-present-bar > :has(.rv-knobs) { flex: 0 1 560px; width: auto !important; min-width: 0; }
.st-key-present-bar > :has(.rv-present) { flex: none; width: auto !important; }
.st-key-present:has(.rv-clocks) .st-key-present-bar { left: 40%; width: 60%; }
.st-key-present .rv-clocks > .rv-bar:first-child { left: 0; width: 40%; padding: 0 0 0 40px; flex-wrap: nowrap; font-size: 16px; [data-do=scrub] { flex: 1 1 60px; min-width: 0; } [data-do=at] { width: 6.5em; } :is([data-do=less], [data-do=more]) { display: none; } }
.rv-present { display: flex; align-items: center; gap: 8px; font: 16px var(--st-font); color: var(--rv-ink); }
.rv-present button { display: flex; align-items: center; justify-content: center; min-width: 44px; height: 44px; padding: 0 10px; font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: 6px; cursor: pointer; }
.rv-present button[hidden] { display: none; }
.rv-present button[data-do=play] { border-color: var(--rv-rule); }
.rv-present button[data-do=close] { font-size: 24px; }
.rv-present button:hover { border-color: var(--st-primary-color); }
.rv-present button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.rv-present span { display: flex; gap: 8px; }
:is(.rv-present, .rv-present-keys) kbd { padding: 2px 8px; font: 15px var(--st-font); white-space: nowrap; background: var(--rv-ground); border: 1px solid var(--rv-rule); border-radius: 4px; }
.rv-present-keys { position: fixed; inset: auto 16px 80px auto; margin: 0; padding: 16px 20px; max-width: calc(100vw - 32px); box-sizing: border-box; font: 18px/1.4 var(--st-font); color: var(--rv-ink); background: var(--rv-ground); border: 1px solid var(--rv-rule); border-radius: 8px; box-shadow: 0 4px 16px rgb(0 0 0 / 0.18); }
.rv-present-keys dl { display: grid; grid-template-columns: auto 1fr; gap: 8px 20px; margin: 0; }
.rv-present-keys dt { display: flex; gap: 4px; }
.rv-present-keys dd, .rv-present-keys p { margin: 0; }
.rv-present-keys p { margin-top: 12px; }
.rv-present-says { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (max-width: 640px) {
  :root:has(.st-key-present) [data-testid="stMainBlockContainer"] { padding: 12px 16px 0; }
  .st-key-present { h1 { font-size: 26px !important; } p.rv-says { font-size: 17px; } }
  .st-key-present-bar { height: 96px; padding: 4px 12px 0; gap: 8px; align-items: flex-start; }
  .st-key-present-bar .rv-across { gap: 0 12px; }
  .st-key-present-bar .rv-knob label { font-size: 13px; }
  .st-key-present-bar > :has(.rv-knobs) { flex: 1 1 0; }
  .st-key-present:has(.rv-clocks) .st-key-present-bar { left: 0; width: 100%; }
  .st-key-present .rv-clocks > .rv-bar:first-child { bottom: 96px; width: 100%; height: 56px; padding: 0 12px; [data-do=scrub] { order: 0; flex-basis: 60px; } }
  .rv-present span kbd:not(:last-child) { display: none; }
  .rv-present { flex-direction: column; gap: 0; button { height: 40px; } }
}
`);
