// A Plotly chart that keeps its zoom and its node when the data change, and exports itself in the browser.
// picture.js requests the figure, rope_viz/picture/wire_format.py packs it.

import { applyZoom, computePlotHeight, computeZoom, findNumber, keepRanges, keepTicks, moveBandNames, moveBands, moveLineNames } from "./chart_view.js";
import { addStyle, element, isDark } from "./element.js";
import { text } from "./texts.js";
import { fillToolbar } from "./tools.js";

let plotly;

// Load the library while the first figure is being requested.
export const prepare = () => loadPlotly();

function loadPlotly() {
  return (plotly ??= waitForClocks().then(() => new Promise((resolve, reject) => {
    if (window.Plotly) return resolve(window.Plotly);
    const src = new URL("plotly.min.js", import.meta.url).href, preloaded = document.querySelector(`script[src="${src}"]`); // web/inline/preload.js
    const script = preloaded ?? Object.assign(document.createElement("script"), { src });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => (script.remove(), (plotly = null), reject(new Error(text("picture.no_plotly")))));
    if (!preloaded) document.head.append(script);
  })));
}

// plotly.js blocks the browser for most of a second when it starts: let clocks on the page draw first, for up to two seconds.
async function waitForClocks() {
  for (let tries = 0; tries < 40 && document.querySelector(".rv-clocks:not([data-drawn])"); tries++) await new Promise((resolve) => setTimeout(resolve, 50));
}

// --- Light and dark: figures use the light palette; each of its colours has one dark variant.

function recolour(value, twins) {
  if (typeof value === "string") {
    if (twins[value.toUpperCase()]) return twins[value.toUpperCase()];
    return value.includes("#") ? value.replace(/#[0-9A-Fa-f]{6}/g, (hex) => twins[hex.toUpperCase()] ?? hex) : value;
  }
  if (Array.isArray(value)) return ArrayBuffer.isView(value[0]) ? value : value.map((item) => recolour(item, twins));
  if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, recolour(item, twins)]));
  }
  return value;
}

// --- The chart

function buildChart(place) {
  const { root } = place;
  root.innerHTML = `<div class="rv-plot" role="img" tabindex="0" aria-description="${text("picture.zoom_help")}"><p class="rv-coming">${text("loading_picture")}</p></div><div class="rv-tools" role="toolbar" aria-label="${text("picture.tools")}"><button type="button" data-zoom="reset" title="${text("picture.reset_help")}. ${text("picture.zoom_help")}" hidden>${text("picture.reset")}</button><div class="rv-space"></div></div>`;
  place.showPlaceholder?.();
  const node = root.querySelector(".rv-plot");
  const state = { root, node, place, reset: root.querySelector("[data-zoom=reset]"), zoomed: place.memory.zoomed ?? {}, variant: place.memory.variant, queue: Promise.resolve() };
  state.zoomTo = (ranges) => {
    state.zoomed = ranges;
    schedule(state);
    sendView(state);
  };
  // A widget has no files to offer, and brings the script.
  if (place.makeAddress) fillToolbar(root.querySelector(".rv-tools"), place);
  Promise.resolve(place.input ?? import(new URL("chart_input.js", import.meta.url).href)).then(({ listenToKeys }) => listenToKeys(state, zoomBy, () => state.zoomTo({})));
  const zoomBy = (scale) => {
    if (!node._fullLayout?.xaxis) return;
    state.zoomTo({ ...state.zoomed, ...computeZoom(node._fullLayout, state.drawn.data, scale) });
  };
  // The button hides once the whole figure is shown, so move the keyboard's focus to the figure.
  state.reset.addEventListener("click", () => (state.zoomTo({}), node.focus({ preventScroll: true })));
  new ResizeObserver(() => (state.drawn || state.hasNoWidth) && schedule(state)).observe(node);
  return state;
}

// The user's zoom is stored here by axis and applied to every new figure, because Plotly keeps only zooms by mouse.
function rememberView(state, event) {
  const axes = Object.keys(event).map((key) => /^([xy]axis\d*)\.range/.exec(key)?.[1]).filter(Boolean);
  state.zoomTo({ ...state.zoomed, ...Object.fromEntries(axes.map((axis) => [axis, state.node._fullLayout[axis].range.map(Number)])) });
}

const showReset = ({ reset, zoomed }) => (reset.hidden = !Object.keys(zoomed).length);

// A figure that is rendered again for its visible range has that range in its address.
function sendView(state) {
  const { place, message, zoomed } = state;
  showReset(state);
  Object.assign(place.memory, { zoomed, variant: state.variant });
  if (!message.zooms) return;
  clearTimeout(state.timer);
  state.timer = setTimeout(() => {
    place.memory.view = zoomed.xaxis ?? null;
    place.requestPicture();
  }, 120);
}

// Drop a zoom that shows nothing of a new figure's range.
function layOutZoom(state, layout) {
  for (const [axis, range] of Object.entries(state.zoomed)) {
    const home = layout[axis]?.range;
    if (home && (Math.min(...range) >= Math.max(...home) || Math.max(...range) <= Math.min(...home))) delete state.zoomed[axis];
  }
  return moveBandNames(applyZoom(layout, state.zoomed, state.message.lengths), state.zoomed);
}

const isNarrow = (width) => width < 560;

// layout.meta.narrow holds a figure's changes for a narrow screen: its height, shapes, and properties of its axes.
function overlay(layout, changes) {
  const out = { ...layout };
  for (const [key, value] of Object.entries(changes)) out[key] = typeof value === "object" && !Array.isArray(value) ? { ...layout[key], ...value } : value;
  return out;
}

function fitNarrow(wide, width, traces) {
  if (!isNarrow(width)) return wide;
  const layout = overlay(wide, wide.meta?.narrow ?? {});
  // Labels at the ends of lines have no room next to a narrow plot and would cover curves inside it: use a legend below.
  const names = new Set(traces.flatMap((trace) => [trace.name, trace.legendgroup]));
  const ends = (layout.annotations ?? []).filter((note) => note.name === "end" && names.has(note.text)), below = ends.length > 0;
  const annotations = (layout.annotations ?? []).filter((note) => !ends.includes(note)).map((note) => (note.name === "end" ? { ...note, xanchor: "right", yshift: (note.yshift ?? 0) + 10, xshift: -2, bgcolor: `${layout.paper_bgcolor}B0` } : note)).map((note) => (note.name === "panel" ? { ...note, font: { ...note.font, size: 11 } } : note));
  const usual = { l: Math.min(wide.margin.l, 58), r: layout.yaxis2 && !wide.meta?.linked ? 54 : Math.min(wide.margin.r, 14) };
  const margin = { ...wide.margin, ...usual, ...wide.meta?.narrow?.margin };
  const legend = { orientation: "h", x: 0, y: -0.2, yanchor: "top", itemclick: false, itemdoubleclick: false, font: { size: 12 }, ...wide.meta?.narrow?.legend };
  if (below) margin.b = (margin.b ?? 48) + 20 * Math.ceil(ends.length / 3);
  const scale = computePlotHeight(wide) / computePlotHeight({ ...layout, margin });
  const pixels = (width - margin.l - margin.r) / Math.abs(layout.xaxis.range?.[1] - layout.xaxis.range?.[0]);
  // Where a band's name has no room, its count stays.
  const shortenLabel = ({ label, x0, x1 }) => label && ((x1 - x0) * pixels < 6.5 * label.text.length ? { ...label, text: label.text.split(" ").at(-1) } : label);
  const shapes = moveBands(layout.shapes, scale, shortenLabel);
  return { ...layout, shapes, annotations, margin, ...(below ? { showlegend: true, legend } : {}), font: { ...layout.font, size: 11 }, dragmode: false };
}

// Keep the label of a vertical line inside the figure: shift it if it would be cut off or overlap another.
function anchorLabels(layout, width) {
  const { range, type } = layout.xaxis, wide = width - (layout.margin?.l ?? 60) - (layout.margin?.r ?? 20);
  if (!range || !layout.shapes) return layout;
  const isVerticalLine = (shape) => shape.type === "line" && shape.x0 === shape.x1 && shape.label?.text && (shape.xref ?? "x") === "x";
  const labels = layout.shapes.filter(isVerticalLine).map((shape) => {
    const at = (wide * ((type === "log" ? Math.log10(shape.x0) : shape.x0) - range[0])) / (range[1] - range[0]), half = 3.6 * shape.label.text.length;
    return { shape, at, half, xanchor: at < half ? "left" : wide - at < half ? "right" : "center" };
  }).sort((one, other) => one.at - other.at);
  labels.forEach((label, index) => {
    const next = labels[index + 1];
    if (!next || next.at - label.at > label.half + next.half + 4) return;
    if (label.at > 2 * label.half) label.xanchor = "right";
    if (wide - next.at > 2 * next.half) next.xanchor = "left";
  });
  const found = new Map(labels.map(({ shape, xanchor }) => [shape, { ...shape, label: { ...shape.label, xanchor } }]));
  return { ...layout, shapes: layout.shapes.map((shape) => found.get(shape) ?? shape) };
}

// The legend lists the traces that had labels at their ends; of a band, a group of two traces, only the main one.
function nameTraces(figure, layout) {
  if (!layout.showlegend || figure.layout.showlegend) return figure.data;
  const shown = new Map(), { data, layout: { annotations } } = figure;
  for (const { text } of annotations.filter((note) => note.name === "end")) {
    const its = data.filter((trace) => trace.name === text || trace.legendgroup === text);
    if (its.length) shown.set(its.find((trace) => trace.hoverinfo !== "skip") ?? its[0], text);
  }
  return data.map((trace) => ({ ...trace, name: shown.get(trace) ?? trace.name, showlegend: shown.has(trace) }));
}

function schedule(state) {
  if (state.waiting) return state.queue;
  state.waiting = true;
  state.root.dataset.waiting = "yes";
  // A failed drawing must not block the next ones.
  return (state.queue = state.queue.catch(() => {}).then(async () => {
    state.waiting = false;
    try {
      await drawChart(state);
    } finally {
      if (!state.waiting) delete state.root.dataset.waiting;
    }
  }));
}

async function drawChart(state) {
  const { node, root } = state;
  const Plotly = await loadPlotly();
  // A page that is being left has no width, to which Plotly cannot scale axes.
  state.hasNoWidth = !node.clientWidth;
  if (state.hasNoWidth) return;
  const { message } = state;
  const style = getComputedStyle(root);
  const dark = isDark(root);
  const figure = dark ? recolour(message.figure, message.twins) : message.figure;
  const whole = fitNarrow(layOutZoom(state, { ...figure.layout, autosize: true }), node.clientWidth, figure.data);
  const layout = anchorLabels(moveLineNames(whole, figure.data, state.zoomed), node.clientWidth);
  const data = nameTraces(figure, layout);
  layout.font = { ...layout.font, family: style.getPropertyValue("--st-font").trim() || "sans-serif" };
  if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
  if (message.moving) keepRanges(layout, state.drawn?.layout);
  if (message.moving && state.labelsFit) keepTicks(layout, node._fullLayout);
  node.style.height = `${layout.height}px`;
  state.drawn = { data, layout };
  node.querySelector(".rv-coming")?.remove();
  // When a map becomes narrow, Plotly keeps the margins of its former colour bar, so start with an empty plot.
  if (state.narrow !== undefined && state.narrow !== isNarrow(node.clientWidth)) {
    Plotly.purge(node);
    state.listening = false;
  }
  state.narrow = isNarrow(node.clientWidth);
  const start = performance.now();
  await Plotly.react(node, data, layout, { displayModeBar: false, displaylogo: false, showSendToCloud: false, doubleClick: false, showTips: false, responsive: false });
  listenToPlotly(state);
  showReset(state);
  if (!message.moving) state.labelsFit = !node.querySelector(".xtick text[style*='display: none'], .ytick text[style*='display: none']");
  root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
  root.dataset.ms = String(Math.round(performance.now() - start));
  root.dataset.theme = dark ? "dark" : "light";
}

function listenToPlotly(state) {
  if (state.listening) return;
  state.listening = true;
  const { node } = state;
  // Plotly takes two fingers that touch within a moment for a double click when they are lifted.
  node.on("plotly_doubleclick", () => performance.now() - (state.pinched ?? -Infinity) > 500 && state.zoomTo({}));
  node.on("plotly_relayout", (event) => rememberView(state, event));
  node.on("plotly_hover", (event) => frameLinkedCells(state, event));
  node.on("plotly_unhover", () => removeFrames(state));
  node.on("plotly_click", (event) => {
    const { pins } = state.message, [{ x, y, fullData, pointNumber }] = event.points;
    if (pins) state.place.send("pin", pins === "cell" ? findNumber(pins, fullData, pointNumber) : Math.round(pins === "y" ? y : x));
  });
}

// In a figure of several maps, frame the hovered cell in all others and show its value.
function frameLinkedCells(state, event) {
  removeFrames(state);
  const full = state.node._fullLayout;
  const { curveNumber, pointNumber } = event.points[0];
  if (!full.meta?.linked || !Array.isArray(pointNumber)) return;
  const [row, column] = pointNumber;
  state.drawn.data.forEach((trace, index) => {
    const value = trace.z?.[row]?.[column];
    if (index === curveNumber || !Number.isFinite(value)) return;
    const [x, y] = [full[trace.xaxis.replace("x", "xaxis")], full[trace.yaxis.replace("y", "yaxis")]];
    const [width, height] = [Math.abs(x.l2p(1) - x.l2p(0)), Math.abs(y.l2p(1) - y.l2p(0))];
    const mark = element("div", { className: "rv-mark" }, element("span", { textContent: Number(value.toPrecision(3)) }));
    const [left, top] = [x._offset + x.l2p(column) - width / 2, y._offset + y.l2p(row) - height / 2];
    mark.style.cssText = `left:${left}px;top:${top}px;width:${width}px;height:${height}px`;
    state.node.append(mark);
  });
}

function removeFrames(state) {
  for (const mark of state.node.querySelectorAll(".rv-mark")) mark.remove();
}

// Show a figure; the promise resolves once it is drawn.
export default function showChart(place, message) {
  const state = (place.root.__chart ??= buildChart(place));
  state.message = message;
  // Another figure in the same place has other axes, so its zoom does not apply.
  if (state.variant !== undefined && state.variant !== message.variant) {
    const hadView = place.memory.view;
    state.zoomed = {};
    Object.assign(place.memory, { zoomed: {}, view: null });
    if (hadView) queueMicrotask(() => place.requestPicture());
  }
  state.variant = message.variant;
  state.node.style.height ||= `${message.figure.layout.height}px`;
  state.node.setAttribute("aria-label", message.title);
  return schedule(state);
}

addStyle(`
.rv-plot { width: 100%; position: relative; touch-action: pan-x pan-y; }
.rv-mark { position: absolute; pointer-events: none; box-sizing: border-box; border: 2px solid var(--st-text-color); }
.rv-mark span {
  position: absolute; left: 50%; bottom: calc(100% + 4px); transform: translateX(-50%); padding: 1px 6px; border-radius: 4px; font-size: 12px;
  font-variant-numeric: tabular-nums; color: var(--st-background-color); background: var(--st-text-color);
}
.rv-plot .modebar { display: none; }
.rv-plot:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.rv-point-announced { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`);
