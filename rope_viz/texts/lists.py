"""Lists inside sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.texts.texts import Sentence, Texts

TEXTS = Texts("lists")


def join_list(items: Sequence[str]) -> Sentence:
    """Return "a, b and c" with the values and entries of all items; empty for no items."""
    joined = ""
    for index, item in enumerate(items):
        is_last = index == len(items) - 1
        joined = TEXTS("end" if is_last else "more", items=joined, item=item) if index else item
    return joined if isinstance(joined, Sentence) else Sentence(joined)
