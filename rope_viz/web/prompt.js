// A prompt builder with one card per piece (text, image, video, audio), each of which can be edited, moved and removed.

import { fill } from "./dials.js";
import { addStyle, element, isDark } from "./element.js";
import { Outbox } from "./outbox.js";

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

const formatNumber = (value) => String(Number(Number(value).toFixed(3)));

// The same text as `Piece.text` in rope_viz/multi_axis/prompt_syntax.py, which parses it.
function formatPiece({ what, tokens, width, height, seconds, rate }) {
  if (what === "text") return `text ${formatNumber(tokens)}`;
  if (what === "image") return `image ${formatNumber(width)}x${formatNumber(height)}`;
  return what === "video" ? `video ${formatNumber(width)}x${formatNumber(height)} ${formatNumber(seconds)}s ${formatNumber(rate)}fps` : `audio ${formatNumber(seconds)}s`;
}

const composeLine = (state) => state.pieces.map(formatPiece).join(", ");
const fillText = (state, key, values) => fill(state.data.texts[key], values);
const nameKind = (state, what) => fillText(state, `kinds.${what}`);
const namePiece = (state, k) => fillText(state, "piece", { number: k + 1, kind: nameKind(state, state.pieces[k].what).toLowerCase() });

function applyChange(state, focus) {
  drawCards(state);
  state.field.value = composeLine(state);
  const target = focus && state.root.querySelector(focus);
  // The buttons of a card are hidden until the card has the focus.
  target?.closest("li")?.focus();
  target?.focus();
  state.outbox.send(state.data.key, composeLine(state));
}

function makeButton(sign, help, act, off = false) {
  const node = element("button", { type: "button", textContent: sign, disabled: off, ariaLabel: help, title: help });
  node.addEventListener("click", act);
  return node;
}

function makeInput(state, k, [key, low, high, whole]) {
  const piece = state.pieces[k], what = fillText(state, `fields.${key}`);
  const ariaLabel = fillText(state, "field", { piece: namePiece(state, k), field: what });
  const field = element("input", { type: "text", inputMode: "decimal", autocomplete: "off", value: formatNumber(piece[key]), ariaLabel });
  field.dataset.field = key;
  field.style.width = `calc(${Math.max(3, field.value.length)}ch + 18px)`;
  const stepValue = (by) => {
    const at = Math.min(high, Math.max(low, Number(field.value) + by));
    if (Number.isFinite(at)) applyValue(formatNumber(at));
  };
  const applyValue = (value) => {
    const at = Number(value.replaceAll(/[_ ,]/g, ""));
    const bad = !value.trim() || !Number.isFinite(at) || at < low || at > high || (whole && at % 1 !== 0);
    field.setAttribute("aria-invalid", String(bad));
    state.note.textContent = bad ? fillText(state, whole ? "whole" : "number", { kind: nameKind(state, piece.what), field: what, low, high }) : "";
    if (bad || at === piece[key]) return;
    piece[key] = Number(formatNumber(at));
    applyChange(state, `[data-piece="${k}"] [data-field="${key}"]`);
  };
  field.addEventListener("change", () => applyValue(field.value));
  field.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 16, PageDown: -16 }[event.key];
    if (by) (event.preventDefault(), stepValue(by));
  });
  return element("label", {}, field, element("span", { textContent: fillText(state, `units.${key}`) }));
}

function makeCard(state, k) {
  const { pieces, data } = state, piece = pieces[k];
  const kind = element("select", {}, ...Object.keys(FIELDS).filter((what) => data.kinds.includes(what) || what === piece.what)
    .map((what) => element("option", { value: what, textContent: nameKind(state, what), selected: what === piece.what })));
  kind.ariaLabel = fillText(state, "kind", { number: k + 1 });
  kind.addEventListener("change", () => {
    pieces[k] = { ...FRESH[kind.value], ...Object.fromEntries(FIELDS[kind.value].filter(([key]) => piece[key] > 0).map(([key]) => [key, piece[key]])), what: kind.value };
    applyChange(state, `[data-piece="${k}"] select`);
  });
  const swapWith = (by) => () => {
    [pieces[k], pieces[k + by]] = [pieces[k + by], pieces[k]];
    const end = by < 0 ? k + by === 0 : k + by === pieces.length - 1;
    applyChange(state, `[data-piece="${k + by}"] [data-move="${end ? -by : by}"]`);
  };
  const earlier = makeButton("‹", fillText(state, "earlier", { piece: namePiece(state, k) }), swapWith(-1), k === 0);
  const later = makeButton("›", fillText(state, "later", { piece: namePiece(state, k) }), swapWith(1), k === pieces.length - 1);
  [earlier.dataset.move, later.dataset.move] = ["-1", "1"];
  const removeButton = makeButton("×", fillText(state, "remove", { piece: namePiece(state, k) }), () => {
    pieces.splice(k, 1);
    applyChange(state, pieces.length > 1 ? `[data-piece="${Math.min(k, pieces.length - 1)}"] [data-remove]` : ".rv-add button");
  }, pieces.length === 1);
  removeButton.dataset.remove = "";
  const node = element("li", {}, element("div", {}, kind, earlier, later, removeButton), element("div", {}, ...FIELDS[piece.what].map((field) => makeInput(state, k, field))));
  // A tap on a card shows its buttons.
  node.tabIndex = -1;
  node.dataset.piece = k;
  node.dataset.what = piece.what;
  return node;
}

function drawCards(state) {
  const { root, data, pieces } = state;
  root.querySelector("ol").replaceChildren(...pieces.map((_, k) => makeCard(state, k)));
  const full = pieces.length >= data.most;
  root.querySelector(".rv-add").replaceChildren(
    element("span", { textContent: fillText(state, full ? "full" : "add", { most: data.most }) }),
    ...(full ? [] : data.kinds.map((what) => {
      const kind = nameKind(state, what), help = fillText(state, "add_one", { kind: kind.toLowerCase() });
      const node = element("button", { type: "button", textContent: kind, ariaLabel: help });
      node.addEventListener("click", () => {
        pieces.push({ ...FRESH[what], what });
        applyChange(state, `[data-piece="${pieces.length - 1}"] [data-field]`);
      });
      return node;
    })),
  );
}

function buildPrompt(root, texts) {
  root.innerHTML = `<ol aria-label="${texts.list}"></ol><div class="rv-add" role="group" aria-label="${texts.group}"></div>
    <label class="rv-line"><span>${texts.line}</span><input type="text" autocomplete="off" spellcheck="false" aria-label="${texts.prompt}"></label><div class="rv-note" role="alert"></div>`;
  const state = { root, outbox: new Outbox(), pieces: [], line: null, field: root.querySelector(".rv-line input"), note: root.querySelector(".rv-note") };
  state.field.addEventListener("change", () => state.outbox.send(state.data.key, state.field.value));
  return state;
}

export default function render(component) {
  const { parentElement, data } = component;
  const root = parentElement.querySelector(".rv-prompt");
  const state = (root.__state ??= buildPrompt(root, data.texts));
  root.style.minHeight = "0";
  state.data = data;
  const night = isDark(root);
  for (const [what, colours] of Object.entries(data.colours)) root.style.setProperty(`--rv-${what}`, colours[night ? 1 : 0]);
  state.outbox.component = component;
  state.outbox.confirm(data.confirmed);
  // The user's edit wins over the server's until it is confirmed.
  if (state.outbox.isPending(data.key)) return;
  const shown = JSON.stringify([data.line, data.kinds, data.most]);
  if (shown === state.shown) return;
  state.shown = shown;
  state.field.setAttribute("maxlength", data.longest);
  // Keep the cards if they already show this line, so that the focus is not lost.
  if (data.pieces && state.pieces.length && composeLine(state) === data.pieces.map(formatPiece).join(", ") && root.contains(document.activeElement)) {
    if (state.field !== document.activeElement) state.field.value = data.line;
    return;
  }
  if (data.pieces) state.pieces = data.pieces.map((piece) => ({ ...piece }));
  state.note.textContent = "";
  if (state.field !== document.activeElement || data.pieces) state.field.value = data.line;
  drawCards(state);
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
