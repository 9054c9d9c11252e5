"""Shapes, notes and labels: first those with a fixed position, then those that need label placement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.figures import theme
from rope_viz.figures.files import margins
from rope_viz.figures.files.band_bars import draw_bar
from rope_viz.figures.files.canvas import LEADING, Box
from rope_viz.figures.files.label_placement import Places, spread_labels
from rope_viz.figures.files.layout import PAD, Heading, Panel, SheetLayout, font_size, strip_height, wrap_text
from rope_viz.figures.files.rich_text import Lines, parse
from rope_viz.figures.files.style import ERRORS
from rope_viz.figures.files.traces import dash_lengths, line_scale

# The theme without a known background, on which labels get no box.
CLEAR = "transparent"


def draw_shapes(plan: SheetLayout, places: Places, *, below: bool) -> None:
    """Draw the shapes below the data, or those above."""
    for shape in plan.sheet.layout.get("shapes", ()):
        is_bar = shape.get("name") == "band"
        if (shape.get("layer") == "below") == below and shape.get("visible") is not False and not is_bar:
            _draw_shape(plan, places, shape)


def _draw_shape(plan: SheetLayout, places: Places, shape: Mapping[str, Any]) -> None:
    panel = find_panel(plan, shape)
    line = shape.get("line") or {}
    width = float(line.get("width", 2 if shape["type"] != "rect" else 0)) * line_scale(plan)
    colour = str(line.get("color") or theme.TEXT)
    x = [_to_pixel(plan, panel, shape, "x", key) for key in ("x0", "x1")]
    y = [_to_pixel(plan, panel, shape, "y", key) for key in ("y0", "y1")]
    if not all(map(math.isfinite, [*x, *y])):
        return
    clip = panel.box
    if shape["type"] == "line":
        wide = 2.0
        frame = (clip[0] - wide, clip[1] - wide, clip[2] + wide, clip[3] + wide)
        plan.canvas.line(x, y, colour=colour, width=width, dash=dash_lengths(line.get("dash"), width), clip=frame)
        places.draw(x, y, clip, rule=True)
    elif shape["type"] == "rect":
        box = (min(x), min(y), max(x), max(y))
        edge = colour if width else ""
        plan.canvas.box(box, fill=str(shape.get("fillcolor") or ""), edge=edge, width=width, clip=clip)
    else:
        raise ValueError(ERRORS("shape_in_browsers", kind=shape["type"]))


def find_panel(plan: SheetLayout, item: Mapping[str, Any]) -> Panel:
    """Return the panel whose axes an item refers to."""
    x, y = (str(item.get(f"{letter}ref") or letter).replace(" domain", "") for letter in "xy")
    if x == "paper" and y == "paper":
        return plan.panels[0]
    return plan.panel(x if x != "paper" else "?", y if y != "paper" else "?")


def _to_pixel(
    plan: SheetLayout, panel: Panel, item: Mapping[str, Any], letter: str, key: str, *, note: bool = False
) -> float:
    """Return a position in pixels. Shapes hold values, notes coordinates; both may hold shares of the plot or panel."""
    ref = str(item.get(f"{letter}ref") or letter)
    axis = panel.x if letter == "x" else panel.y
    value = item[key]
    if ref == "paper":
        return plan.paper(letter, float(value))
    if ref.endswith(" domain"):
        return axis.start + float(value) * (axis.stop - axis.start)
    if isinstance(value, str):
        return float(axis.to_pixels([value])[0])
    if axis.log and not note and item.get("type") == "rect" and float(value) <= 0:
        return axis.start  # starts below anything a log axis can show
    return float(axis.pixel(float(value)) if note else axis.to_pixels([float(value)])[0])


def draw_labels(plan: SheetLayout, places: Places) -> None:
    """Draw all texts in and around the plots."""
    taken = {id(heading.note) for heading in plan.headings}
    colour = str(plan.sheet.layout["font"]["color"])
    for panel, strip in plan.strips:
        on_panel = [each for owner, each in plan.strips if owner is panel]
        lower = sum(strip_height([each for each in on_panel if each.level == level]) for level in range(strip.level))
        y = panel.box[1] - 2 * plan.scale - lower
        if strip.shape:
            draw_bar(plan, places, panel, strip, y)
            continue
        left = strip.box[0]
        places.reserve(plan.canvas.text(strip.lines, left, y, size=strip.size, colour=strip.colour, down="bottom"))
    for heading in plan.headings:
        _draw_heading(plan, places, heading, colour)
    ends: set[int] = set()
    for panel in plan.panels:
        end_notes = margins.end_labels(plan, panel)
        ends |= {id(note) for note, _ in end_notes}
        _draw_end_labels(plan, places, panel, end_notes, colour)
    for shape in plan.sheet.layout.get("shapes", ()):
        _draw_inner_label(plan, places, shape, colour)
    for note in plan.sheet.layout.get("annotations", ()):
        if id(note) not in taken | ends and note.get("visible") is not False and note.get("text"):
            _draw_note(plan, places, note, colour)


def _draw_heading(plan: SheetLayout, places: Places, heading: Heading, colour: str) -> None:
    strips = [strip for owner, strip in plan.strips if owner is heading.panel]
    high = sum(
        strip_height([each for each in strips if each.level == level])
        for level in range(1 + max((each.level for each in strips), default=-1))
    )
    wide, _ = plan.canvas.size(heading.lines, heading.size)
    left = heading.x - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[heading.across]
    left = min(max(left, PAD * plan.scale), plan.canvas.width - PAD * plan.scale - wide)
    ink = str((heading.note.get("font") or {}).get("color") or colour)
    bottom = heading.panel.box[1] - high - heading.shift
    align = heading.align if heading.align in ("left", "right") else "center"
    box = plan.canvas.text(heading.lines, left, bottom, size=heading.size, colour=ink, down="bottom", align=align)
    places.reserve(box)


def _draw_end_labels(
    plan: SheetLayout, places: Places, panel: Panel, ends: Sequence[tuple[Mapping[str, Any], float]], colour: str
) -> None:
    """Draw the labels to the right of line ends, shifted apart as little as needed."""
    if not ends:
        return
    rows = []
    for note, size in ends:
        lines = margins.end_lines(plan, note, size)
        high = margins.end_height(lines, size)
        rows.append((_to_pixel(plan, panel, note, "y", "y", note=True), high, lines, note, size))
    # Of equal values, the page has shifted the later ones up.
    rows.sort(key=lambda row: (row[0], -float(row[3].get("yshift") or 0)))
    middles = spread_labels([row[0] for row in rows], [row[1] for row in rows], panel.box[1], panel.box[3])
    for (_, _, lines, note, size), middle in zip(rows, middles, strict=True):
        ink = str((note.get("font") or {}).get("color") or colour)
        places.reserve(plan.canvas.text(lines, panel.box[2] + 6 * plan.scale, middle, size=size, colour=ink))


def _draw_inner_label(plan: SheetLayout, places: Places, shape: Mapping[str, Any], colour: str) -> None:
    label = shape.get("label") or {}
    panel = find_panel(plan, shape)
    if (
        not label.get("text")
        or shape.get("name") == "band"
        or any(strip.lines == parse(str(label["text"])) for _, strip in plan.strips)
    ):
        return
    x = [_to_pixel(plan, panel, shape, "x", key) for key in ("x0", "x1")]
    y = [_to_pixel(plan, panel, shape, "y", key) for key in ("y0", "y1")]
    left, top, right, bottom = panel.box
    inside = all(map(math.isfinite, [*x, *y])) and min(y) <= bottom + 1 and max(y) >= top - 1
    if not inside or min(x) > right + 1 or max(x) < left - 1:
        return
    size = font_size(label, plan.size * 12 / 13)
    lines = parse(str(label["text"]))
    s = plan.scale
    pad = float(label.get("padding", 3)) * s
    if shape["type"] == "line" and y[0] == y[1]:
        options = [
            (at, y[0] + up * pad, {"across": across, "down": down})
            for across, at in (("left", left + pad), ("right", right - pad), ("center", (left + right) / 2))
            for up, down in ((-0.3, "bottom"), (0.3, "top"))
        ]
    elif shape["type"] == "line":
        heights = (("bottom", bottom - pad), ("top", top + pad), ("middle", (top + bottom) / 2))
        options = [
            (x[0] + side * (pad + s), at, {"across": across, "down": down})
            for down, at in heights
            for side, across in ((1, "left"), (-1, "right"))
        ]
    else:
        ends = [max(min(x), left), min(max(x), right)]
        rows = [max(min(y), top), min(max(y), bottom)]
        down, _, across = str(label.get("textposition", "middle center")).partition(" ")
        levels = {"top": rows[0] + pad, "middle": sum(rows) / 2, "bottom": rows[1] - pad}
        across = across or "center"  # other values, such as "start", apply to lines
        at = {"left": ends[0] + pad, "center": sum(ends) / 2, "right": ends[1] - pad}[across]
        order = sorted(levels, key=lambda name: name != down)
        options = [(at, levels[name], {"across": across, "down": name}) for name in order]
    _draw_text(
        plan, places, lines, options, size, str((label.get("font") or {}).get("color") or colour), inside=panel.box
    )


def _draw_note(plan: SheetLayout, places: Places, note: Mapping[str, Any], colour: str) -> None:
    panel, s = find_panel(plan, note), plan.scale
    x = _to_pixel(plan, panel, note, "x", "x", note=True)
    y = _to_pixel(plan, panel, note, "y", "y", note=True)
    left, top, right, bottom = panel.box
    if not (math.isfinite(x) and math.isfinite(y)) or not (left - 2 <= x <= right + 2 and top - 2 <= y <= bottom + 2):
        return
    size = font_size(note, plan.size)
    # Shrink the font rather than wrap, but only down to 78 %.
    room = max(right - left - 4 * s, 60.0 * s)
    wide, _ = plan.canvas.size(parse(str(note["text"])), size)
    size *= min(1.0, max(room / wide, 0.78)) if wide else 1.0
    lines = wrap_text(plan, str(note["text"]), room, size)
    ink = str((note.get("font") or {}).get("color") or colour)
    ground = str(note.get("bgcolor") or "")
    across = {"left": "left", "right": "right"}.get(str(note.get("xanchor")), "center")
    down = {"top": "top", "bottom": "bottom"}.get(str(note.get("yanchor")), "middle")
    if note.get("showarrow") is not False:
        reach = [float(note.get("ax") or 0) * s, float(note.get("ay", -30)) * s]
        options = []
        for far in (1.0, 0.7, 1.5, 2.0):
            for up in (1.0, -1.0):
                for side in (across, "left", "right", "center"):
                    options.append((x + far * reach[0], y + far * up * reach[1], {"across": side, "down": "middle"}))
        box = _draw_text(plan, places, lines, options, size, ink, inside=panel.box, ground=ground, within=True)
        _draw_arrow(plan, (x, y), box, str(note.get("arrowcolor") or ink))
        return
    dx, dy = float(note.get("xshift") or 0) * s, -float(note.get("yshift") or 0) * s
    step = LEADING * size
    options = [(x + dx, y + dy, {"across": across, "down": down})]
    others = {"left": ("right", "center"), "right": ("left", "center"), "center": ("left", "right")}[across]
    for up in (0.0, -0.75, 0.75, -1.5, 1.5, -2.5, 2.5, -3.5, 3.5):
        for side in (across, *others):
            shift = dx if side == across else {"left": 1, "right": -1, "center": 0}[side] * (abs(dx) + 3 * s)
            options.append((x + shift, y + (dy if side == across else 0.0) + up * step, {"across": side, "down": down}))
    _draw_text(plan, places, lines, options, size, ink, inside=panel.box, ground=ground)


def _draw_text(
    plan: SheetLayout,
    places: Places,
    lines: Lines,
    options: Sequence[tuple[float, float, Mapping[str, str]]],
    size: float,
    colour: str,
    *,
    inside: Box,
    ground: str = "",
    within: bool = False,
) -> Box:
    """Draw a text at the best of several positions inside the sheet; `within` prefers the plot."""
    boxes = [plan.canvas.extent(lines, x, y, size=size, **place) for x, y, place in options]
    if within or _share_inside(boxes[0], inside) >= 0.5:
        boxes = [_fit_box(box, inside, 1.0) for box in boxes]
    boxes = [_fit_box(box, (0.0, 0.0, plan.canvas.width, plan.canvas.height), 2.0) for box in boxes]
    # Distance costs: a label should be close to what it names. The unit is a line of text.
    away = [0.5 * math.hypot(x - options[0][0], y - options[0][1]) / size for x, y, _ in options]
    sides = [0.2 * (place["across"] != options[0][2]["across"]) for _, _, place in options]
    box = boxes[places.pick_best(boxes, [a + b for a, b in zip(away, sides, strict=True)], inside=inside)]
    on_map = any(trace.get("type") == "heatmap" for trace in plan.sheet.data)
    trim = 0.15 * size  # labels of rules are close to their rule
    core = (box[0], box[1] + trim, box[2], box[3] - trim)
    on_lines = places.ink_share(core) + places.rule_share(core) > 0 and plan.sheet.style.theme != CLEAR
    if not ground and (on_map or on_lines):
        # A background keeps a label legible on a map, and on lines it cannot avoid.
        paper = str(plan.sheet.layout.get("paper_bgcolor", theme.BACKGROUND))[:7]
        ground = theme.tint(paper, 0.75)
    if ground:
        plan.canvas.box(box, fill=ground)
    _, high = plan.canvas.size(lines, size)
    align = str(options[0][2].get("across", "left"))
    plan.canvas.text(lines, box[0], box[1] + high / 2, size=size, colour=colour, align=align)
    return places.reserve(box)


def _share_inside(box: Box, frame: Box) -> float:
    wide, high = (min(box[i + 2], frame[i + 2]) - max(box[i], frame[i]) for i in (0, 1))
    return max(wide, 0.0) * max(high, 0.0) / (((box[2] - box[0]) * (box[3] - box[1])) or 1.0)


def _fit_box(box: Box, frame: Box, pad: float) -> Box:
    """Move a box into a frame, in each direction in which it fits."""
    moved = list(box)
    for i in (0, 1):
        low, high = frame[i] + pad, frame[i + 2] - pad
        if box[i + 2] - box[i] <= high - low or frame[i] == 0.0:
            by = max(low - box[i], 0.0) + min(high - box[i + 2], 0.0)
            moved[i], moved[i + 2] = box[i] + by, box[i + 2] + by
    return moved[0], moved[1], moved[2], moved[3]


def _draw_arrow(plan: SheetLayout, tip: tuple[float, float], box: Box, colour: str) -> None:
    start = (min(max(tip[0], box[0]), box[2]), box[3] if tip[1] > box[3] else box[1] if tip[1] < box[1] else tip[1])
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    far, s = math.hypot(dx, dy), plan.scale
    if far < 4 * s:
        return
    ux, uy, head = dx / far, dy / far, 5.0 * s
    base = (tip[0] - head * ux, tip[1] - head * uy)
    plan.canvas.line([start[0], base[0]], [start[1], base[1]], colour=colour, width=line_scale(plan))
    wing = 0.35 * head
    ring = [tip, (base[0] - wing * uy, base[1] + wing * ux), (base[0] + wing * uy, base[1] - wing * ux)]
    plan.canvas.area([ring], fill=colour)
