// Keyboard control of a chart: arrows move along its points and announce them, + − and 0 zoom, Enter pins. As on a map,
// Ctrl or ⌘ with the wheel zooms about the pointer, two fingers zoom and move; a plain wheel or one finger scrolls the page.

import { computeGesture, findNumber } from "./chart_view.js";
import { element } from "./element.js";
import { text } from "./texts.js";

const WHEEL = 1.002;

// Find the two fingers' middle and distance, in pixels of the window.
const findMiddle = ([one, other]) => [(one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2];
const measureGap = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);

// `move(scale, from, to)` scales the visible ranges and moves what is at the point `from` to the point `to`.
function listenGestures(state) {
  const { node } = state, options = { passive: false };
  let before = null;
  const applyGesture = (scale, from, to) => {
    const home = state.message?.figure.layout, box = node.getBoundingClientRect(), unscaled = node.offsetWidth / box.width, toFigure = ([x, y]) => [(x - box.left) * unscaled, (y - box.top) * unscaled];
    const ranges = node._fullLayout?.xaxis && home && computeGesture(node._fullLayout, home, state.zoomed, scale, toFigure(from), toFigure(to));
    if (ranges) state.zoomTo(ranges);
  };
  node.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = [event.clientX, event.clientY];
    applyGesture(WHEEL ** (event.deltaY * (event.deltaMode ? 16 : 1)), at, at);
  }, options);
  const startPinch = ({ touches }) => (before = touches.length === 2 ? [...touches] : null);
  for (const kind of ["touchstart", "touchend", "touchcancel"]) node.addEventListener(kind, startPinch, { passive: true });
  node.addEventListener("touchmove", (event) => {
    const now = [...event.touches];
    if (!before || now.length !== 2) return;
    if (event.cancelable) event.preventDefault();
    state.pinched = performance.now();
    applyGesture(measureGap(before) / Math.max(measureGap(now), 1), findMiddle(before), findMiddle(now));
    before = now;
  }, options);
}

// Join the lines of a label by commas.
const joinLines = (label) => [...(label.querySelectorAll(".line").length ? label.querySelectorAll(".line") : [label])].map((line) => line.textContent.trim()).join(", ");

export function listenToKeys(state, zoomBy, reset) {
  const { node, root } = state;
  listenGestures(state);
  const announced = element("div", { className: "rv-point-announced", ariaLive: "polite" });
  root.append(announced);
  let at = null, announceTimer = 0;

  // Find the trace to walk along: a map, else the longest line with labels on its points.
  const findTrace = () => {
    const full = node._fullData ?? [];
    const map = full.findIndex((trace) => trace.visible === true && trace.z);
    if (map >= 0) return map;
    const lengths = full.map((trace, index) => [trace.visible === true && trace.hoverinfo !== "skip" ? (trace.x?.length ?? 0) : 0, index]);
    return lengths.sort((a, b) => b[0] - a[0])[0]?.[1] ?? -1;
  };

  // Hover as by mouse, so that the label has its heading; plotly.js shows it at most every 50 ms, then it is announced.
  function hoverPoint(trace) {
    const [x, y] = trace.z ? [trace.x?.[at[1]] ?? at[1], trace.y?.[at[0]] ?? at[0]] : [trace.x[at], trace.y[at]];
    const findAxis = (id) => node._fullLayout[`${id[0]}axis${id.slice(1)}`];
    window.Plotly.Fx.hover(node, { xval: findAxis(trace.xaxis).d2c(x), yval: findAxis(trace.yaxis).d2c(y) }, trace.xaxis + trace.yaxis);
    clearTimeout(announceTimer);
    announceTimer = setTimeout(() => {
      announced.textContent = [...node.querySelectorAll(".hoverlayer text")].map(joinLines).filter(Boolean).join(", ") || text("picture.no_point");
    }, 80);
  }

  function movePoint(across, along) {
    const trace = node._fullData?.[findTrace()];
    if (!trace) return;
    const clampIndex = (value, count) => Math.min(count - 1, Math.max(0, value));
    if (trace.z) {
      const [row, column] = at?.length ? at : [-along, -across], rows = trace.z.length, columns = trace.z[0].length;
      at = [clampIndex(row + along, rows), clampIndex(column + across, columns)];
    } else at = clampIndex((Number.isInteger(at) ? at : across > 0 ? -1 : trace.x.length) + across + along, trace.x.length);
    hoverPoint(trace);
  }

  node.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? 10 : 1;
    const keys = {
      ArrowRight: () => movePoint(far, 0), ArrowLeft: () => movePoint(-far, 0), ArrowDown: () => movePoint(0, far), ArrowUp: () => movePoint(0, -far),
      "+": () => zoomBy(0.5), "-": () => zoomBy(2), 0: reset, Escape: () => (window.Plotly.Fx.unhover(node), (at = null)),
      Enter: () => {
        const trace = node._fullData?.[findTrace()];
        if (at === null || !state.message.pins || !trace) return;
        state.place.send("pin", findNumber(state.message.pins, trace, at));
      },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  node.addEventListener("blur", () => ((at = null), clearTimeout(announceTimer), node._fullLayout && window.Plotly?.Fx.unhover(node)));
}
