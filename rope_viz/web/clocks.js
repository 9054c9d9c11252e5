// The clocks: an animation of every pair of the model, computed in the browser. picture.js requests them, rope_viz/figures/clocks.py packs them.

import { TAU, addStyle, arrange, count, cycle, dark, dialAt, digits, fill, paint, score, tokens, turns, whole } from "./dials.js";

export { score, turns };

const LAST = 1e7;

// Accept numbers such as "128k" and "1_000".
const parse = (text) => {
  const match = /^\s*([0-9][0-9_, ]*(?:e[0-9]+)?)\s*([km]?)\s*$/i.exec(text);
  return match ? Number(match[1].replace(/[_, ]/g, "")) * { "": 1, k: 1024, m: 1048576 }[match[2].toLowerCase()] : NaN;
};

// --- Motion

// Playback continues to the target length, because long contexts fail beyond the trained one.
const last = (s) => Math.min(LAST, Math.max(s.data.context, s.data.target));
const end = (s) => (s.loop ? last(s) : LAST);

function advance(s, by) {
  // A single step may go beyond the end of playback.
  const both = s.data.mode === "score" && s.moves === "both", top = s.playing ? end(s) : LAST, apart = s.m - s.n;
  const one = s.data.mode === "score" && s.moves === "n" ? "n" : "m";
  let at = s[one] + by;
  const low = both ? Math.max(0, apart) : 0, high = both ? top + Math.min(0, apart) : top;
  if (at > high || at < low) {
    if (s.loop && s.playing && high > low) at = at > high ? low + ((at - high) % (high - low)) : high - ((low - at) % (high - low));
    else {
      at = Math.min(Math.max(at, low), Math.max(high, s[one]));
      if (s.playing) play(s, false);
    }
  }
  s[one] = at;
  if (both) s.n = at - apart;
}

function wake(s) {
  s.request ||= requestAnimationFrame((now) => {
    s.request = 0;
    if (!s.root.isConnected || !s.visible) return void (s.last = 0);
    if (s.playing) advance(s, (s.back ? -1 : 1) * s.speed * Math.min(0.1, s.last ? (now - s.last) / 1000 : 0));
    s.last = s.playing ? now : 0;
    // A page that is being left has no width.
    if (!s.canvas.clientWidth) return void ([s.stale, s.last] = [true, 0]);
    if (s.stale) arrange(s);
    s.stale = false;
    s.frames = (s.frames ?? 0) + 1;
    draw(s, !s.playing || s.recorder || s.frames % 6 === 1);
    s.root.dataset.drawn = s.frames;
    if (s.playing) wake(s);
  });
}

// While playing, numbers change ten times a second, all of them together: a changed input costs as much as the picture.
function draw(s, numbers) {
  if (numbers) s.read = { m: s.m, n: s.n };
  paint(s);
  if (numbers) mirror(s);
}

function mirror(s) {
  const one = s.data.mode === "score" && s.moves === "n" ? s.n : s.m;
  s.ui.scrub.max = Math.max(last(s), one);
  s.ui.scrub.value = one;
  if (document.activeElement !== s.ui.at) s.ui.at.value = Math.round(one);
}

function play(s, on) {
  s.playing = on;
  showPlaying(s);
  if (!on) [s.m, s.n] = [Math.round(s.m), Math.round(s.n)];
  tell(s);
}

const showPlaying = (s) => (s.ui.play.textContent = s.playing ? s.texts.pause : s.texts.play);

// At rest: announce the state to screen readers and record it in the link.
function tell(s) {
  wake(s);
  inspect(s);
  clearTimeout(s.timer);
  s.root.dataset.waiting = "yes";
  s.timer = setTimeout(() => {
    delete s.root.dataset.waiting;
    const { texts, rates } = s, slow = rates.length - 1, positions = { m: whole(s.m), n: whole(s.n), distance: whole(s.m - s.n) };
    const state = s.data.mode === "score" ? fill(texts.score, { ...positions, score: score(s.m - s.n, rates).toFixed(4) })
      : fill(texts.turns, { ...positions, first: count(s.m * rates[0]), last: slow, count: count(s.m * rates[slow]) });
    s.ui.announced.textContent = `${fill(s.playing ? texts.playing : texts.at, { state })} ${s.pin == null ? "" : s.ui.now.textContent}`;
    if (s.playing) return;
    Object.assign(s.root.dataset, { m: s.m, n: s.n, score: score(s.m - s.n, s.rates) });
    if (s.at === `${s.m},${s.n}`) return;
    if (s.turned) dispatchEvent(new Event("rope-viz-follows"));
    [s.at, s.reportedAt, s.turned] = [`${s.m},${s.n}`, performance.now(), false];
    s.owner.tell("at", { m: s.m, n: s.n });
  }, 250);
}

// The line below the picture describes the hovered pair, else the pinned one.
function inspect(s) {
  const i = s.hover ?? s.pin, rate = s.rates[i], { texts } = s;
  if (rate === undefined) return void (s.ui.now.textContent = matchMedia("(hover: none)").matches ? texts.hint_touch : texts.hint);
  const apart = turns(s.m - s.n, rate), band = s.data.names[s.data.bands[i]];
  const now = s.data.mode === "score" ? fill(texts.angle, { turn: apart.toFixed(4), cos: digits(Math.cos(TAU * apart)) })
    : fill(s.data.plain ? texts.turned_both : texts.turned, { turns: (s.m * rate).toFixed(3), unscaled: (s.m * s.first[i]).toFixed(3) });
  s.ui.now.textContent = fill(texts.pair, {
    pair: i, band, theta: digits(rate * TAU), wavelength: rate ? tokens(Math.round(1 / rate)) : "∞",
    turns: digits(s.data.context * rate), context: tokens(s.data.context), now,
  });
}

// --- The component

const KEPT = ["m", "n", "speed", "loop", "back", "moves", "playing", "given", "at", "reportedAt", "mode"];
// What moves in the mode "score": both, the query or the key.
const MOVES = ["both", "m", "n"];
const VIDEO_TYPES = ["video/mp4;codecs=avc1.42E01F", "video/webm;codecs=vp9", "video/webm"];

// Files that show the hands as they are now; the server would draw them at their start.
function fillTools(s, { fill: fillBar, runScript }) {
  const names = ["png", ...(s.videoType ? ["video"] : []), "html"], labels = { png: "PNG", video: s.texts.video, html: "HTML" };
  const act = (name) => void runScript(s.owner, "file", "clocks_files", ({ download }) => download(s, name));
  fillBar(s.root.querySelector(".rv-tools"), s.owner, names.map((name) => ({ name, label: labels[name], help: s.texts[`${name}_help`], act: () => act(name) })));
}

function build(place, data) {
  const { root } = place, { texts } = data;
  const button = (name, text = texts[name], help = texts[`${name}_help`]) => `<button type="button" data-do="${name}" title="${help}">${text}</button>`;
  root.innerHTML = `<div class="rv-bar">${
    button("play")}${button("less", "−1")}${button("more", "+1")
    }<input data-do="scrub" type="range" min="0" step="1" aria-label="${texts.place}"><input data-do="at" type="text" inputmode="numeric" autocomplete="off" aria-label="${texts.place_typed}"></div>
    <canvas tabindex="0" role="img"></canvas><div class="rv-now"></div><div class="rv-bar"><span class="rv-pair">${texts.move} ${MOVES.map((name) => button(name, texts[`moves.${name}`], texts.move_help)).join("")}</span>
    <label>${texts.speed} <input data-do="speed" type="range" min="-1" max="5" step="0.01"> <output></output></label>${button("back")}${button("loop")
    }</div><div class="rv-tools"></div><div class="rv-announced" aria-live="polite"></div>`;
  const load = (name) => import(new URL(name, import.meta.url).href);
  if (place.address) {
    load("tools.js").then((tools) => fillTools(s, tools));
    load("touch.js").then(({ guard }) => root.querySelectorAll("[type=range]").forEach(guard));
  }
  const find = (name) => root.querySelector(`[data-do="${name}"]`), canvas = root.querySelector("canvas");
  const videoType = VIDEO_TYPES.find((kind) => window.MediaRecorder?.isTypeSupported(kind));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const s = { root, canvas, ctx: canvas.getContext("2d"), owner: place, speed: data.speed, videoType, loop: true, moves: "both", hover: null, visible: true, back: false, reportedAt: 0, texts, calm, fresh: true };
  // The node may be new while the clocks exist already: continue from their state.
  for (const name of KEPT) if (place.memory.clocks?.[name] !== undefined) s[name] = place.memory.clocks[name];
  place.memory.clocks = s;
  s.ui = { play: find("play"), scrub: find("scrub"), at: find("at"), speed: find("speed"), pace: root.querySelector("output"), now: root.querySelector(".rv-now"), announced: root.querySelector(".rv-announced") };
  const step = (by) => (s.playing && play(s, false), advance(s, by), tell(s));
  const jump = (to) => step(to - (s.moves === "n" && s.data.mode === "score" ? s.n : s.m));
  const pin = (i) => {
    s.pin = s.pin === i ? null : i;
    s.owner.tell("pin", i);
    tell(s);
  };
  s.exact = () => draw(s, true);
  s.press = () => ["back", "loop", ...MOVES].forEach((name) => find(name).setAttribute("aria-pressed", String(name === s.moves || s[name] === true)));
  const act = {
    play: () => play(s, !s.playing),
    less: () => step(-1),
    more: () => step(1),
    back: () => (s.back = !s.back),
    loop: () => (s.loop = !s.loop),
    ...Object.fromEntries(MOVES.map((name) => [name, () => (s.moves = name)])),
  };
  root.addEventListener("click", ({ target }) => {
    const name = target.dataset.do;
    act[name]?.();
    s.press();
    wake(s);
  });
  s.ui.scrub.addEventListener("input", () => jump(Number(s.ui.scrub.value)));
  s.ui.at.addEventListener("change", () => {
    const to = parse(s.ui.at.value);
    if (to >= 0) s.loop &&= to <= last(s);
    if (to >= 0) jump(Math.min(Math.round(to), LAST));
    s.ui.at.blur();
    s.press();
  });
  const pace = () => {
    s.speed = Number((10 ** s.ui.speed.value).toPrecision(2));
    s.ui.pace.textContent = fill(texts.rate, { speed: s.speed.toLocaleString("en-US") });
  };
  s.ui.speed.addEventListener("input", pace);
  s.ui.speed.value = Math.log10(data.speed);
  pace();
  const under = ({ offsetX: x, offsetY: y }) => {
    const { aside: a } = s.place;
    if (a && x >= a.x && x <= a.x + a.w && y >= a.y && y < a.y + a.h) return Math.floor(((y - a.y) / a.h) * s.rates.length);
    return dialAt(s.place, x, y);
  };
  // Keyboard users hear the description through the live region.
  const choose = (i) => (hover(i), (s.ui.announced.textContent = s.ui.now.textContent));
  const hover = (i) => s.hover !== i && ((s.hover = i), inspect(s), wake(s));
  canvas.addEventListener("pointermove", (event) => hover(under(event)));
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => under(event) !== null && pin(under(event)));
  root.addEventListener("keydown", (event) => {
    const at = event.target, n = s.place.dials.length, { key } = event;
    if (at.tagName === "INPUT" || (at.tagName === "BUTTON" && [" ", "Enter"].includes(key))) return;
    const chosen = s.hover ?? s.pin ?? 0;
    const keys = { " ": act.play, ArrowLeft: () => step(event.shiftKey ? -100 : -1), ArrowRight: () => step(event.shiftKey ? 100 : 1),
      ArrowUp: () => choose((chosen + n - 1) % n), ArrowDown: () => choose((chosen + 1) % n), Enter: () => pin(chosen) };
    if (keys[key]) event.preventDefault();
    keys[key]?.();
  });
  new ResizeObserver(() => s.data && ((s.stale = true), wake(s))).observe(canvas);
  new IntersectionObserver(([entry]) => (s.visible = entry.isIntersecting) && s.data && wake(s)).observe(canvas);
  s.press();
  return s;
}

// The hands keep their positions while the data change, unless the address differs (Back, a typed link). The
// server's late answer to the user's own move must not reset them.
function settle(s, { start, mode, plays, context }) {
  const { m, n } = start, given = `${m},${n}`, was = s.mode;
  const isNew = given !== s.given && given !== s.at && (was === mode || !plays);
  if (s.m === undefined || (isNew && s.fresh)) {
    Object.assign(s, { m, n, playing: plays && !s.calm, at: given });
    // With reduced motion, start at the trained length instead of 0, where all hands coincide.
    if (m === 0 && plays && mode === "turn" && s.calm) [s.m, s.at] = [Math.min(LAST, context), `${Math.min(LAST, context)},${n}`];
  } else if (isNew && (was !== mode || performance.now() - s.reportedAt > 2000)) Object.assign(s, { m, n, playing: false, at: given });
  else if (was === "turn" && mode === "score") {
    // Place the query at the current position and a key a little before it, unless a link has set one.
    s.turned = true;
    if ((s.m = Math.round(s.m)) < s.n || !s.n) [s.m, s.n] = [Math.max(16, s.m), Math.max(0, s.m - 16)];
  }
  [s.mode, s.fresh] = [mode, false];
  s.given = given;
  showPlaying(s);
}

// Show the frequencies of a spec or of a moving knob. On a page of its own, `place` has little more than a root.
export default function show(place, data) {
  const s = place.root.__clocks ?? build(place, data);
  place.root.__clocks = s;
  s.owner = place;
  settle(s, data);
  Object.assign(s, { data, pin: data.pin, dark: dark(s.root), font: getComputedStyle(s.root).fontFamily, wheel: (s.wheel ??= cycle(data.cycle)), stale: true });
  s.first = data.first.map((value) => value / TAU);
  s.rates = data.scaled ? data.scaled.map((value) => value / TAU) : s.first;
  s.root.dataset.mode = data.mode;
  s.canvas.setAttribute("aria-label", data.title);
  tell(s);
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
