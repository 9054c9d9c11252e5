"""A prompt builder: one editable, movable card per piece, and the same prompt as a line of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rope_viz.pages.axes.figures import TEXTS
from rope_viz.pages.axes.prompt import TINTS
from rope_viz.ui.components.component import component
from rope_viz.ui.components.sections import both
from rope_viz.ui.components.sent_values import is_text

CARD, FOOT, ACROSS = 90, 72, 5  # pixels of a card and of the part below, and cards per row


def prompt(
    choice: str,
    line: str,
    pieces: Sequence[Mapping[str, Any]] | None,
    changed: Callable[[str], None],
    *,
    kinds: Sequence[str],
    most: int,
    longest: int,
) -> None:
    """Show the builder of `line`, parsed into `pieces` (None if unreadable: the last cards stay).

    `changed` receives the new line before the next run. `kinds` are offered, at most `most` pieces and `longest`
    characters.
    """

    def take(_: str, value: Any) -> None:
        if isinstance(value, str):
            changed(value[:longest])

    count = 1 if pieces is None else len(pieces)
    data = {
        "key": choice,
        "line": line,
        "pieces": pieces,
        "kinds": kinds,
        "most": most,
        "longest": longest,
        "colours": {what: both(colour) for what, colour in TINTS.items() if colour},
        "texts": dict(TEXTS.group("cards")),
        "room": (CARD * -(-count // ACROSS) + FOOT, CARD * count + FOOT),
    }
    component("prompt", root_class="rv-prompt")(f"prompt.{choice}", data, take, is_text)
