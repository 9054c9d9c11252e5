"""Metadata from which a saved picture can be redrawn: its address, and what no address can hold."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files import Style, is_key
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.pictures import ROUTE, configs, registry
from rope_viz.pictures import blob_store as contents
from rope_viz.pictures.outputs import Clocks
from rope_viz.pictures.page import Picture
from rope_viz.pictures.picture_request import Now
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
        return own | {"choices": registry.choices_query(now, picture)}
    except KeyError:
        return own


def drop_json_only(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the metadata that only JSON files contain."""
    return {key: value for key, value in saved.items() if key not in HELD}


def redraw_clocks(saved: Mapping[str, Any]) -> Clocks | None:
    """Redraw saved clocks from their spec, choices and config; return None if the picture has no clocks.

    Raise `ValueError` with a sentence if the file lacks data.
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
        # Files from older releases have no choices.
        query = dict(parse_qsl(urlsplit(saved["address"]).query, keep_blank_values=True))
        try:
            return registry.read_request(page, query)
        except contents.UnknownError:
            raise ValueError(TEXTS("problems.too_little")) from None
    if not isinstance(spec, dict) or not isinstance(choices, dict):
        raise ValueError(TEXTS("problems.too_little"))
    model, layer = (str(spec.get(key) or "") for key in ("model", "layer"))
    if model != spec_url.CUSTOM and model not in catalog():
        raise ValueError(TEXTS("problems.unknown_model", model=short_repr(model)))
    rest = {key: value for key, value in spec.items() if key not in ("model", "layer")}
    try:
        made = configs.spec_of(json.dumps(rest).encode())
        own = configs.upload_of(json.dumps(saved["config"]).encode()) if "config" in saved else None
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(TEXTS("problems.unreadable_spec", error=error)) from None
    query = {str(key): str(text) for key, text in choices.items()}
    try:
        given = registry.strict(page.choices, query)
    except contents.UnknownError:
        raise ValueError(TEXTS("problems.too_little")) from None
    now = Now(made, model, layer, own, registry.pin_of(query, made.pairs), given)
    return dataclasses.replace(now, variants=registry.variants_of(query, now.current))
