"""A picture shown alone and large, for a talk: the address has `present=1`, or the name of a picture of the page."""

from __future__ import annotations

import streamlit as st

from rope_viz.embedding.spec import short_repr
from rope_viz.pages import registry
from rope_viz.pages.registry import FIRST, TITLES, groups_of
from rope_viz.picture.choices import Number
from rope_viz.picture.outputs import Clocks
from rope_viz.picture.page import Picture
from rope_viz.texts import Texts
from rope_viz.ui import controls, state, widgets
from rope_viz.ui.components.component import component
from rope_viz.ui.components.picture import place
from rope_viz.ui.notes import warn

TEXTS = Texts("app")
MAIN = "1"
POSITIONS = ("position", "m", "at", "offset")
"""Names of the choices that are a position or a distance in tokens."""
LENGTHS = ("context", "target")


def find_presented(page: str) -> Picture | None:
    """Return the picture that the address asks to present, None for none. Show a warning for an unknown one."""
    name = st.query_params.get(state.PRESENTED)
    if name is None:
        return None
    found = {each.name: each for group in groups_of(page) for each in registry.page(group).pictures.values()}
    drawn = {each: picture for each, picture in found.items() if not picture.refuses(state.now(picture.page))}
    first = FIRST.get(page, "").rpartition("/")[2]
    presented = drawn.get(first) or next(iter(drawn.values()), None) if name == MAIN else drawn.get(name)
    if presented is None:
        warn(TEXTS("present.unknown", name=short_repr(name), pictures=", ".join(drawn) or TEXTS("present.none")))
    return presented


def show_presented(page: str, picture: Picture) -> None:
    """Show a picture with its sentence, and below it the sliders and the script that listens to the keys."""
    now = state.now(picture.page)
    positions = [
        each for each in picture.uses if isinstance(each, Number) and each.name in POSITIONS and each.when(now)
    ]
    with st.container(key="present"):
        st.title(TITLES[page], anchor=False)
        st.html(f'<p class="rv-says" data-says="{picture.address}"></p>')
        place(picture, now)
        with st.container(key="present-bar"):
            if positions:
                widgets.sliders(positions[:1], now)
            length = controls.presented_knobs(LENGTHS)
            data = {
                "picture": picture.address,
                "position": positions[0].name if positions else "",
                "clocks": picture.kind is Clocks,
                "length": length,
            }
            component("present", root_class="rv-present", height=44)("present keys", data, take_message)


def take_message(name: str, value: object) -> None:
    """Show the page again (a callback)."""
    if name == "leave":
        state.present("")
