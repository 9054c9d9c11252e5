// The visible part of a chart: ticks for the zoomed range, names of lines that stay visible, where a button zooms to, and what stays while a knob moves.

const FEWEST = 3, MOST = 8;

const isLog = (axis) => axis.type === "log";
const toCoordinate = (axis, value) => (isLog(axis) ? (value > 0 ? Math.log10(value) : NaN) : Number(value));
const sortEnds = ([a, b]) => (a < b ? [a, b] : [b, a]);
const toShare = (axis, at) => (at - axis.range[0]) / (axis.range[1] - axis.range[0]);

// Find the number that a click on a point sets: its place on an axis, or that of its cell in a map, column by column.
export function findNumber(pins, trace, at) {
  if (pins === "cell") return at[1] * trace.z.length + at[0];
  if (!trace.z) return Math.round(trace[pins][at]);
  return Math.round(pins === "y" ? trace.y?.[at[0]] ?? at[0] : trace.x[at[1]]);
}

// --- Ticks

const groupDigits = (value, decimals = 0) => value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace("-", "−");

// 4096 is 4k, 1048576 is 1M, as by `format_tokens` in rope_viz/texts/numbers.py.
function formatTokens(value) {
  for (const [unit, size] of [["M", 1 << 20], ["k", 1 << 10]]) if (value >= size && value % size === 0) return `${value / size}${unit}`;
  return value >= 1000 ? groupDigits(value) : String(Number(value.toPrecision(4)));
}

const listMultiples = (low, high, step) => {
  const out = [];
  for (let at = Math.ceil(low / step - 1e-9); at <= Math.floor(high / step + 1e-9); at++) out.push(at * step);
  return out;
};

const makeTicks = (values, format) => ({ tickmode: "array", tickvals: values, ticktext: values.map(format) });

function makeRoundTicks(low, high) {
  const least = (high - low) / MOST, power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= least * (1 - 1e-9));
  const decimals = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return makeTicks(listMultiples(low, high, step).map((value) => Number(value.toFixed(decimals))), (value) => groupDigits(value, decimals));
}

// As `length_ticks` in rope_viz/figures/theme.py.
function makeLengthTicks(low, high) {
  const step = 2 ** Math.ceil(Math.log2((high - low) / MOST));
  return makeTicks(listMultiples(low, high, high - low >= 2 ? Math.max(step, 1) : step), formatTokens);
}

function makeLogTicks(low, high, isLength) {
  const [first, last] = sortEnds([low, high].map((end) => 10 ** end)), values = [];
  if (isLength) for (let power = Math.ceil(Math.log2(first) - 1e-9); 2 ** power <= last * (1 + 1e-9); power++) values.push(2 ** power);
  else for (let power = Math.floor(low); power <= high; power++) values.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)).filter((value) => value >= first && value <= last));
  const thinned = values.filter((_, index) => index % Math.ceil(values.length / MOST) === 0);
  if (values.length < FEWEST) return (isLength ? makeLengthTicks : makeRoundTicks)(first, last);
  return isLength ? makeTicks(thinned, formatTokens) : makeTicks(thinned, (value) => (value >= 1e-3 && value < 1e6 ? groupDigits(value, Math.max(0, -Math.floor(Math.log10(value)))) : value.toExponential().replace("e+", "·10^").replace("e-", "·10^−")));
}

const isNumber = (label) => /^([−-]?[\d.,]+[kM]?|1\/\d+|[×÷][\d.,]+|10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/u.test(label);

// Keep the axis's own ticks while at least three are visible; names are not replaced by numbers.
function makeZoomedTicks(axis, isLength) {
  const own = Array.from(axis.tickvals ?? []), texts = Array.from(axis.ticktext ?? []), [low, high] = sortEnds(axis.range);
  if (axis.showticklabels === false || axis.type === "category" || !texts.every((label) => isNumber(String(label)))) return {};
  if (!own.length && !axis.dtick && !isLength) return {};
  const visible = own.map((value) => toCoordinate(axis, value)).filter((at) => at >= low && at <= high);
  if (visible.length >= FEWEST) return {};
  const found = isLog(axis) ? makeLogTicks(low, high, isLength) : isLength ? makeLengthTicks(low, high) : makeRoundTicks(low, high);
  if (texts.some((label) => /^[×÷]/.test(label))) found.ticktext = found.tickvals.map((value) => (value === 1 ? "1" : value > 1 ? `×${Number(value.toPrecision(4))}` : `÷${Number((1 / value).toPrecision(4))}`));
  return found;
}

// Apply the user's zoom {axis: range} to a layout. An axis that is tied to a zoomed one follows it.
export function applyZoom(layout, zoomed, lengths = []) {
  const out = { ...layout };
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    const tied = layout[name].matches?.replace(/^([xy])/, "$1axis"), range = zoomed[name] ?? zoomed[tied];
    if (!range) continue;
    const axis = { ...layout[name], range: range.slice() };
    out[name] = { ...axis, ...makeZoomedTicks(axis, lengths.includes(name)) };
  }
  return out;
}

// --- Names of lines

const findAxis = (layout, id, letter) => layout[(id ?? letter).replace(/^([xy])/, "$1axis")];

// Visit the visible part of every segment of a line: (x, y) of both ends, in coordinates.
function visitVisible(trace, xAxis, yAxis, visit) {
  const [left, right] = sortEnds(xAxis.range), [bottom, top] = sortEnds(yAxis.range);
  let before = null;
  for (let index = 0; index < trace.x.length; index++) {
    const point = [toCoordinate(xAxis, trace.x[index]), toCoordinate(yAxis, trace.y[index] ?? NaN)];
    const [from, to] = [before, point];
    before = point.every(Number.isFinite) ? point : null;
    if (!before) continue;
    if (!from) {
      if (to[0] >= left && to[0] <= right && to[1] >= bottom && to[1] <= top) visit(to, to);
      continue;
    }
    let [enter, leave] = [0, 1];
    for (const [side, low, high] of [[0, left, right], [1, bottom, top]]) {
      const way = to[side] - from[side];
      if (!way) {
        if (from[side] < low || from[side] > high) leave = -1;
        continue;
      }
      const [one, other] = sortEnds([(low - from[side]) / way, (high - from[side]) / way]);
      [enter, leave] = [Math.max(enter, one), Math.min(leave, other)];
    }
    if (enter > leave) continue;
    const toPoint = (share) => [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
    visit(toPoint(enter), toPoint(leave));
  }
}

const isLine = (trace) => trace.type === "scatter" && (trace.mode ?? "lines").includes("lines") && trace.x?.length && trace.y?.length && (trace.line?.width ?? 2) > 0;

// Find the line that a note names by their common colour: no two lines of a figure share one.
const findLine = (note, data) => data.findLast((trace) => isLine(trace) && trace.line?.color === note.font?.color);

// Move the names of lines to the last visible point of each line, and those that would overlap apart.
export function moveLineNames(layout, data, zoomed) {
  if (!Object.keys(zoomed).length) return layout;
  const height = layout.height - (layout.margin?.t ?? 0) - (layout.margin?.b ?? 0), ends = [];
  const annotations = (layout.annotations ?? []).flatMap((note) => {
    const trace = ["end", "line", "peak"].includes(note.name) && findLine(note, data);
    if (!trace) return [note];
    const [x, y] = [findAxis(layout, trace.xaxis, "x"), findAxis(layout, trace.yaxis, "y")];
    const isInside = [[x, note.x], [y, note.y]].every(([axis, at]) => toShare(axis, at) >= 0 && toShare(axis, at) <= 1);
    if (isInside && note.name !== "end") return [note];
    let last = null;
    visitVisible(trace, x, y, (...points) => points.forEach((point) => (!last || toShare(x, point[0]) > toShare(x, last[0])) && (last = point)));
    if (!last) return [];
    const isAtEdge = note.name === "end" && toShare(x, last[0]) > 0.995;
    const place = isAtEdge ? { xanchor: "left", xshift: 6 } : { xanchor: toShare(x, last[0]) > 0.3 ? "right" : "left", xshift: toShare(x, last[0]) > 0.3 ? -4 : 4, bgcolor: `${layout.paper_bgcolor}B0` };
    const name = note.text.replace(/ [×÷][\d.]+$/, ""); // the ratio belongs to the point that the note has left
    const moved = { ...note, ...place, text: name, yanchor: "middle", xref: trace.xaxis ?? "x", yref: trace.yaxis ?? "y", x: last[0], y: last[1] };
    ends.push({ moved, at: height * toShare(y, last[1]) });
    return [moved];
  });
  // From the bottom up, at least 16 pixels apart; then from the top down, so that none leaves the plot.
  ends.sort((one, other) => one.at - other.at);
  let below = -Infinity, above = height + 8;
  for (const end of ends) below = end.to = Math.max(end.at, below + 16, 8);
  for (const end of ends.reverse()) {
    above = end.to = Math.min(end.to, above - 16);
    end.moved.yshift = end.to - end.at;
  }
  return { ...layout, annotations };
}

// Move the names of the bands to the middle of their visible part.
export function moveBandNames(layout, zoomed) {
  if (!zoomed.xaxis || !layout.shapes) return layout;
  const [left, right] = sortEnds(layout.xaxis.range);
  const shapes = layout.shapes.flatMap((shape) => {
    if (shape.type !== "rect" || !shape.label?.text || (shape.xref ?? "x") !== "x" || isLog(layout.xaxis)) return [shape];
    const [x0, x1] = [Math.max(shape.x0, left), Math.min(shape.x1, right)];
    return x0 < x1 ? [{ ...shape, x0, x1 }] : [];
  });
  return { ...layout, shapes };
}

// Compute the height of a layout's plot in pixels.
export const computePlotHeight = ({ height, margin: { t, b } }) => height - t - b;

// Keep the bars of bands as many pixels above a plot whose height is divided by `scale`; `fitLabel` shortens their labels.
export function moveBands(shapes, scale, fitLabel = ({ label }) => label) {
  const moveBand = (shape) => ({ ...shape, label: fitLabel(shape), y0: 1 + (shape.y0 - 1) * scale, y1: 1 + (shape.y1 - 1) * scale });
  return shapes?.map((shape) => (shape.name === "band" ? moveBand(shape) : shape));
}

// --- Zoom by a button or a key

// Compute the ranges {axis: range} after a zoom, centred on the data point that is nearest to the middle of the visible data.
export function computeZoom(layout, data, scale) {
  const axes = ["xaxis", "yaxis"].map((name) => layout[name]), center = axes.map(({ range }) => (range[0] + range[1]) / 2);
  if (scale < 1) {
    const points = [];
    for (const trace of data.filter((each) => isLine(each) && (each.yaxis ?? "y") === "y")) visitVisible(trace, ...axes, (...ends) => points.push(...ends));
    if (points.length) {
      const findNearest = (side, among, to) => among.reduce((best, point) => (Math.abs(point[side] - to) < Math.abs(best[side] - to) ? point : best));
      const measureSpan = (side) => points.reduce(([low, high], point) => [Math.min(low, point[side]), Math.max(high, point[side])], [Infinity, -Infinity]);
      const [low, high] = measureSpan(0), middle = axes[0].fixedrange ? center[0] : findNearest(0, points, (low + high) / 2)[0];
      const [bottom, top] = measureSpan(1), near = points.filter((point) => Math.abs(point[0] - middle) <= (Math.abs(axes[0].range[1] - axes[0].range[0]) * scale) / 8);
      center.splice(0, 2, middle, findNearest(1, near.length ? near : points, (bottom + top) / 2)[1]);
    }
  }
  const out = {};
  axes.forEach((axis, side) => {
    const half = ((axis.range[1] - axis.range[0]) / 2) * scale;
    if (!axis.fixedrange) out[["xaxis", "yaxis"][side]] = [center[side] - half, center[side] + half];
  });
  return out;
}

// Compute the user's zoom {axis: range} after a gesture, null where no axis is under it. What was at the point `from` is at `to`,
// in pixels of the figure. A range never leaves the whole figure's, `home`; one that shows all of it is no zoom.
export function computeGesture(layout, home, zoomed, scale, from, to) {
  const isUnder = (axis, side) => axis._offset <= from[side] && from[side] <= axis._offset + axis._length;
  const plot = Object.values(layout._plots ?? {}).find(({ xaxis, yaxis }) => isUnder(xaxis, 0) && isUnder(yaxis, 1));
  if (!plot) return null;
  const out = { ...zoomed };
  [plot.xaxis, plot.yaxis].forEach((axis, side) => {
    const name = (axis.matches ?? axis._id).replace(/^([xy])/, "$1axis"), whole = home[name]?.range;
    if (axis.fixedrange || !whole || axis.type === "category") return;
    const readShare = (point) => (side ? axis._offset + axis._length - point[1] : point[0] - axis._offset) / axis._length;
    const [first, last] = out[name] ?? whole, span = (last - first) * scale, all = whole[1] - whole[0];
    delete out[name];
    if (Math.abs(span) >= Math.abs(all) * 0.999) return;
    const start = first + readShare(from) * (last - first) - readShare(to) * span;
    const [low, high] = sortEnds([whole[0], whole[1] - span]), begin = Math.min(Math.max(start, low), high);
    out[name] = [begin, begin + span];
  });
  return out;
}

// --- While a knob moves

// The curve moves and not the y axis, which grows where it must, and shrinks at rest.
export function keepRanges(layout, before) {
  for (const axis of Object.keys(layout).filter((key) => /^yaxis/.test(key))) {
    const range = layout[axis].range, old = before?.[axis];
    if (!range || !old?.range || old.type !== layout[axis].type || range[0] > range[1] || layout[axis].type === "category") continue;
    const [low, high] = [Math.min(range[0], old.range[0]), Math.max(range[1], old.range[1])];
    const ticks = low === old.range[0] && high === old.range[1] ? { tickvals: old.tickvals, ticktext: old.ticktext } : {};
    layout[axis] = { ...layout[axis], ...ticks, range: [low, high] };
  }
}

// Keep the tick labels' fit and angle as found at rest: measuring them takes a sixth of a redraw.
export function keepTicks(layout, full) {
  for (const axis of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
    const tickangle = layout[axis].tickangle ?? full?.[axis]?._lastangle ?? 0;
    layout[axis] = { ...layout[axis], tickangle, ticklabeloverflow: "allow" };
  }
}
