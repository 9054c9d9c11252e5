"""The kinds of pictures: a figure, a table or one that moves, each with an accessible title and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import plotly.graph_objects as go

from rope_viz.figures import clocks, hands

ROW = 35
"""Pixels: the height of a table row, and of the table's head."""

Columns: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A Plotly figure.

    `title` is its accessible name, `sentence` tells what to look for (Markdown: **bold**, *emphasis*, `code`).
    `variant` distinguishes figures that share a place: a zoom applies to one of them only. `pins` is the axis ("x" or
    "y") along which a click selects a pair, or the number that the picture `sets`, or "cell" for the cells of a map,
    counted column by column; "" if a click has no effect.
    """

    renderer: ClassVar[str] = "chart"
    """The name of the browser's script that shows this kind."""
    fig: go.Figure
    title: str
    sentence: str = ""
    variant: str = ""
    pins: str = ""


@dataclass(frozen=True)
class Clocks:
    """The pairs of a spec as rotating clocks, packed by `figures.clocks`."""

    renderer: ClassVar[str] = "clocks"
    message: Mapping[str, Any]
    sentence: str = ""
    variant: str = ""

    def draw_static(self) -> go.Figure:
        """Draw it for a file that does not move."""
        return clocks.still(self.message)

    def numbers(self) -> Mapping[str, Any]:
        """Return its numbers by column."""
        return clocks.numbers(self.message)

    @property
    def title(self) -> str:
        return str(self.message["title"])


@dataclass(frozen=True)
class Hands(Clocks):
    """A query and a key as the hands of a circle, movable by their words, packed by `figures.hands`."""

    renderer: ClassVar[str] = "hands"

    def draw_static(self) -> go.Figure:
        return hands.draw_static(self.message)

    def numbers(self) -> Mapping[str, Any]:
        return hands.numbers(self.message)


@dataclass(frozen=True)
class Table:
    """A table of numbers or text, given as columns of equal length or as rows; `title` is its accessible name.

    `words`: a table of text, shown in full with line breaks.
    """

    renderer: ClassVar[str] = "table"
    columns: Columns
    title: str
    sentence: str = ""
    words: bool = False
    variant: str = ""


@dataclass(frozen=True)
class Grid(Table):
    """A table whose first column names the rows and whose other cells can be chosen by a click or a key.

    `states` are the verdicts of those cells, row by row; the page shows the sign and the first letter of each, and the
    rest of its text where there is room. `chosen` is the number of the chosen cell, counted in the same way. `letters`
    replace the first letters; text in brackets is then for screen readers alone.
    """

    renderer: ClassVar[str] = "grid"
    states: Sequence[str] = ()
    chosen: int = 0
    letters: Sequence[str] = ()


Kind: TypeAlias = Figure | Clocks | Table
