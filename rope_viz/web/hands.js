// A query and a key as two hands: of one pair, of four, of all. The user drags a word or the ruler below the words; both are
// sliders for the keyboard. picture.js requests it, rope_viz/figures/hands.py packs it.

import { DEGREES, arrangeClocks, clamp, computeReadings, fill, formatStep, paintClocks, paintRuler, readKeyStep, setAttribute, withMinus } from "./circle.js";
import { addStyle, escapeHtml, isDark } from "./element.js";
import { STYLE } from "./hands_style.js";
import { makeSentenceForm, useSentence } from "./sentence.js";

const SPEED = 3; // positions per second
const INTRO = [10, 6, 8]; // seconds that the introduction shows one pair, a few, and all

function measure(s) {
  const w = s.canvas.clientWidth, h = s.canvas.clientHeight, dpr = Math.min(2, devicePixelRatio || 1);
  for (const canvas of [s.canvas, s.strip]) Object.assign(canvas, { width: Math.round(canvas.clientWidth * dpr), height: Math.round(canvas.clientHeight * dpr) });
  s.place = { w, h, dpr, narrow: h < 330, strip: [s.strip.clientWidth, s.strip.clientHeight] };
  s.cell = s.words.clientWidth / (s.slots = s.data.slots[s.words.clientWidth < 560 ? 1 : 0]);
  s.words.style.setProperty("--cell", `${s.cell}px`);
  s.query = Math.min(s.query, s.slots - 1);
  s.ctx.family = s.strip2d.family = s.font;
  s.clocks = [0, 1, 2].map((stage) => arrangeClocks(s, stage));
  [s.shown, s.stale] = ["", false];
}

// --- The words

// A transform alone makes the browser neither lay out nor paint.
const translate = (node, by, wide = 1) => (node.style.transform = `translateX(${by}px) scaleX(${wide})`);

// Give every word a slot; the others make room for the two that move.
function placeWords(s) {
  const { data } = s, occupied = [Math.round(s.query), Math.round(s.key)];
  let free = 0;
  s.ui.words.forEach((node, i) => {
    const moved = i === data.start.query ? s.query : i === data.start.key ? s.key : null;
    if (moved === null) while (occupied.includes(free)) free++;
    translate(node, (moved ?? free++) * s.cell);
  });
  const [left, right] = [s.key, s.query].map((at) => (at + 0.5) * s.cell), [bar, ...rest] = s.ui.apart;
  translate(bar, left, right - left);
  [left, right - 2, (left + right) / 2].forEach((at, i) => translate(rest[i], at));
}

// Change the text node itself, which other observers do not watch.
const setText = (node, text) => node.firstChild ? node.firstChild.data !== text && (node.firstChild.data = text) : node.append(text);

function showReadings(s, { angle, score, query, key, distance, pairs }) {
  const { ui, data: { texts } } = s, values = { distance, angle: angle.toFixed(1), score: withMinus(score.toFixed(2)) };
  Object.assign(s.root.dataset, {
    query: query.toFixed(2), key: key.toFixed(2), angle: angle.toFixed(2), score: score.toFixed(4), offset: s.offset.toFixed(3), pairs, playing: s.playing ? "yes" : "no",
  });
  const layout = `${s.query} ${s.key} ${s.cell}`;
  if (layout !== s.shown) placeWords(s);
  s.shown = layout;
  // Texts cost more than the picture: while something moves, only every third frame changes them, and the last one.
  s.textsLag = (s.playing || "held" in s.root.dataset) && s.frames % 3 > 0;
  if (s.textsLag) return;
  setText(ui.apart[3], distance);
  for (const [name, value] of Object.entries(values)) for (const node of ui.values[name]) setText(node, value);
  for (const name of ["query", "key"]) {
    const position = Math.round(s.offset + s[name]);
    setAttribute(ui[name], "aria-valuenow", position);
    setAttribute(ui[name], "aria-valuetext", fill(texts.word_at, { position, ...values }));
  }
  const first = Math.round(s.offset);
  setAttribute(ui.ruler, "aria-valuenow", first);
  setAttribute(ui.ruler, "aria-valuetext", fill(texts.ruler_at, { first, last: first + s.slots - 1, ...values }));
}

// Write the sentence of a stage, with a node for each number that changes.
function writeSentence(s) {
  const { texts, words, start, inv_freq: rates, pair, few, model } = s.data;
  const first = fill(texts[["one", "few", "all"][s.stage]], { pair, model, pairs: [1, few.length, rates.length][s.stage], step: formatStep(rates[pair]) });
  s.ui.values = { distance: [], angle: [], score: [] };
  const parts = texts[s.stage ? "mean" : "apart"].split(/\{(\w+)\}/).map((part, i) => {
    if (i % 2 === 0) return part;
    const role = part.replace("_word", ""), node = Object.assign(document.createElement(part === "distance" ? "span" : "b"), { textContent: words[start[role]] ?? "", className: `rv-${role}` });
    s.ui.values[part]?.push(node);
    return node;
  });
  // A full-width stop has its blank in it.
  s.ui.now.replaceChildren(first, first.endsWith("。") ? "" : " ", ...parts);
  s.ui.note.textContent = s.stage || rates[0] * DEGREES < 40 || !pair ? "" : fill(texts.first, { step: formatStep(rates[0]) });
  s.ui.stages.forEach((node, stage) => node.setAttribute("aria-pressed", String(stage === s.stage)));
  setText(s.ui.play, s.playing ? texts.pause : texts.play);
}

// --- Motion

function requestFrame(s) {
  s.request ||= requestAnimationFrame((now) => {
    s.request = 0;
    // Sizes are read once after a change: reading them in each frame makes the browser lay out the page twice.
    if (s.stale && s.root.isConnected) measure(s);
    if (!s.root.isConnected || !s.place.w) return void ([s.last, s.stale] = [0, true]);
    // The words may be in view while the circle is not.
    if (!s.visible) return void ((s.last = 0), showReadings(s, computeReadings(s)));
    const passed = s.playing && s.last ? Math.min(0.1, (now - s.last) / 1000) : 0;
    s.last = s.playing ? now : 0;
    s.offset += SPEED * passed;
    if (s.offset > s.data.last) s.offset = 0;
    if (s.intro !== null) advanceIntro(s, passed);
    const values = computeReadings(s);
    showReadings(s, values);
    paintClocks(s, now, values);
    paintRuler(s);
    s.root.dataset.drawn = s.frames = (s.frames ?? 0) + 1;
    if (s.playing || s.from !== null || s.textsLag) requestFrame(s);
  });
}

// The introduction shows one clock, then a few, then all, then one.
function advanceIntro(s, passed) {
  s.intro += passed;
  if (s.intro < INTRO[s.stage]) return;
  s.intro = 0;
  if (s.stage < 2) return showStage(s, s.stage + 1);
  s.intro = null;
  setPlaying(s, false);
  showStage(s, 0);
}

function showStage(s, stage) {
  if (stage !== s.stage) Object.assign(s, { from: s.reducedMotion.matches ? null : s.stage, since: performance.now(), stage });
  writeSentence(s);
  requestFrame(s);
}

function setPlaying(s, on) {
  s.playing = on;
  if (!on) s.offset = Math.round(s.offset);
  writeSentence(s);
  requestFrame(s);
}

// End the introduction: the user has done something.
function stopIntro(s) {
  s.intro = null;
  if (s.playing) setPlaying(s, false);
}

// Move a word to a slot or the ruler to a first position; between two positions only while it is dragged.
function moveHandle(s, name, to) {
  const [low, high] = name === "query" ? [s.key + 1, s.slots - 1] : name === "key" ? [0, s.query - 1] : [0, s.data.last];
  const field = name === "ruler" ? "offset" : name;
  s[field] = clamp(to, low, high);
  requestFrame(s);
}

function makeSlider(s, node, name) {
  const field = name === "ruler" ? "offset" : name, sign = name === "ruler" ? -1 : 1;
  let dragged = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault(); // selects no text
    node.focus({ preventScroll: true });
    node.setPointerCapture(event.pointerId);
    stopIntro(s);
    dragged = [event.clientX, s[field]];
    s.root.dataset.held = name;
  });
  node.addEventListener("pointermove", ({ clientX }) => dragged && moveHandle(s, name, dragged[1] + (sign * (clientX - dragged[0])) / s.cell));
  for (const kind of ["pointerup", "pointercancel"]) node.addEventListener(kind, () => {
    if (!dragged) return;
    dragged = null;
    delete s.root.dataset.held;
    moveHandle(s, name, Math.round(s[field]));
  });
  node.addEventListener("keydown", (event) => {
    const by = readKeyStep(event, name === "ruler" ? 10 : 3);
    if (!by) return;
    event.preventDefault();
    stopIntro(s);
    moveHandle(s, name, s[field] + by);
  });
}

// --- The component

function build(place, data) {
  const { root } = place, { texts, words, start } = data, roles = { [start.query]: "query", [start.key]: "key" };
  const sliderHtml = (name, word, more) => `class="${more}" role="slider" tabindex="0" data-do="${name}" aria-orientation="horizontal" aria-label="${fill(texts[`${name}_slider`], { word })}" aria-valuemin="0"`;
  root.innerHTML = `<div class="rv-line"><div class="rv-words">${words.map((word, i) => `<span ${roles[i] ? sliderHtml(roles[i], escapeHtml(word), `rv-word rv-${roles[i]}`) : 'class="rv-word"'}><i${data.isOwn ? ' dir="auto"' : ""}>${escapeHtml(word)}</i></span>`).join("")}<div class="rv-apart"><i></i><i></i><i></i><b></b></div></div>
    <div ${sliderHtml("ruler", "", "rv-ruler")}><canvas></canvas></div><p class="rv-hint"><span>${texts.hint}</span><span>${texts.hint_short}</span></p>${place.makeAddress ? '<div class="rv-room"></div>' : ""}</div>
    <p class="rv-now"></p><div class="rv-bar"><button type="button" data-do="play" title="${texts.play_help}"></button>
    <div role="group" aria-label="${texts.pairs}">${["one", "few", "all"].map((name, i) => `<button type="button" data-do="${name}">${i ? [data.few.length, data.inv_freq.length][i - 1] : texts.one_pair}</button>`).join("")}</div>
    <p></p></div><div class="rv-circle"><canvas role="img"></canvas></div>`;
  const find = (selector) => root.querySelector(selector), canvas = find(".rv-circle canvas"), strip = find(".rv-ruler canvas");
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const s = { root, canvas, strip, words: find(".rv-words"), ctx: canvas.getContext("2d"), strip2d: strip.getContext("2d"), reducedMotion, visible: true, ...start, offset: 0, stage: 0, from: null, intro: reducedMotion.matches ? null : 0, playing: !reducedMotion.matches };
  // A new node continues from the state of the old one.
  for (const name of ["query", "key", "offset", "stage", "intro", "playing"]) if (place.memory.hands) s[name] = place.memory.hands[name];
  place.memory.hands = s;
  s.ui = { words: [...root.querySelectorAll(".rv-word")], apart: [...find(".rv-apart").children], now: find(".rv-now"), note: find(".rv-bar p"), play: find("[data-do=play]"), stages: ["one", "few", "all"].map((name) => find(`[data-do=${name}]`)), values: {} };
  for (const name of ["query", "key", "ruler"]) makeSlider(s, (s.ui[name] = find(`[data-do=${name}]`)), name);
  s.ui.play.addEventListener("click", () => setPlaying(s, !s.playing));
  s.ui.stages.forEach((node, stage) => node.addEventListener("click", () => ((s.intro = null), showStage(s, stage))));
  if (data.form) find(".rv-line").append(makeSentenceForm(texts, () => rebuild(place, s))); // in the static site
  if (place.makeAddress) import(new URL("hands_share.js", import.meta.url).href).then((script) => script.default(s, place, () => setPlaying(s, true), () => rebuild(place, s)));
  reducedMotion.addEventListener("change", () => reducedMotion.matches && stopIntro(s));
  for (const node of [canvas, s.words]) new ResizeObserver(() => s.data && ((s.stale = true), requestFrame(s))).observe(node);
  new IntersectionObserver(([entry]) => (s.visible = entry.isIntersecting) && s.data && requestFrame(s)).observe(canvas);
  return s;
}

// Show another sentence, at the places of its words.
function rebuild(place, s) {
  stopIntro(s);
  place.root.__hands = null;
  Object.assign(s, useSentence(s.given).start, { offset: 0 });
  show(place, s.given);
}

// Show the frequencies of a spec. On a page of its own, `place` has little more than a root.
export default function show(place, given) {
  const data = useSentence(given), s = place.root.__hands ?? build(place, data);
  s.given = given;
  s.root.toggleAttribute("data-own", "isOwn" in data);
  place.root.__hands = s;
  Object.assign(s, { data, font: getComputedStyle(s.root).fontFamily, stale: true });
  s.c = Object.fromEntries(Object.entries(data.palette).map(([name, both]) => [name, both[isDark(s.root) ? 1 : 0]]));
  for (const name of ["query", "key", "background", "text", "plain", "face", "rule"]) s.root.style.setProperty(`--${name}`, s.c[name]);
  for (const name of ["query", "key"]) setAttribute(s.ui[name], "aria-valuemax", data.last + data.slots[0]);
  setAttribute(s.ui.ruler, "aria-valuemax", data.last);
  s.canvas.setAttribute("aria-label", data.title);
  writeSentence(s);
  requestFrame(s);
}

addStyle(STYLE);
