"""A bar with movable borders that divides the pairs among the axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rope_viz.figures import theme
from rope_viz.pages.axes.figures import TEXTS, look
from rope_viz.ui.components.component import component
from rope_viz.ui.components.sent_values import is_text

HEIGHT = 40


def sections(choice: str, shares: Mapping[str, int], changed: Callable[[str], None]) -> None:
    """Show the bar of `shares` (axis -> pairs); `changed` receives the new ones as text when a border is released.

    Until then only the pictures that use the choice follow.
    """

    def take(_: str, counts: Any) -> None:
        if isinstance(counts, str):
            changed(counts)

    parts = [
        {"word": each.word, "letter": each.letter if each.word != each.letter else "", "colours": both(each.colour)}
        for each in map(look, shares)
    ]
    counts = list(shares.values())
    texts = dict(TEXTS.group("sections"))
    data = {"key": choice, "parts": parts, "counts": counts, "total": sum(counts), "texts": texts}
    component("sections", root_class="rv-sections", height=HEIGHT)(f"bar.{choice}", data, take, is_text)


def both(colour: str) -> list[str]:
    """Return a colour and its dark variant."""
    return [colour, theme.DARK[colour]]
