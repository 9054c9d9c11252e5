"""The bars above a plot that show the bands of each curve: their places, their labels, and how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rope_viz.figures.files.label_placement import Places, spread_labels
from rope_viz.figures.files.layout import Panel, SheetLayout, Strip, font_size
from rope_viz.figures.files.rich_text import parse
from rope_viz.figures.files.traces import dash_lengths, line_scale


def find_bars(plan: SheetLayout) -> list[tuple[Panel, Strip]]:
    """Return the bars of bands, one level per curve: the first ones that fit into two fifths of the height.

    Without room for all labels, the shortest bars lose theirs.
    """
    shapes = [shape for shape in plan.sheet.layout.get("shapes", ()) if shape.get("name") == "band"]
    most = max(1, int(0.4 * plan.canvas.height / (1.5 * plan.size)))
    heights = sorted({shape["y0"] for shape in shapes if shape["type"] == "rect"})[-most:]
    panel, out = plan.panels[0], []
    low, high = sorted((panel.x.low, panel.x.high))
    for level, at in enumerate(heights):
        strips = []
        for shape in shapes:
            if shape["type"] == "line":
                if shape["y0"] == max(each["y1"] for each in shapes if each["y0"] == at):
                    strips.append(Strip([], panel.box[0], 1.0, shape["line"]["color"], level=level, shape=shape))
                continue
            ends = [float(end) for end in panel.x.coordinates([shape["x0"], shape["x1"]])]
            left, right = (min(max(end if math.isfinite(end) else low, low), high) for end in ends)
            if shape["y0"] != at or left == right:
                continue
            x0, x1 = sorted(float(panel.x.pixel(end)) for end in (left, right))
            label = shape.get("label") or {}
            size = font_size(label, plan.size * 12 / 13)
            words = parse(str(label.get("text") or ""))
            colour = str((label.get("font") or {}).get("color") or plan.sheet.layout["font"]["color"])
            strips.append(Strip(words, (x0 + x1) / 2, size, colour, level=level, box=(x0, 0.0, x1, 0.0), shape=shape))
        _spread_names(plan, panel, strips)
        out += [(panel, strip) for strip in strips]
    return out


def _spread_names(plan: SheetLayout, panel: Panel, strips: Sequence[Strip]) -> None:
    named = [strip for strip in strips if strip.lines and strip.lines[0]]
    gap = 6 * plan.scale

    def width(strip: Strip) -> float:
        return float(plan.canvas.size(strip.lines, strip.size)[0]) + gap

    room = panel.box[2] - panel.box[0] + gap
    while named and sum(map(width, named)) > room:
        shortest = min(named, key=lambda strip: strip.box[2] - strip.box[0])
        shortest.lines = []
        named.remove(shortest)
    named.sort(key=lambda strip: strip.x)
    ends = panel.box[0] - gap / 2, panel.box[2] + gap / 2
    middles = spread_labels([strip.x for strip in named], [width(strip) for strip in named], *ends) if named else ()
    for strip, middle in zip(named, middles, strict=True):
        strip.x = middle


def draw_bar(plan: SheetLayout, places: Places, panel: Panel, strip: Strip, y: float) -> None:
    """Draw a bar of bands with its label above, or the piece of its curve to its left, with the lower end at `y`."""
    shape, thick = strip.shape or {}, 4 * plan.scale
    if shape["type"] == "line":
        wide = 2 * line_scale(plan)
        ends = [panel.box[0] - 30 * plan.scale, panel.box[0] - 6 * plan.scale]
        dash = dash_lengths(shape["line"].get("dash"), wide)
        plan.canvas.line(ends, [y - thick / 2] * 2, colour=strip.colour, width=wide, dash=dash)
        return
    left, _, right, _ = strip.box
    plan.canvas.box((left, y - thick, right, y), fill=str(shape["fillcolor"]))
    if strip.lines and strip.lines[0]:
        wide, _ = plan.canvas.size(strip.lines, strip.size)
        at, above = strip.x - wide / 2, y - thick - plan.scale
        box = plan.canvas.text(strip.lines, at, above, size=strip.size, colour=strip.colour, down="bottom")
        places.reserve(box)
