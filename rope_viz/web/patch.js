// The pairs of one patch as clocks; the pointer or the arrow keys move the patch over its image, all in the browser.
// picture.js requests it, rope_viz/pages/axes/patch.py packs it.

import { TAU, arrangeDials, drawFrame, drawHand, fill, findDial, formatDigits, formatTokens, formatWhole, startPainting, writeText } from "./dials.js";
import { addStyle, isDark } from "./element.js";

const MOVES = { ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], ArrowLeft: [0, 0, -1], ArrowRight: [0, 0, 1] };
const KEYS = ["t", "m", "n"], ROLES = ["time", "row", "column"];

const listPosition = (s) => KEYS.map((key) => s[key]);
const computeAngle = (s, i) => s.data.weights[i].reduce((sum, each, k) => sum + each * s[KEYS[k]], 0);

// Compute the box of the image, as large as the space next to the dials allows.
function computeImage(s) {
  const { aside: a } = s.place, [, rows, columns] = s.data.sides, cell = Math.min(a.w / columns, a.h / rows);
  return { cell, x: a.x + (a.w - cell * columns) / 2, y: a.y + (s.place.narrow ? (a.h - cell * rows) / 2 : 0), w: cell * columns, h: cell * rows };
}

function paint(s) {
  const x = startPainting(s), { data, c, place } = s;
  place.dials.forEach((dial, i) => {
    drawHand(x, dial, computeAngle(s, i) / TAU, 0.86, c.bands[data.bands[i]], Math.max(1.6, place.size / 22));
    if (i === s.hover) drawFrame(x, s, dial, true);
  });
  const [, rows, columns] = data.sides, { cell, x: left, y: top, w, h } = computeImage(s);
  Object.assign(x, { fillStyle: c.face, strokeStyle: c.rule, lineWidth: 1 });
  x.fillRect(left, top, w, h);
  if (cell >= 5) {
    x.globalAlpha = 0.5;
    x.beginPath();
    for (let k = 1; k < columns; k++) (x.moveTo(left + k * cell, top), x.lineTo(left + k * cell, top + h));
    for (let k = 1; k < rows; k++) (x.moveTo(left, top + k * cell), x.lineTo(left + w, top + k * cell));
    x.stroke();
    x.globalAlpha = 1;
  }
  x.strokeRect(left, top, w, h);
  const cx = left + (s.n + 0.5) * cell, cy = top + (s.m + 0.5) * cell, size = Math.max(7, cell);
  for (const [k, from, to] of [[1, [left, cy], [left + w, cy]], [2, [cx, top], [cx, top + h]]]) {
    if (!data.moves[k]) continue;
    Object.assign(x, { strokeStyle: c[ROLES[k]], lineWidth: 1.5 });
    x.setLineDash(k === 1 ? [6, 3] : [2, 3]);
    x.beginPath();
    x.moveTo(...from);
    x.lineTo(...to);
    x.stroke();
    x.setLineDash([]);
  }
  x.fillStyle = c.current;
  x.fillRect(cx - size / 2, cy - size / 2, size, size);
  const parts = ROLES.map((role, k) => [role, k]).filter(([, k]) => data.moves[k] && data.sides[k] > 1);
  const y = place.narrow ? 17 : top - 12;
  let where = place.narrow ? 0 : place.aside.x;
  for (const [role, k] of parts) {
    const text = fill(data.texts[role], { at: formatWhole(s[KEYS[k]]) });
    writeText(x, text, where, y, 14, c[ROLES[k]], "left", "600");
    where += x.measureText(text).width + 12;
  }
  if (!place.narrow) writeText(x, fill(data.texts.image, { rows: formatWhole(rows), columns: formatWhole(columns), unit: data.units }), place.aside.x, top + h + 18, 12, c.plain);
}

function requestFrame(s) {
  s.request ||= requestAnimationFrame(() => {
    s.request = 0;
    if (!s.root.isConnected || !s.data) return;
    if (s.stale) arrangeDials(s);
    s.stale = false;
    paint(s);
    showDescription(s);
    Object.assign(s.root.dataset, { row: s.m, column: s.n, frame: s.t, drawn: (s.frames = (s.frames ?? 0) + 1) });
  });
}

// Describe one pair: radians per step and wavelength along each of its axes, and its angle.
function describePair(s, i) {
  const { texts, weights, names, bands } = s.data;
  const rates = ROLES.map((role, k) => [role, weights[i][k]]).filter(([, each]) => each)
    .map(([role, each]) => fill(texts[`per_${role}`], { radians: formatDigits(each), length: formatTokens(Math.round(TAU / Math.abs(each))) }));
  return fill(texts.pair, { pair: i, axis: names[bands[i]], rates: rates.join(" · ") || texts.zero, turns: (computeAngle(s, i) / TAU).toFixed(3) });
}

// Describe the hovered pair below the image, else what the user can do.
function showDescription(s) {
  s.ui.now.textContent = s.hover === null ? s.data.texts.help : describePair(s, s.hover);
  for (const k of [1, 2]) if (document.activeElement !== s.ui.fields[k]) s.ui.fields[k].value = s[KEYS[k]];
}

// Once the patch has not moved for a moment, announce it to screen readers and record it in the link.
function reportSoon(s) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => {
    s.ui.announced.textContent = fill(s.data.texts.status, { row: formatWhole(s.m), column: formatWhole(s.n) });
    if (s.reported === `${s.m},${s.n}`) return;
    s.reported = `${s.m},${s.n}`;
    s.reportedAt = performance.now();
    s.owner.send?.("at", { m: s.m, n: s.n, step: s.owner.data.step });
  }, 300);
}

function moveTo(s, place, isSilent = false) {
  const before = listPosition(s).join();
  KEYS.forEach((key, k) => (s[key] = Math.min(Math.max(0, Math.round(place[k])), s.data.sides[k] - 1)));
  if (listPosition(s).join() === before) return;
  requestFrame(s);
  if (!isSilent) reportSoon(s);
}

function build(place, data) {
  const { root } = place;
  root.innerHTML = `<canvas tabindex="0" role="img"></canvas><div class="rv-now"></div><div class="rv-tools">
    <label>${data.texts.row_field} <input type="text" inputmode="numeric" autocomplete="off" data-k="1"></label><label>${data.texts.column_field} <input type="text" inputmode="numeric" autocomplete="off" data-k="2"></label>
    <div class="rv-space"></div></div><div class="rv-announced" aria-live="polite"></div>`;
  const canvas = root.querySelector("canvas"), fields = [null, ...root.querySelectorAll("input")];
  const s = { root, canvas, ctx: canvas.getContext("2d"), owner: place, hover: null, ui: { now: root.querySelector(".rv-now"), announced: root.querySelector(".rv-announced"), fields } };
  if (!data.alone) import(new URL("tools.js", import.meta.url).href).then(({ fillToolbar }) => fillToolbar(root.querySelector(".rv-tools"), place));
  const findPatch = ({ offsetX: x, offsetY: y }) => {
    const { cell, x: left, y: top, w, h } = computeImage(s);
    return x >= left && x < left + w && y >= top && y < top + h ? [s.t, Math.floor((y - top) / cell), Math.floor((x - left) / cell)] : null;
  };
  const onPointer = (event) => {
    if (!s.place) return;
    const to = findPatch(event), over = to ? null : findDial(s.place, event.offsetX, event.offsetY);
    if (to) moveTo(s, to);
    if (over !== s.hover) ((s.hover = over), requestFrame(s));
  };
  canvas.addEventListener("pointermove", onPointer);
  canvas.addEventListener("pointerdown", onPointer);
  canvas.addEventListener("pointerleave", () => s.hover !== null && ((s.hover = null), requestFrame(s)));
  canvas.addEventListener("keydown", (event) => {
    const by = MOVES[event.key];
    if (!by) return;
    event.preventDefault();
    moveTo(s, listPosition(s).map((value, k) => value + by[k] * (event.shiftKey ? 10 : 1)));
  });
  for (const k of [1, 2]) fields[k].addEventListener("change", () => {
    const value = Number(fields[k].value.replace(/[ ,_]/g, ""));
    if (fields[k].value.trim() && value >= 0) moveTo(s, listPosition(s).map((each, j) => (j === k ? value : each)));
    fields[k].value = s[KEYS[k]];
  });
  new ResizeObserver(() => s.data && ((s.stale = true), requestFrame(s))).observe(canvas);
  return s;
}

// Show the pairs of a part or of a moving knob. The patch keeps its place unless the address differs.
export default function show(place, data) {
  const s = place.root.__patch ?? build(place, data), { t, m, n } = data.start, given = `${m},${n}`;
  place.root.__patch = s;
  s.owner = place;
  place.positions = () => [s.m, s.n];
  const before = place.memory.patch;
  if (s.m === undefined && before && before.given === given) Object.assign(s, { m: before.m, n: before.n });
  else if (s.m === undefined || (given !== s.given && given !== s.reported && performance.now() - (s.reportedAt ?? -9e9) > 2000)) Object.assign(s, { m, n, reported: given });
  Object.assign(s, { t, given, data, dark: isDark(s.root), font: getComputedStyle(s.root).fontFamily, wheel: Array(256).fill("#888888"), stale: true });
  place.memory.patch = s;
  s.first = data.first.map((value) => value / TAU);
  s.rates = data.weights.map(() => 0);
  moveTo(s, listPosition(s), true);
  s.canvas.setAttribute("aria-label", data.title);
  requestFrame(s);
}

addStyle(`
.rv-patch {
  canvas { cursor: crosshair; }
  label { display: flex; gap: 6px; align-items: center; }
  input { font: inherit; color: inherit; width: 5em; min-height: 32px; box-sizing: border-box; padding: 0 8px; text-align: right; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; }
  @media (pointer: coarse), (max-width: 640px) { input { min-height: 40px; } }
}
`);
