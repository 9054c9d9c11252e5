// The pairs of one patch as clocks; the pointer or the arrow keys move the patch over its image, all in the browser.
// picture.js requests it, rope_viz/figures/patch.py packs it.

import { TAU, addStyle, arrange, begin, dark, dialAt, digits, fill, frame, hand, tokens, whole, write } from "./dials.js";

const MOVES = { ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], ArrowLeft: [0, 0, -1], ArrowRight: [0, 0, 1] };
const KEYS = ["t", "m", "n"], ROLES = ["time", "row", "column"];

const at = (s) => KEYS.map((key) => s[key]);
const angle = (s, i) => s.data.weights[i].reduce((sum, each, k) => sum + each * s[KEYS[k]], 0);
const turn = (all) => all / TAU - Math.floor(all / TAU);

// The image, as large as the space next to the dials allows.
function image(s) {
  const { aside: a } = s.place, [, rows, columns] = s.data.sides, cell = Math.min(a.w / columns, a.h / rows);
  return { cell, x: a.x + (a.w - cell * columns) / 2, y: a.y + (s.place.narrow ? (a.h - cell * rows) / 2 : 0), w: cell * columns, h: cell * rows };
}

function paint(s) {
  const x = begin(s), { data, c, place } = s;
  place.dials.forEach((dial, i) => {
    hand(x, dial, turn(angle(s, i)), 0.86, c.bands[data.bands[i]], Math.max(1.6, place.size / 22));
    if (i === s.hover) frame(x, s, dial, true);
  });
  const [, rows, columns] = data.sides, { cell, x: left, y: top, w, h } = image(s);
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
    const text = fill(data.texts[role], { at: whole(s[KEYS[k]]) });
    write(x, text, where, y, 14, c[ROLES[k]], "left", "600");
    where += x.measureText(text).width + 12;
  }
  if (!place.narrow) write(x, fill(data.texts.image, { rows: whole(rows), columns: whole(columns), unit: data.units }), place.aside.x, top + h + 18, 12, c.plain);
}

function wake(s) {
  s.request ||= requestAnimationFrame(() => {
    s.request = 0;
    if (!s.root.isConnected || !s.data) return;
    if (s.stale) arrange(s);
    s.stale = false;
    paint(s);
    inspect(s);
    Object.assign(s.root.dataset, { row: s.m, column: s.n, frame: s.t, drawn: (s.frames = (s.frames ?? 0) + 1) });
  });
}

// The numbers of one pair: radians per step and wavelength along each of its axes, and its angle.
function describe(s, i) {
  const { texts, weights, names, bands } = s.data;
  const rates = ROLES.map((role, k) => [role, weights[i][k]]).filter(([, each]) => each)
    .map(([role, each]) => fill(texts[`per_${role}`], { radians: digits(each), length: tokens(Math.round(TAU / Math.abs(each))) }));
  return fill(texts.pair, { pair: i, axis: names[bands[i]], rates: rates.join(" · ") || texts.zero, turns: (angle(s, i) / TAU).toFixed(3) });
}

// The line below describes the hovered pair, else what the user can do.
function inspect(s) {
  s.ui.now.textContent = s.hover === null ? s.data.texts.help : describe(s, s.hover);
  for (const k of [1, 2]) if (document.activeElement !== s.ui.fields[k]) s.ui.fields[k].value = s[KEYS[k]];
}

// At rest: announce the state to screen readers and record it in the link.
function tell(s) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => {
    s.ui.announced.textContent = fill(s.data.texts.status, { row: whole(s.m), column: whole(s.n) });
    if (s.reported === `${s.m},${s.n}`) return;
    s.reported = `${s.m},${s.n}`;
    s.reportedAt = performance.now();
    s.owner.tell("at", { m: s.m, n: s.n, step: s.owner.data.step });
  }, 300);
}

function go(s, place, quiet = false) {
  const before = at(s).join();
  KEYS.forEach((key, k) => (s[key] = Math.min(Math.max(0, Math.round(place[k])), s.data.sides[k] - 1)));
  if (at(s).join() === before) return;
  wake(s);
  if (!quiet) tell(s);
}

function build(place, data) {
  const { root } = place;
  root.innerHTML = `<canvas tabindex="0" role="img"></canvas><div class="rv-now"></div><div class="rv-tools">
    <label>${data.texts.row_field} <input type="text" inputmode="numeric" autocomplete="off" data-k="1"></label><label>${data.texts.column_field} <input type="text" inputmode="numeric" autocomplete="off" data-k="2"></label>
    <div class="rv-space"></div></div><div class="rv-announced" aria-live="polite"></div>`;
  const canvas = root.querySelector("canvas"), fields = [null, ...root.querySelectorAll("input")];
  const s = { root, canvas, ctx: canvas.getContext("2d"), owner: place, hover: null, ui: { now: root.querySelector(".rv-now"), announced: root.querySelector(".rv-announced"), fields } };
  if (!data.alone) import(new URL("tools.js", import.meta.url).href).then(({ fill }) => fill(root.querySelector(".rv-tools"), place));
  const point = ({ offsetX: x, offsetY: y }) => {
    const { cell, x: left, y: top, w, h } = image(s);
    return x >= left && x < left + w && y >= top && y < top + h ? [s.t, Math.floor((y - top) / cell), Math.floor((x - left) / cell)] : null;
  };
  const moved = (event) => {
    if (!s.place) return;
    const to = point(event), over = to ? null : dialAt(s.place, event.offsetX, event.offsetY);
    if (to) go(s, to);
    if (over !== s.hover) ((s.hover = over), wake(s));
  };
  canvas.addEventListener("pointermove", moved);
  canvas.addEventListener("pointerdown", moved);
  canvas.addEventListener("pointerleave", () => s.hover !== null && ((s.hover = null), wake(s)));
  canvas.addEventListener("keydown", (event) => {
    const by = MOVES[event.key];
    if (!by) return;
    event.preventDefault();
    go(s, at(s).map((value, k) => value + by[k] * (event.shiftKey ? 10 : 1)));
  });
  for (const k of [1, 2]) fields[k].addEventListener("change", () => {
    const value = Number(fields[k].value.replace(/[ ,_]/g, ""));
    if (fields[k].value.trim() && value >= 0) go(s, at(s).map((each, j) => (j === k ? value : each)));
    fields[k].value = s[KEYS[k]];
  });
  new ResizeObserver(() => s.data && ((s.stale = true), wake(s))).observe(canvas);
  return s;
}

// Show the pairs of a part or of a moving knob. The patch keeps its place unless the address differs.
export default function show(place, data) {
  const s = place.root.__patch ?? build(place, data), { t, m, n } = data.start, given = `${m},${n}`;
  place.root.__patch = s;
  s.owner = place;
  const ours = place.memory.patch;
  if (s.m === undefined && ours && ours.given === given) Object.assign(s, { m: ours.m, n: ours.n });
  else if (s.m === undefined || (given !== s.given && given !== s.reported && performance.now() - (s.reportedAt ?? -9e9) > 2000)) Object.assign(s, { m, n, reported: given });
  Object.assign(s, { t, given, data, dark: dark(s.root), font: getComputedStyle(s.root).fontFamily, wheel: Array(256).fill("#888888"), stale: true });
  place.memory.patch = s;
  s.first = data.first.map((value) => value / TAU);
  s.rates = data.weights.map(() => 0);
  go(s, at(s), true);
  s.canvas.setAttribute("aria-label", data.title);
  wake(s);
}

addStyle(`
.rv-patch {
  canvas { cursor: crosshair; }
  label { display: flex; gap: 6px; align-items: center; }
  input { font: inherit; color: inherit; width: 5em; min-height: 32px; box-sizing: border-box; padding: 0 8px; text-align: right; background: transparent; border: 1px solid var(--st-border-color); border-radius: 6px; }
  @media (pointer: coarse), (max-width: 640px) { input { min-height: 40px; } }
}
`);
