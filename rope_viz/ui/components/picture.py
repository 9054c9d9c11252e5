"""The place of a picture on a page: the browser asks for what belongs there by its address."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.pictures import registry
from rope_viz.pictures.choices import Positions
from rope_viz.pictures.kinds import KINDS
from rope_viz.pictures.now import Now
from rope_viz.pictures.page import Picture
from rope_viz.ui import state
from rope_viz.ui.components.component import component, heard, hears

# What stands below a picture, wide and narrow.
TOOLS = {"chart": (40, 130), "clocks": (110, 220), "patch": (90, 150), "table": (40, 92)}


def rooms(pictures: Iterable[Picture], now: Now) -> str:
    """Rules of style that keep the room of these pictures free from the first moment, before any script has come."""
    rules = []
    for picture in pictures:
        if not picture.refuses(now):
            place = f".st-key-picture-{picture.page}-{picture.name}:not(:has([data-picture]))"
            wide, narrow = _room(picture, now)
            rules.append(f"{place} {{ min-height: {wide}px }} @media (max-width: 640px) ")
            rules.append(f"{{ {place} {{ min-height: {narrow}px }} }}")
    return "".join(rules)


def _room(picture: Picture, now: Now) -> tuple[int, int]:
    """Pixels that a picture takes with what stands below it, on a wide and on a narrow screen."""
    below = TOOLS[KINDS[picture.kind]]
    wide, narrow = (height + tools for height, tools in zip(picture.heights(now), below, strict=True))
    return wide, narrow


def mount(picture: Picture, now: Now) -> None:
    """Keep a place for the picture and say what belongs there."""
    key, kind = f"picture.{picture.address}", KINDS[picture.kind]

    def take(name: str, value: Any) -> None:
        if name == "pin" and isinstance(value, int):
            pinned(value)
        elif name == "at" and isinstance(value, Mapping):
            rested(value)

    def pinned(value: int) -> None:
        choice = picture.sets
        if choice is not None and not isinstance(choice, Positions):
            state.keep(choice.key, choice.text(choice.settled(value, now)), default=choice.text(choice.default(now)))
        elif 0 <= value < now.spec.pairs:
            state.choose(pin=None if value == state.chosen().pin else value)

    def rested(at: Mapping[str, Any]) -> None:
        m, n = at.get("m"), at.get("n")
        choice = picture.sets
        if at.get("step") != st.session_state.get("tour"):
            return  # the dials of the step before came to rest while the next was on its way
        if isinstance(choice, Positions) and isinstance(m, int) and isinstance(n, int) and min(m, n) >= 0:
            state.keep(choice.key, choice.text((m, n)), default=choice.text(choice.default(now)))

    def missed() -> None:
        st.session_state.setdefault("missed", set()).add(key)

    data = {
        "picture": picture.address,
        "kind": kind,
        "query": urlencode(registry.query(now, picture)),
        "still": picture.still,
        "parts": picture.parts(now),
        "knobs": sorted(now.asked(picture.uses)),
        "height": picture.heights(now)[0],
        "room": _room(picture, now),
        "step": st.session_state.get("tour"),
        "taken": heard(key),
    }
    if key in st.session_state.get("missed", ()):
        # Once: the browser remembers them.
        st.session_state["missed"].discard(key)
        data["kept"] = [base64.b64encode(content).decode() for content in state.contents()]
    show = component("picture", root_class="rv-picture", coming="The picture is on its way.")
    show(key=key, data=data, on_at_change=hears(key, take), on_missing_change=missed)
