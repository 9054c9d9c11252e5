"""The kinds of pictures: a figure, the clocks, a table; each with its title for who cannot see it, and its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import plotly.graph_objects as go

ROW = 35
"""The height of a row of a table in pixels; its head is as high."""

Columns: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A Plotly figure.

    `title` is its accessible name, `sentence` says what to look for (of Markdown: **bold**, *emphasis*, `code`).
    `variant` names which of several figures this place now shows: zooms are kept within one. `pins` is the axis ("x" or
    "y") along which a click names a pair, or the number that the picture `sets`; empty where a click means nothing.
    """

    fig: go.Figure
    title: str
    sentence: str = ""
    variant: str = ""
    pins: str = ""


@dataclass(frozen=True)
class Clocks:
    """The pairs of a spec turning, as `figures.clocks` packs them for the browser."""

    message: Mapping[str, Any]
    sentence: str = ""
    variant: str = ""

    @property
    def title(self) -> str:
        """The accessible name."""
        return str(self.message["title"])


@dataclass(frozen=True)
class Patch(Clocks):
    """The pairs of one patch of an image, which moves over its grid, as `figures.patch` packs them for the browser."""


@dataclass(frozen=True)
class Table:
    """Numbers or words in columns of equal length, or as rows; `title` says what they are of.

    `words`: a table to read, every text whole, on as many lines as it takes.
    """

    columns: Columns
    title: str
    sentence: str = ""
    words: bool = False
    variant: str = ""


Kind: TypeAlias = Figure | Clocks | Table

KINDS: dict[type[Kind], str] = {Figure: "chart", Clocks: "clocks", Patch: "patch", Table: "table"}
"""What the browser calls them."""
