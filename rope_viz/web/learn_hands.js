// Scenes 1 to 4 of Learn: the same word twice, one hand, two hands, four clocks. Each scene has sliders, numbers and a picture.

import { DEGREES, TAU, arc, bold, degrees, fold, grid, hand, line, middle, minus, name, ring, say, sector, shape, tip } from "./learn_kit.js";

const TEN = 10;

const repeated = {
  start: { asks: 6 },
  rows: ({ words }, texts) => [{
    low: 0, high: words.length - 1, ticks: words.map((word, i) => [i, word]),
    thumbs: [{ name: "asks", label: texts.asks_label, chip: texts.asks, step: 1, far: 3, whole: true }],
  }],
  numbers({ asks }, { words, twice: [a, b], none, rope, repeated }) {
    const two = (value) => minus(value.toFixed(2));
    return {
      see: "see", word: words[asks], repeated, same: two(none[asks][a]), first: two(rope[asks][a]), second: two(rope[asks][b]),
      first_away: Math.abs(asks - a), second_away: Math.abs(asks - b),
    };
  },
  done: ({ asks }) => asks !== 6,
  grab: ({ x, w }, { words }) => ["asks", ((x - 26) / (w - 52)) * (words.length - 1)],
  draw({ w, h, v, data, texts, answered }) {
    const { words, twice, none, rope } = data, rows = [["none", none], ["rope", rope]], high = h / 2;
    const most = Math.max(...[none, rope].flat(2).map(Math.abs)), cell = (w - 52) / (words.length - 1), wide = Math.min(36, cell * 0.6);
    return rows.map(([title, scores], row) => {
      const top = row * high, zero = top + high / 2 + 16, reach = (high - 84) / 2;
      const bars = scores[v.asks].map((score, i) => {
        const x = 26 + i * cell, tall = (Math.abs(score) / most) * reach, is = twice.includes(i);
        // The prediction comes first.
        if (is && !row && !answered) return say(x, zero - 8, "?", 24, "var(--key)", { ...middle, ...bold });
        const box = shape("rect", { x: x - wide / 2, y: score > 0 ? zero - tall : zero, width: wide, height: Math.max(1, tall), fill: is ? "var(--key)" : "var(--face)", stroke: is ? "none" : "var(--rule)" });
        const number = is || w > 520 ? say(x, score > 0 ? zero - tall - 6 : zero + tall + 17, minus(score.toFixed(2)), is ? 16 : 13, is ? "var(--key)" : "var(--plain)", { ...middle, ...(is ? bold : {}) }) : "";
        return box + number;
      });
      return say(2, top + 20, texts[answered ? `${title}_answered` : title], w > 480 ? 17 : 15, "var(--text)", bold) + line(2, zero, w - 2, zero) + bars.join("");
    }).join("");
  },
};

const cross = (cx, cy, r) => line(cx - r * 1.1, cy, cx + r * 1.1, cy, "var(--face)", 1.5) + line(cx, cy - r * 1.1, cx, cy + r * 1.1, "var(--face)", 1.5);

function dots(cx, cy, r, rate, first, last, without, w) {
  let out = "";
  for (let at = Math.ceil(first); at <= last; at++) {
    const [x, y] = tip(cx, cy, r, at * rate), [tx, ty] = tip(cx, cy, r - 20, at * rate);
    out += ring(x, y, 4, "none", 0, "var(--rule)") + (without.some((each) => Math.abs(at - each) < 0.7) || (w < 480 && at % 2) ? "" : say(tx, ty + 5, at, 14, "var(--plain)", middle));
  }
  return out;
}

const one = {
  start: { at: 1 },
  rows: ({ word, last }, texts) => [{
    low: 0, high: last, ticks: Array.from({ length: last + 1 }, (_, i) => [i, i]),
    thumbs: [{ name: "at", label: texts.at_label, chip: word, step: 1, far: 3 }],
  }],
  numbers: ({ at }, { rate }) => ({ at: Number(at.toFixed(1)), step: degrees(rate * DEGREES), angle: degrees(at * rate * DEGREES), turned: degrees((at * rate * DEGREES) % 360) }),
  done: ({ at }) => at === 6,
  // The name of the hand has its room on the right.
  centre: (w) => w / 2 - (w > 480 ? 70 : 40),
  grab: ({ x, y, w, h }, { rate, last }) => {
    const angle = (Math.atan2(h / 2 - y, x - one.centre(w)) + TAU) % TAU;
    return ["at", angle / rate > last + 2 ? 0 : angle / rate];
  },
  draw({ w, h, v, n, data, texts }) {
    const { rate, last, word } = data, cx = one.centre(w), cy = h / 2, r = Math.min(cx - (w > 480 ? 40 : 30), h / 2 - 34), angle = v.at * rate;
    const far = angle + 0.14, big = r > 120;
    const label = texts.hand.replace("{word}", word).replace("{at}", n.at);
    return cross(cx, cy, r) + ring(cx, cy, r, "var(--rule)", 1.5) + dots(cx, cy, r, rate, 0, last, [v.at], w)
      + sector(cx, cy, r * 0.36, 0, angle, { fill: "var(--query)", "fill-opacity": 0.1 }) + arc(cx, cy, r * 0.36, 0, angle, { stroke: "var(--text)", "stroke-width": 2 })
      + hand(cx, cy, r, 0, "var(--query)", 3, { opacity: 0.35 }) + hand(cx, cy, r, angle, "var(--query)", big ? 7 : 5) + ring(cx, cy, 5, "none", 0, "var(--text)")
      + say(...tip(cx, cy + 7, r * 0.36 + (big ? 44 : 32), angle < 0.7 ? -0.16 : angle / 2), n.angle, big ? 22 : 17, "var(--text)", { ...middle, ...bold })
      + name(cx, cy, r + (big ? 26 : 16), far, label, "var(--query)", big ? 17 : 15, w);
  },
};

const two = {
  start: { key: 1, query: 7, offset: 0, content: 0 },
  rows: ({ last, slots, words }, texts) => [
    { low: 0, high: slots - 1, ticks: [], thumbs: [
      { name: "key", label: texts.key_label, chip: words[0], colour: "key", step: 1, far: 3 },
      { name: "query", label: texts.query_label, chip: words[1], step: 1, far: 3 },
    ] },
    { ruler: { name: "offset", label: texts.offset_label, most: last, step: 1, far: 10 }, cells: slots - 1 },
    { low: -180, high: 180, ticks: [[-180, "−180°"], [-90, "−90°"], [0, texts.content], [90, "90°"], [180, "180°"]], thumbs: [{ name: "content", label: texts.content_label, colour: "text", step: 5, far: 6 }] },
  ],
  limits: ({ key, query }, { slots }) => ({ key: [0, query - 1], query: [key + 1, slots - 1] }),
  mark: (at, { key, query, offset }) => (Math.abs(at - offset - query) < 0.5 ? "query" : Math.abs(at - offset - key) < 0.5 ? "key" : "plain"),
  numbers({ key, query, offset, content }, { rate }) {
    const apart = query - key, way = apart * rate * DEGREES + content, angle = fold(way);
    return {
      apart: Number(apart.toFixed(1)), angle: degrees(angle), score: minus(Math.cos(angle / DEGREES).toFixed(2)), content: `${minus(content.toFixed(0))}°`, turn: degrees(apart * rate * DEGREES),
      step: degrees(rate * DEGREES), offset: Math.round(offset), key: Math.round(offset + key), query: Math.round(offset + query), see: content ? "content" : offset > 0.5 ? "moved" : "see",
    };
  },
  done: ({ offset }) => offset >= TEN,
  draw({ w, h, v, n, data, texts }) {
    const { rate, slots } = data, narrow = h < 300, cx = w / 2, cy = h / 2 - (narrow ? 4 : 12), r = Math.min(w / 2 - 60, h / 2 - (narrow ? 26 : 48));
    const q = (v.offset + v.query) * rate, k = (v.offset + v.key) * rate - v.content / DEGREES, all = q - k, way = all - TAU * Math.round(all / TAU);
    const size = narrow ? 14 : 16, label = (role, number) => [narrow ? `${role}_short` : role, `${role}_short`].map((each) => texts[each].replace("{at}", number));
    const close = Math.abs(way) < 0.5 ? (0.5 - Math.abs(way)) / 2 : 0, side = Math.sign(way) || 1;
    return cross(cx, cy, r) + ring(cx, cy, r, "var(--rule)", 1.5) + (v.content || narrow ? "" : dots(cx, cy, r, rate, v.offset, v.offset + slots - 1, [v.offset + v.query, v.offset + v.key], w))
      + sector(cx, cy, r * 0.4, k, way, { fill: "var(--query)", "fill-opacity": 0.12 }) + arc(cx, cy, r * 0.4, k, way, { stroke: "var(--text)", "stroke-width": 2 })
      + hand(cx, cy, r, k, "var(--key)", narrow ? 5 : 7) + hand(cx, cy, r, q, "var(--query)", narrow ? 5 : 7) + ring(cx, cy, 5, "none", 0, "var(--text)")
      + say(...tip(cx, cy + 7, r * 0.62, k + way / 2), n.angle, narrow ? 17 : 22, "var(--text)", { ...middle, ...bold })
      + [["query", q + side * close], ["key", k - side * close]].map(([role, at]) => {
        const [long, short] = label(role, n[role]);
        return name(cx, cy, r + (narrow ? 14 : 24), at, long, `var(--${role})`, size, w, short);
      }).join("")
      + say(narrow ? w - 4 : cx, narrow ? h - 6 : h - 4, `${texts.score} cos ${n.angle} = ${n.score}`, narrow ? 14 : 16, "var(--text)", { "text-anchor": narrow ? "end" : "middle", ...bold });
  },
};

const four = {
  start: { a: 2, b: 12 },
  rows: ({ last }, texts) => [{
    low: 0, high: last, ticks: Array.from({ length: last / 10 + 1 }, (_, i) => [10 * i, 10 * i]),
    thumbs: [
      { name: "a", label: texts.a_label, chip: "A", step: 1, far: 10, whole: true },
      { name: "b", label: texts.b_label, chip: "B", colour: "key", step: 1, far: 10, whole: true },
    ],
  }],
  limits: ({ a, b }, { last }) => ({ a: [0, b - 1], b: [a + 1, last] }),
  numbers({ a, b }, { rates }) {
    const angles = rates.map((rate) => fold((b - a) * rate * DEGREES)), fast = angles[0], slow = angles.at(-1);
    return { a, b, apart: b - a, angles, fast: degrees(fast), slow: degrees(slow), see: b - a < 3 ? "near" : fast <= TEN && slow > fast + TEN ? "same" : "see" };
  },
  done: (v, data) => four.numbers(v, data).see === "same",
  draw({ w, h, v, n, data, texts }) {
    const { rates, pairs } = data, narrow = h < 300, label = narrow ? 34 : 52;
    return grid(4, { w, h }, label, 0, 0.4, 100).map(([cx, cy, r], i) => {
      const rate = rates[i], k = v.b * rate, q = v.a * rate, all = k - q, way = all - TAU * Math.round(all / TAU), same = n.angles[i] <= TEN;
      return cross(cx, cy, r) + ring(cx, cy, r, same ? "var(--text)" : "var(--rule)", same ? 3 : 1.5)
        + sector(cx, cy, r * 0.5, q, way, { fill: "var(--query)", "fill-opacity": 0.12 })
        + hand(cx, cy, r, k, "var(--key)", narrow ? 4.1 : 6) + hand(cx, cy, r * 0.86, q, "var(--query)", narrow ? 4.1 : 6) + ring(cx, cy, 4, "none", 0, "var(--text)")
        + say(cx, cy + r + (narrow ? 18 : 26), texts.pair.replace("{pair}", pairs[i]).replace("{step}", degrees(rate * DEGREES)), narrow ? 13 : 14, "var(--plain)", middle)
        + say(cx, cy + r + (narrow ? 33 : 46), texts[same ? "clock_same" : "clock_apart"].replace("{angle}", degrees(n.angles[i])), narrow ? 13 : 15, "var(--text)", { ...middle, ...bold });
    }).join("");
  },
};

export const HANDS = [repeated, one, two, four];
