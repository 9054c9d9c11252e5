// Scenes 5 to 8 of Learn: a real head, beyond the trained length, three repairs, the proof.

import { DEGREES, TAU, bold, clamp, formatDegrees, end, arrangeGrid, drawHand, drawLine, middle, drawRing, drawText, makeScale, drawSector, makeShape, swing, formatWhole } from "./learn_kit.js";

// The share of a turn that a hand covered in training, and whether it now points where it never did in training. This is
// judged on the circle: a hand after a full turn points where it did before.
const computeShareSeen = (rate, trained) => Math.min(1, (trained * rate) / TAU);
const computeTurn = (at, rate) => { const all = (at * rate) / TAU; return all - Math.floor(all); };
const isNew = (at, rate, trained, ratio = 1) => { const seen = computeShareSeen(rate, trained); return seen < 1 && computeTurn(at, rate * ratio) > seen * (1 + 1e-9); };
const drawFace = (cx, cy, r, seen) => (seen < 1 ? drawRing(cx, cy, r, "var(--rule)", 1) + drawSector(cx, cy, r, 0, TAU * seen, { fill: "var(--seen)" }) : drawRing(cx, cy, r, "var(--rule)", 1, "var(--seen)"));
const formatTurns = (value) => (value >= 10 ? formatWhole(value) : String(Number(value.toPrecision(2))));
const formatBrief = (value) => (value >= 999500 ? `${Number((value / 1e6).toPrecision(3))} M` : formatWhole(Number(value.toPrecision(3))));

const head = {
  start: (data) => ({ base: data.base }),
  listTracks: ({ bases }, texts) => [{
    low: bases[0], high: bases.at(-1), log: true, ticks: bases.map((base, i) => [base, formatBrief(base), i % 2 === 0]),
    thumbs: [{ name: "base", label: texts.base_label, step: 1, far: 5 }],
  }],
  round: (base) => Number(base.toPrecision(3)),
  listRates: ({ base }, { pairs }) => Array.from({ length: pairs }, (_, i) => base ** (-i / pairs)),
  compute(v, { trained, pairs }) {
    const rates = head.listRates(v, { pairs }), unfinished = rates.filter((rate) => (trained * rate) / TAU < 1).length;
    return { base: formatWhole(v.base), unfinished, all: pairs, last: formatBrief(TAU / rates.at(-1)), trained: formatWhole(trained), first: formatDegrees(rates[0] * DEGREES) };
  },
  isDone: ({ base }) => base <= 10300,
  playAt: (share, v, { bases }) => ({ base: bases.at(-1) * (bases[0] / bases.at(-1)) ** swing(share) }),
  draw({ w, h, v, data, texts, n }) {
    const rates = head.listRates(v, data), { trained } = data, top = 30;
    const clocks = arrangeGrid(data.pairs, { w, h }, 0, top, 0.43).map(([cx, cy, r], i) => {
      const seen = computeShareSeen(rates[i], trained), less = seen < 1;
      return drawFace(cx, cy, r, seen) + (less ? drawRing(cx, cy, r, "var(--text)", Math.max(2, r / 10)) : "") + drawHand(cx, cy, r * 0.85, TAU * computeTurn(trained - 1, rates[i]), less ? "var(--text)" : "var(--plain)", less ? clamp(r / 8, 2, 4.5) : 1.5);
    });
    return drawText(2, 16, texts[w > 480 ? "caption" : "caption_short"].replace("{unfinished}", n.unfinished), w > 480 ? 15 : 13, "var(--plain)") + clocks.join("");
  },
};

const beyond = {
  start: { at: 6000 },
  listTracks: ({ trained }, texts) => [{
    low: 0, high: 2 * trained - 1, ticks: [], thumbs: [{ name: "at", label: texts.at_label, chip: "", colour: "text", step: 128, far: 8, whole: true }],
  }],
  compute({ at }, { pairs, rates, trained, loss, bin }) {
    const which = Math.floor(at / bin), plain = loss.none[which], repaired = loss.yarn[which], fresh = pairs.filter((_, i) => isNew(at, rates[i], trained));
    return {
      at: formatWhole(at), plain: plain.toFixed(2), repaired: repaired.toFixed(2), guess: formatWhole(Math.exp(plain)), guess_repaired: formatWhole(Math.exp(repaired)), unseen: fresh.length, fresh, which,
      shown: pairs.length, trained: formatWhole(trained), see: at < trained ? "within" : at < 11 * bin ? "just" : "see",
    };
  },
  // What the model writes at the measured position that is nearest.
  findWritten: ({ at }, { written }) => written.reduce((near, each) => (Math.abs(each.at - at) < Math.abs(near.at - at) ? each : near)).html,
  isDone: ({ at }) => at >= 12000,
  playAt: (share, v, { trained }) => ({ at: Math.round(swing(share) * (2 * trained - 1)) }),
  findDrag: ({ x, w }, { trained }) => ["at", ((x - 26) / (w - 52)) * (2 * trained - 1)],
  draw({ w, h, v, n, data, texts, answered }) {
    const { pairs, rates, trained, loss, bin } = data, narrow = h < 320, low = narrow ? 96 : 150, x = makeScale(0, 2 * trained - 1, 26, w - 26), y = makeScale(2.75, 6.6, h - 26, low + 14);
    const wide = (w - 8) / pairs.length, r = Math.min(wide * 0.4, narrow ? 28 : 46);
    const clocks = pairs.map((pair, i) => {
      const cx = 4 + (i + 0.5) * wide, cy = r + 4, fresh = isNew(v.at, rates[i], trained), colour = fresh ? "var(--text)" : "var(--plain)";
      const label = texts[fresh ? "pair_unseen" : "pair"].replace("{pair}", pair);
      return drawFace(cx, cy, r, computeShareSeen(rates[i], trained)) + drawHand(cx, cy, r * 0.86, TAU * computeTurn(v.at, rates[i]), colour, (narrow ? 3.5 : 5) - (fresh ? 0 : 2)) + (narrow ? label.split(": ") : [label]).map((text, k) => drawText(cx, 2 * r + 20 + 15 * k, text, narrow ? 13 : 14, colour, { ...middle, ...(fresh ? bold : {}) })).join("");
    });
    const makeSteps = (values) => values.map((value, i) => `${i ? "L" : "M"}${x(i * bin).toFixed(1)} ${y(value).toFixed(1)}H${x((i + 1) * bin - 1).toFixed(1)}`).join("");
    const drawCurve = (values, stroke, more = {}) => makeShape("path", { d: makeSteps(values), fill: "none", stroke, "stroke-width": 2.5, ...more });
    const at = x(v.at), left = at > w * 0.8 || (v.at < trained && x(trained) - at < 60);
    const drawDot = (value, colour, text, below) => drawRing(at, y(value), 6, "var(--background)", 2, colour) + drawText(at + (left ? -12 : 12), y(value) + (below ? 20 : -9), text, 16, colour, { ...bold, ...(left ? end : {}) });
    return clocks.join("") + makeShape("rect", { x: x(trained), y: low + 8, width: w - 26 - x(trained), height: h - 26 - low - 8, fill: "var(--panel)" })
      + [3, 4, 5, 6].map((value) => drawLine(26, y(value), w - 26, y(value), "var(--face)") + drawText(18, y(value) + 5, value, 14, "var(--plain)", end)).join("")
      + drawLine(at, low + 18, at, h - 26, "var(--text)", 1.5) + drawLine(x(trained), low + 18, x(trained), h - 26, "var(--text)", 1.5) + drawText(x(trained), low + 12, texts.trained.replace("{trained}", n.trained), narrow ? 13 : 14, "var(--text)", { ...middle, ...bold })
      + (narrow ? "" : drawText(26, low + 12, texts.loss, 14, "var(--plain)"))
      + (answered ? drawCurve(loss.none, "var(--plain)") + drawCurve(loss.yarn, "var(--query)", { "stroke-dasharray": "7 4" })
      + drawText(x(12.4 * bin), y(narrow ? 5.2 : 6.2), texts.none, 15, "var(--plain)", { ...end, ...bold }) + drawText(at > w / 2 ? 30 : w - 28, y(2.85) + 4, texts.yarn, 15, "var(--query)", { ...bold, ...(at > w / 2 ? {} : end) })
      + drawDot(loss.none[n.which], "var(--plain)", n.plain, false) + drawDot(loss.yarn[n.which], "var(--query)", n.repaired, true) : drawText(x(12 * bin), y(4.5), "?", 40, "var(--plain)", { ...middle, ...bold }))
      + [0, 4, 8, 12, 16].map((k) => drawText(x(Math.min(k * 1024, 2 * trained - 1)), h - 6, k ? `${k}k` : "0", 14, "var(--plain)", middle)).join("");
  },
};

const COLOURS = { kept: "--kept", blended: "--blended", divided: "--divided" };

const repairs = {
  start: { method: "none", factor: "2", tried: "" },
  listButtons: ({ methods, factors }, texts) => [
    { name: "method", label: texts.method_label, options: methods.map((name) => [name, texts[`methods_${name}`]]) },
    { name: "factor", label: texts.factor_label, options: factors.map((factor) => [String(factor), `× ${factor}`]) },
  ],
  onChoice: (v, name, value) => name === "method" && value !== "none" && !v.tried.includes(value) && (v.tried += ` ${value}`),
  compute({ method, factor }, { curves, attention, turns: all, trained, rates }) {
    const { bands, ratio } = curves[factor][method], at = trained * factor - 1, unfinished = rates.filter((rate) => computeShareSeen(rate, trained) < 1).length, fresh = rates.map((rate, i) => isNew(at, rate, trained, ratio[i])), unseen = fresh.filter(Boolean).length, countBand = (kind) => bands.filter((band) => band === kind).length, { gain, lambda, plain, longer, scaled } = attention[factor];
    const formatShare = (value) => `${(100 * value).toFixed(1)} %`;
    return {
      factor, kept: countBand(0), blended: countBand(1), divided: countBand(2), see: method === "none" && unseen < unfinished ? "none_round" : method, round: unfinished - unseen, unfinished, gain: gain.toFixed(3), lambda: lambda.toFixed(3), target: formatWhole(trained * factor), trained: formatWhole(trained), at: formatWhole(at), fresh, unseen, all: rates.length,
      short: formatShare(plain), long: formatShare(longer), sharp: formatShare(scaled), slow: formatTurns(all.at(-1)), first: formatTurns(all[0]),
    };
  },
  playAt: (share, v, { methods }) => ({ method: methods[Math.floor(share * (methods.length - 0.001))] }),
  isDone: ({ tried }) => tried.includes("linear") && tried.includes("ntk") && tried.includes("yarn"),
  // Draw all hands at the last position, and in blue what each turns from one token to the next.
  drawClocks: ({ rates, trained }, { w, h }, turned, curve, fresh) => arrangeGrid(rates.length, { w, h }, 0, 24, 0.44).map(([cx, cy, r], i) => drawFace(cx, cy, r, computeShareSeen(rates[i], trained))
    + drawSector(cx, cy, r * 0.86, turned[i], -rates[i] * curve[i], { fill: "var(--query)", "fill-opacity": 0.5 })
    + drawHand(cx, cy, r * 0.86, turned[i], fresh[i] ? "var(--text)" : "var(--plain)", fresh[i] ? 4 : 2)).join(""),
  draw({ w, h, v, n, data, texts, memory, reducedMotion, now, answered }) {
    const { curves, turns: all, factors, rates, trained } = data, narrow = w < 480, hasBars = !narrow && h > 480, top = answered ? Math.round(h * 0.38) : h, high = hasBars ? h - 140 : h - 4, goal = curves[v.factor][v.method];
    // Hands and curve move from those shown to those chosen: a fast hand on the shorter way, a slow one back as it came.
    const key = `${v.method} ${v.factor}`, angles = rates.map((rate, i) => (trained * v.factor - 1) * rate * goal.ratio[i]);
    if (memory.key !== key) Object.assign(memory, { key, from: memory.curve ?? goal.ratio, since: now, turnedFrom: memory.turned ?? angles });
    const share = reducedMotion ? 1 : clamp((now - memory.since) / 900, 0, 1), eased = share * share * (3 - 2 * share);
    memory.curve = goal.ratio.map((value, i) => memory.from[i] ** (1 - eased) * value ** eased);
    memory.turned = angles.map((angle, i) => {
      const way = angle - memory.turnedFrom[i];
      return share === 1 ? angle : memory.turnedFrom[i] + eased * (all[i] < 2 ? way : way - TAU * Math.round(way / TAU));
    });
    memory.isMoving = share < 1;
    const clocks = drawText(2, 15, texts[narrow ? "clocks_short" : "clocks"].replace("{at}", n.at).replace("{unseen}", n.unseen).replace("{all}", n.all), narrow ? 13 : 15, "var(--plain)") + repairs.drawClocks(data, { w, h: top }, memory.turned, memory.curve, n.fresh);
    if (!answered) return clocks;
    const x = makeScale(0, all.length - 1, 76, w - 26), y = makeScale(Math.log2(1 / factors.at(-1)) - 0.15, 0.1, high - 64, top + 46), at = (value) => y(Math.log2(value));
    const drawPath = (values, more) => makeShape("path", { d: values.map((value, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${at(value).toFixed(1)}`).join(""), fill: "none", ...more });
    const kinds = ["kept", "blended", "divided"], pickColour = (i) => `var(${COLOURS[kinds[goal.bands[i]]]})`;
    const runs = kinds.map((kind, k) => [kind, goal.bands.indexOf(k), goal.bands.lastIndexOf(k)]).filter(([, first]) => first >= 0);
    const bar = runs.map(([kind, first, last]) => makeShape("rect", { x: x(first) - 4, y: top + 30, width: x(last) - x(first) + 8, height: 5, fill: `var(${COLOURS[kind]})` })
      + (last - first > 1 ? drawText((x(first) + x(last)) / 2, top + 23, `${texts[kind === "blended" && v.method === "ntk" ? "partly" : kind]} ${last - first + 1}`, 14, `var(${COLOURS[kind]})`, { ...middle, ...bold }) : "")).join("");
    // Each curve has its name where it is far from the others: at which pair, how far to the right and how far below.
    const below = Number(v.factor) === factors.at(-1) ? -9 : 18; // the ticks are below the longest one
    const places = { none: [all.length - 1, 6, 18, end], linear: [0, 0, narrow ? -6 : below, {}], ntk: [0, 2, narrow ? 17 : 24, {}], yarn: narrow ? [14, 10, 6, {}] : [13, 8, -1, {}] };
    const named = Object.entries(places).filter(([name]) => !narrow || name === v.method).map(([name, [i, right, below, more]]) => drawText(x(i) + right, at(curves[v.factor][name].ratio[i]) + below, texts[`methods_${name}`], 14, name === v.method ? "var(--text)" : "var(--plain)", { ...more, ...(name === v.method ? bold : {}) })).join("");
    const others = data.methods.filter((name) => name !== v.method).map((name) => drawPath(curves[v.factor][name].ratio, { stroke: "var(--rule)", "stroke-width": 1.2, "stroke-dasharray": "4 4", opacity: 0.7 })).join("");
    const chart = [1, ...factors].map((value) => drawLine(76, at(1 / value), w - 26, at(1 / value), "var(--face)") + drawText(64, at(1 / value) + 5, value === 1 ? "1" : `1/${value}`, 14, "var(--plain)", end)).join("")
      + others + drawPath(memory.curve, { stroke: "var(--text)", "stroke-width": 2 }) + memory.curve.map((value, i) => drawRing(x(i), at(value), narrow ? 3 : 4.5, "var(--background)", 1, pickColour(i))).join("") + named
      + [0, 6, 12, 18, 24, 31].map((i) => drawText(x(i), high - 44, i, 14, "var(--plain)", middle) + drawText(x(i), high - 24, formatTurns(all[i]), 14, "var(--text)", { ...middle, ...bold })).join("")
      + drawText(0, high - 44, texts.pair, 14, "var(--plain)") + drawText(0, high - 24, texts.turns, 14, "var(--text)", bold) + drawText(0, high - 4, texts[narrow ? "axis_short" : "axis"], 13, "var(--plain)");
    if (!hasBars) return clocks + bar + chart;
    const { plain, longer, scaled } = data.attention[v.factor], most = Math.max(plain, longer, scaled), from = 260, reach = w - from - 90;
    const rows = [[texts.at_trained, plain, n.short, "--plain"], [texts.at_target, longer, n.long, "--plain"], [texts.at_sharp, scaled, n.sharp, "--query"]];
    return clocks + bar + chart + drawText(2, high + 30, texts.softmax, 14, "var(--plain)") + rows.map(([label, value, text, fill], i) => {
      const line = high + 42 + i * 30;
      return drawText(2, line + 15, label.replace("{trained}", n.trained).replaceAll("{target}", n.target).replace("{lambda}", n.lambda), 14) + makeShape("rect", { x: from, y: line, width: Math.max(2, (value / most) * reach), height: 20, fill: `var(${fill})` }) + drawText(from + (value / most) * reach + 8, line + 15, text, 15, "var(--text)", bold);
    }).join("");
  },
};

// Count what a method found: "?" before the prediction.
const countFound = (method, count, answered) => (!answered && method === "yarn" ? "?" : String(count));

const proof = {
  start: {},
  listTracks: () => [],
  compute: (v, { methods, questions, lengths }) => ({ see: "see", longest: lengths.at(-1), yarn: methods.yarn.at(-1), plain: methods.none.at(-1), of: questions.at(-1) }),
  isDone: (v, data, s) => s.quiz.every((answer) => answer !== null),
  draw({ data: { lengths, questions, methods }, texts, answered }) {
    const rows = Object.entries(methods).map(([method, found]) => `<tr><th scope="row">${texts[`methods_${method}`]}</th>${found.map((count, i) => {
      if (countFound(method, count, answered) === "?") return "<td><b>?</b></td>";
      const share = Math.round((100 * count) / questions[i]);
      return `<td style="background: color-mix(in srgb, var(--query) ${Math.round(share * 0.35)}%, transparent)"><b>${count}</b><span> / ${questions[i]}</span></td>`;
    }).join("")}</tr>`);
    return `<table class="rv-proof"><caption>${texts.caption}</caption><thead><tr><td></td>${lengths.map((length) => `<th scope="col">${length}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
  },
  drawSmall: ({ w, data: { lengths, questions, methods }, texts, answered }) => {
    const x = makeScale(0, lengths.length - 1, 140, w - 20);
    return lengths.map((length, i) => drawText(x(i), 40, length, 15, "var(--plain)", middle)).join("") + Object.entries(methods).map(([method, found], row) => drawText(2, 84 + 46 * row, texts[`methods_${method}`], 16, "var(--text)", bold)
      + found.map((count, i) => makeShape("rect", { x: x(i) - 20, y: 62 + 46 * row, width: 40, height: 34, fill: "var(--query)", "fill-opacity": answered || method !== "yarn" ? 0.35 * (count / questions[i]) : 0 }) + drawText(x(i), 84 + 46 * row, countFound(method, count, answered), 16, "var(--text)", { ...middle, ...bold })).join("")).join("");
  },
};

export const LENGTHS = [head, beyond, repairs, proof];
