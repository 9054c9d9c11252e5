"""A bar whose borders are dragged: how the pairs are divided among the axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from rope_viz.figures import theme
from rope_viz.figures.axes import look
from rope_viz.ui.components.component import component

HEIGHT = 40


def sections(key: str, choice: str, shares: Mapping[str, int], changed: Callable[[str], None]) -> None:
    """The bar of `shares` (axis -> pairs). `changed` takes the new ones as text, once a border is let go.

    Until then the pictures that use the choice follow.
    """

    def at_changed() -> None:
        at = st.session_state[key]["at"]
        if isinstance(at, Mapping) and isinstance(at.get("counts"), str):
            changed(at["counts"])

    looks = {axis: look(axis) for axis in shares}
    parts = [
        {"word": each.word, "letter": each.letter if each.word != each.letter else "", "colours": both(each.colour)}
        for each in looks.values()
    ]
    counts = list(shares.values())
    mount = component("sections", root_class="rv-sections", height=HEIGHT)
    mount(
        key=key,
        data={"key": choice, "parts": parts, "counts": counts, "total": sum(counts)},
        on_at_change=at_changed,
    )


def both(colour: str) -> list[str]:
    """A colour and its dark twin."""
    return [colour, theme.DARK[colour]]
