"""A prompt as cards, one for each piece, that are changed, moved and taken away; and as the line that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rope_viz.figures.prompt import TINTS
from rope_viz.ui.components.component import component, heard, hears
from rope_viz.ui.components.sections import both

CARD, FOOT, ACROSS = 90, 72, 5  # pixels of a card and of what stands below, and cards beside each other


def prompt(
    key: str,
    choice: str,
    line: str,
    pieces: Sequence[Mapping[str, Any]] | None,
    changed: Callable[[str], None],
    *,
    kinds: Sequence[str],
    most: int,
    longest: int,
) -> None:
    """The builder of `line`, which its `pieces` say; None where it cannot be read, and the last cards stay.

    `changed` takes the new line before the next run. `kinds` of pieces are offered, at most `most` of them; a line has
    at most `longest` characters.
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
        "taken": heard(key),
        "room": (CARD * -(-count // ACROSS) + FOOT, CARD * count + FOOT),
    }
    component("prompt", root_class="rv-prompt")(key=key, data=data, on_at_change=hears(key, take))
