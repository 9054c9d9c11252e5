"""Layout of a figure on a sheet: panels with room for their ticks, titles, headings and end labels.

Plotly's margins suit one font size and a wide screen. Here they are computed from their contents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rope_viz.figures.files.apply_style import Sheet
from rope_viz.figures.files.axes import Axis, read_axes
from rope_viz.figures.files.canvas import LEADING, Box, Canvas
from rope_viz.figures.files.rich_text import Lines, TextSpan, parse, wrap_lines

TICK, PAD = 4.0, 5.0
# Height of a bar of bands with the gap above it, for labels of 12 pixels.
BAR = 6.0
# Font size of the title, relative to the default.
BIGGER = 1.15
# An end label is placed outside the plot if its line ends this near to the border, in pixels.
NEAR = 14.0
Interval = tuple[float, float]


@dataclass
class Panel:
    """One plot: its axes, its column and row, and the box of its data."""

    x: Axis
    y: Axis
    column: int
    row: int
    box: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass
class Strip:
    """A label above a plot at a position on its x axis: of a rule, or of a range of pairs."""

    lines: Lines
    x: float
    size: float
    colour: str
    across: str = "center"
    level: int = 0
    box: Box = (0.0, 0.0, 0.0, 0.0)
    shape: Mapping[str, Any] | None = None  # of a bar, which is below its label


def strip_height(strips: Sequence[Strip]) -> float:
    """Return the height in pixels of one level of strips, with the bars below the labels."""
    text = max((text_height(each.lines, each.size) for each in strips), default=0.0)
    return text + max((BAR * each.size / 12 for each in strips if each.shape), default=0.0)


@dataclass
class Heading:
    """A note above a plot, wrapped to fit."""

    panel: Panel
    lines: Lines
    x: float
    size: float
    across: str
    align: str
    note: Mapping[str, Any]
    shift: float


@dataclass
class SheetLayout:
    """The layout of a sheet."""

    sheet: Sheet
    canvas: Canvas
    vector: bool
    axes: dict[str, Axis]
    panels: list[Panel]
    columns: list[Interval]
    rows: list[Interval]
    strips: list[tuple[Panel, Strip]] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    titles: dict[str, Lines] = field(default_factory=dict)
    heading: Lines = field(default_factory=list)
    legend: list[tuple[Box, Mapping[str, Any], Lines]] = field(default_factory=list)
    bar_room: tuple[float, float] = (0.0, 0.0)  # pixels for colour bars on the right and at the bottom
    column_pixels: list[Interval] = field(default_factory=list)
    row_pixels: list[Interval] = field(default_factory=list)

    @property
    def size(self) -> float:
        """Return the default font size in pixels."""
        return self.sheet.style.font_px

    @property
    def scale(self) -> float:
        return self.sheet.scale

    def panel(self, x: str, y: str) -> Panel:
        found = next((panel for panel in self.panels if panel.x.name == x and panel.y.name == y), None)
        return found or next((panel for panel in self.panels if x == panel.x.name or y == panel.y.name), self.panels[0])

    def paper(self, letter: str, share: float) -> float:
        """Convert a share of the full plot to a pixel; shares keep their panel, whatever the gaps between panels."""
        spans, pixels = (self.columns, self.column_pixels) if letter == "x" else (self.rows, self.row_pixels)
        at = [edge for span in spans for edge in span]
        to = [edge for span in pixels for edge in span]
        if share <= at[0] or len(at) == 2:
            first = 0
        else:
            first = min(max(i for i in range(len(at) - 1) if at[i] <= share), len(at) - 2)
        wide = at[first + 1] - at[first]
        return to[first] + (share - at[first]) / (wide or 1.0) * (to[first + 1] - to[first])


def start_plan(sheet: Sheet, canvas: Canvas, *, vector: bool) -> SheetLayout:
    """Return the panels of a sheet by column and row; `margins.place_panels` computes their boxes."""
    axes = read_axes(sheet.layout, sheet.data)
    columns, rows = _find_spans(axes, "x"), _find_spans(axes, "y")
    plan = SheetLayout(sheet, canvas, vector, axes, [], columns, rows)
    pairs = dict.fromkeys((trace.get("xaxis") or "x", trace.get("yaxis") or "y") for trace in sheet.data)
    for x, y in pairs or {("x", "y"): None}:  # a table has no traces
        plan.panels.append(Panel(axes[x], axes[y], _find_span(columns, axes[x], axes), _find_span(rows, axes[y], axes)))
    return plan


def _find_spans(axes: Mapping[str, Axis], letter: str) -> list[Interval]:
    """Return the domains of the axes of one direction, sorted; one span for all if they overlap."""
    found = {_read_domain(axis, axes) for name, axis in axes.items() if name[0] == letter}
    spans = sorted(found)
    disjoint = all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(spans))
    return spans if disjoint else [(0.0, 1.0)]


def _read_domain(axis: Axis, axes: Mapping[str, Axis]) -> Interval:
    over = axis.properties.get("overlaying")
    given = axes[over].properties if isinstance(over, str) and over in axes else axis.properties
    low, high = given.get("domain") or (0.0, 1.0)
    return float(low), float(high)


def _find_span(spans: Sequence[Interval], axis: Axis, axes: Mapping[str, Axis]) -> int:
    span = _read_domain(axis, axes)
    return spans.index(span) if span in spans else 0


def wrap_text(plan: SheetLayout, words: str, widest: float, size: float, *, bold: bool = False) -> Lines:
    """Wrap a text to a width in pixels."""
    lines = parse(words)
    if bold:
        lines = [[TextSpan(run.text, True, run.colour) for run in line] for line in lines]
    return wrap_lines(lines, widest, lambda run: plan.canvas.measure(run, size))


def text_height(lines: Lines, size: float) -> float:
    """Return the height of lines of text."""
    return len(lines) * LEADING * size if lines else 0.0


def font_size(item: Mapping[str, Any], usual: float, key: str = "font") -> float:
    """Return the font size of a part of a layout."""
    size = (item.get(key) or {}).get("size")
    return float(size) if isinstance(size, (int, float)) and math.isfinite(size) else usual
