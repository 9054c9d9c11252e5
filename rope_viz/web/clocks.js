// The clocks: an animation of every pair of the model, computed in the browser. picture.js requests them, rope_viz/figures/clocks.py packs them.

import { TAU, TEXTS, arrange, count, cycle, dark, digits, paint, score, tokens, turns, whole } from "./dials.js";

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
  s.ui.play.textContent = on ? TEXTS.pause : TEXTS.play;
  if (!on) [s.m, s.n] = [Math.round(s.m), Math.round(s.n)];
  tell(s);
}

// At rest: announce the state to screen readers and record it in the link.
function tell(s) {
  wake(s);
  inspect(s);
  clearTimeout(s.timer);
  s.root.dataset.waiting = "yes";
  s.timer = setTimeout(() => {
    delete s.root.dataset.waiting;
    const pair = s.data.mode === "score", n = s.rates.length, slow = n - 1;
    const state = pair ? TEXTS.score(whole(s.m), whole(s.n), whole(s.m - s.n), score(s.m - s.n, s.rates).toFixed(4))
      : TEXTS.turns(whole(s.m), count(s.m * s.rates[0]), slow, count(s.m * s.rates[slow]));
    s.ui.announced.textContent = `${(s.playing ? TEXTS.playing : TEXTS.at)(state)} ${s.pin == null ? "" : s.ui.now.textContent}`;
    if (s.playing) return;
    Object.assign(s.root.dataset, { m: s.m, n: s.n, score: score(s.m - s.n, s.rates) });
    if (s.data.compact || s.at === `${s.m},${s.n}`) return;
    if (s.turned) dispatchEvent(new Event("rope-viz-follows"));
    [s.at, s.reportedAt, s.turned] = [`${s.m},${s.n}`, performance.now(), false];
    s.owner.tell("at", { m: s.m, n: s.n, step: s.owner.data.step });
  }, 250);
}

// The line below the picture describes the hovered pair, else the pinned one.
function inspect(s) {
  const i = s.hover ?? s.pin, rate = s.rates[i];
  if (rate === undefined) return void (s.ui.now.textContent = s.data.compact ? "" : matchMedia("(hover: none)").matches ? TEXTS.hint_touch : TEXTS.hint);
  const apart = turns(s.m - s.n, rate), band = s.data.names[s.data.bands[i]];
  const now = s.data.mode === "score" ? TEXTS.angle(apart.toFixed(4), digits(Math.cos(TAU * apart)))
    : TEXTS.turned((s.m * rate).toFixed(3), s.data.plain && (s.m * s.first[i]).toFixed(3));
  s.ui.now.textContent = TEXTS.pair(i, band, digits(rate * TAU), rate ? tokens(Math.round(1 / rate)) : "∞", digits(s.data.context * rate), tokens(s.data.context), now);
}

// --- The component

const KEPT = ["m", "n", "speed", "loop", "back", "moves", "playing", "given", "at", "reportedAt", "mode"];
const VIDEO_TYPES = ["video/mp4;codecs=avc1.42E01F", "video/webm;codecs=vp9", "video/webm"];

function build(place, data) {
  if (!document.getElementById("rv-clocks-style")) document.head.append(Object.assign(document.createElement("style"), { id: "rv-clocks-style", textContent: STYLE }));
  const { root } = place;
  const button = (name, text, help) => `<button type="button" data-do="${name}" title="${help}">${text}</button>`;
  root.innerHTML = `<canvas tabindex="0" role="img"></canvas><div class="rv-now"></div><div class="rv-bar">${
    button("play", TEXTS.play, TEXTS.play_help)}${button("less", "−1", TEXTS.less_help)}${button("more", "+1", TEXTS.more_help)
    }<input data-do="scrub" type="range" min="0" step="1" aria-label="${TEXTS.position}"><input data-do="at" type="text" inputmode="numeric" autocomplete="off" aria-label="${TEXTS.position_typed}"></div>
    <div class="rv-bar rv-full"><span class="rv-pair">${TEXTS.move} ${Object.entries(TEXTS.moves).map(([name, text]) => button(name, text, TEXTS.move_help)).join("")}</span>
    <label>${TEXTS.speed} <input data-do="speed" type="range" min="-1" max="5" step="0.01"> <output></output></label>${button("back", TEXTS.back, TEXTS.back_help)}${button("loop", TEXTS.loop, TEXTS.loop_help)
    }<span class="rv-space"></span>${data.alone ? "" : `<span>${TEXTS.download}</span>${button("png", "PNG", TEXTS.png_help)}${button("video", TEXTS.video, TEXTS.video_help)}${button("html", "HTML", TEXTS.html_help)}`
    }</div><div class="rv-announced" aria-live="polite"></div>`;
  if (place.address) import(new URL("tools.js", import.meta.url).href).then(({ copyAddress, exporting }) => root.querySelector(data.compact ? ".rv-bar" : ".rv-full").append(exporting(place), copyAddress(place)));
  if (place.address) import(new URL("touch.js", import.meta.url).href).then(({ guard }) => root.querySelectorAll("[type=range]").forEach(guard));
  const find = (name) => root.querySelector(`[data-do="${name}"]`), canvas = root.querySelector("canvas");
  const videoType = VIDEO_TYPES.find((kind) => window.MediaRecorder?.isTypeSupported(kind));
  if (!videoType && find("video")) Object.assign(find("video"), { disabled: true, title: TEXTS.no_video });
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const s = { root, canvas, ctx: canvas.getContext("2d"), owner: place, speed: data.speed, videoType, loop: true, moves: "both", hover: null, visible: true, back: false, reportedAt: 0, texts: TEXTS, calm, fresh: true };
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
  s.press = () => ["back", "loop", ...Object.keys(TEXTS.moves)].forEach((name) => find(name).setAttribute("aria-pressed", String(name === s.moves || s[name] === true)));
  const act = {
    play: () => play(s, !s.playing),
    less: () => step(-1),
    more: () => step(1),
    back: () => (s.back = !s.back),
    loop: () => (s.loop = !s.loop),
    ...Object.fromEntries(Object.keys(TEXTS.moves).map((name) => [name, () => (s.moves = name)])),
  };
  root.addEventListener("click", async ({ target }) => {
    const name = target.dataset.do;
    if (act[name]) act[name]();
    else if (["png", "video", "html"].includes(name)) (await import(new URL("tools.js", import.meta.url).href)).runScript(s.owner, "file", "clocks_files", ({ download }) => download(s, name, target));
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
    s.ui.pace.textContent = TEXTS.rate(s.speed.toLocaleString("en-US"));
  };
  s.ui.speed.addEventListener("input", pace);
  s.ui.speed.value = Math.log10(data.speed);
  pace();
  const under = ({ offsetX: x, offsetY: y }) => {
    const { place: p } = s, { aside: a } = p, n = s.rates.length;
    if (a && x >= a.x && x <= a.x + a.w && y >= a.y && y < a.y + a.h) return Math.floor(((y - a.y) / a.h) * n);
    const column = Math.floor((x - p.left) / p.size), row = Math.floor((y - p.over) / p.step), i = row * p.columns + column;
    return column >= 0 && column < p.columns && row >= 0 && i < p.dials.length ? i : null;
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

// The hands keep their positions while the data change, unless the address differs (Back, a typed link, a step of the
// tour). The server's late answer to the user's own move must not reset them.
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
  s.ui.play.textContent = s.playing ? TEXTS.pause : TEXTS.play;
}

// Show the frequencies of a spec or of a moving knob. On a page of its own, `place` has little more than a root.
export default function show(place, data) {
  const s = place.root.__clocks ?? build(place, data);
  place.root.__clocks = s;
  s.owner = place;
  settle(s, data);
  s.root.classList.toggle("rv-compact", data.compact);
  Object.assign(s, { data, pin: data.pin, dark: dark(s.root), font: getComputedStyle(s.root).fontFamily, wheel: (s.wheel ??= cycle(data.cycle)), stale: true });
  s.first = data.first.map((value) => value / TAU);
  s.rates = data.scaled ? data.scaled.map((value) => value / TAU) : s.first;
  s.root.dataset.mode = data.mode;
  s.canvas.setAttribute("aria-label", data.title);
  tell(s);
}

const STYLE = `
.rv-clocks { font-family: var(--st-font); color: var(--st-text-color); font-size: 13px; }
.rv-clocks canvas { display: block; width: 100%; cursor: pointer; touch-action: pan-y; }
.rv-clocks canvas:focus-visible, .rv-clocks button:focus-visible, .rv-clocks input:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.rv-now { min-height: 20px; padding: 4px 0; font-variant-numeric: tabular-nums; }
.rv-bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; padding-top: 4px; }
.rv-bar button, .rv-bar input[type=text] { font: inherit; color: inherit; min-height: 32px; min-width: 40px; padding: 0 10px; box-sizing: border-box; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; }
.rv-bar button { cursor: pointer; }
.rv-bar button:disabled { cursor: default; opacity: .5; }
.rv-bar button:hover:enabled, .rv-bar button[aria-pressed=true] { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.rv-bar [data-do=play] { min-width: 64px; }
.rv-bar [data-do=scrub] { flex: 1 1 180px; }
.rv-bar input[type=range] { accent-color: var(--st-primary-color); height: 32px; margin: 0; }
.rv-bar input[type=text] { width: 8em; text-align: right; }
.rv-bar label, .rv-pair { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.rv-bar output { min-width: 8.2em; font-variant-numeric: tabular-nums; }
.rv-space { flex: 1; }
.rv-clocks:not([data-mode=score]) .rv-pair, .rv-compact .rv-full { display: none; }
.rv-announced { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (pointer: coarse), (max-width: 640px) { .rv-bar button, .rv-bar input { min-height: 40px !important; } .rv-bar [data-do=scrub] { order: 1; flex-basis: 100%; } }
`;
