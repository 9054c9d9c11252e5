"""Render a figure as svg, pdf or png: layout first, then drawing from back to front."""

from __future__ import annotations

import contextlib
import functools
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import theme
from rope_viz.figures.files import colourbars, margins, shape_annotations, traces
from rope_viz.figures.files import lines as named
from rope_viz.figures.files.apply_style import apply_style
from rope_viz.figures.files.axes import Axis
from rope_viz.figures.files.canvas import LEADING, Canvas, apply_settings
from rope_viz.figures.files.label_placement import Places
from rope_viz.figures.files.layout import BIGGER, PAD, TICK, Panel, SheetLayout, start_plan, wrap_text
from rope_viz.figures.files.load_matplotlib import load_matplotlib
from rope_viz.figures.files.style import ERRORS, Style
from rope_viz.figures.files.traces import SYMBOLS, dash_lengths, line_scale
from rope_viz.texts import Texts, current_language
from rope_viz.texts.languages import ENGLISH

LANGUAGE = Texts("language")


def draw_background(plan: SheetLayout) -> None:
    """Draw the plots' background and grid, below everything else."""
    for panel in plan.panels:
        colour = str(plan.sheet.layout.get("plot_bgcolor", theme.BACKGROUND))
        if not panel.y.properties.get("overlaying") and colour != plan.sheet.layout.get("paper_bgcolor"):
            plan.canvas.box(panel.box, fill=colour)
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            grid = (
                axis.properties.get("showgrid") is not False
                and axis.is_visible
                and not axis.properties.get("overlaying")
            )
            for at, _ in axis.ticks if grid else ():
                _draw_grid_line(plan, panel, axis, at, str(axis.properties.get("gridcolor") or theme.GRID), 0.8)


def draw_zero_lines(plan: SheetLayout) -> None:
    """Draw the line at 0 on axes that have one."""
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            if axis.properties.get("zeroline") and not axis.log and axis.contains(0.0):
                _draw_grid_line(plan, panel, axis, 0.0, str(axis.properties.get("zerolinecolor") or theme.RULE), 1.0)


def _draw_grid_line(plan: SheetLayout, panel: Panel, axis: Axis, at: float, colour: str, width: float) -> None:
    left, top, right, bottom = panel.box
    pixel = float(axis.pixel(at))
    ends = ([left, right], [pixel] * 2) if axis.is_vertical else ([pixel] * 2, [top, bottom])
    plan.canvas.line(*ends, colour=colour, width=width * line_scale(plan))


def draw_axes(plan: SheetLayout) -> None:
    """Draw axis lines, ticks with labels, and axis titles."""
    drawn: set[tuple[str, tuple[float, ...]]] = set()
    for panel in plan.panels:
        for axis in (panel.x, panel.y):
            if axis.is_visible and (axis.name, panel.box) not in drawn:
                drawn.add((axis.name, panel.box))
                _draw_axis(plan, panel, axis)


def _draw_axis(plan: SheetLayout, panel: Panel, axis: Axis) -> None:
    canvas, s = plan.canvas, plan.scale
    left, top, right, bottom = panel.box
    rule, tick = (str(axis.properties.get(key) or theme.RULE) for key in ("linecolor", "tickcolor"))
    width = line_scale(plan)
    if axis.properties.get("showline"):
        if axis.is_vertical:
            sides = [left, right] if axis.properties.get("mirror") else [right if axis.is_opposite else left]
            for x in sides:
                canvas.line([x, x], [top, bottom], colour=rule, width=width, cap="projecting")
        else:
            for y in [top, bottom] if axis.properties.get("mirror") else [bottom]:
                canvas.line([left, right], [y, y], colour=rule, width=width, cap="projecting")
    marks = 0.0 if axis.properties.get("ticks") == "" else TICK * s
    colour = str(plan.sheet.layout["font"]["color"])
    ink = str((axis.properties.get("tickfont") or {}).get("color") or colour)
    size = margins.tick_size(plan, axis)
    out = 1.0 if axis.is_opposite else -1.0
    base = right if axis.is_opposite else left
    for at, words in axis.ticks:
        pixel = float(axis.pixel(at))
        if axis.is_vertical:
            if marks:
                canvas.line([base, base + out * marks], [pixel] * 2, colour=tick, width=width)
            if any(words):
                across = "left" if axis.is_opposite else "right"
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
    _draw_title(
        plan, panel, axis, base + out * margins.ticks_depth(plan, axis), bottom + margins.ticks_depth(plan, axis)
    )


def _draw_title(plan: SheetLayout, panel: Panel, axis: Axis, side_x: float, below_y: float) -> None:
    if not axis.title:
        return
    s, size = plan.scale, margins.title_size(plan, axis)
    margins.title_depth(plan, axis, panel)
    words = plan.titles[axis.name]
    left, top, right, bottom = panel.box
    colour = str(
        ((axis.properties.get("title") or {}).get("font") or {}).get("color") or plan.sheet.layout["font"]["color"]
    )
    look: dict[str, Any] = {"size": size, "colour": colour, "across": "center", "align": "center"}
    if axis.is_vertical:
        turn = 90.0 if axis.is_opposite else -90.0
        x = side_x + (4 * s if axis.is_opposite else -4 * s)
        plan.canvas.text(words, x, (top + bottom) / 2, angle=turn, down="bottom", **look)
    else:
        middle = (left + right) / 2
        wide, _ = plan.canvas.size(words, size)
        middle = min(max(middle, wide / 2 + PAD * s), plan.canvas.width - wide / 2 - PAD * s)
        plan.canvas.text(words, middle, below_y + 2 * s, down="top", **look)


def draw_legend(plan: SheetLayout) -> None:
    """Draw the legend: a sample and a name per line, in rows above the plots."""
    s, k = plan.scale, line_scale(plan)
    colour = str(plan.sheet.layout["font"]["color"])
    size = plan.size * 12 / 13
    for (left, top, _, _), trace, words in plan.legend:
        middle = top + plan.size * 1.35 / 2
        ink, dash, width = named.read_look(trace)
        start, stop = left, left + 26 * s
        if trace.get("type") == "bar":
            plan.canvas.box((start + 6 * s, middle - 4 * s, stop - 6 * s, middle + 4 * s), fill=ink)
        elif "lines" in (trace.get("mode") or "lines"):
            strokes = dash_lengths(dash, width * k)
            plan.canvas.line([start, stop], [middle] * 2, colour=ink, width=width * k, dash=strokes)
        if "markers" in (trace.get("mode") or "lines") and trace.get("type") != "bar":
            marker = trace.get("marker") or {}
            symbol = SYMBOLS.get(str(marker.get("symbol") or "circle"), "o")
            look: dict[str, Any] = {"fill": ink, "edge": "", "width": 0.0, "clip": None}
            wide = float(marker.get("size") or 6) * k
            plan.canvas.markers([(start + stop) / 2], [middle], symbol=symbol, size=wide, **look)
        first = middle - LEADING * size / 2
        plan.canvas.text(words, start + margins.KEY * s - 2 * s, first, size=size, colour=colour, down="top")


def draw_heading(plan: SheetLayout) -> None:
    """Draw the title of the figure."""
    if plan.heading:
        pad, colour = PAD * plan.scale, str(plan.sheet.layout["font"]["color"])
        plan.canvas.text(plan.heading, pad, pad, size=plan.size * BIGGER, colour=colour, down="top")


MARK = 1.7
"""Height of the line below the figure, in sizes of its font."""


def draw_mark(plan: SheetLayout, mark: str, height: float) -> None:
    """Draw the line that names where a figure is from, at the right end of the sheet's lower edge."""
    pad, size = PAD * plan.scale, plan.size
    at = {"across": "right", "down": "middle", "align": "right"}
    colour = str(plan.sheet.layout["font"]["color"])
    words = wrap_text(plan, mark, plan.sheet.width - 2 * pad, size)
    plan.canvas.text(words, plan.sheet.width - pad, plan.sheet.height + height / 2, size=size, colour=colour, **at)


BOXES = "Last Resort"
"""How the names of fonts begin whose glyphs are all placeholder boxes."""


class MissingFontError(ValueError):
    """No installed font has the characters of the current language; the message names one to install."""


def find_families(style: Style, shown: str = "") -> tuple[str, ...]:
    """Return the fonts to draw with: those of the style, then installed ones needed for its title and labels.

    `shown` are further characters, those of the figure's texts. Raise `ValueError` with the characters of the style
    that no font has, and `MissingFontError` for those of the figure.
    """
    load_matplotlib()
    from matplotlib.font_manager import FontProperties, findfont

    own = style.families
    words = style.title + style.mark + "".join(label for _, label in style.labels)
    if not words + shown:
        return own
    usual = (str(findfont(FontProperties(family=family))) for family in own)
    lacks = {sign for sign in words + shown if not is_invisible(sign)}.difference(*map(read_characters, usual))
    more, files = list[str](), find_font_files() if lacks else {}
    preferred = [name for name in LANGUAGE.entries["fonts"].split(", ") if name in files]
    for name in dict.fromkeys([*preferred, *sorted(files)]):
        if found := lacks & read_characters(files[name]):
            more.append(name)
            lacks -= found
    if lacks and not lacks.intersection(words):
        raise MissingFontError(LANGUAGE("missing_font"))
    if lacks:
        lacks &= set(words)
        missing = "".join(sorted(lacks, key=words.index))
        shown = missing if len(lacks) == 1 else short_repr(missing)
        raise ValueError(ERRORS("no_glyph", count=len(lacks), signs=shown))
    return (*own, *more)


def list_characters(value: Any) -> set[str]:
    """Return the characters of all texts in a figure's data or layout."""
    if isinstance(value, str):
        return set(value)
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple) and getattr(getattr(value, "dtype", None), "kind", "") not in ("O", "U"):
        return set()
    return set().union(*map(list_characters, value))


def is_invisible(sign: str) -> bool:
    """Return True for characters without a glyph of their own: joiners and variation selectors."""
    return unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def find_font_files() -> dict[str, str]:
    """Return {name: file} of the fonts of this machine, which may have others than when Matplotlib listed them."""
    load_matplotlib()
    from matplotlib.font_manager import findSystemFonts, fontManager

    for file in sorted({*findSystemFonts()}.difference(entry.fname for entry in fontManager.ttflist)):
        with contextlib.suppress(OSError, RuntimeError):  # no readable font
            fontManager.addfont(file)
    listed = (entry for entry in fontManager.ttflist if not entry.name.startswith(BOXES))
    return {entry.name: entry.fname for entry in listed if Path(entry.fname).is_file()}


@functools.lru_cache(maxsize=256)
def read_characters(file: str) -> frozenset[str]:
    """Return the characters of a font file."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(file).get_charmap()))


def draw(fig: go.Figure, form: str, style: Style, title: str, metadata: Mapping[str, str | None]) -> bytes:
    """Return the bytes of the file; raise `ValueError` without Matplotlib, or if the style does not fit the figure."""
    with apply_settings():
        below = MARK * style.font_px if style.mark else 0.0
        if below and style.height:
            style = replace(style, height=f"{style.height_px(0.0) - below:.2f}px")
        sheet = apply_style(fig, style, title)
        ground = str(sheet.layout.get("paper_bgcolor", "#FFFFFF"))
        # The usual fonts have all signs of the figures in English.
        is_english = current_language() == ENGLISH
        shown = "" if is_english else "".join(sorted(list_characters([sheet.data, sheet.layout, sheet.title])))
        families = find_families(style, shown)
        canvas = Canvas(sheet.width, sheet.height, families=families, background=ground, below=below)
        plan = start_plan(sheet, canvas, vector=form != "png")
        margins.place_panels(plan)
        places = Places(sheet.width, sheet.height)
        draw_background(plan)
        shape_annotations.draw_shapes(plan, places, below=True)
        draw_zero_lines(plan)
        traces.draw(plan, places)
        draw_axes(plan)
        shape_annotations.draw_shapes(plan, places, below=False)
        colourbars.draw(plan)
        draw_legend(plan)
        shape_annotations.draw_labels(plan, places)
        draw_heading(plan)
        if style.mark:
            draw_mark(plan, style.mark, below)
        return canvas.write(form, sheet.style.dpi if form == "png" else traces.MAP_DPI, metadata)
