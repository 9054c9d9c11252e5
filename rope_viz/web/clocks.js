// The clocks: an animation of every pair of the model, computed in the browser. picture.js requests them, rope_viz/figures/clocks.py packs them.

import { TAU, arrangeDials, computeScore, computeTurn, fill, findDial, formatDigits, formatTokens, formatTurns, formatWhole, makeWheel, paintDials } from "./dials.js";
import { addStyle, isDark } from "./element.js";

const LAST = 1e7;

// Accept numbers such as "128k" and "1_000".
const parseNumber = (text) => {
  const match = /^\s*([0-9][0-9_, ]*(?:e[0-9]+)?)\s*([km]?)\s*$/i.exec(text);
  return match ? Number(match[1].replace(/[_, ]/g, "")) * { "": 1, k: 1024, m: 1048576 }[match[2].toLowerCase()] : NaN;
};

// --- Motion

// Playback continues to the target length, because long contexts fail beyond the trained one.
const findTarget = (s) => Math.min(LAST, Math.max(s.data.context, s.data.target));
const findEnd = (s) => (s.loop ? findTarget(s) : LAST);

function advance(s, by) {
  // A single step may go beyond the end of playback.
  const both = s.data.mode === "score" && s.moves === "both", top = s.playing ? findEnd(s) : LAST, apart = s.m - s.n;
  const one = s.data.mode === "score" && s.moves === "n" ? "n" : "m";
  let at = s[one] + by;
  const low = both ? Math.max(0, apart) : 0, high = both ? top + Math.min(0, apart) : top;
  if (at > high || at < low) {
    if (s.loop && s.playing && high > low) at = at > high ? low + ((at - high) % (high - low)) : high - ((low - at) % (high - low));
    else {
      at = Math.min(Math.max(at, low), Math.max(high, s[one]));
      if (s.playing) setPlaying(s, false);
    }
  }
  s[one] = at;
  if (both) s.n = at - apart;
}

function requestFrame(s) {
  s.request ||= requestAnimationFrame((now) => {
    s.request = 0;
    if (!s.root.isConnected || !s.visible) return void (s.last = 0);
    if (s.playing) advance(s, (s.back ? -1 : 1) * s.speed * Math.min(0.1, s.last ? (now - s.last) / 1000 : 0));
    s.last = s.playing ? now : 0;
    // A page that is being left has no width.
    if (!s.canvas.clientWidth) return void ([s.stale, s.last] = [true, 0]);
    if (s.stale) arrangeDials(s);
    s.stale = false;
    s.frames = (s.frames ?? 0) + 1;
    draw(s, !s.playing || s.recorder || s.frames % 6 === 1);
    s.root.dataset.drawn = s.frames;
    if (s.playing) requestFrame(s);
  });
}

// While playing, all numbers change together, ten times a second: changing an input costs as much as painting the dials.
function draw(s, numbers) {
  if (numbers) s.shown = { m: s.m, n: s.n };
  paintDials(s);
  if (numbers) showPosition(s);
}

function showPosition(s) {
  const one = s.data.mode === "score" && s.moves === "n" ? s.n : s.m;
  s.ui.scrub.max = Math.max(findTarget(s), one);
  s.ui.scrub.value = one;
  if (s.root.getRootNode().activeElement !== s.ui.at) s.ui.at.value = Math.round(one);
}

function setPlaying(s, on) {
  s.playing = on;
  showPlaying(s);
  if (!on) [s.m, s.n] = [Math.round(s.m), Math.round(s.n)];
  reportSoon(s);
}

const showPlaying = (s) => (s.ui.play.textContent = s.playing ? s.texts.pause : s.texts.play);

// Once nothing has changed for a moment, announce the state to screen readers and record it in the link.
function reportSoon(s) {
  requestFrame(s);
  describePair(s);
  clearTimeout(s.timer);
  s.root.dataset.waiting = "yes";
  s.timer = setTimeout(() => {
    delete s.root.dataset.waiting;
    const { texts, rates } = s, slow = rates.length - 1, positions = { m: formatWhole(s.m), n: formatWhole(s.n), distance: formatWhole(s.m - s.n) };
    const state = s.data.mode === "score" ? fill(texts.score, { ...positions, score: computeScore(s.m - s.n, rates).toFixed(4) })
      : fill(texts.turns, { ...positions, first: formatTurns(s.m * rates[0]), last: slow, count: formatTurns(s.m * rates[slow]) });
    s.ui.announced.textContent = `${fill(s.playing ? texts.playing : texts.at, { state })} ${s.pin == null ? "" : s.ui.now.textContent}`;
    if (s.playing) return;
    Object.assign(s.root.dataset, { m: s.m, n: s.n, score: computeScore(s.m - s.n, s.rates) });
    if (s.reported === `${s.m},${s.n}`) return;
    if (s.changedMode) dispatchEvent(new Event("rope-viz-same-step"));
    [s.reported, s.reportedAt, s.changedMode] = [`${s.m},${s.n}`, performance.now(), false];
    s.owner.send?.("at", { m: s.m, n: s.n });
  }, 250);
}

// Describe the hovered pair below the picture, else the pinned one.
function describePair(s) {
  const i = s.hover ?? s.pin, rate = s.rates[i], { texts } = s;
  if (rate === undefined) return void (s.ui.now.textContent = matchMedia("(hover: none)").matches ? texts.hint_touch : texts.hint);
  const apart = computeTurn(s.m - s.n, rate), band = s.data.names[s.data.bands[i]];
  const now = s.data.mode === "score" ? fill(texts.angle, { turn: apart.toFixed(4), cos: formatDigits(Math.cos(TAU * apart)) })
    : fill(s.data.plain ? texts.turned_both : texts.turned, { turns: (s.m * rate).toFixed(3), unscaled: (s.m * s.first[i]).toFixed(3) });
  s.ui.now.textContent = fill(texts.pair, {
    pair: i, band, theta: formatDigits(rate * TAU), wavelength: rate ? formatTokens(Math.round(1 / rate)) : "∞",
    turns: formatDigits(s.data.context * rate), context: formatTokens(s.data.context), now,
  });
}

// --- The component

const REMEMBERED = ["m", "n", "speed", "loop", "back", "moves", "playing", "given", "reported", "reportedAt", "mode"];
// What playback moves in the mode "score": both positions, the query's or the key's.
const MOVES = ["both", "m", "n"];

// Offer files that show the hands as they are now; the server would draw them at their start.
function fillTools(s, { fillToolbar, runScript }, { VIDEO }) {
  const names = ["png", ...(VIDEO ? ["video"] : []), "html"], labels = { png: "PNG", video: s.texts.video, html: "HTML" };
  const act = (name) => void runScript(s.owner, "file", "clocks_files", ({ downloadClocks }) => downloadClocks(s, name));
  fillToolbar(s.root.querySelector(".rv-tools"), s.owner, names.map((name) => ({ name, label: labels[name], help: s.texts[`${name}_help`], act: () => act(name) })));
}

function build(place, data) {
  const { root } = place, { texts } = data;
  const buttonHtml = (name, text = texts[name], help = texts[`${name}_help`]) => `<button type="button" data-do="${name}" title="${help}">${text}</button>`;
  root.innerHTML = `<div class="rv-bar">${
    buttonHtml("play")}${buttonHtml("less", "−1")}${buttonHtml("more", "+1")
    }<input data-do="scrub" type="range" min="0" step="1" aria-label="${texts.place}"><input data-do="at" type="text" inputmode="numeric" autocomplete="off" aria-label="${texts.place_typed}"></div>
    <canvas tabindex="0" role="img"></canvas><div class="rv-now"></div><div class="rv-bar"><span class="rv-pair">${texts.move} ${MOVES.map((name) => buttonHtml(name, texts[`moves.${name}`], texts.move_help)).join("")}</span>
    <label>${texts.speed} <input data-do="speed" type="range" min="-1" max="5" step="0.01"> <output></output></label>${buttonHtml("back")}${buttonHtml("loop")
    }</div><div class="rv-tools"></div><div class="rv-announced" aria-live="polite"></div>`;
  const loadScript = (name) => import(new URL(name, import.meta.url).href);
  if (place.makeAddress) {
    Promise.all([loadScript("tools.js"), loadScript("video.js")]).then((scripts) => fillTools(s, ...scripts));
    loadScript("touch.js").then(({ guardSlider }) => root.querySelectorAll("[type=range]").forEach(guardSlider));
  }
  const findControl = (name) => root.querySelector(`[data-do="${name}"]`), canvas = root.querySelector("canvas");
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const s = { root, canvas, ctx: canvas.getContext("2d"), owner: place, speed: data.speed, loop: true, moves: "both", hover: null, visible: true, back: false, reportedAt: 0, texts, isCalm, isFirst: true };
  // A new node continues from the state of the old one.
  for (const name of REMEMBERED) if (place.memory.clocks?.[name] !== undefined) s[name] = place.memory.clocks[name];
  place.memory.clocks = s;
  s.ui = { play: findControl("play"), scrub: findControl("scrub"), at: findControl("at"), speed: findControl("speed"), pace: root.querySelector("output"), now: root.querySelector(".rv-now"), announced: root.querySelector(".rv-announced") };
  const stepBy = (by) => (s.playing && setPlaying(s, false), advance(s, by), reportSoon(s));
  const jumpTo = (to) => stepBy(to - (s.moves === "n" && s.data.mode === "score" ? s.n : s.m));
  const togglePin = (i) => {
    s.pin = s.pin === i ? null : i;
    s.owner.send?.("pin", i);
    reportSoon(s);
  };
  s.step = stepBy;
  s.drawExact = () => draw(s, true);
  s.showPressed = () => ["back", "loop", ...MOVES].forEach((name) => findControl(name).setAttribute("aria-pressed", String(name === s.moves || s[name] === true)));
  const act = {
    play: () => setPlaying(s, !s.playing),
    less: () => stepBy(-1),
    more: () => stepBy(1),
    back: () => (s.back = !s.back),
    loop: () => (s.loop = !s.loop),
    ...Object.fromEntries(MOVES.map((name) => [name, () => (s.moves = name)])),
  };
  root.addEventListener("click", ({ target }) => {
    const name = target.dataset.do;
    act[name]?.();
    s.showPressed();
    requestFrame(s);
  });
  s.ui.scrub.addEventListener("input", () => jumpTo(Number(s.ui.scrub.value)));
  s.ui.at.addEventListener("change", () => {
    const to = parseNumber(s.ui.at.value);
    if (to >= 0) s.loop &&= to <= findTarget(s);
    if (to >= 0) jumpTo(Math.min(Math.round(to), LAST));
    s.ui.at.blur();
    s.showPressed();
  });
  const showSpeed = () => {
    s.speed = Number((10 ** s.ui.speed.value).toPrecision(2));
    s.ui.pace.textContent = fill(texts.rate, { speed: s.speed.toLocaleString("en-US") });
  };
  s.ui.speed.addEventListener("input", showSpeed);
  s.ui.speed.value = Math.log10(data.speed);
  showSpeed();
  const findPair = ({ offsetX: x, offsetY: y }) => {
    const { aside: a } = s.place;
    if (a && x >= a.x && x <= a.x + a.w && y >= a.y && y < a.y + a.h) return Math.floor(((y - a.y) / a.h) * s.rates.length);
    return findDial(s.place, x, y);
  };
  // Keyboard users hear the description through the live region.
  const chooseByKey = (i) => (setHover(i), (s.ui.announced.textContent = s.ui.now.textContent));
  const setHover = (i) => s.hover !== i && ((s.hover = i), describePair(s), requestFrame(s));
  canvas.addEventListener("pointermove", (event) => setHover(findPair(event)));
  canvas.addEventListener("pointerleave", () => setHover(null));
  canvas.addEventListener("click", (event) => findPair(event) !== null && togglePin(findPair(event)));
  root.addEventListener("keydown", (event) => {
    const at = event.target, n = s.place.dials.length, { key } = event;
    if (at.tagName === "INPUT" || (at.tagName === "BUTTON" && [" ", "Enter"].includes(key))) return;
    const chosen = s.hover ?? s.pin ?? 0;
    const keys = { " ": act.play, ArrowLeft: () => stepBy(event.shiftKey ? -100 : -1), ArrowRight: () => stepBy(event.shiftKey ? 100 : 1),
      ArrowUp: () => chooseByKey((chosen + n - 1) % n), ArrowDown: () => chooseByKey((chosen + 1) % n), Enter: () => togglePin(chosen) };
    if (keys[key]) event.preventDefault();
    keys[key]?.();
  });
  new ResizeObserver(() => s.data && ((s.stale = true), requestFrame(s))).observe(canvas);
  new IntersectionObserver(([entry]) => (s.visible = entry.isIntersecting) && s.data && requestFrame(s)).observe(canvas);
  s.showPressed();
  return s;
}

// Keep the hands' positions while the data change, unless the address has others (Back, a typed link). A late answer of
// the server to the user's own move must not reset them.
function applyStart(s, { start, mode, plays, context }) {
  const { m, n } = start, given = `${m},${n}`, modeBefore = s.mode;
  const isNew = given !== s.given && given !== s.reported && (modeBefore === mode || !plays);
  if (s.m === undefined || (isNew && s.isFirst)) {
    Object.assign(s, { m, n, playing: plays && !s.isCalm, reported: given });
    // With reduced motion, start at the trained length instead of 0, where all hands coincide.
    if (m === 0 && plays && mode === "turn" && s.isCalm) [s.m, s.reported] = [Math.min(LAST, context), `${Math.min(LAST, context)},${n}`];
  } else if (isNew && (modeBefore !== mode || performance.now() - s.reportedAt > 2000)) Object.assign(s, { m, n, playing: false, reported: given });
  else if (modeBefore === "turn" && mode === "score") {
    // Place the query at the current position and a key a little before it, unless a link has set one.
    s.changedMode = true;
    if ((s.m = Math.round(s.m)) < s.n || !s.n) [s.m, s.n] = [Math.max(16, s.m), Math.max(0, s.m - 16)];
  }
  [s.mode, s.isFirst] = [mode, false];
  s.given = given;
  showPlaying(s);
}

// Show the frequencies of a spec or of a moving knob. On a page of its own, `place` has little more than a root.
export default function show(place, data) {
  const s = place.root.__clocks ?? build(place, data);
  place.root.__clocks = s;
  s.owner = place;
  place.positions = () => [s.m, s.n];
  applyStart(s, data);
  Object.assign(s, { data, pin: data.pin, dark: isDark(s.root), font: getComputedStyle(s.root).fontFamily, wheel: (s.wheel ??= makeWheel(data.cycle)), stale: true });
  s.first = data.first.map((value) => value / TAU);
  s.rates = data.scaled ? data.scaled.map((value) => value / TAU) : s.first;
  for (const each of data.variants ?? []) each.turning = each.rates.map((value) => value / TAU);
  s.root.dataset.mode = data.mode;
  s.canvas.setAttribute("aria-label", data.title);
  reportSoon(s);
}

addStyle(`
.rv-bar {
  display: flex; flex-wrap: wrap; gap: 6px; align-items: center; padding-top: 4px;
  button, input[type=text] { font: inherit; color: inherit; min-height: 32px; min-width: 40px; padding: 0 10px; box-sizing: border-box; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; }
  button { cursor: pointer; }
  button:hover, button[aria-pressed=true] { border-color: var(--st-primary-color); color: var(--st-primary-color); }
  [data-do=play] { min-width: 64px; }
  [data-do=scrub] { flex: 1 1 180px; }
  input[type=range] { accent-color: var(--st-primary-color); height: 32px; margin: 0; }
  input[type=text] { width: 8em; text-align: right; }
  label, .rv-pair { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
  output { min-width: 8.2em; font-variant-numeric: tabular-nums; }
  @media (pointer: coarse), (max-width: 640px) {
    button, input { min-height: 40px !important; }
    [data-do=scrub] { order: 1; flex-basis: 100%; }
  }
}
.rv-clocks:not([data-mode=score]) .rv-pair { display: none; }
`);
