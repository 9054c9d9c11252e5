"""Everything around the data: grid, axis lines, ticks, titles and the legend."""

from __future__ import annotations

from typing import Any

from rope_viz.figures import theme
from rope_viz.figures.files import legends, margins
from rope_viz.figures.files import lines as named
from rope_viz.figures.files.axes import Axis
from rope_viz.figures.files.canvas import LEADING
from rope_viz.figures.files.layout import BIGGER, PAD, TICK, Panel, Plan
from rope_viz.figures.files.traces import SYMBOLS, dashes, line_scale


def ground(plan: Plan) -> None:
    """Draw the plots' background and grid, below everything else."""
    for panel in plan.panels:
        colour = str(plan.sheet.layout.get("plot_bgcolor", theme.BACKGROUND))
        if not panel.y.given.get("overlaying") and colour != plan.sheet.layout.get("paper_bgcolor"):
            plan.canvas.box(panel.box, fill=colour)
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            grid = axis.given.get("showgrid") is not False and axis.shown and not axis.given.get("overlaying")
            for at, _ in axis.ticks if grid else ():
                _across(plan, panel, axis, at, str(axis.given.get("gridcolor") or theme.GRID), 0.8)


def zero_lines(plan: Plan) -> None:
    """Draw the line at 0 on axes that have one."""
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            if axis.given.get("zeroline") and not axis.log and axis.holds(0.0):
                _across(plan, panel, axis, 0.0, str(axis.given.get("zerolinecolor") or theme.RULE), 1.0)


def _across(plan: Plan, panel: Panel, axis: Axis, at: float, colour: str, width: float) -> None:
    left, top, right, bottom = panel.box
    pixel = float(axis.pixel(at))
    ends = ([left, right], [pixel] * 2) if axis.is_vertical else ([pixel] * 2, [top, bottom])
    plan.canvas.line(*ends, colour=colour, width=width * line_scale(plan))


def axes(plan: Plan) -> None:
    """Draw axis lines, ticks with labels, and axis titles."""
    drawn: set[tuple[str, tuple[float, ...]]] = set()
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            if axis.shown and (axis.name, panel.box) not in drawn:
                drawn.add((axis.name, panel.box))
                _axis(plan, panel, axis)


def _axis(plan: Plan, panel: Panel, axis: Axis) -> None:
    canvas, s = plan.canvas, plan.scale
    left, top, right, bottom = panel.box
    rule, tick = (str(axis.given.get(key) or theme.RULE) for key in ("linecolor", "tickcolor"))
    width = line_scale(plan)
    if axis.given.get("showline"):
        if axis.is_vertical:
            sides = [left, right] if axis.given.get("mirror") else [right if axis.opposite else left]
            for x in sides:
                canvas.line([x, x], [top, bottom], colour=rule, width=width, cap="projecting")
        else:
            for y in [top, bottom] if axis.given.get("mirror") else [bottom]:
                canvas.line([left, right], [y, y], colour=rule, width=width, cap="projecting")
    marks = 0.0 if axis.given.get("ticks") == "" else TICK * s
    colour = str(plan.sheet.layout["font"]["color"])
    ink = str((axis.given.get("tickfont") or {}).get("color") or colour)
    size = margins.tick_size(plan, axis)
    out = 1.0 if axis.opposite else -1.0
    base = right if axis.opposite else left
    for at, words in axis.ticks:
        pixel = float(axis.pixel(at))
        if axis.is_vertical:
            if marks:
                canvas.line([base, base + out * marks], [pixel] * 2, colour=tick, width=width)
            if any(words):
                across = "left" if axis.opposite else "right"
                canvas.text(
                    words, base + out * (marks + 3 * s), pixel, size=size, colour=ink, across=across, align=across
                )
            continue
        if marks:
            canvas.line([pixel] * 2, [bottom, bottom + marks], colour=tick, width=width)
        if any(words):
            place = {"across": "center", "down": "top", "align": "center"}
            if axis.angle:
                place = {"across": "right" if axis.angle < 0 else "left", "down": "middle", "align": "right"}
            canvas.text(words, pixel, bottom + marks + s, size=size, colour=ink, angle=axis.angle, **place)
    _title(plan, panel, axis, base + out * margins.ticks_depth(plan, axis), bottom + margins.ticks_depth(plan, axis))


def _title(plan: Plan, panel: Panel, axis: Axis, side_x: float, below_y: float) -> None:
    if not axis.title:
        return
    s, size = plan.scale, margins.title_size(plan, axis)
    margins.title_depth(plan, axis, panel)
    words = plan.titles[axis.name]
    left, top, right, bottom = panel.box
    colour = str(((axis.given.get("title") or {}).get("font") or {}).get("color") or plan.sheet.layout["font"]["color"])
    look: dict[str, Any] = {"size": size, "colour": colour, "across": "center", "align": "center"}
    if axis.is_vertical:
        turn = 90.0 if axis.opposite else -90.0
        x = side_x + (4 * s if axis.opposite else -4 * s)
        plan.canvas.text(words, x, (top + bottom) / 2, angle=turn, down="bottom", **look)
    else:
        middle = (left + right) / 2
        wide, _ = plan.canvas.size(words, size)
        middle = min(max(middle, wide / 2 + PAD * s), plan.canvas.width - wide / 2 - PAD * s)
        plan.canvas.text(words, middle, below_y + 2 * s, down="top", **look)


def legend(plan: Plan) -> None:
    """Draw the legend: a sample and a name per line, in rows above the plots."""
    s, k = plan.scale, line_scale(plan)
    colour = str(plan.sheet.layout["font"]["color"])
    size = plan.size * 12 / 13
    for (left, top, _, _), trace, words in plan.legend:
        middle = top + plan.size * 1.35 / 2
        ink, dash, width = named.look(trace)
        start, stop = left, left + 26 * s
        if trace.get("type") == "bar":
            plan.canvas.box((start + 6 * s, middle - 4 * s, stop - 6 * s, middle + 4 * s), fill=ink)
        elif "lines" in (trace.get("mode") or "lines"):
            strokes = dashes(dash, width * k)
            plan.canvas.line([start, stop], [middle] * 2, colour=ink, width=width * k, dash=strokes)
        if "markers" in (trace.get("mode") or "lines") and trace.get("type") != "bar":
            marker = trace.get("marker") or {}
            symbol = SYMBOLS.get(str(marker.get("symbol") or "circle"), "o")
            look: dict[str, Any] = {"fill": ink, "edge": "", "width": 0.0, "clip": None}
            wide = float(marker.get("size") or 6) * k
            plan.canvas.markers([(start + stop) / 2], [middle], symbol=symbol, size=wide, **look)
        first = middle - LEADING * size / 2
        plan.canvas.text(words, start + legends.KEY * s - 2 * s, first, size=size, colour=colour, down="top")


def heading(plan: Plan) -> None:
    """Draw the title of the figure."""
    if plan.heading:
        pad, colour = PAD * plan.scale, str(plan.sheet.layout["font"]["color"])
        plan.canvas.text(plan.heading, pad, pad, size=plan.size * BIGGER, colour=colour, down="top")
