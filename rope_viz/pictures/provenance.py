"""What a file says so that its picture can be drawn again: an address of its own, and what no address holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rope_viz.embedding.spec import shorten
from rope_viz.figures.files import Style, is_key
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.pictures import ROUTE, configs, registry
from rope_viz.pictures import blob_store as contents
from rope_viz.pictures.outputs import Clocks
from rope_viz.pictures.page import Picture
from rope_viz.pictures.picture_request import Now

HELD = ("config", "choices")
"""What stands in a JSON file alone."""
TOO_LITTLE = "this file does not hold all that its picture is drawn from: save it again, or name the picture itself"


def address(picture: Picture, query: Mapping[str, str]) -> str:
    """The address of a picture."""
    asked = urlencode(query)
    return f"{ROUTE}/{picture.address}?{asked}" if asked else f"{ROUTE}/{picture.address}"


def seen(picture: Picture, now: Now) -> dict[str, str]:
    """The part of a picture's query that is about how much of it was asked for."""
    view = {"view": ",".join(map(spec_url.text, now.view))} if picture.zooms and now.view is not None else {}
    part = min(now.part, picture.parts(now) - 1)
    return view | ({"part": str(part)} if part else {})


def relooked(written: str, look: Style) -> str:
    """A picture's address with another look."""
    path, _, asked = written.partition("?")
    query = {key: text for key, text in parse_qsl(asked, keep_blank_values=True) if not is_key(key)} | look.query()
    return f"{path}?{urlencode(query)}" if query else path


def kept(picture: Picture, now: Now) -> dict[str, Any]:
    """What a picture depends on beside the spec, for its JSON: the choices, and a reader's own config."""
    own = {"config": now.own.config} if picture.config and now.own is not None else {}
    try:
        return own | {"choices": registry.chosen(now, picture)}
    except KeyError:
        return own


def said_of(saved: Mapping[str, Any]) -> dict[str, Any]:
    """What other files than JSON say of what is saved in JSON."""
    return {key: value for key, value in saved.items() if key not in HELD}


def turning(saved: Mapping[str, Any]) -> Clocks | None:
    """The clocks that were saved, from their spec, choices and config; None where they are none.

    Raises `ValueError` with a sentence where the file holds too little for that.
    """
    page, _, name = str(saved.get("picture") or "").partition("/")
    try:
        picture = registry.picture(page, name)
    except KeyError:
        return None
    if not issubclass(picture.kind, Clocks):
        return None
    drawn = picture(_now(picture, saved))
    assert isinstance(drawn, Clocks)
    return drawn


def _now(picture: Picture, saved: Mapping[str, Any]) -> Now:
    page = registry.page(picture.page)
    spec, choices = saved.get("spec"), saved.get("choices")
    if choices is None and isinstance(saved.get("address"), str) and saved["address"]:
        # A file of before choices were saved.
        query = dict(parse_qsl(urlsplit(saved["address"]).query, keep_blank_values=True))
        try:
            return registry.read(page, query)
        except contents.UnknownError:
            raise ValueError(TOO_LITTLE) from None
    if not isinstance(spec, dict) or not isinstance(choices, dict):
        raise ValueError(TOO_LITTLE)
    model, layer = (str(spec.get(key) or "") for key in ("model", "layer"))
    if model != spec_url.CUSTOM and model not in catalog():
        raise ValueError(f"the spec in this file names the model {shorten(model)}, which is not in the list")
    rest = {key: value for key, value in spec.items() if key not in ("model", "layer")}
    try:
        made = configs.spec_of(json.dumps(rest).encode())
        own = configs.upload_of(json.dumps(saved["config"]).encode()) if "config" in saved else None
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the spec or the config in this file cannot be read: {error}") from None
    asked = {str(key): str(text) for key, text in choices.items()}
    try:
        given = registry.strict(page.choices, asked)
    except contents.UnknownError:
        raise ValueError(TOO_LITTLE) from None
    return Now(made, model, layer, own, registry.pin_of(asked, made.pairs), given)
