"""The places of pictures on a page; the browser requests each picture by its address."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.picture import write_address
from rope_viz.picture.choices import Menu, PositionPair
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Texts
from rope_viz.ui import state
from rope_viz.ui.components.component import component
from rope_viz.ui.components.sent_values import any_of, is_number, is_positions, is_text
from rope_viz.ui.session import session

# Pixels of the tools below a picture, on a wide and on a narrow screen.
TOOLS = {
    "chart": (40, 40),
    "clocks": (110, 220),
    "patch": (68, 92),
    "hands": (0, 0),
    "learn": (0, 0),
    "table": (40, 44),
    "grid": (40, 44),
}

TEXTS = Texts("app")
KEY = "pictures"
_places: ContextVar[dict[str, tuple[Picture, PictureRequest]]] = ContextVar("places")
"""The places of the running page, by address."""


def rooms(pictures: Iterable[Picture], request: PictureRequest) -> str:
    """Return CSS rules that reserve the height of these pictures before any script has loaded."""
    rules = []
    for picture in pictures:
        if not picture.refuses(request):
            place = f"[data-place='{picture.address}']:not(:has(.rv-picture))"
            wide, narrow = _room(picture, request)
            rules.append(f"{place} {{ min-height: {wide}px }} @media (max-width: 640px) ")
            rules.append(f"{{ {place} {{ min-height: {narrow}px }} }}")
    return "".join(rules)


def _room(picture: Picture, request: PictureRequest) -> tuple[int, int]:
    """Return a picture's height in pixels with its tools, on a wide and on a narrow screen."""
    below = TOOLS[picture.kind.renderer]
    wide, narrow = (height + tools for height, tools in zip(picture.heights(request), below, strict=True))
    return wide, narrow


@contextlib.contextmanager
def places() -> Iterator[None]:
    """Collect the places of a page and mount one component for all of them, which is cheaper than one each."""
    found: dict[str, tuple[Picture, PictureRequest]] = {}
    before = _places.set(found)
    try:
        yield
    finally:
        _places.reset(before)
    _mount(found)


def place(picture: Picture, request: PictureRequest) -> None:
    """Reserve a place. Its HTML is equal in every run, so that Streamlit keeps what the browser put there."""
    message = f'<p class="rv-coming" role="status">{TEXTS("loading_picture")}</p>'
    st.html(f'<div data-place="{picture.address}">{message}</div>')
    _places.get()[picture.address] = picture, request


def _mount(places: Mapping[str, tuple[Picture, PictureRequest]]) -> None:
    def take(name: str, value: Any) -> None:
        address, _, what = name.partition(" ")
        if name == "missing":
            session().lacks_contents = True
        elif address not in places:
            return
        elif what == "pin" and isinstance(value, int):
            _store_pin(*places[address], value)
        elif what == "at" and isinstance(value, Mapping):
            _store_positions(*places[address], value)
        elif what == "present" and isinstance(value, str):
            state.present(value)
        elif what == "scene" and isinstance(value, int):
            _store_scene(*places[address], value)

    data: dict[str, Any] = {
        "pictures": {
            address: {**_describe(*each), "main": not number} for number, (address, each) in enumerate(places.items())
        }
    }
    if session().lacks_contents:
        # Sent once: the browser remembers them.
        session().lacks_contents = False
        data["contents"] = [base64.b64encode(content).decode() for content in state.contents()]
    component("picture", root_class="rv-pictures")(KEY, data, take, any_of(is_number, is_text, is_positions))


def _describe(picture: Picture, request: PictureRequest) -> dict[str, Any]:
    """Return what the browser needs to request the picture and to reserve its height."""
    return {
        "picture": picture.address,
        "kind": picture.kind.renderer,
        "query": urlencode(write_address.query(request, picture)),
        "link": urlencode(write_address.link_query(request, picture)) if request.held else "",
        "still": picture.still,
        "parts": picture.parts(request),
        "knobs": sorted(picture.depends),
        "at": picture.sets.key if isinstance(picture.sets, PositionPair) else "",
        "height": picture.heights(request)[0],
        "room": _room(picture, request),
    }


def _store_pin(picture: Picture, request: PictureRequest, value: int) -> None:
    choice = picture.sets
    if isinstance(choice, Menu):
        names = list(choice.entries(request))
        state.set_param(choice.key, names[min(max(value, 0), len(names) - 1)], default=choice.default(request))
    elif choice is not None and not isinstance(choice, PositionPair):
        state.set_param(
            choice.key, choice.text(choice.resolve(value, request)), default=choice.text(choice.default(request))
        )
    elif 0 <= value < request.spec.pairs:
        state.choose(pin=None if value == state.current_choice().pin else value)


def _store_scene(picture: Picture, request: PictureRequest, scene: int) -> None:
    """Write the scene that the user went to into the address, which is a step for the Back button."""
    (choice,) = picture.uses
    state.set_param(
        choice.key, choice.text(choice.resolve(scene, request)), default=choice.text(choice.default(request))
    )


def _store_positions(picture: Picture, request: PictureRequest, at: Mapping[str, Any]) -> None:
    m, n = at.get("m"), at.get("n")
    choice = picture.sets
    if isinstance(choice, PositionPair) and isinstance(m, int) and isinstance(n, int) and min(m, n) >= 0:
        state.set_param(choice.key, choice.text((m, n)), default=choice.text(choice.default(request)))
