// The picture of the clocks: every pair as a dial on a canvas, and the score next to them. clocks.js animates it.

import { addStyle } from "./element.js";

export const TAU = 2 * Math.PI;

// The fraction of a turn in [0, 1) that a pair has reached: float64, accurate to 6e-10 turns at position 10,000,000.
export function computeTurn(position, invFreqOver2Pi) {
  const all = position * invFreqOver2Pi;
  return all - Math.floor(all);
}

// The mean over pairs of cos((m − n)θᵢ).
export function computeScore(distance, rates) {
  return rates.reduce((sum, rate) => sum + Math.cos(TAU * computeTurn(distance, rate)), 0) / rates.length;
}

// Fill the placeholders of a text from rope_viz/texts: fill("Add {kind}", { kind: "video" }).
export const fill = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

export const formatDigits = (value) => String(Number(value.toPrecision(4))).replace("-", "−");
export const formatWhole = (value) => Math.round(value).toLocaleString("en-US");
export const formatTokens = (value) => (value >= 1024 && value % 1024 === 0 ? (value % 1048576 ? `${value / 1024}k` : `${value / 1048576}M`) : formatWhole(value));
export const formatTurns = (all) => (all < 0.005 ? "0" : all < 1 ? all.toFixed(2) : all < 1e5 ? String(Math.floor(all)) : `${(all / 1e6).toFixed(2)}M`);

export function makeWheel(stops) {
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 256) * (stops.length - 1), k = Math.floor(at);
    return `rgb(${stops[k].map((v, c) => Math.round(v + (at - k) * (stops[k + 1][c] - v)))})`;
  });
}

// Find the number of columns that gives n dials the most room, with names below them only if they are readable. Rows that
// are all full may cost three tenths of the size. As `arranged` in rope_viz/figures/clocks.py.
function findGrid(n, width, height) {
  const fitDials = (label) => {
    let best = { worth: 0 };
    for (let columns = 1; columns <= n; columns++) {
      const rows = Math.ceil(n / columns), size = Math.min(width / columns, height / rows - label);
      const worth = size * (n % columns ? 0.7 : 1);
      if (worth > best.worth) best = { worth, size, columns, rows, label };
    }
    return best;
  };
  const named = fitDials(13);
  return named.size >= 38 ? named : fitDials(0);
}

export function arrangeDials(s) {
  const { data } = s, w = s.canvas.clientWidth, n = Math.min(data.most, s.rates.length);
  const narrow = w < 640, h = data.heights[narrow ? 1 : 0];
  s.canvas.style.height = `${h}px`;
  const dpr = Math.min(2, devicePixelRatio || 1) * (data.scale ?? 1);
  Object.assign(s.canvas, { width: Math.round(w * dpr), height: Math.round(h * dpr) });
  const others = data.variants?.length ?? 0, above = narrow ? 40 : 28;
  const top = above + 20 * (narrow ? others : Math.min(1, others)), pair = data.mode !== "turn", low = data.mode === "patch" ? 256 : 126;
  const aside = !pair ? null : narrow ? { x: 8, y: h - low, w: w - 16, h: low - 22 } : { x: w - 262, y: 64, w: 250, h: h - 84 };
  const room = { w: pair && !narrow ? w - 290 : w, h: (pair && narrow ? h - low - 46 : h) - top };
  const g = findGrid(n, room.w, room.h), step = g.size + g.label;
  const left = Math.max(0, (room.w - g.columns * g.size) / 2), over = top + Math.min(24, Math.max(0, (room.h - g.rows * step) / 2));
  const dials = Array.from({ length: n }, (_, i) => ({
    x: left + ((i % g.columns) + 0.5) * g.size, y: over + Math.floor(i / g.columns) * step + g.size / 2, r: g.size * 0.42,
  }));
  s.place = { w, h, dpr, above, narrow, aside, dials, left, over, step, ...g };
  s.c = Object.fromEntries(Object.entries(data.palette).map(([name, both]) => [name, both[s.dark ? 1 : 0]]));
  s.sweeps = dials.map(({ x, y }) => {
    const sweep = s.ctx.createConicGradient(0, x, y);
    // Canvas angles run clockwise, those of the dial counterclockwise.
    for (let k = 0; k <= 16; k++) sweep.addColorStop(k / 16, s.wheel[Math.round((1 - k / 16) * 255)]);
    return sweep;
  });
  s.legend = w;
  s.staticLayer = document.createElement("canvas");
  Object.assign(s.staticLayer, { width: s.canvas.width, height: s.canvas.height });
  paintStatic(s, s.staticLayer.getContext("2d"));
}

// The number of the dial under a point of the canvas, null for none.
export function findDial({ left, over, size, step, columns, dials }, x, y) {
  const column = Math.floor((x - left) / size), row = Math.floor((y - over) / step), i = row * columns + column;
  return column >= 0 && column < columns && row >= 0 && i < dials.length ? i : null;
}

export const writeText = (x, text, at, y, size, fill, align = "left", face = "") => {
  Object.assign(x, { font: `${face} ${size}px ${x.family}`, fillStyle: fill, textAlign: align });
  x.fillText(text, at, y);
};

// Paint the static parts: rings by band, the angles seen in training, names and the legend.
function paintStatic(s, x) {
  const { data, c, place } = s;
  x.family = s.ctx.family = s.font;
  x.scale(place.dpr, place.dpr);
  x.fillStyle = c.background;
  x.fillRect(0, 0, place.w, place.h);
  const dashes = [[], [4, 3], [1.5, 3], [7, 2], [1, 5]];
  place.dials.forEach((d, i) => {
    const trained = Math.min(1, data.context * s.first[i]);
    x.fillStyle = c.face;
    x.beginPath();
    if (trained < 1) x.moveTo(d.x, d.y);
    x.arc(d.x, d.y, d.r, 0, -TAU * trained, true);
    x.fill();
    x.strokeStyle = c.bands[data.bands[i]];
    x.lineWidth = d.r < 14 ? 1 : 1.6;
    x.setLineDash(dashes[data.bands[i]]);
    x.beginPath();
    x.arc(d.x, d.y, d.r, 0, TAU);
    x.stroke();
    x.setLineDash([]);
    if (place.label) writeText(x, i, d.x - place.size * 0.46, d.y + place.size / 2 + 8, 10, c.plain);
  });
  const y = place.narrow ? 34 : 16;
  let at = place.narrow ? 0 : place.w;
  const shown = dashes.map((_, kind) => kind).filter((kind) => data.bands.includes(kind));
  for (const kind of shown.length > 1 ? (place.narrow ? shown : shown.reverse()) : []) {
    const text = `${data.names[kind]} ${data.bands.filter((band) => band === kind).length}`;
    x.font = `12px ${s.font}`;
    const wide = x.measureText(text).width + 26;
    if (!place.narrow) at -= wide + 14;
    Object.assign(x, { strokeStyle: c.bands[kind], lineWidth: 2 });
    x.setLineDash(dashes[kind]);
    x.beginPath();
    x.moveTo(at, y - 4);
    x.lineTo(at + 20, y - 4);
    x.stroke();
    x.setLineDash([]);
    writeText(x, text, at + 26, y, 12, c.bands[kind]);
    if (place.narrow) at += wide + 10;
  }
  if (!place.narrow) s.legend = at;
  paintVariants(s, x);
}

// The names of the pinned curves, each with a piece of its hand: in one line, or one line each on a narrow screen.
function paintVariants({ data, place, dark: night, font }, x) {
  let at = 0, y = place.above + 10;
  for (const { name, colour, strokes } of data.variants ?? []) {
    Object.assign(x, { strokeStyle: colour[night ? 1 : 0], lineWidth: 2, font: `12px ${font}` });
    x.setLineDash(strokes);
    x.beginPath();
    x.moveTo(at, y - 4);
    x.lineTo(at + 28, y - 4);
    x.stroke();
    x.setLineDash([]);
    writeText(x, name, at + 34, y, 12, colour[night ? 1 : 0]);
    if (place.narrow) y += 20;
    else at += x.measureText(name).width + 54;
  }
}

export function drawHand(x, d, turn, reach, colour, width) {
  x.strokeStyle = colour;
  x.lineWidth = width;
  x.beginPath();
  x.moveTo(d.x, d.y);
  x.lineTo(d.x + reach * d.r * Math.cos(TAU * turn), d.y - reach * d.r * Math.sin(TAU * turn));
  x.stroke();
}

// A hand that turns far within one frame is drawn as its mean over the frame, so it fades into a disc. Otherwise fast hands
// would seem to stop or to run backwards.
function computeSteadiness(s, rate) {
  const half = s.playing ? (Math.PI * s.speed * rate) / 60 : 0;
  return half < 1e-4 ? 1 : half >= Math.PI ? 0 : Math.sin(half) / half;
}

// Paint the static parts, and return the context for the rest.
export function startPainting({ ctx, staticLayer, place: { dpr } }) {
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.drawImage(staticLayer, 0, 0);
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.lineCap = "round";
  return ctx;
}

export function paintDials(s) {
  const x = startPainting(s), { data, c, place, wheel, texts } = s;
  const pair = data.mode === "score", d = s.m - s.n, thick = Math.max(1.5, place.size / 32);
  let unseen = 0;
  place.dials.forEach((dial, i) => {
    const rate = s.rates[i], turn = computeTurn(s.m, rate), colour = wheel[Math.floor(turn * 256)];
    const steady = pair && s.moves === "n" ? 1 : computeSteadiness(s, rate), { x: cx, y: cy, r } = dial;
    if (pair) {
      const apart = computeTurn(d, rate), from = computeTurn(s.n, rate), way = apart > 0.5 ? apart - 1 : apart;
      const still = s.moves === "m" ? 1 : computeSteadiness(s, rate);
      x.globalAlpha = 0.5 * Math.min(still, steady);
      x.fillStyle = wheel[Math.floor(apart * 256)];
      x.beginPath();
      x.moveTo(cx, cy);
      x.arc(cx, cy, r * 0.8, -TAU * from, -TAU * (from + way), way > 0);
      x.fill();
      x.globalAlpha = 0.15 + 0.85 * still;
      drawHand(x, dial, from, 0.72, c.key, thick * 1.3);
      x.globalAlpha = 0.15 + 0.85 * steady;
      drawHand(x, dial, turn, 0.94, c.query, thick * 1.3);
    } else {
      if (steady < 0.98) {
        x.globalAlpha = 0.35 * (1 - steady);
        x.fillStyle = c.plain;
        x.beginPath();
        x.arc(cx, cy, r * 0.9, 0, TAU);
        x.fill();
      }
      x.globalAlpha = 1;
      if (data.context * s.first[i] < 1) {
        Object.assign(x, { strokeStyle: s.sweeps[i], lineWidth: Math.max(2, r * 0.13), lineCap: "butt" });
        x.beginPath();
        x.arc(cx, cy, r * 0.9, 0, -TAU * Math.min(1, s.m * rate), true);
        x.stroke();
        x.lineCap = "round";
      }
      x.globalAlpha = steady;
      for (const { turning, colour, strokes } of data.variants ?? []) {
        if (turning[i] === undefined) continue;
        x.setLineDash(strokes.map((length) => length / 2));
        x.globalAlpha = computeSteadiness(s, turning[i]);
        drawHand(x, dial, computeTurn(s.m, turning[i]), 0.8, colour[s.dark ? 1 : 0], thick * 1.2);
      }
      x.setLineDash([]);
      x.globalAlpha = steady;
      if (data.plain) drawHand(x, dial, computeTurn(s.m, s.first[i]), 0.58, c.plain, thick);
      drawHand(x, dial, turn, 0.8, colour, thick * 1.6);
      // Beyond the trained angles: a double ring in the warning colour, and the hand crosses it.
      if (data.context * s.first[i] < 1 && s.m * rate > data.context * s.first[i] * (1 + 1e-9)) {
        unseen += 1;
        x.globalAlpha = 1;
        drawHand(x, dial, turn, 1.08, c.negative, thick);
        Object.assign(x, { strokeStyle: c.negative, lineWidth: Math.max(2, r * 0.09) });
        x.beginPath();
        x.arc(cx, cy, r, 0, TAU);
        x.stroke();
      }
    }
    x.globalAlpha = 1;
    if (place.label) writeText(x, formatTurns(s.m * rate), cx + place.size * 0.46, cy + place.size / 2 + 8, 10, c.text, "right");
  });
  for (const i of new Set([s.pin, s.hover])) if (place.dials[i]) drawFrame(x, s, place.dials[i], i === s.pin);
  const size = place.narrow && pair ? 13 : 16;
  const { m, n } = s.shown;
  const shown = pair ? { query: c.query, key: c.key, distance: c.text } : { position: c.text };
  const values = { m: formatWhole(m), n: formatWhole(n), distance: formatWhole(m - n).replace("-", "−") };
  let at = 0;
  for (const [name, colour] of Object.entries(shown)) {
    const text = fill(texts[name], values);
    writeText(x, text, at, 17, size, colour, "left", "600");
    at += x.measureText(text).width + size;
  }
  // Show the longest text that fits between the position and the legend, or nothing.
  const from = unseen ? at + 8 : Math.max(at + 8, 150), room = s.legend - 12 - from;
  const findFitting = (texts, size, face) => texts.find((text) => ((x.font = `${face} ${size}px ${s.font}`), x.measureText(text).width <= room));
  const note = unseen ? findFitting(["beyond", "beyond_short", "beyond_shortest"].map((name) => fill(texts[name], { count: unseen, all: s.rates.length })), 13, "600")
    : !pair && !place.narrow && findFitting([`${data.plain ? texts.plain_hand : ""}${texts.face}`, texts.face], 12, "");
  if (note) writeText(x, note, from, 17, unseen ? 13 : 12, unseen ? c.negative : c.plain, "left", unseen ? "600" : "");
  if (pair) paintScore(s, x, d);
}

export function drawFrame(x, s, d, pinned) {
  Object.assign(x, { strokeStyle: pinned ? s.c.current : s.c.rule, lineWidth: pinned ? 2 : 1 });
  x.strokeRect(d.x - s.place.size / 2 + 1, d.y - s.place.size / 2 + 1, s.place.size - 2, s.place.step - 2);
}

// Paint a bar per pair, and the running total that ends at the score.
function paintScore(s, x, d) {
  const { c, place: { aside: a } } = s, n = s.rates.length, high = a.h / n, middle = a.x + a.w / 2;
  let sum = 0;
  const line = [];
  s.rates.forEach((rate, i) => {
    const cos = Math.cos(TAU * computeTurn(d, rate));
    x.fillStyle = cos < 0 ? c.negative : c.positive;
    x.globalAlpha = i === s.pin || i === s.hover ? 1 : 0.55;
    x.fillRect(middle, a.y + i * high, (cos * a.w) / 2, Math.max(0.6, high - (high > 3 ? 1 : 0)));
    line.push([middle + ((sum += cos) / n) * (a.w / 2), a.y + (i + 1) * high]);
  });
  x.globalAlpha = 1;
  Object.assign(x, { strokeStyle: c.text, lineWidth: 2 });
  x.beginPath();
  x.moveTo(middle, a.y);
  for (const point of line) x.lineTo(...point);
  x.stroke();
  Object.assign(x, { strokeStyle: c.rule, lineWidth: 1 });
  x.strokeRect(a.x, a.y, a.w, a.h);
  for (const [value, align] of [[-1, "left"], [0, "center"], [1, "right"]]) writeText(x, String(value).replace("-", "−"), middle + (value * a.w) / 2, a.y + a.h + 14, 12, c.plain, align);
  writeText(x, fill(s.texts.total, { score: (sum / n).toFixed(4).replace("-", "−") }), a.x, a.y - 22, 16, c.text, "left", "600");
  writeText(x, s.texts.bars, a.x, a.y - 6, 11, c.plain);
}

// What the clocks and the patch have in common.
addStyle(`
:is(.rv-clocks, .rv-patch) {
  font-family: var(--st-font); color: var(--st-text-color); font-size: 13px;
  canvas { display: block; width: 100%; cursor: pointer; touch-action: pan-y; }
  :is(canvas, button, input):focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
}
.rv-now { min-height: 20px; padding: 4px 0; font-variant-numeric: tabular-nums; }
.rv-announced { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`);
