// Scenes 1 to 4 of Learn: the same word twice, one hand, two hands, four clocks. Each scene has sliders, numbers and a picture.

import { escapeHtml } from "./element.js";
import { shorten } from "./sentence.js";
import { DEGREES, TAU, fill, drawArc, bold, formatDegrees, foldAngle, arrangeGrid, drawHand, drawLine, middle, withMinus, drawName, drawRing, drawText, drawSector, makeShape, placeAngle, swing, pointAt } from "./learn_kit.js";

const TEN = 10;

const repeated = {
  start: { asks: 6 },
  listTracks: ({ words }, texts) => [{
    low: 0, high: words.length - 1, ticks: words.map((word, i) => [i, word]),
    thumbs: [{ name: "asks", label: texts.asks_label, chip: texts.asks, step: 1, far: 3, whole: true }],
  }],
  compute({ asks }, { words, twice: [a, b], none, rope, repeated }) {
    const formatTwo = (value) => withMinus(value.toFixed(2));
    return {
      see: "see", word: words[asks], repeated, same: formatTwo(none[asks][a]), first: formatTwo(rope[asks][a]), second: formatTwo(rope[asks][b]),
      first_away: Math.abs(asks - a), second_away: Math.abs(asks - b),
    };
  },
  isDone: ({ asks }) => asks !== 6,
  playAt: (share, v, { words }) => ({ asks: Math.round(swing(share) * (words.length - 1)) }),
  findDrag: ({ x, w }, { words }) => ["asks", ((x - 26) / (w - 52)) * (words.length - 1)],
  draw({ w, h, v, data, texts, answered }) {
    const { words, twice, none, rope } = data, rows = [["none", none], ["rope", rope]], high = h / 2;
    const most = Math.max(...[none, rope].flat(2).map(Math.abs)), cell = (w - 52) / (words.length - 1), wide = Math.min(36, cell * 0.6);
    return rows.map(([title, scores], row) => {
      const top = row * high, zero = top + high / 2 + 16, reach = (high - 84) / 2;
      const bars = scores[v.asks].map((score, i) => {
        const x = 26 + i * cell, tall = (Math.abs(score) / most) * reach, isRepeated = twice.includes(i);
        // The prediction comes first.
        if (isRepeated && !row && !answered) return drawText(x, zero - 8, "?", 24, "var(--key)", { ...middle, ...bold });
        const box = makeShape("rect", { x: x - wide / 2, y: score > 0 ? zero - tall : zero, width: wide, height: Math.max(1, tall), fill: isRepeated ? "var(--key)" : "var(--face)", stroke: isRepeated ? "none" : "var(--rule)" });
        const number = isRepeated || w > 520 ? drawText(x, score > 0 ? zero - tall - 6 : zero + tall + 17, withMinus(score.toFixed(2)), isRepeated ? 16 : 13, isRepeated ? "var(--key)" : "var(--plain)", { ...middle, ...(isRepeated ? bold : {}) }) : "";
        return box + number;
      });
      return drawText(2, top + 20, texts[answered ? `${title}_answered` : title], w > 480 ? 17 : 15, "var(--text)", bold) + drawLine(2, zero, w - 2, zero) + bars.join("");
    }).join("");
  },
};

const drawCross = (cx, cy, r) => drawLine(cx - r * 1.1, cy, cx + r * 1.1, cy, "var(--face)", 1.5) + drawLine(cx, cy - r * 1.1, cx, cy + r * 1.1, "var(--face)", 1.5);

function drawDots(cx, cy, r, rate, first, last, without, w) {
  let out = "";
  for (let at = Math.ceil(first); at <= last; at++) {
    const [x, y] = pointAt(cx, cy, r, at * rate), [tx, ty] = pointAt(cx, cy, r - 20, at * rate);
    out += drawRing(x, y, 4, "none", 0, "var(--rule)") + (without.some((each) => Math.abs(at - each) < 0.7) || (w < 480 && at % 2) ? "" : drawText(tx, ty + 5, at, 14, "var(--plain)", middle));
  }
  return out;
}

const one = {
  start: { at: 1 },
  listTracks: ({ word, last }, texts) => [{
    low: 0, high: last, ticks: Array.from({ length: last + 1 }, (_, i) => [i, i]),
    thumbs: [{ name: "at", label: texts.at_label, chip: word, step: 1, far: 3 }],
  }],
  compute: ({ at }, { rate }) => ({ at: Number(at.toFixed(1)), step: formatDegrees(rate * DEGREES, 2), angle: formatDegrees(at * rate * DEGREES), turned: formatDegrees((at * rate * DEGREES) % 360) }),
  isDone: ({ at }) => at === 6,
  playAt: (share, v, { last }) => ({ at: swing(share) * last }),
  // Leave room for the name of the hand on the right.
  findCentre: (w) => w / 2 - (w > 480 ? 70 : 40),
  findDrag: ({ x, y, w, h }, { rate, last }) => {
    const angle = (Math.atan2(h / 2 - y, x - one.findCentre(w)) + TAU) % TAU;
    return ["at", angle / rate > last + 2 ? 0 : angle / rate];
  },
  draw({ w, h, v, n, data, texts, answered }) {
    const { rate, last, word } = data, cx = one.findCentre(w), cy = h / 2, r = Math.min(cx - (w > 480 ? 40 : 30), h / 2 - 34), angle = v.at * rate;
    const far = angle + 0.14, big = r > 120;
    const label = texts.hand.replace("{word}", word).replace("{at}", n.at);
    return drawCross(cx, cy, r) + drawRing(cx, cy, r, "var(--rule)", 1.5) + drawDots(cx, cy, r, rate, 0, answered ? last : v.at, [v.at], w)
      + drawSector(cx, cy, r * 0.36, 0, angle, { fill: "var(--query)", "fill-opacity": 0.1 }) + drawArc(cx, cy, r * 0.36, 0, angle, { stroke: "var(--text)", "stroke-width": 2 })
      + drawHand(cx, cy, r, 0, "var(--query)", 3, { opacity: 0.35 }) + drawHand(cx, cy, r, angle, "var(--query)", big ? 7 : 5) + drawRing(cx, cy, 5, "none", 0, "var(--text)")
      + drawText(...pointAt(cx, cy + 7, r * 0.36 + (big ? 44 : 32), angle < 0.7 ? -0.16 : angle / 2), n.angle, big ? 22 : 17, "var(--text)", { ...middle, ...bold })
      + drawName(cx, cy, r + (big ? 26 : 16), far, label, "var(--query)", big ? 17 : 15, w);
  },
};

const two = {
  start: ({ start: [key, query] }) => ({ key, query, offset: 0, content: 0 }),
  listTracks: ({ last, slots, words }, texts) => [
    { low: 0, high: slots - 1, ticks: [], thumbs: [
      { name: "key", label: texts.key_label, chip: escapeHtml(shorten(words[0])), colour: "key", step: 1, far: 3 },
      { name: "query", label: texts.query_label, chip: escapeHtml(shorten(words[1])), step: 1, far: 3 },
    ] },
    { ruler: { name: "offset", label: texts.offset_label, most: last, step: 1, far: 10 }, cells: slots - 1 },
    { low: -180, high: 180, ticks: [[-180, "−180°"], [-90, "−90°"], [0, "0°"], [90, "90°"], [180, "180°"]], thumbs: [{ name: "content", label: texts.content_label, chip: texts.content, colour: "text", step: 5, far: 6 }] },
  ],
  findLimits: ({ key, query }, { slots }) => ({ key: [0, query - 1], query: [key + 1, slots - 1] }),
  nameColour: (at, { key, query, offset }) => (Math.abs(at - offset - query) < 0.5 ? "query" : Math.abs(at - offset - key) < 0.5 ? "key" : "plain"),
  compute({ key, query, offset, content }, { rate }) {
    const apart = query - key, way = apart * rate * DEGREES + content, angle = foldAngle(way);
    return {
      apart: Number(apart.toFixed(1)), angle: formatDegrees(angle), score: withMinus(Math.cos(angle / DEGREES).toFixed(2)), content: `${withMinus(content.toFixed(0))}°`, turn: formatDegrees(apart * rate * DEGREES),
      step: formatDegrees(rate * DEGREES, 2), offset: Math.round(offset), key: Math.round(offset + key), query: Math.round(offset + query), see: content ? "content" : offset > 0.5 ? "moved" : "see",
    };
  },
  // One swipe on a phone is about 200 pixels, or 7 positions.
  isDone: ({ offset }) => offset >= 5,
  playAt: (share) => ({ offset: 2 * TEN * swing(share) }),
  draw({ w, h, v, n, data, texts }) {
    const { rate, slots } = data, narrow = h < 300, cx = w / 2, cy = h / 2 - (narrow ? 4 : 12), r = Math.min(w / 2 - 60, h / 2 - (narrow ? 26 : 48));
    const q = (v.offset + v.query) * rate, k = (v.offset + v.key) * rate - v.content / DEGREES, all = q - k, way = all - TAU * Math.round(all / TAU);
    const size = narrow ? 14 : 16, makeLabels = (role, word, at) => [narrow ? "short" : role, "short"].map((each) => fill(texts[each], { word, at }));
    const close = Math.abs(way) < 0.5 ? (0.5 - Math.abs(way)) / 2 : 0, side = Math.sign(way) || 1;
    return drawCross(cx, cy, r) + drawRing(cx, cy, r, "var(--rule)", 1.5) + (v.content || narrow ? "" : drawDots(cx, cy, r, rate, v.offset, v.offset + slots - 1, [v.offset + v.query, v.offset + v.key], w))
      + drawSector(cx, cy, r * 0.4, k, way, { fill: "var(--query)", "fill-opacity": 0.12 }) + drawArc(cx, cy, r * 0.4, k, way, { stroke: "var(--text)", "stroke-width": 2 })
      + drawHand(cx, cy, r, k, "var(--key)", narrow ? 5 : 7) + drawHand(cx, cy, r, q, "var(--query)", narrow ? 5 : 7) + drawRing(cx, cy, 5, "none", 0, "var(--text)")
      + drawText(...pointAt(cx, cy + 7, r * 0.62, k + placeAngle(way, (narrow ? 28 : 38) / (r * 0.62))), n.angle, narrow ? 17 : 22, "var(--text)", { ...middle, ...bold })
      + [["query", q + side * close], ["key", k - side * close]].map(([role, at], i) => {
        const [long, short] = makeLabels(role, data.words[1 - i], n[role]);
        return drawName(cx, cy, r + (narrow ? 14 : 24), at, long, `var(--${role})`, size, w, short);
      }).join("")
      + drawText(narrow ? w - 4 : cx, narrow ? h - 6 : h - 4, `${texts.score} cos ${n.angle} = ${n.score}`, narrow ? 14 : 16, "var(--text)", { "text-anchor": narrow ? "end" : "middle", ...bold });
  },
};

const four = {
  start: { a: 2, b: 12 },
  listTracks: ({ last }, texts) => [{
    low: 0, high: last, ticks: Array.from({ length: last / 10 + 1 }, (_, i) => [10 * i, 10 * i]),
    thumbs: [
      { name: "a", label: texts.a_label, chip: "A", step: 1, far: 10, whole: true },
      { name: "b", label: texts.b_label, chip: "B", colour: "key", step: 1, far: 10, whole: true },
    ],
  }],
  findLimits: ({ a, b }, { last }) => ({ a: [0, b - 1], b: [a + 1, last] }),
  compute({ a, b }, { rates }) {
    const angles = rates.map((rate) => foldAngle((b - a) * rate * DEGREES)), fast = angles[0], slow = angles.at(-1);
    return { a, b, apart: b - a, angles, fast: formatDegrees(fast), slow: formatDegrees(slow), see: b - a < 3 ? "near" : fast <= TEN && slow > fast + TEN ? "same" : "see" };
  },
  isDone: (v, data) => four.compute(v, data).see === "same",
  playAt: (share, { a }) => ({ b: a + 1 + Math.round(3 * TEN * swing(share)) }),
  draw({ w, h, v, n, data, texts }) {
    const { rates, pairs } = data, narrow = h < 300, label = narrow ? 34 : 52;
    return arrangeGrid(4, { w, h }, label, 0, 0.4, 100).map(([cx, cy, r], i) => {
      const rate = rates[i], k = v.b * rate, q = v.a * rate, all = k - q, way = all - TAU * Math.round(all / TAU), same = n.angles[i] <= TEN;
      return drawCross(cx, cy, r) + drawRing(cx, cy, r, same ? "var(--text)" : "var(--rule)", same ? 3 : 1.5)
        + drawSector(cx, cy, r * 0.5, q, way, { fill: "var(--query)", "fill-opacity": 0.12 })
        + drawHand(cx, cy, r, k, "var(--key)", narrow ? 4.1 : 6) + drawHand(cx, cy, r * 0.86, q, "var(--query)", narrow ? 4.1 : 6) + drawRing(cx, cy, 4, "none", 0, "var(--text)")
        + drawText(cx, cy + r + (narrow ? 18 : 26), texts.pair.replace("{pair}", pairs[i]).replace("{step}", formatDegrees(rate * DEGREES)), narrow ? 13 : 14, "var(--plain)", middle)
        + drawText(cx, cy + r + (narrow ? 33 : 46), texts[same ? "clock_same" : "clock_apart"].replace("{angle}", formatDegrees(n.angles[i])), narrow ? 13 : 15, "var(--text)", { ...middle, ...bold });
    }).join("");
  },
};

export const HANDS = [repeated, one, two, four];
