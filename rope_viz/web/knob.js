// Live sliders: pictures follow each while it is dragged, and the page runs when it is released. One mount shows a column
// of them. Served by a route; rope_viz/ui/components/knob.py mounts it.

import { addStyle, element } from "./element.js";
import { commitMove, followKnob } from "./picture.js";
import { Outbox } from "./outbox.js";
import { text } from "./texts.js";
import { guardSlider } from "./touch.js";
import { countSteps, formatValue, parseValue, readThumb, toTrack } from "./track.js";

function buildKnob({ name, key: address }, send, place) {
  const root = element("div", { className: "rv-knob" });
  root.dataset[place] = name;
  root.innerHTML = `<span class="rv-name"><label for="rv-${place}-${address}"></label><a href="#help">?</a></span><input type="text" inputmode="decimal" autocomplete="off" spellcheck="false">
    <input type="range" id="rv-${place}-${address}" min="0"><div class="rv-note" role="alert"></div>`;
  const [label, field, range, note] = ["label", "input[type=text]", "input[type=range]", ".rv-note"].map((s) => root.querySelector(s));
  const knob = { root, label, field, range, note, moves: 0, value: NaN };
  guardSlider(range);

  const moveTo = (value) => {
    root.dataset.moving = "";
    knob.moves += 1;
    knob.value = value;
    writeValue(knob);
    followKnob(knob.data.key, value);
  };
  const onInput = () => moveTo(readThumb(knob, isKeyDown));
  const commit = () => commitMove(root, knob, () => send({ name, value: knob.value }));
  // A key that is held down fires "change" at every repeat: treat it as one change, committed when it is released.
  let isKeyDown = false;
  range.addEventListener("input", onInput);
  range.addEventListener("keydown", () => (isKeyDown = true));
  range.addEventListener("keyup", () => ((isKeyDown = false), commit()));
  range.addEventListener("change", () => isKeyDown || commit());
  // A thumb that returns to its start fires no "change".
  const commitSoon = () => setTimeout(() => isKeyDown || commit());
  range.addEventListener("pointerdown", () => ["pointerup", "pointercancel"].forEach((end) => addEventListener(end, commitSoon, { once: true, capture: true })));
  range.addEventListener("blur", () => ((isKeyDown = false), commit()));

  // A browser fires no "change" when the same text is typed again, but it is applied all the same.
  let isTyped = false;
  const applyTyped = () => {
    const { low, high, integer, step, label, unit } = knob.data;
    const value = parseValue(field.value, unit);
    const problem = !Number.isFinite(value) ? text("knob.not_a_number", { label })
      : value < low || value > high ? text("knob.range", { label, low: formatValue(low, unit), high: formatValue(high, unit) })
      : integer && value % (step ?? 1) ? text(step === 2 ? "knob.even" : "knob.whole", { label }) : "";
    note.textContent = problem;
    field.setAttribute("aria-invalid", String(Boolean(problem)));
    if (problem || (value === knob.value && !isTyped)) return;
    isTyped = false;
    knob.value = value;
    writeValue(knob);
    send({ name, value });
  };
  field.addEventListener("input", () => (isTyped = true));
  field.addEventListener("change", applyTyped);
  field.addEventListener("blur", () => isTyped && applyTyped());
  // present.js moves it by other keys.
  root.__knob = Object.assign(knob, { moveTo, commit });
  field.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" && isTyped) applyTyped();
    if (key === "Escape") (isTyped = false), writeValue(knob), (note.textContent = "");
  });
  return knob;
}

function writeValue(knob) {
  const { data, field, range, value } = knob;
  field.value = formatValue(value, data.unit);
  range.value = Math.round(Math.min(1, Math.max(0, toTrack(data, value))) * range.max);
  range.style.setProperty("--share", `${(100 * range.value) / range.max}%`);
  range.setAttribute("aria-valuetext", `${formatValue(value, data.unit)} ${data.unit}`.trim());
}

function updateKnob(knob, data, isUnconfirmed) {
  const isNew = knob.data === undefined || knob.data.value !== data.value || knob.data.revision !== data.revision;
  knob.data = data;
  knob.label.textContent = data.label;
  // navigation.js shows it, as it shows the sentences of terms.
  const help = knob.root.querySelector("a");
  help.hidden = !data.help;
  help.dataset.help = data.help;
  help.ariaLabel = text("knob.help", { label: data.label });
  knob.field.setAttribute("aria-label", text("knob.typed", { label: data.label }));
  knob.range.max = countSteps(data);
  knob.root.toggleAttribute("data-unconfirmed", isUnconfirmed);
  // The user's value wins over the server's while it is moving or not yet confirmed.
  if ("moving" in knob.root.dataset || isUnconfirmed || (!isNew && knob.value === data.value)) return;
  knob.value = data.value;
  knob.note.textContent = "";
  knob.field.removeAttribute("aria-invalid");
  writeValue(knob);
}

// The dock at the bottom edge of a phone, where the sidebar would cover the picture: one slider at a time, chosen by pills.
let chosen = "";

function showDock(state, panel, knobs) {
  const bar = (state.bar ??= element("div", { className: "rv-pills", role: "group", ariaLabel: text("knob.dock") }));
  if (bar.parentNode !== panel.parentNode) panel.before(bar);
  const open = knobs.find(({ name }) => name === chosen) ?? knobs[0];
  if (bar.childElementCount !== knobs.length || knobs.some(({ name }, index) => bar.children[index].dataset.name !== name)) {
    bar.replaceChildren(...knobs.map(({ name, label }) => {
      const pill = element("button", { type: "button", textContent: label });
      pill.dataset.name = name;
      pill.addEventListener("click", () => ((chosen = name), showDock(state, panel, knobs)));
      return pill;
    }));
  }
  for (const pill of bar.children) pill.setAttribute("aria-pressed", String(pill.dataset.name === open.name));
  for (const [name, { root }] of state.shown) root.hidden = name !== open.name;
}

const phone = matchMedia("(max-width: 640px)");

export default function render(component) {
  const { parentElement } = component;
  const data = component.data.under && !phone.matches ? { knobs: [] } : component.data;
  if (component.data.under && !parentElement.__listens) {
    parentElement.__listens = true;
    phone.addEventListener("change", () => parentElement.isConnected && render(parentElement.__last));
  }
  parentElement.__last = component;
  const state = (parentElement.__knobs ??= { shown: new Map(), outbox: new Outbox() });
  state.outbox.component = component;
  state.outbox.confirm(component.data.confirmed);
  const panel = parentElement.querySelector(".rv-knobs");
  panel.classList.toggle("rv-across", Boolean(data.across));
  for (const [name, knob] of state.shown) {
    if (!data.knobs.some((item) => item.name === name)) {
      knob.root.remove();
      state.shown.delete(name);
    }
  }
  for (const item of data.knobs) {
    if (!state.shown.has(item.name)) state.shown.set(item.name, buildKnob(item, ({ name, value }) => state.outbox.send(name, value), component.data.under ? "under" : "knob"));
    const knob = state.shown.get(item.name);
    updateKnob(knob, item, state.outbox.isPending(item.name));
    // Moving a node ends a drag and loses the focus, so only new ones are inserted.
    const place = panel.children[data.knobs.indexOf(item)];
    if (place !== knob.root) panel.insertBefore(knob.root, place ?? null);
  }
  if (component.data.under && data.knobs.length) showDock(state, panel, data.knobs);
}

addStyle(`
.rv-knobs { display: grid; gap: 4px 16px; align-content: start; }
.rv-across { grid-template-columns: repeat(auto-fit, minmax(min(240px, 100%), 1fr)); }
.rv-knob { font-family: var(--st-font); color: var(--st-text-color); display: grid; grid-template-columns: minmax(0, 1fr) auto; align-items: center; gap: 0 8px; }
.rv-knob label { font-size: 14px; line-height: 1.2; }
.rv-name { display: flex; align-items: center; gap: 2px; }
.rv-name a { font-size: 12px; line-height: 24px; width: 24px; text-align: center; cursor: help; color: inherit; text-decoration: none; opacity: 0.75; border-radius: 50%; }
.rv-name a:hover { opacity: 1; color: var(--st-primary-color); box-shadow: inset 0 0 0 1px; }
.rv-name a[hidden] { display: none; }
.rv-knob input[type="text"] {
  font: inherit; font-size: 14px; font-variant-numeric: tabular-nums; width: 6em; min-height: 28px; box-sizing: border-box; padding: 0 8px; text-align: right;
  color: inherit; background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 6px;
}
.rv-knob input[aria-invalid="true"] { border-color: var(--st-red-text-color); }
.rv-knob input[type="range"] { grid-column: 1 / -1; width: 100%; height: 20px; margin: 0; cursor: pointer; background: transparent; appearance: none; -webkit-appearance: none; }
.rv-knob input[type="range"]::-webkit-slider-runnable-track {
  height: 4px; border-radius: 2px;
  background: linear-gradient(to right, var(--st-primary-color) var(--share), var(--st-border-color) var(--share));
}
.rv-knob input[type="range"]::-moz-range-track { height: 4px; border-radius: 2px; background: var(--st-border-color); }
.rv-knob input[type="range"]::-moz-range-progress { height: 4px; border-radius: 2px; background: var(--st-primary-color); }
.rv-knob input[type="range"]::-webkit-slider-thumb { -webkit-appearance: none; width: 16px; height: 16px; margin-top: -6px; border-radius: 50%; background: var(--st-primary-color); }
.rv-knob input[type="range"]::-moz-range-thumb { width: 16px; height: 16px; border: 0; border-radius: 50%; background: var(--st-primary-color); }
.rv-knob input:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; border-radius: 6px; }
.rv-knob .rv-note { grid-column: 1 / -1; font-size: 13px; color: var(--st-red-text-color); }
.rv-knob .rv-note:empty, .rv-knob[hidden] { display: none; }
.rv-pills { display: flex; gap: 8px; overflow-x: auto; scrollbar-width: none; padding: 2px; }
.rv-pills button { flex: none; height: 40px; padding: 0 16px; font: 15px var(--st-font); color: var(--st-text-color); background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 20px; }
.rv-pills button[aria-pressed="true"] { color: var(--st-primary-color); border-color: currentColor; font-weight: 600; }
.rv-pills button:focus-visible { outline: 2px solid var(--st-primary-color); }
/* In the dock the pill names the slider. */
.rv-pills + .rv-knobs { padding-top: 6px; }
.rv-pills + .rv-knobs .rv-name { position: absolute; clip-path: inset(50%); }
.rv-pills + .rv-knobs .rv-knob input[type="range"] { grid-area: 1 / 1; }
@media (pointer: coarse), (max-width: 640px) { .rv-knob input[type="range"], .rv-knob input[type="text"] { min-height: 40px; height: 40px; } .rv-name a { width: 40px; line-height: 40px; } }
`);
