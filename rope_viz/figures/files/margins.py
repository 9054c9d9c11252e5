"""The margins around every panel, measured in a few rounds because ticks depend on boxes and boxes on ticks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import theme
from rope_viz.figures.files import colourbars
from rope_viz.figures.files import lines as named
from rope_viz.figures.files.axes import Axis
from rope_viz.figures.files.band_bars import find_bars
from rope_viz.figures.files.canvas import LEADING, Box
from rope_viz.figures.files.label_placement import spread_labels
from rope_viz.figures.files.layout import (
    BIGGER,
    NEAR,
    PAD,
    TICK,
    Heading,
    Interval,
    Panel,
    SheetLayout,
    Strip,
    font_size,
    strip_height,
    text_height,
    wrap_text,
)
from rope_viz.figures.files.rich_text import Lines, TextSpan, parse, strip_markup, wrap_lines
from rope_viz.figures.files.style import ERRORS

# Width of a line sample and the gap to its name.
KEY = 34.0


def require_room(plan: SheetLayout) -> None:
    """Raise `ValueError` if a word of the legend is wider than the sheet."""
    for (left, _, _, _), _, words in plan.legend:
        wide, _ = plan.canvas.size(words, plan.size * 12 / 13)
        if left + KEY * plan.scale + wide > plan.canvas.width - 2 and wide > 8 * plan.size:
            label = " ".join("".join(run.text for run in line).strip() for line in words)
            raise ValueError(ERRORS("long_label", label=short_repr(label)))


def place_entries(plan: SheetLayout, left: float, right: float) -> list[tuple[Box, Any, Lines]]:
    """Return (box, trace, lines of its name) of the legend's entries, in rows from the top."""
    if not plan.sheet.layout.get("showlegend"):
        return []
    s, size = plan.scale, plan.size * 12 / 13
    y = PAD * s + text_height(plan.heading, plan.size * BIGGER)
    out, x, row, seen = [], left, 0.0, set()
    for trace in plan.sheet.data:
        name = named.line_name(trace)
        if not name or name in seen:
            continue
        seen.add(name)
        words = [[TextSpan("".join(run.text for run in line))] for line in parse(name)]
        words = wrap_lines(words, right - left - KEY * s, lambda run: plan.canvas.measure(run, size))
        wide = KEY * s + plan.canvas.size(words, size)[0]
        if x > left and x + wide > right:
            x, y, row = left, y + row, 0.0
        high = plan.size * 1.35 + text_height(words[1:], size)
        out.append(((x, y, x + wide, y + high), trace, words))
        x, row = x + wide + 14 * s, max(row, high)
    return out


def legend_height(plan: SheetLayout) -> float:
    """Return the height of the legend with a gap."""
    return max((box[3] for box, _, _ in plan.legend), default=0.0) - (
        min((box[1] for box, _, _ in plan.legend), default=0.0) - 4 * plan.scale if plan.legend else 0.0
    )


ROUNDS = 4
LEAST = 30.0
# End labels wider than this share of the figure become a legend, unless the user chose end labels.
MOST_FOR_ENDS = 0.34
# Wider end labels that the user chose are wrapped.
WIDEST_END = 0.34


def place_panels(plan: SheetLayout) -> None:
    """Compute the boxes of all panels; raise `ValueError` if they do not fit."""
    sheet = plan.sheet
    wide, high, pad = plan.canvas.width, plan.canvas.height, PAD * plan.scale
    if sheet.title:
        plan.heading = wrap_text(plan, theme.plain_text(sheet.title), wide - 2 * pad, plan.size * BIGGER, bold=True)
    plan.column_pixels = _even(plan.columns, 50 * plan.scale, wide - 50 * plan.scale)
    plan.row_pixels = _even(plan.rows, high - 45 * plan.scale, 25 * plan.scale)
    for attempt in range(ROUNDS):
        _set_boxes(plan)
        if attempt < 2 and sheet.style.legend == "auto" and _ends_do_not_fit(plan):
            named.place_labels(sheet.data, sheet.layout, "legend")
        plan.headings, plan.strips = _find_headings(plan), _find_strips(plan)
        left, right, over, under = _measure_margins(plan)
        plan.legend = place_entries(plan, pad + left[0], wide - pad)
        right_bars, low_bars = plan.bar_room = colourbars.measure_room(plan)
        gaps = [
            max(right[i] + left[i + 1] + pad, 0.6 * wide * (b[0] - a[1]))
            for i, (a, b) in enumerate(itertools.pairwise(plan.columns))
        ]
        plan.column_pixels = _divide(plan.columns, pad + left[0], wide - pad - right[-1] - right_bars, gaps)
        gaps = [under[i + 1] + over[i] + pad for i in range(len(plan.rows) - 1)]
        first = pad + text_height(plan.heading, plan.size * BIGGER) + legend_height(plan) + over[-1]
        plan.row_pixels = _divide(plan.rows, high - pad - low_bars - under[0], first, gaps)
    require_room(plan)
    thin = min(b - a for a, b in plan.column_pixels) < LEAST
    if thin or min(a - b for a, b in plan.row_pixels) < min(LEAST, 0.2 * high):
        names = [note["text"] for note in sheet.layout.get("annotations", ()) if note.get("name") == "end"]
        widths = [plan.canvas.size(parse(name), plan.size)[0] for name in names]
        if max(widths, default=0.0) > max(WIDEST_END * wide, 8 * plan.size):
            label = strip_markup(names[widths.index(max(widths))])
            raise ValueError(ERRORS("long_end", label=short_repr(label)))
        raise ValueError(ERRORS("no_room", width=wide, height=high, size=plan.size))
    _set_boxes(plan)
    plan.headings, plan.strips = _find_headings(plan), _find_strips(plan)


def _set_boxes(plan: SheetLayout) -> None:
    for panel in plan.panels:
        (left, right), (bottom, top) = plan.column_pixels[panel.column], plan.row_pixels[panel.row]
        if plan.sheet.layout.get(f"{panel.y.name[0]}axis{panel.y.name[1:]}", {}).get("scaleanchor"):
            left, right, bottom, top = _equal_units_box(panel, left, right, bottom, top)
        panel.box = (left, top, right, bottom)
        for axis, start, stop in ((panel.x, left, right), (panel.y, bottom, top)):
            size = font_size(axis.properties, plan.size * 12 / 13, "tickfont")
            axis.place(start, stop, size, lambda lines, size=size: plan.canvas.size(lines, size))  # type: ignore[misc]


def _equal_units_box(panel: Panel, left: float, right: float, bottom: float, top: float) -> tuple[float, ...]:
    """Return the largest box with equal units on both axes, centred in the given one."""
    across, up = abs(panel.x.high - panel.x.low), abs(panel.y.high - panel.y.low)
    unit = min((right - left) / across, (bottom - top) / up)
    free_x, free_y = (right - left - unit * across) / 2, (bottom - top - unit * up) / 2
    return left + free_x, right - free_x, bottom - free_y, top + free_y


def _even(spans: Sequence[Interval], start: float, stop: float) -> list[Interval]:
    return [(start + a * (stop - start), start + b * (stop - start)) for a, b in spans]


def _divide(spans: Sequence[Interval], start: float, stop: float, gaps: Sequence[float]) -> list[Interval]:
    """Divide start to stop into intervals in proportion to `spans`, with these gaps between them."""
    sign = 1.0 if stop >= start else -1.0
    room = abs(stop - start) - sum(gaps) if sign * (stop - start) > 0 else 0.0
    total = sum(b - a for a, b in spans)
    out, at = [], start
    for (a, b), gap in zip(spans, [*gaps, 0.0], strict=True):
        end = at + sign * max(room, 1.0) * (b - a) / total
        out.append((at, end))
        at = end + sign * gap
    # Rows run from the bottom up, so their start is the larger pixel; the first number is the axis's low end.
    return out


def _measure_margins(plan: SheetLayout) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the pixels needed left and right of every column, over and under every row."""
    left, right = [0.0] * len(plan.columns), [0.0] * len(plan.columns)
    over, under = [0.0] * len(plan.rows), [0.0] * len(plan.rows)
    s = plan.scale
    for panel in plan.panels:
        box, c, r = panel.box, panel.column, panel.row
        for axis in (panel.x, panel.y):
            if not axis.is_visible:
                continue
            depth = ticks_depth(plan, axis) + title_depth(plan, axis, panel)
            if axis.is_vertical:
                side = right if axis.is_opposite else left
                side[c] = max(side[c], depth)
            else:
                under[r] = max(under[r], depth)
            for at, words in axis.ticks:
                wide, high = _measure_rotated(plan, axis, words)
                pixel = float(axis.pixel(at))
                if axis.is_vertical:
                    over[r] = max(over[r], box[1] - (pixel - high / 2))
                    under[r] = max(under[r], pixel + high / 2 - box[3])
                elif not axis.angle:
                    left[c] = max(left[c], box[0] - (pixel - wide / 2))
                    right[c] = max(right[c], pixel + wide / 2 - box[2])
        ends = [plan.canvas.size(end_lines(plan, note, size), size)[0] for note, size in end_labels(plan, panel)]
        right[c] = max([right[c], *(wide + 8 * s for wide in ends)])
    for panel in plan.panels:
        strips = [strip for owner, strip in plan.strips if owner is panel]
        high = sum(
            strip_height([each for each in strips if each.level == level])
            for level in range(1 + max((each.level for each in strips), default=-1))
        )
        above = [text_height(each.lines, each.size) + each.shift for each in plan.headings if each.panel is panel]
        over[panel.row] = max(over[panel.row], high + max(above, default=0.0) + (3 * s if high or above else 0.0))
    over[-1] = max(over[-1], colourbars.measure_head(plan))
    return left, right, over, under


def ticks_depth(plan: SheetLayout, axis: Axis) -> float:
    """Return the depth of ticks and their labels."""
    sizes = [_measure_rotated(plan, axis, words)[0 if axis.is_vertical else 1] for _, words in axis.ticks if any(words)]
    marks = 0.0 if axis.properties.get("ticks") == "" else TICK * plan.scale
    return marks + (max(sizes) + (3.0 if axis.is_vertical else 1.0) * plan.scale if sizes else 0.0)


def title_depth(plan: SheetLayout, axis: Axis, panel: Panel) -> float:
    """Return the height of a title with a gap, and store its wrapped lines in the plan."""
    if not axis.title:
        return 0.0
    size = title_size(plan, axis)
    left, top, right, bottom = panel.box
    along = (bottom - top) if axis.is_vertical else (right - left)
    extent = plan.canvas.height if axis.is_vertical else plan.canvas.width
    # A title may be longer than its axis; it is centred on the axis and kept inside the sheet.
    middle = (top + bottom) / 2 if axis.is_vertical else (left + right) / 2
    room = 2 * min(middle, extent - middle) - 2 * PAD * plan.scale
    alone = len(plan.rows if axis.is_vertical else plan.columns) == 1
    plan.titles[axis.name] = wrap_text(plan, axis.title, max(room if alone else along, 20.0), size)
    return text_height(plan.titles[axis.name], size) + (4.0 if axis.is_vertical else 2.0) * plan.scale


def title_size(plan: SheetLayout, axis: Axis) -> float:
    """Return the font size of an axis title."""
    return font_size(axis.properties.get("title") or {}, plan.size)


def tick_size(plan: SheetLayout, axis: Axis) -> float:
    """Return the font size of tick labels."""
    return font_size(axis.properties, plan.size * 12 / 13, "tickfont")


def _measure_rotated(plan: SheetLayout, axis: Axis, words: Any) -> tuple[float, float]:
    wide, high = plan.canvas.size(words, tick_size(plan, axis)) if any(words) else (0.0, 0.0)
    turn = math.radians(axis.angle)
    return (
        abs(wide * math.cos(turn)) + abs(high * math.sin(turn)),
        abs(wide * math.sin(turn)) + abs(high * math.cos(turn)),
    )


def end_labels(plan: SheetLayout, panel: Panel) -> list[tuple[Mapping[str, Any], float]]:
    """Return (note, font size) of the labels to the right of a panel: those of lines that end near its border."""
    if any(each.y.is_opposite and each.column == panel.column for each in plan.panels):
        return []
    found = []
    for note in plan.sheet.layout.get("annotations", ()):
        on_panel = (note.get("xref") or "x") == panel.x.name and (note.get("yref") or "y") == panel.y.name
        if on_panel and note.get("name") == "end" and note.get("visible") is not False:
            at = float(panel.x.pixel(_read_coordinate(panel.x, note["x"])))
            size = font_size(note, plan.size)
            near = max(NEAR * plan.scale, 0.06 * (panel.box[2] - panel.box[0]))
            # The label of a line that ends inside the plot stays inside, if it fits before the border.
            room = panel.box[2] - at
            tight = (
                room < plan.canvas.size(end_lines(plan, note, size), size)[0] and at > (panel.box[0] + panel.box[2]) / 2
            )
            if abs(room) < near or tight:
                found.append((note, size))
    return found


def end_height(lines: Lines, size: float) -> float:
    """Return the height of an end label among others; the line spacing is reduced."""
    return (LEADING * (len(lines) - 1) + 1.12) * size


def end_lines(plan: SheetLayout, note: Mapping[str, Any], size: float) -> Lines:
    """Return the lines of an end label, wrapped if it takes too much of the width."""
    widest = WIDEST_END * plan.canvas.width
    return wrap_lines(parse(str(note["text"])), widest, lambda run: plan.canvas.measure(run, size))


def _read_coordinate(axis: Axis, value: Any) -> float:
    """Return a note's coordinate; on a log axis notes already hold powers of ten."""
    return float(axis.coordinates([value])[0]) if isinstance(value, str) else float(value)


def _ends_do_not_fit(plan: SheetLayout) -> bool:
    for panel in plan.panels:
        ends = end_labels(plan, panel)
        sizes = [plan.canvas.size(parse(note["text"]), size) for note, size in ends]
        if sizes and max(wide for wide, _ in sizes) > MOST_FOR_ENDS * plan.canvas.width:
            return True
        if sum(high for _, high in sizes) * 0.92 > panel.box[3] - panel.box[1]:
            return True
    return False


def _find_headings(plan: SheetLayout) -> list[Heading]:
    out = []
    notes = plan.sheet.layout.get("annotations", ())
    for note in notes:
        ref = str(note.get("yref") or "y")
        on_top = (
            (ref == "paper" or ref.endswith(" domain")) and note.get("y", 0) >= 1 and note.get("yanchor") == "bottom"
        )
        if not on_top or note.get("showarrow") is not False or note.get("visible") is False:
            continue
        size = font_size(note, plan.size)
        x_ref = str(note.get("xref") or "x")
        if x_ref == "paper":
            at = plan.paper("x", float(note["x"]))
            panel = min(
                plan.panels, key=lambda each: (each.row != len(plan.rows) - 1, abs(sum(each.box[0::2]) / 2 - at))
            )
        else:
            panel = plan.panel(x_ref.replace(" domain", ""), ref.replace(" domain", ""))
            left, _, right, _ = panel.box
            share = x_ref.endswith(" domain")
            at = left + float(note["x"]) * (right - left) if share else float(panel.x.pixel(float(note["x"])))
            if not left - 1 <= at <= right + 1:
                continue
        across = {"left": "left", "right": "right"}.get(str(note.get("xanchor")), "center")
        room = panel.box[2] - panel.box[0]
        pad = PAD * plan.scale
        if len(plan.columns) == 1:
            room = plan.canvas.width - pad - (at if across == "left" else pad)
        elif across == "left":
            room = _free_space_end(plan, panel, notes) - at - 4
        words = wrap_text(plan, str(note["text"]), room, size)
        out.append(Heading(panel, words, at, size, across, str(note.get("align") or "center"), note, 2 * plan.scale))
    for row in range(len(plan.rows)):
        _separate(plan, [each for each in out if each.panel.row == row])
    return out


def _separate(plan: SheetLayout, headings: list[Heading]) -> None:
    """Move overlapping headings of one row apart: sideways, or up if the sheet is too narrow."""
    pad, gap = PAD * plan.scale, 6 * plan.scale
    boxes = []
    for each in headings:
        wide, high = plan.canvas.size(each.lines, each.size)
        left = each.x - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[each.across]
        left = min(max(left, pad), plan.canvas.width - pad - wide)
        boxes.append((left, wide, high, each))
    boxes.sort(key=lambda box: box[0])
    if all(a[0] + a[1] + gap <= b[0] for a, b in itertools.pairwise(boxes)):
        return
    widths = [wide + gap for _, wide, _, _ in boxes]
    if sum(widths) - gap <= plan.canvas.width - 2 * pad - plan.bar_room[0]:
        middles = spread_labels(
            [left + wide / 2 for left, wide, _, _ in boxes],
            widths,
            pad - gap / 2,
            plan.canvas.width - pad - plan.bar_room[0] + gap / 2,
        )
        for middle, (_, _, _, each) in zip(middles, boxes, strict=True):
            each.x, each.across = middle, "center"
        return
    levels: list[list[tuple[float, float, float, Heading]]] = []
    for box in boxes:
        level = next((row for row in levels if row[-1][0] + row[-1][1] + gap <= box[0]), None)
        if level is None:
            levels.append(level := [])
        level.append(box)
    lift = 0.0
    for level in levels:
        for _, _, _, each in level:
            each.shift += lift
        lift += max(high for _, _, high, _ in level)


def _free_space_end(plan: SheetLayout, panel: Panel, notes: Sequence[Mapping[str, Any]]) -> float:
    """Return where the next panel with its own heading starts, else the right end of the sheet."""
    titled = {str(note.get("xref")) for note in notes if str(note.get("yref")).endswith(" domain")}
    starts = [
        each.box[0]
        for each in plan.panels
        if each.row == panel.row and each.box[0] > panel.box[2] and f"{each.x.name} domain" in titled
    ]
    return min(starts, default=plan.canvas.width - PAD * plan.scale - plan.bar_room[0])


def _find_strips(plan: SheetLayout) -> list[tuple[Panel, Strip]]:
    """Return the labels of rules and ranges above the plots, on as many levels as needed."""
    found = find_bars(plan)
    bars = len(found)
    rows = 1 + max((strip.level for _, strip in found), default=-1)
    for shape in plan.sheet.layout.get("shapes", ()):
        label = shape.get("label") or {}
        if not label.get("text") or shape.get("yref") != "paper" or shape.get("y1") != 1:
            continue
        where = str(label.get("textposition", ""))
        rule = shape["type"] == "line" and shape["x0"] == shape["x1"] and where != "start"
        if not rule and not (shape["type"] == "rect" and where.startswith("top")):
            continue
        ref = str(shape.get("xref") or "x")
        panel = next((each for each in plan.panels if each.x.name == ref), plan.panels[0])
        low, high = sorted((panel.x.low, panel.x.high))
        ends = [float(at) for at in panel.x.coordinates([shape["x0"], shape["x1"]])]
        if not rule and panel.x.log:
            ends = [at if math.isfinite(at) else low for at in ends]
        inside = [min(max(at, low), high) for at in ends]
        if (
            not all(map(math.isfinite, ends))
            or (rule and not panel.x.contains(ends[0]))
            or (not rule and inside[0] == inside[1])
        ):
            continue
        size = font_size(label, plan.size * 12 / 13)
        across = {"right": "right", "left": "left"}.get(str(label.get("xanchor")), "center")
        at = float(panel.x.pixel(sum(inside) / 2))
        words = parse(str(label["text"]))
        wide, _ = plan.canvas.size(words, size)
        left = at - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[across]
        left = min(max(left, PAD * plan.scale), plan.canvas.width - PAD * plan.scale - plan.bar_room[0] - wide)
        colour = str((label.get("font") or {}).get("color") or plan.sheet.layout["font"]["color"])
        found.append((panel, Strip(words, at, size, colour, across, box=(left, 0.0, left + wide, 0.0))))
    for place, (panel, strip) in enumerate(found[bars:], bars):
        others = [other for owner, other in found[:place] if owner is panel]
        strip.level = next(
            level
            for level in range(rows, rows + len(found) + 1)
            if not any(
                other.level == level
                and strip.box[0] < other.box[2] + 6 * plan.scale
                and other.box[0] < strip.box[2] + 6 * plan.scale
                for other in others
            )
        )
    return found
