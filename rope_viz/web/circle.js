// The picture of the hands on canvases: one clock or several, their score, and the ruler below the words. hands.js moves it.

import { TAU, fill, formatWhole, writeText } from "./dials.js";

export { TAU, fill, formatWhole };

const SPLIT = 700; // milliseconds until one clock has become many
export const DEGREES = 360 / TAU;

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
// The angle between two hands, 0 to 180 degrees, for any difference of their rotations.
export const foldAngle = (degrees) => Math.abs(((((degrees + 180) % 360) + 360) % 360) - 180);
export const setAttribute = (node, name, value) => node.getAttribute(name) !== String(value) && node.setAttribute(name, value);
// Read the steps by which a key moves a slider, 0 for other keys.
export const readKeyStep = ({ key, ctrlKey, metaKey, altKey }, far) => (ctrlKey || metaKey || altKey ? 0
  : { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: far, PageDown: -far, Home: -Infinity, End: Infinity }[key] ?? 0);
export const withMinus = (text) => text.replace("-", "−");
export const formatStep = (rate) => String(Number((rate * DEGREES).toPrecision(3)));

// Compute the numbers that the picture shows.
export function computeReadings(s) {
  const { inv_freq: rates, pair, few } = s.data, apart = s.query - s.key;
  const chosen = [[pair], few, rates.map((_, i) => i)][s.stage];
  const score = chosen.reduce((sum, i) => sum + Math.cos(apart * rates[i]), 0) / chosen.length;
  const forms = s.data.texts, count = Number(apart.toFixed(1));
  const computeRotation = (at) => (((s.offset + at) * rates[pair] * DEGREES) % 360 + 360) % 360;
  return {
    score, pairs: chosen.length, angle: foldAngle(apart * rates[pair] * DEGREES), query: computeRotation(s.query), key: computeRotation(s.key),
    distance: fill(forms[count === 1 ? "distance.one" : "distance.other"], { count }),
  };
}

// List the pairs of a stage: one, a few, or as many as fit.
const listPairs = ({ data }, stage) => (stage === 0 ? [data.pair] : stage === 1 ? data.few : data.inv_freq.map((_, i) => i).slice(0, data.most));

// Compute the places of a stage's clocks: [x, y, radius] each.
export function arrangeClocks(s, stage) {
  const { w, h, narrow } = s.place, count = listPairs(s, stage).length;
  const area = narrow ? { w: w - 104, h, y: 0 } : { w, h: h - 106, y: 12 };
  if (count === 1) return [[area.w / 2, area.y + area.h / 2, Math.min(area.w / 2 - (narrow ? 44 : 78), area.h / 2 - (narrow ? 22 : 24))]];
  const columns = Math.ceil(Math.sqrt(count)), rows = Math.ceil(count / columns), label = stage === 1 && !narrow ? 24 : 0;
  const size = Math.min(area.w / columns, area.h / rows - label), left = (area.w - columns * size) / 2, top = area.y + (area.h - rows * (size + label)) / 2;
  return Array.from({ length: count }, (_, i) => [left + ((i % columns) + 0.5) * size, top + Math.floor(i / columns) * (size + label) + size / 2, size * 0.44]);
}

// Compute the clocks' places at a time: after a change of stage each clock grows out of one of the stage before.
function interpolateClocks(s, now) {
  const to = s.clocks[s.stage], share = s.from === null ? 1 : clamp((now - s.since) / SPLIT, 0, 1), eased = share * share * (3 - 2 * share);
  if (share === 1) s.from = null;
  if (s.from === null) return to;
  const from = s.clocks[s.from];
  return to.map((place, i) => {
    const start = from[Math.floor((i * from.length) / to.length)];
    return place.map((value, k) => start[k] + eased * (value - start[k]));
  });
}

export function paintClocks(s, now, { angle, score, pairs }) {
  const { ctx: x, c, place, data } = s, { w, h, narrow } = place, places = interpolateClocks(s, now), shown = listPairs(s, s.stage), single = shown.length === 1;
  const m = s.offset + s.query, n = s.offset + s.key, computeAngle = (i) => { const all = (s.query - s.key) * data.inv_freq[i]; return all - TAU * Math.round(all / TAU); };
  const addToPath = (draw) => (x.beginPath(), places.forEach(([cx, cy, r], k) => draw(cx, cy, r, data.inv_freq[shown[k]], shown[k])));
  const radius = places[0][2], pointAt = (cx, cy, r, at) => [cx + r * Math.cos(at), cy - r * Math.sin(at)];
  x.setTransform(place.dpr, 0, 0, place.dpr, 0, 0);
  x.clearRect(0, 0, w, h);
  Object.assign(x, { lineCap: "round", strokeStyle: c.face, lineWidth: 1 });
  if (radius > 50) {
    addToPath((cx, cy, r) => (x.moveTo(cx - r, cy), x.lineTo(cx + r, cy), x.moveTo(cx, cy - r), x.lineTo(cx, cy + r)));
    x.stroke();
  }
  Object.assign(x, { strokeStyle: c.rule, lineWidth: radius > 50 ? 1.5 : 1, globalAlpha: 0.6 });
  addToPath((cx, cy, r) => (x.moveTo(cx + r, cy), x.arc(cx, cy, r, 0, TAU)));
  x.stroke();
  x.globalAlpha = 1;
  if (single && s.from === null) paintPositions(s, x, places[0], m, n);
  addToPath((cx, cy, r, rate, i) => (x.moveTo(cx, cy), x.arc(cx, cy, r * (radius > 50 ? 0.42 : 0.7), -n * rate, -(n * rate + computeAngle(i)), computeAngle(i) > 0), x.closePath()));
  Object.assign(x, { fillStyle: c.query, globalAlpha: radius > 50 ? 0.12 : 0.22 });
  x.fill();
  x.globalAlpha = 1;
  if (radius > 50) {
    addToPath((cx, cy, r, rate, i) => (x.moveTo(...pointAt(cx, cy, r * 0.42, n * rate)), x.arc(cx, cy, r * 0.42, -n * rate, -(n * rate + computeAngle(i)), computeAngle(i) > 0)));
    Object.assign(x, { strokeStyle: c.text, lineWidth: 1.5 });
    x.stroke();
  }
  for (const [at, colour] of [[n, c.key], [m, c.query]]) {
    addToPath((cx, cy, r, rate) => (x.moveTo(cx, cy), x.lineTo(...pointAt(cx, cy, radius > 30 ? r : r * 0.92, at * rate))));
    Object.assign(x, { strokeStyle: colour, lineWidth: clamp(radius / 24, 1.5, 7) });
    x.stroke();
    if (radius <= 30) continue;
    // A tip has a rim in the colour of the ground, so that it shows on the circle.
    for (const [more, fillStyle] of [[3, c.background], [0, colour]]) {
      addToPath((cx, cy, r, rate) => ([cx, cy] = pointAt(cx, cy, r, at * rate), x.moveTo(cx, cy), x.arc(cx, cy, clamp(r / 20, 4, 8) + more, 0, TAU)));
      x.fillStyle = fillStyle;
      x.fill();
    }
  }
  if (radius > 30) {
    addToPath((cx, cy, r) => (x.moveTo(cx, cy), x.arc(cx, cy, clamp(r / 26, 2.5, 6), 0, TAU)));
    x.fillStyle = c.text;
    x.fill();
  }
  if (s.from === null) single ? nameHands(s, x, places[0], m, n, computeAngle(data.pair), angle) : s.stage === 1 && !narrow && places.forEach(([cx, cy, r], k) =>
    writeText(x, fill(data.texts.pair, { pair: shown[k], step: formatStep(data.inv_freq[shown[k]]) }), cx, cy + r + 22, 14, c.plain, "center"));
  paintScore(s, x, score, angle, pairs);
}

// Mark the positions of the ruler on the circle.
function paintPositions(s, x, [cx, cy, r], m, n) {
  const rate = s.data.inv_freq[s.data.pair], first = Math.ceil(s.offset - 0.4), last = Math.floor(s.offset + s.slots - 0.6);
  for (let at = first; at <= last; at++) {
    const cos = Math.cos(at * rate), sin = Math.sin(at * rate);
    x.beginPath();
    x.arc(cx + r * cos, cy - r * sin, 3, 0, TAU);
    Object.assign(x, { fillStyle: s.c.rule, globalAlpha: 0.7 });
    x.fill();
    x.globalAlpha = 1;
    // Omit a number that a hand would cover, and all numbers if the positions are too close to read.
    if (s.place.narrow || r * Math.abs(rate) < 24 || r * Math.abs(rate) * s.slots > 6 * r || Math.min(Math.abs(at - m), Math.abs(at - n)) < 0.6) continue;
    writeText(x, at, cx + (r - 19) * cos, cy - (r - 19) * sin + 5, 13, s.c.plain, "center");
  }
}

// The place of an angle's number, from its first hand: in the middle if a hand leaves it `room`, else beyond the second hand.
export const placeAngle = (way, room) => (Math.abs(way) / 2 < room ? way + (Math.sign(way) || 1) * room : way / 2);

// Write the name of each hand, so that the two do not overlap, and the angle between the hands.
function nameHands(s, x, [cx, cy, r], m, n, way, angle) {
  const { data, c, place: { narrow } } = s, rate = data.inv_freq[data.pair], side = Math.sign(way) || 1, closeness = clamp(1.4 - Math.abs(way), 0, 1) / 2;
  for (const [name, at, which] of [["key", n, -side], ["query", m, side]]) {
    const cos = Math.cos(at * rate), sin = Math.sin(at * rate), text = narrow ? data.words[data.start[name]] : fill(data.texts[name], { word: data.words[data.start[name]] });
    x.font = `600 ${narrow ? 14 : 16}px ${s.font}`;
    const long = x.measureText(text).width, away = r + (narrow ? 15 : 22), back = clamp(0.5 - 0.62 * cos + which * closeness * sin, 0, 1);
    // Use two lines where one would be cut off.
    const lines = Math.abs(away * cos) + long > s.place.w / 2 && Math.abs(cos) > 0.5 ? text.split(/ (?=\S+$)/) : [text];
    lines.forEach((line, k) => {
      const width = x.measureText(line).width, left = cx + away * cos - back * width;
      writeText(x, line, clamp(left, 0, Math.max(0, s.place.w - width)), cy - away * sin + 5 - which * closeness * 18 * cos + 20 * (k - (lines.length - 1) / 2), narrow ? 14 : 16, c[name], "left", "600");
    });
  }
  const far = r * 0.6, at = n * rate + placeAngle(way, (narrow ? 28 : 38) / far);
  writeText(x, `${angle.toFixed(1)}°`, cx + far * Math.cos(at), cy - far * Math.sin(at) + 7, narrow ? 17 : 22, c.text, "center", "600");
}

function paintScore(s, x, score, angle, pairs) {
  const { c, place: { w, h, narrow }, data: { texts } } = s, shown = withMinus(score.toFixed(2));
  const long = narrow ? 80 : Math.min(280, w - 60), middle = narrow ? w - 48 : w / 2, y = narrow ? h / 2 + 22 : h - 62;
  Object.assign(x, { lineWidth: 4, lineCap: "butt", strokeStyle: c.face });
  x.beginPath();
  x.moveTo(middle - long / 2, y);
  x.lineTo(middle + long / 2, y);
  x.stroke();
  x.strokeStyle = c.text;
  x.beginPath();
  x.moveTo(middle, y);
  x.lineTo(middle + (score * long) / 2, y);
  x.stroke();
  for (const value of [-1, 0, 1]) {
    x.fillStyle = c.rule;
    x.fillRect(middle + (value * long) / 2 - 0.5, y - 6, 1, 12);
    writeText(x, withMinus(String(value)), middle + (value * long) / 2, y + 22, 13, c.plain, "center");
  }
  for (const [radius, fillStyle] of [[9, c.background], [6.5, c.text]]) {
    x.beginPath();
    x.arc(middle + (score * long) / 2, y, radius, 0, TAU);
    x.fillStyle = fillStyle;
    x.fill();
  }
  if (narrow) {
    writeText(x, texts.score, w - 90, y - 54, 14, c.plain);
    writeText(x, shown, w - 90, y - 22, 28, c.text, "left", "600");
    return;
  }
  const before = fill(pairs === 1 ? texts.cosine : texts.cosines, { angle: angle.toFixed(1), pairs });
  x.font = `16px ${s.font}`;
  const wide = x.measureText(before).width;
  writeText(x, before, middle - (wide + 34) / 2, h - 8, 16, c.plain);
  writeText(x, shown, middle - (wide + 34) / 2 + wide, h - 8, 16, c.text, "left", "600");
}

export function paintRuler(s) {
  const { strip2d: x, c, cell, place: { strip: [wide, y] } } = s;
  x.setTransform(s.place.dpr, 0, 0, s.place.dpr, 0, 0);
  x.clearRect(0, 0, wide, y);
  for (let at = Math.max(0, Math.floor(s.offset) - 1); at <= s.offset + s.slots; at++) {
    const place = (at - s.offset + 0.5) * cell, isNear = (of) => Math.abs(at - s.offset - of) < 0.5;
    const colour = isNear(s.query) ? c.query : isNear(s.key) ? c.key : c.plain;
    x.fillStyle = colour;
    x.fillRect(place - 0.5, 0, 1, 7);
    writeText(x, at, place, y - 10, 14, colour, "center", colour === c.plain ? "" : "700");
  }
}
