// What the scenes of Learn have in common: shapes as SVG, and tracks with thumbs or a ruler as sliders. learn.js shows the scenes.

import { escapeHtml } from "./element.js";
import { DEGREES, TAU, clamp, fill, foldAngle, formatWhole, placeAngle, readKeyStep, setAttribute, withMinus } from "./circle.js";

export { DEGREES, TAU, clamp, fill, foldAngle, formatWhole, placeAngle, setAttribute, withMinus };

export const formatDegrees = (value, digits = 1) => `${withMinus(value.toFixed(digits))}°`;
export const setHtml = (node, html) => node.__html !== html && (node.innerHTML = node.__html = html);

// Change only those shapes of an SVG that differ from the last ones, and in place: new nodes would have to be styled and laid
// out again.
const spare = document.createElementNS("http://www.w3.org/2000/svg", "svg");
export function updateShapes(svg, inside) {
  const parts = inside.match(/<(\w+).*?<\/\1>/g) ?? [], before = svg.__parts ?? [], isNew = (part, i) => part !== before[i];
  spare.innerHTML = parts.filter(isNew).join("");
  const fresh = [...spare.children].values(), nodes = [...svg.children];
  parts.forEach((part, i) => {
    if (!isNew(part, i)) return;
    const { value } = fresh.next();
    if (i >= nodes.length) svg.append(value);
    else if (!copyShape(nodes[i], value)) nodes[i].replaceWith(value);
  });
  nodes.slice(parts.length).forEach((node) => node.remove());
  svg.__parts = parts;
}

// Give a shape the attributes and the text of another. Return false if it is of another kind or has more attributes.
function copyShape(node, fresh) {
  if (node.localName !== fresh.localName) return false;
  for (const { name, value } of fresh.attributes) setAttribute(node, name, value);
  if (node.attributes.length !== fresh.attributes.length) return false;
  if (node.textContent !== fresh.textContent) node.textContent = fresh.textContent;
  return true;
}

// --- Shapes: angles counterclockwise from 3 o'clock, in radians

const roundTo2 = (value) => Number(value.toFixed(2));
export const pointAt = (cx, cy, r, at) => [roundTo2(cx + r * Math.cos(at)), roundTo2(cy - r * Math.sin(at))];
export const makeShape = (name, values, inside = "") => `<${name}${Object.entries(values).map(([key, value]) => ` ${key}="${typeof value === "number" ? roundTo2(value) : value}"`).join("")}>${inside}</${name}>`;
export const drawText = (x, y, text, size = 15, fill = "var(--text)", more = {}) => makeShape("text", { x, y, "font-size": size, fill, ...more }, text);
export const middle = { "text-anchor": "middle" };
export const bold = { "font-weight": 600 };
export const end = { "text-anchor": "end" };
export const drawLine = (x1, y1, x2, y2, stroke = "var(--rule)", width = 1, more = {}) => makeShape("line", { x1, y1, x2, y2, stroke, "stroke-width": width, ...more });
export const drawRing = (cx, cy, r, stroke = "var(--rule)", width = 1, fill = "none") => makeShape("circle", { cx, cy, r, stroke, "stroke-width": width, fill });
export const drawArc = (cx, cy, r, from, way, more) => makeShape("path", { d: `M${pointAt(cx, cy, r, from)}A${roundTo2(r)} ${roundTo2(r)} 0 ${Math.abs(way) > Math.PI ? 1 : 0} ${way > 0 ? 0 : 1} ${pointAt(cx, cy, r, from + way)}`, fill: "none", ...more });
export const drawSector = (cx, cy, r, from, way, more) => way === 0 ? "" : makeShape("path", { d: `M${roundTo2(cx)} ${roundTo2(cy)}L${pointAt(cx, cy, r, from)}A${roundTo2(r)} ${roundTo2(r)} 0 ${Math.abs(way) > Math.PI ? 1 : 0} ${way > 0 ? 0 : 1} ${pointAt(cx, cy, r, from + way)}Z`, ...more });

export function drawHand(cx, cy, r, at, colour, width = 7, more = {}) {
  const [x, y] = pointAt(cx, cy, r, at);
  const knob = width > 4 ? drawRing(x, y, width * 1.3, "var(--background)", 3, colour) : "";
  return drawLine(cx, cy, x, y, colour, width, { "stroke-linecap": "round", ...more }) + knob;
}

const pen = document.createElement("canvas").getContext("2d");

// Write a text outside a circle, so that it does not cross the circle, within the width of the picture.
export function drawName(cx, cy, r, at, text, colour, size, width, short = text) {
  const [x, y] = pointAt(cx, cy, r, at), cos = Math.cos(at);
  pen.font = `600 ${size}px ${getComputedStyle(document.querySelector(".rv-learn")).fontFamily}`;
  const long = pen.measureText(text).width;
  const from = Math.abs(cos) < 0.35 ? x - long / 2 : cos > 0 ? x : x - long, left = clamp(from, 2, Math.max(2, width - long - 2));
  // A text that had to move far would cover its hand.
  if (Math.abs(left - from) > 8 && short !== text) return drawName(cx, cy, r, at, short, colour, size, width);
  return drawText(left, y + size / 3, escapeHtml(text), size, colour, bold);
}

// Compute the places of `count` clocks with `label` pixels below each and up to `gap` between them: [x, y, radius] each.
export function arrangeGrid(count, { w, h }, label = 0, top = 0, share = 0.42, gap = 0) {
  let best = { size: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns), size = Math.min(w / columns, (h - top) / rows - label);
    if (size > best.size && count % columns === 0) best = { size, columns, rows };
  }
  const { size, columns, rows } = best, step = Math.min(size + gap, w / columns), left = (w - columns * step) / 2, over = top + (h - top - rows * (size + label)) / 2;
  return Array.from({ length: count }, (_, i) => [left + ((i % columns) + 0.5) * step, over + Math.floor(i / columns) * (size + label) + size / 2, size * share]);
}

// Move from 0 to 1 and back while a share goes from 0 to 1, as a scene moves by itself in a video.
export const swing = (share) => (1 - Math.cos(TAU * share)) / 2;

// Make a scale of a chart, horizontal or vertical.
export const makeScale = (low, high, from, to) => (value) => from + ((value - low) / (high - low)) * (to - from);

// --- Tracks

const PAD = 26;

// Make one track. `row`: { low, high, log, ticks, thumbs: [{ name, label, chip, colour, least, most, step, far, whole }] } or
// { ruler: { name, label, most, far }, cells }. `host` reads a value, moves it and describes it in words.
export function makeTrack(row, host) {
  const root = document.createElement("div"), thumbs = row.ruler ? [row.ruler] : row.thumbs;
  root.className = row.ruler ? "rv-ruler" : "rv-track";
  const sliderHtml = ({ name, label, chip = "", colour = "query" }) => `<div class="rv-thumb" style="--colour: var(--${colour})" role="slider" tabindex="0" data-do="${name}" aria-label="${label}" aria-orientation="horizontal"><i>${chip}</i></div>`;
  root.innerHTML = `<svg aria-hidden="true"></svg>${thumbs.map(sliderHtml).join("")}`;
  const [svg, ...nodes] = root.children;
  const toShare = (value) => (row.log ? Math.log(value / row.low) / Math.log(row.high / row.low) : (value - row.low) / (row.high - row.low));
  const fromShare = (share) => (row.log ? row.low * (row.high / row.low) ** share : row.low + share * (row.high - row.low));
  // The width is read once after a change: reading it in each frame makes the browser lay out the page twice.
  let known = 0;
  new ResizeObserver(() => (known = 0)).observe(root);
  const readWidth = () => (known ||= root.clientWidth), readLength = () => readWidth() - 2 * PAD;
  const readCell = () => readLength() / (row.cells ?? row.high - row.low);
  const readShare = (x) => clamp((x - root.getBoundingClientRect().left - PAD) / readLength(), 0, 1);
  let drag = null;

  root.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const { clientX } = event, direct = nodes.indexOf(event.target.closest(".rv-thumb"));
    const findNearest = () => thumbs.map(({ name }, i) => [Math.abs(toShare(host.read(name)) - readShare(clientX)), i]).sort(([a], [b]) => a - b)[0][1];
    const index = row.ruler ? 0 : direct >= 0 ? direct : findNearest(), { name } = thumbs[index];
    event.preventDefault(); // selects no text
    nodes[index].focus({ preventScroll: true });
    root.setPointerCapture(event.pointerId);
    drag = { name, index, x: clientX, value: host.read(name), jumps: direct < 0 && !row.ruler };
    root.dataset.held = name;
    if (drag.jumps) dragTo(event);
  });
  const dragTo = ({ clientX }) => {
    if (!drag) return;
    const value = row.ruler ? drag.value - (clientX - drag.x) / readCell() : drag.jumps ? fromShare(readShare(clientX)) : fromShare(toShare(drag.value) + (clientX - drag.x) / readLength());
    host.move(drag.name, value, thumbs[drag.index].whole ? "step" : "free");
  };
  root.addEventListener("pointermove", dragTo);
  for (const kind of ["pointerup", "pointercancel"]) root.addEventListener(kind, () => {
    if (!drag) return;
    const { name } = drag;
    drag = null;
    delete root.dataset.held;
    host.move(name, host.read(name), "step");
  });
  nodes.forEach((node, i) => node.addEventListener("keydown", (event) => {
    const { name, far = 5, step = 1 } = thumbs[i], by = readKeyStep(event, far);
    if (!by) return;
    event.preventDefault();
    const value = host.read(name);
    host.move(name, row.log ? clamp(value * 10 ** (by / 20), row.low, row.high) : value + by * step, "step");
  }));

  // Write the ticks and put the thumbs where their values are.
  return { root, show() {
    const wide = readWidth();
    if (!wide) return;
    setAttribute(svg, "width", wide);
    if (row.ruler) {
      const first = host.read(row.ruler.name), marks = [];
      for (let at = Math.max(0, Math.floor(first) - 1); at <= first + row.cells + 1; at++) {
        const x = PAD + (at - first) * readCell(), colour = host.nameColour?.(at) ?? "plain";
        if (x > 6 && x < wide - 6) marks.push(drawLine(x, 0, x, 7, `var(--${colour})`), drawText(x, 24, at, 14, `var(--${colour})`, { ...middle, ...(colour === "plain" ? {} : bold) }));
      }
      setHtml(svg, marks.join(""));
    } else {
      const marks = row.ticks.filter(([, , narrow]) => wide > 480 || narrow !== false);
      setHtml(svg, drawLine(4, 24, wide - 4, 24, "var(--rule)", 2) + marks.map(([value, text]) => { const x = PAD + toShare(value) * readLength(); return drawLine(x, 24, x, 31) + drawText(x, 50, text, 14, "var(--plain)", middle); }).join(""));
    }
    thumbs.forEach(({ name, least, most }, i) => {
      const value = host.read(name), node = nodes[i];
      if (!row.ruler) node.style.transform = `translateX(${PAD + toShare(value) * readLength()}px)`;
      setAttribute(node, "aria-valuenow", Number(value.toPrecision(6)));
      setAttribute(node, "aria-valuemin", least ?? row.low ?? 0);
      setAttribute(node, "aria-valuemax", most ?? row.high);
      setAttribute(node, "aria-valuetext", host.describe(name));
    });
  } };
}
