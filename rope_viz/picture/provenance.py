"""Metadata from which a saved picture can be redrawn: its address, and what no address can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from rope_viz.figures.files import Style, is_key
from rope_viz.models import spec_url
from rope_viz.picture import ROUTE, write_address
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import Now
from rope_viz.texts import Texts

TEXTS = Texts("export")
HELD = ("config", "choices")
"""Metadata that only JSON files contain."""


def address(picture: Picture, query: Mapping[str, str]) -> str:
    """Return the address of a picture."""
    text = urlencode(query)
    return f"{ROUTE}/{picture.address}?{text}" if text else f"{ROUTE}/{picture.address}"


def view_query(picture: Picture, now: Now) -> dict[str, str]:
    """Return the part of a picture's query about its zoom and refinement."""
    view = {"view": ",".join(map(spec_url.format_value, now.view))} if picture.zooms and now.view is not None else {}
    part = min(now.part, picture.parts(now) - 1)
    return view | ({"part": str(part)} if part else {})


def restyle_address(address: str, look: Style) -> str:
    """Return a picture's address with another style."""
    path, _, before = address.partition("?")
    query = {key: text for key, text in parse_qsl(before, keep_blank_values=True) if not is_key(key)} | look.query()
    return f"{path}?{urlencode(query)}" if query else path


def own_inputs(picture: Picture, now: Now) -> dict[str, Any]:
    """Return what a picture depends on besides the spec, for its JSON: the choices and the user's config."""
    own = {"config": now.own.config} if picture.config and now.own is not None else {}
    try:
        return own | {"choices": write_address.choices_query(now, picture)}
    except KeyError:
        return own


def drop_json_only(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the metadata that only JSON files contain."""
    return {key: value for key, value in saved.items() if key not in HELD}
