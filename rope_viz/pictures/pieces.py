"""A choice that is a line put together from pieces, such as a prompt of text and images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.pictures.choices import Line
from rope_viz.pictures.picture_request import Now


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces(Line):
    """A line that is put together from pieces, at most `count` of them.

    `parts` are the pieces of a line as plain data, `kinds` the kinds that can be added beside the rest.
    """

    parts: Callable[[str], Sequence[Mapping[str, Any]]]
    kinds: Callable[[Now], Sequence[str]]
    count: int

    def says(self) -> str:
        return f"pieces with commas between them, such as {self.usual}"
