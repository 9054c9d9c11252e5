// A prompt builder with one card per piece (text, image, video, audio), each of which can be edited, moved and removed.

import { dark, fill } from "./dials.js";
import { addStyle, element } from "./element.js";
import { Post } from "./outbox.js";

// Fields of each kind of piece: [name, minimum, maximum, whole number].
const WIDTH = ["width", 1, 99999, true], HEIGHT = ["height", 1, 99999, true], SECONDS = ["seconds", 0, 9999999, false];
const FIELDS = {
  text: [["tokens", 0, 9999999, true]],
  image: [WIDTH, HEIGHT],
  video: [WIDTH, HEIGHT, SECONDS, ["rate", 0.001, 240, false]],
  audio: [SECONDS],
};
const FRESH = {
  text: { tokens: 16 }, image: { width: 640, height: 480 }, video: { width: 448, height: 336, seconds: 10, rate: 1 }, audio: { seconds: 5 },
};

const number = (value) => String(Number(Number(value).toFixed(3)));

// The same text as `Piece.text` in rope_viz/multi_axis/prompt_syntax.py, which parses it.
function format({ what, tokens, width, height, seconds, rate }) {
  if (what === "text") return `text ${number(tokens)}`;
  if (what === "image") return `image ${number(width)}x${number(height)}`;
  return what === "video" ? `video ${number(width)}x${number(height)} ${number(seconds)}s ${number(rate)}fps` : `audio ${number(seconds)}s`;
}

const composed = (state) => state.pieces.map(format).join(", ");
const text = (state, key, values) => fill(state.data.texts[key], values);
const label = (state, what) => text(state, `kinds.${what}`);
const name = (state, k) => text(state, "piece", { number: k + 1, kind: label(state, state.pieces[k].what).toLowerCase() });

function changed(state, focus) {
  draw(state);
  state.field.value = composed(state);
  const target = focus && state.root.querySelector(focus);
  // The buttons of a card are hidden until the card has the focus.
  target?.closest("li")?.focus();
  target?.focus();
  state.post.put(state.data.key, composed(state));
}

function button(sign, help, act, off = false) {
  const made = element("button", { type: "button", textContent: sign, disabled: off, ariaLabel: help, title: help });
  made.addEventListener("click", act);
  return made;
}

function input(state, k, [key, low, high, whole]) {
  const piece = state.pieces[k], what = text(state, `fields.${key}`);
  const ariaLabel = text(state, "field", { piece: name(state, k), field: what });
  const field = element("input", { type: "text", inputMode: "decimal", autocomplete: "off", value: number(piece[key]), ariaLabel });
  field.dataset.field = key;
  field.style.width = `calc(${Math.max(3, field.value.length)}ch + 18px)`;
  const step = (by) => {
    const at = Math.min(high, Math.max(low, Number(field.value) + by));
    if (Number.isFinite(at)) take(number(at));
  };
  const take = (value) => {
    const at = Number(value.replaceAll(/[_ ,]/g, ""));
    const bad = !value.trim() || !Number.isFinite(at) || at < low || at > high || (whole && at % 1 !== 0);
    field.setAttribute("aria-invalid", String(bad));
    state.note.textContent = bad ? text(state, whole ? "whole" : "number", { kind: label(state, piece.what), field: what, low, high }) : "";
    if (bad || at === piece[key]) return;
    piece[key] = Number(number(at));
    changed(state, `[data-piece="${k}"] [data-field="${key}"]`);
  };
  field.addEventListener("change", () => take(field.value));
  field.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 16, PageDown: -16 }[event.key];
    if (by) (event.preventDefault(), step(by));
  });
  return element("label", {}, field, element("span", { textContent: text(state, `units.${key}`) }));
}

function card(state, k) {
  const { pieces, data } = state, piece = pieces[k];
  const kind = element("select", {}, ...Object.keys(FIELDS).filter((what) => data.kinds.includes(what) || what === piece.what)
    .map((what) => element("option", { value: what, textContent: label(state, what), selected: what === piece.what })));
  kind.ariaLabel = text(state, "kind", { number: k + 1 });
  kind.addEventListener("change", () => {
    pieces[k] = { ...FRESH[kind.value], ...Object.fromEntries(FIELDS[kind.value].filter(([key]) => piece[key] > 0).map(([key]) => [key, piece[key]])), what: kind.value };
    changed(state, `[data-piece="${k}"] select`);
  });
  const swap = (by) => () => {
    [pieces[k], pieces[k + by]] = [pieces[k + by], pieces[k]];
    const end = by < 0 ? k + by === 0 : k + by === pieces.length - 1;
    changed(state, `[data-piece="${k + by}"] [data-move="${end ? -by : by}"]`);
  };
  const earlier = button("‹", text(state, "earlier", { piece: name(state, k) }), swap(-1), k === 0);
  const later = button("›", text(state, "later", { piece: name(state, k) }), swap(1), k === pieces.length - 1);
  [earlier.dataset.move, later.dataset.move] = ["-1", "1"];
  const away = button("×", text(state, "remove", { piece: name(state, k) }), () => {
    pieces.splice(k, 1);
    changed(state, pieces.length > 1 ? `[data-piece="${Math.min(k, pieces.length - 1)}"] [data-away]` : ".rv-add button");
  }, pieces.length === 1);
  away.dataset.away = "";
  const made = element("li", {}, element("div", {}, kind, earlier, later, away), element("div", {}, ...FIELDS[piece.what].map((field) => input(state, k, field))));
  // The card can be tapped, which shows its buttons.
  made.tabIndex = -1;
  made.dataset.piece = k;
  made.dataset.what = piece.what;
  return made;
}

function draw(state) {
  const { root, data, pieces } = state;
  root.querySelector("ol").replaceChildren(...pieces.map((_, k) => card(state, k)));
  const full = pieces.length >= data.most;
  root.querySelector(".rv-add").replaceChildren(
    element("span", { textContent: text(state, full ? "full" : "add", { most: data.most }) }),
    ...(full ? [] : data.kinds.map((what) => {
      const kind = label(state, what), help = text(state, "add_one", { kind: kind.toLowerCase() });
      const made = element("button", { type: "button", textContent: kind, ariaLabel: help });
      made.addEventListener("click", () => {
        pieces.push({ ...FRESH[what], what });
        changed(state, `[data-piece="${pieces.length - 1}"] [data-field]`);
      });
      return made;
    })),
  );
}

function build(root, texts) {
  root.innerHTML = `<ol aria-label="${texts.list}"></ol><div class="rv-add" role="group" aria-label="${texts.group}"></div>
    <label class="rv-line"><span>${texts.line}</span><input type="text" autocomplete="off" spellcheck="false" aria-label="${texts.prompt}"></label><div class="rv-note" role="alert"></div>`;
  const state = { root, post: new Post(), pieces: [], line: null, field: root.querySelector(".rv-line input"), note: root.querySelector(".rv-note") };
  state.field.addEventListener("change", () => state.post.put(state.data.key, state.field.value));
  return state;
}

export default function render(component) {
  const { parentElement, data } = component;
  const root = parentElement.querySelector(".rv-prompt");
  const state = (root.__state ??= build(root, data.texts));
  root.style.minHeight = "0";
  state.data = data;
  const night = dark(root);
  for (const [what, colours] of Object.entries(data.colours)) root.style.setProperty(`--rv-${what}`, colours[night ? 1 : 0]);
  state.post.component = component;
  state.post.taken(data.taken);
  // The user's edit wins over the server's until it is confirmed.
  if (state.post.has(data.key)) return;
  const seen = JSON.stringify([data.line, data.kinds, data.most]);
  if (seen === state.seen) return;
  state.seen = seen;
  state.field.setAttribute("maxlength", data.longest);
  // Keep the cards if they already show this line, so that the focus is not lost.
  if (data.pieces && state.pieces.length && composed(state) === data.pieces.map(format).join(", ") && root.contains(document.activeElement)) {
    if (state.field !== document.activeElement) state.field.value = data.line;
    return;
  }
  if (data.pieces) state.pieces = data.pieces.map((piece) => ({ ...piece }));
  state.note.textContent = "";
  if (state.field !== document.activeElement || data.pieces) state.field.value = data.line;
  draw(state);
}

addStyle(`
.rv-prompt {
  font: 14px var(--st-font); color: var(--st-text-color); display: grid; gap: 8px; align-content: start;
  ol { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 8px; }
  li { margin: 0; padding: 6px 8px 8px; display: grid; gap: 6px; border: 1px solid var(--st-border-color); border-top: 4px solid var(--st-border-color); border-radius: 6px; background: var(--st-secondary-background-color); }
  li[data-what="image"] { border-top-color: var(--rv-image); }
  li[data-what="video"] { border-top-color: var(--rv-video); border-top-style: double; }
  li[data-what="audio"] { border-top-color: var(--rv-audio); border-top-style: dashed; }
  li > div, .rv-add { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 6px; }
  li label { display: flex; align-items: center; gap: 4px; }
  :is(input, select, button) { font: inherit; color: inherit; min-height: 28px; box-sizing: border-box; background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: 6px; }
  input { padding: 0 6px; font-variant-numeric: tabular-nums; }
  li input { text-align: right; min-width: 0; }
  select { padding: 0 2px; margin-right: auto; }
  button { min-width: 28px; padding: 0 8px; cursor: pointer; }
  button:hover:not(:disabled) { border-color: var(--st-primary-color); color: var(--st-primary-color); }
  li:not(:hover, :focus-within) button { visibility: hidden; }
  button:disabled { opacity: 0.35; cursor: default; }
  :is(input, select, button):focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
  input[aria-invalid="true"] { border-color: var(--st-red-text-color); }
  .rv-line { display: flex; align-items: center; gap: 8px; }
  .rv-line input { flex: 1; min-width: 0; }
  .rv-note { font-size: 13px; color: var(--st-red-text-color); }
  .rv-note:empty { display: none; }
  @media (pointer: coarse), (max-width: 640px) {
    :is(input, select, button) { min-height: 40px; min-width: 40px; }
    li { flex: 1 1 100%; }
    li:not([data-what="video"]) { grid-template-columns: auto 1fr; }
    li:not([data-what="video"]) > div:last-child { justify-content: flex-end; }
  }
}
`);
