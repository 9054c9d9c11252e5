"""Colour bars of heatmaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.figures.files.axes import Axis
from rope_viz.figures.files.colours import ramp
from rope_viz.figures.files.layout import PAD, TICK, SheetLayout, font_size, text_height, wrap_text
from rope_viz.figures.files.rich_text import Lines

WIDTH, GAP = 12.0, 9.0
STEPS = 256


@dataclass
class Scale:
    """One colour bar: its colours, its limits and its Plotly properties."""

    colours: Any
    low: float
    high: float
    bar: Mapping[str, Any]

    @property
    def is_horizontal(self) -> bool:
        return self.bar.get("orientation") == "h"


def find_scales(plan: SheetLayout) -> list[Scale]:
    """Return the colour bars of a figure."""
    out: list[Scale] = []
    shared: dict[str, None] = {}
    for trace in plan.sheet.data:
        if trace.get("type") != "heatmap":
            continue
        if trace.get("coloraxis"):
            shared[str(trace["coloraxis"])] = None
        elif trace.get("showscale") is not False:
            out.append(Scale(trace["colorscale"], trace["zmin"], trace["zmax"], trace.get("colorbar") or {}))
    for name in shared:
        common = plan.sheet.layout.get(name)
        if isinstance(common, Mapping) and common.get("showscale") is not False:
            out.append(Scale(common["colorscale"], common["cmin"], common["cmax"], common.get("colorbar") or {}))
    return out


def measure_room(plan: SheetLayout) -> tuple[float, float]:
    """Return the pixels they take on the right and at the bottom."""
    found = find_scales(plan)
    return (
        sum(_depth(plan, each) for each in found if not each.is_horizontal),
        sum(_depth(plan, each) for each in found if each.is_horizontal),
    )


def draw(plan: SheetLayout) -> None:
    """Draw all colour bars, vertical ones to the right of the plots, horizontal ones below."""
    s = plan.scale
    right = plan.canvas.width - PAD * s
    below = plan.canvas.height - PAD * s
    left, end = plan.column_pixels[0][0], plan.column_pixels[-1][1]
    for each in reversed(find_scales(plan)):
        depth = _depth(plan, each)
        if each.is_horizontal:
            wide = (end - left) * float(each.bar.get("len", 1.0))
            middle = (left + end) / 2
            top = below - depth + GAP * s
            _draw_bar(plan, each, (middle - wide / 2, top, middle + wide / 2, top + 0.8 * WIDTH * s))
            below -= depth
        else:
            x = right - depth + GAP * s
            _draw_bar(plan, each, (x, plan.row_pixels[-1][1], x + WIDTH * s, plan.row_pixels[0][0]))
            right -= depth


def _make_axis(plan: SheetLayout, scale: Scale, box: tuple[float, float, float, float]) -> Axis:
    given = {key: scale.bar[key] for key in ("tickvals", "ticktext") if scale.bar.get(key) is not None}
    axis = Axis("x" if scale.is_horizontal else "y", given, low=float(scale.low), high=float(scale.high))
    start, stop = (box[0], box[2]) if scale.is_horizontal else (box[3], box[1])
    size = _font_size(plan, scale)
    axis.place(start, stop, size, lambda lines: plan.canvas.size(lines, size))
    return axis


def _font_size(plan: SheetLayout, scale: Scale) -> float:
    return font_size(scale.bar, plan.size * 12 / 13, "tickfont")


def _title(plan: SheetLayout, scale: Scale) -> Lines:
    words = str((scale.bar.get("title") or {}).get("text") or "")
    return wrap_text(plan, words, 0.3 * plan.canvas.width, _font_size(plan, scale)) if words else []


def _depth(plan: SheetLayout, scale: Scale) -> float:
    s, size = plan.scale, _font_size(plan, scale)
    (left, right), bottom, top = plan.column_pixels[0], plan.row_pixels[0][0], plan.row_pixels[-1][1]
    axis = _make_axis(plan, scale, (left, top, right, bottom))
    labels = [plan.canvas.size(words, size) for _, words in axis.ticks if any(words)]
    if scale.is_horizontal:
        return GAP * s + 0.8 * WIDTH * s + TICK * s + max((high for _, high in labels), default=0.0)
    title = _title(plan, scale)
    bar_depth = WIDTH * s + (TICK + 2) * s + max((wide for wide, _ in labels), default=0.0)
    return GAP * s + max(bar_depth, plan.canvas.size(title, size)[0] if title else 0.0)


def _draw_bar(plan: SheetLayout, scale: Scale, box: tuple[float, float, float, float]) -> None:
    canvas, s, size = plan.canvas, plan.scale, _font_size(plan, scale)
    colour = str(plan.sheet.layout["font"]["color"])
    shades = ramp(scale.colours, (np.arange(STEPS) + 0.5) / STEPS)
    shades = np.rint(255 * shades).astype(np.uint8)
    canvas.picture(shades[None] if scale.is_horizontal else shades[::-1, None], box)
    axis = _make_axis(plan, scale, box)
    for at, words in axis.ticks:
        pixel = float(axis.pixel(at))
        if scale.is_horizontal:
            canvas.line([pixel] * 2, [box[3], box[3] + TICK * s], colour=colour, width=s)
            canvas.text(words, pixel, box[3] + TICK * s, size=size, colour=colour, across="center", down="top")
        else:
            canvas.line([box[2], box[2] + TICK * s], [pixel] * 2, colour=colour, width=s)
            canvas.text(words, box[2] + (TICK + 2) * s, pixel, size=size, colour=colour)
    title = _title(plan, scale)
    if title and not scale.is_horizontal:
        canvas.text(title, box[0], box[1] - _title_gap(plan, scale, axis), size=size, colour=colour, down="bottom")


def _title_gap(plan: SheetLayout, scale: Scale, axis: Axis) -> float:
    """Return the gap between the bar and its title, so that a label at the top tick fits."""
    high = (plan.canvas.size(words, _font_size(plan, scale))[1] / 2 for at, words in axis.ticks if any(words))
    top = max(
        (half - float(abs(axis.pixel(at) - axis.stop)) for (at, _), half in zip(axis.ticks, high, strict=False)),
        default=0.0,
    )
    return max(top, 0.0) + 1 * plan.scale


def measure_head(plan: SheetLayout) -> float:
    """Return how far the titles of vertical bars extend above the plots."""
    found = [each for each in find_scales(plan) if not each.is_horizontal]
    box = (0.0, plan.row_pixels[-1][1], 1.0, plan.row_pixels[0][0])
    return max(
        (
            text_height(lines, _font_size(plan, each)) + _title_gap(plan, each, _make_axis(plan, each, box))
            for each in found
            if (lines := _title(plan, each))
        ),
        default=0.0,
    )
