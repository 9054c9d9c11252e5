"""Draw the curves, points, bars, areas and maps of a figure on the sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.figures import theme
from rope_viz.figures.files.axes import Axis, array_of
from rope_viz.figures.files.colours import parse_rgba, ramp
from rope_viz.figures.files.label_placement import Places
from rope_viz.figures.files.layout import Panel, SheetLayout, font_size
from rope_viz.figures.files.rich_text import TextSpan
from rope_viz.figures.files.style import ERRORS
from rope_viz.storage.decode_json import read_own

SYMBOLS: Mapping[str, str] = read_own(__file__, "matplotlib.json")["symbols"]
# Dots per inch of maps: printers resolve areas of colour less finely than text and lines.
MAP_DPI = 300
MOST_DOTS = 3200
"""Dots of a map along one axis: a file of 50 inches would have 15,000, which take gigabytes and show nothing more."""
COLUMNS_AT_ONCE = 64
MOST_CELL_TEXTS = 4096


def draw(plan: SheetLayout, places: Places) -> None:
    """Draw all traces, maps first, as Plotly does."""
    below: tuple[Any, Any] | None = None
    for trace in sorted(plan.sheet.data, key=lambda each: each.get("type") != "heatmap"):
        panel = plan.panel(trace.get("xaxis") or "x", trace.get("yaxis") or "y")
        kind = trace.get("type", "scatter")
        if kind not in DRAWN:
            raise ValueError(ERRORS("browsers_only", kind=kind))
        below = DRAWN[kind](plan, panel, trace, below, places)


def draw_scatter(plan: SheetLayout, panel: Panel, trace: Mapping[str, Any], below: Any, places: Places) -> Any:
    """Draw a curve, points or an area, filled to the previous curve or closed."""
    x, y = panel.x.to_pixels(array_of(trace["x"])), panel.y.to_pixels(array_of(trace["y"]))
    line, mode = trace.get("line") or {}, trace.get("mode") or "lines"
    s = line_scale(plan)
    fill = str(trace.get("fillcolor") or theme.tint(theme.CURRENT, 0.2))
    if trace.get("fill") == "tonexty" and below is not None:
        _fill_between(plan, panel, below, (x, y), fill)
    elif trace.get("fill") == "toself":
        plan.canvas.area(_split_at_gaps(x, y), fill=fill, clip=panel.box)
    width = float(line.get("width", 2)) * s
    if "lines" in mode and width > 0:
        colour, dash = str(line.get("color") or theme.TEXT), dash_lengths(line.get("dash"), width)
        cap = "butt" if dash else "round"
        plan.canvas.line(x, y, colour=colour, width=width, dash=dash, clip=panel.box, cap=cap)
        if trace.get("fill") != "toself":
            places.draw(x, y, panel.box)
    if "markers" in mode:
        _draw_points(plan, panel, trace.get("marker") or {}, x, y, str(line.get("color") or theme.CURRENT))
        if "lines" not in mode:
            places.draw(x, y, panel.box)
    if "text" in mode:
        _draw_texts(plan, trace, x, y)
    return x, y


def _fill_between(plan: SheetLayout, panel: Panel, below: Any, above: Any, fill: str) -> None:
    """Fill the area between two curves, separately between gaps if their x values match."""
    (x0, y0), (x1, y1) = below, above
    if len(x0) != len(x1):
        plan.canvas.area(
            [np.column_stack([np.append(x0, x1[::-1]), np.append(y0, y1[::-1])])], fill=fill, clip=panel.box
        )
        return
    good = np.isfinite(x0) & np.isfinite(y0) & np.isfinite(y1)
    rings = [
        np.column_stack([np.append(x0[part], x1[part][::-1]), np.append(y0[part], y1[part][::-1])])
        for part in _find_runs(good)
    ]
    plan.canvas.area(rings, fill=fill, clip=panel.box)


def _split_at_gaps(x: Any, y: Any) -> list[Any]:
    return [np.column_stack([x[part], y[part]]) for part in _find_runs(np.isfinite(x) & np.isfinite(y))]


def _find_runs(good: Any) -> list[slice]:
    """Return the stretches without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(int), [0]])))
    return [slice(a, b) for a, b in zip(edges[0::2], edges[1::2], strict=True)]


def _draw_points(plan: SheetLayout, panel: Panel, marker: Mapping[str, Any], x: Any, y: Any, usual: str) -> None:
    s = line_scale(plan)
    edge = marker.get("line") or {}
    symbol = SYMBOLS.get(str(marker.get("symbol") or "circle"), "o")
    size = float(marker.get("size") or 6) * s
    if len(x) > 24 and symbol == "s":
        # Squares represent cells: they must not touch in a small panel.
        size = min(size, 1.3 * min(panel.box[2] - panel.box[0], panel.box[3] - panel.box[1]) / len(x) + 0.8)
    own, rings = marker.get("color") or usual, edge.get("color") or ""
    every = [own] * len(x) if isinstance(own, str) else list(own)
    ringed = [rings] * len(x) if isinstance(rings, str) else list(rings)
    width = float(edge.get("width") or 0) * s
    for pair in dict.fromkeys(zip(every, ringed, strict=True)):
        same = np.array([both == pair for both in zip(every, ringed, strict=True)])
        fill, ring = (pair[1] or pair[0], pair[1]) if symbol in "|_" else pair
        thick = width or (1.5 * s if symbol in "|_" else 0.0)
        box = panel.box
        plan.canvas.markers(x[same], y[same], symbol=symbol, size=size, fill=fill, edge=ring, width=thick, clip=box)


def _draw_texts(plan: SheetLayout, trace: Mapping[str, Any], x: Any, y: Any) -> None:
    font = trace.get("textfont") or {}
    size = font_size(trace, plan.size, "textfont")
    colour = str(font.get("color") or plan.sheet.layout["font"]["color"])
    position = str(trace.get("textposition") or "middle center").split()
    down = {"top": "bottom", "middle": "middle", "bottom": "top"}[position[0]]
    across = {"left": "right", "center": "center", "right": "left"}[position[-1] if len(position) > 1 else "center"]
    for at, to, word in zip(x, y, trace["text"], strict=True):
        if word and np.isfinite(at) and np.isfinite(to):
            plan.canvas.text([[TextSpan(str(word))]], at, to, size=size, colour=colour, across=across, down=down)


def draw_bars(plan: SheetLayout, panel: Panel, trace: Mapping[str, Any], below: Any, places: Places) -> Any:
    """Draw bars from 0, vertical or horizontal."""
    horizontal = trace.get("orientation") == "h"
    along, across = (panel.y, panel.x) if horizontal else (panel.x, panel.y)
    middle = along.coordinates(array_of(trace["y" if horizontal else "x"]))
    values = across.to_pixels(array_of(trace["x" if horizontal else "y"]))
    zero = float(across.to_pixels([0.0])[0]) if not across.log else across.start
    width = float(trace.get("width") or 1 - (plan.sheet.layout.get("bargap") or 0.2))
    marker = trace.get("marker") or {}
    colours, hatches = marker.get("color") or theme.CURRENT, (marker.get("pattern") or {}).get("shape") or ""
    groups: dict[tuple[str, str], list[Any]] = {}
    for place, (at, to) in enumerate(zip(middle, values, strict=True)):
        low, high = sorted(float(side) for side in along.pixel([at - width / 2, at + width / 2]))
        start, stop = sorted((zero, float(to)))
        if np.all(np.isfinite([low, high, start, stop])):
            left, top, right, bottom = (start, low, stop, high) if horizontal else (low, start, high, stop)
            look = (_pick_value(colours, place), _pick_value(hatches, place))
            groups.setdefault(look, []).append([(left, top), (right, top), (right, bottom), (left, bottom)])
            places.fill((left, top, right, bottom))
    for (colour, hatch), rings in groups.items():
        if hatch:
            light = theme.tint(colour[:7], 0.25)
            thin = 0.6 * plan.scale
            plan.canvas.area(rings, fill=light, edge=colour, width=thin, hatch=3 * hatch, clip=panel.box)
        else:
            plan.canvas.area(rings, fill=colour, clip=panel.box)
    return None


def _pick_value(values: Any, place: int) -> str:
    return values if isinstance(values, str) else str(values[place])


def draw_heatmap(plan: SheetLayout, panel: Panel, trace: Mapping[str, Any], below: Any, places: Places) -> Any:
    """Draw a map; each dot is the mean colour of the cells under it, so that narrow features remain visible."""
    z = array_of(trace["z"]).astype(float)
    common = plan.sheet.layout.get(str(trace["coloraxis"])) if trace.get("coloraxis") else None
    scale = common["colorscale"] if common else trace["colorscale"]
    low, high = (common["cmin"], common["cmax"]) if common else (trace["zmin"], trace["zmax"])
    cells = ramp(scale, (z - low) / ((high - low) or 1.0)).astype(np.float32)
    dpi = MAP_DPI if plan.vector else min(plan.sheet.style.dpi, MAP_DPI)
    left, top, right, bottom = panel.box
    down = _dot_borders(panel.y, _cell_edges(panel.y, trace.get("y"), z.shape[0]), top, bottom, dpi)
    across = _dot_borders(panel.x, _cell_edges(panel.x, trace.get("x"), z.shape[1]), left, right, dpi)
    plan.canvas.picture(_resample_cells(cells, down, across), panel.box)
    _draw_cell_gaps(plan, panel, trace, z.shape)
    if trace.get("text") is not None and z.size <= MOST_CELL_TEXTS:
        _draw_cell_texts(plan, panel, trace, z.shape)
    return None


def _cell_edges(axis: Axis, values: Any, count: int) -> Any:
    """Return the borders of cells in coordinates, (count + 1,)."""
    middle = (
        np.arange(count, dtype=float) if values is None else np.asarray(axis.coordinates(array_of(values)), dtype=float)
    )
    if len(middle) == 1:
        return np.array([middle[0] - 0.5, middle[0] + 0.5])
    between = (middle[1:] + middle[:-1]) / 2
    return np.concatenate([[2 * middle[0] - between[0]], between, [2 * middle[-1] - between[-1]]])


def _dot_borders(axis: Axis, edges: Any, start: float, stop: float, dpi: int) -> Any:
    """Return the border of every dot between two pixels in cell units: 2.5 is the centre of the third cell."""
    dots = min(max(2, round((stop - start) * dpi / 96)), MOST_DOTS)
    pixels = start + (stop - start) * np.arange(dots + 1) / dots
    at = axis.low + (pixels - axis.start) / (axis.stop - axis.start) * (axis.high - axis.low)
    order = slice(None) if edges[-1] >= edges[0] else slice(None, None, -1)
    return np.interp(at, edges[order], np.arange(len(edges), dtype=float)[order])


def _resample_cells(cells: Any, down: Any, across: Any) -> Any:
    """Resample cells (rows, columns, 4) to 8-bit dots: the cell's colour, or the mean of all cells under a dot."""
    # Premultiply alpha, so that transparent cells have no weight.
    cells[..., :3] *= cells[..., 3:]
    many = [np.abs(np.diff(borders)).max() > 1.05 for borders in (down, across)]
    for axis, borders in enumerate((down, across)):
        if many[axis]:
            cells = _average_cells(cells, borders, axis)
    alpha = cells[..., 3:]
    cells[..., :3] /= np.where(alpha > 0, alpha, 1.0)
    dots = np.rint(np.clip(cells, 0.0, 1.0) * 255).astype(np.uint8)
    for axis, borders in enumerate((down, across)):
        if not many[axis]:
            middle = (borders[1:] + borders[:-1]) / 2
            dots = np.take(dots, np.clip(middle.astype(int), 0, dots.shape[axis] - 1), axis=axis)
            outside = np.abs(np.diff(borders)) < 1e-9
            dots[(slice(None), outside) if axis else outside] = 0
    return dots


def _average_cells(cells: Any, borders: Any, axis: int) -> Any:
    """Average the cells between borders along an axis; transparent outside."""
    cells = np.moveaxis(cells, axis, 0)
    out = np.empty((len(borders) - 1, *cells.shape[1:]), dtype=np.float32)
    for first in range(0, cells.shape[1], COLUMNS_AT_ONCE):
        # The sums are float64 and as large as the result several times over.
        part = slice(first, first + COLUMNS_AT_ONCE)
        out[:, part] = _average_between(cells[:, part], borders)
    return np.ascontiguousarray(np.moveaxis(out, 0, axis))


def _average_between(cells: Any, borders: Any) -> Any:
    """Return the mean of the rows of `cells` between borders, (borders - 1, …); 0 outside."""
    sums = np.concatenate([np.zeros((1, *cells.shape[1:])), np.cumsum(cells, axis=0, dtype=np.float64)])
    index = np.minimum(borders.astype(int), len(cells) - 1)
    part = (borders - index).reshape(-1, *[1] * (cells.ndim - 1))
    wide = np.diff(borders).reshape(-1, *[1] * (cells.ndim - 1))
    seen = np.abs(wide) > 1e-9
    return np.diff(sums[index] + part * cells[index], axis=0) / np.where(seen, wide, 1.0) * seen


def _draw_cell_gaps(plan: SheetLayout, panel: Panel, trace: Mapping[str, Any], shape: tuple[int, int]) -> None:
    left, top, right, bottom = panel.box
    ground = str(plan.sheet.layout.get("plot_bgcolor", theme.BACKGROUND))
    if not parse_rgba(ground)[3]:
        return
    for axis, key, count, gap in ((panel.x, "x", shape[1], "xgap"), (panel.y, "y", shape[0], "ygap")):
        wide = min(float(trace.get(gap) or 0) * plan.scale, 0.12 * abs(axis.stop - axis.start) / count)
        if not wide:
            continue
        for pixel in axis.pixel(_cell_edges(axis, trace.get(key), count))[1:-1]:
            ends = ([pixel] * 2, [top, bottom]) if key == "x" else ([left, right], [pixel] * 2)
            plan.canvas.line(*ends, colour=ground, width=wide)


def _draw_cell_texts(plan: SheetLayout, panel: Panel, trace: Mapping[str, Any], shape: tuple[int, int]) -> None:
    words = np.asarray(trace["text"], dtype=object)
    if not re.fullmatch(r"%\{text\}", str(trace.get("texttemplate") or "")):
        return
    x, y = (
        axis.to_pixels(array_of(trace[key])) if trace.get(key) is not None else axis.pixel(np.arange(count))
        for axis, key, count in ((panel.x, "x", shape[1]), (panel.y, "y", shape[0]))
    )
    room = min(abs(panel.x.stop - panel.x.start) / shape[1], abs(panel.y.stop - panel.y.start) / shape[0])
    size = min(font_size(trace, plan.size, "textfont"), 0.9 * room)
    colour = str((trace.get("textfont") or {}).get("color") or theme.TEXT)
    for row, column in zip(*np.nonzero(words != ""), strict=True):
        lines = [[TextSpan(str(words[row, column]))]]
        plan.canvas.text(lines, x[column], y[row], size=size, colour=colour, across="center")


def line_scale(plan: SheetLayout) -> float:
    """Return the width of lines and points relative to those on the page."""
    return float(min(max(plan.scale, 0.55), 2.2))


def dash_lengths(name: Any, width: float) -> tuple[float, ...]:
    """Return strokes and gaps in pixels of a dash, given as Plotly's name or as a list of lengths."""
    unit = max(width, 1.8)
    known = {"dash": (3, 3), "dot": (1, 1), "dashdot": (3, 1, 1, 1), "longdash": (5, 5), "longdashdot": (5, 2, 1, 2)}
    if name in (None, "", "solid"):
        return ()
    if name in known:
        return tuple(unit * length for length in known[name])
    return tuple(float(length) * max(width / 2, 0.6) for length in re.findall(r"[0-9.]+", str(name)))


DRAWN = {"scatter": draw_scatter, "bar": draw_bars, "heatmap": draw_heatmap}
