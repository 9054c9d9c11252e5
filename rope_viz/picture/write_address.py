"""A picture's request as the query of its address."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from urllib.parse import urlencode

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import write_variant
from rope_viz.picture import config_link
from rope_viz.picture.choices import Held
from rope_viz.picture.config_cache import cache_by_config
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import NOTHING, PictureRequest
from rope_viz.picture.read_address import read_model

LONGEST = 2000
"""Characters of a query; a longer spec is stored under a name instead."""


def write_model(spec: RopeSpec, model: str, layer: str, own: Upload | None) -> dict[str, str]:
    """Return a choice of a model as a query: with the user's config and what was changed, else with all numbers."""
    text = "" if own is None or model != spec_url.CUSTOM else config_link.write_config(own)
    if own is None or not text:
        return spec_url.write_query(spec, model=model, layer=layer)
    return spec_url.write_query(spec, model=model, layer=layer, own=own.specs) | {config_link.KEY: text}


def query(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return the shortest query that holds everything this picture depends on.

    Raise `KeyError` if an address cannot hold it and no content is stored for it.
    """
    own = None if "own" in request.held else request.own
    linked, fits = _linked(request.spec, request.model, request.layer, own if picture.config else None)
    if not fits:
        # The config may hold lists that are too long for an address.
        linked, fits = _linked(request.spec, request.model, request.layer, own)
    out = dict(linked)
    if not fits:
        out = {key: text for key, text in out.items() if key in ("model", "layer")} | {"spec": request.held["spec"]}
    if picture.config and request.own is not None and config_link.KEY not in out:
        out["own"] = request.held["own"]
    return out | choices_query(request, picture)


def link_query(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return the query of a link to a picture, which another server can read: it carries the user's config.

    It is that of `query` if no address can hold what the picture depends on.
    """
    try:
        return query(dataclasses.replace(request, held=NOTHING), picture)
    except KeyError:
        return query(request, picture)


def choices_query(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return the part of the query for the pin and the page's own choices. Raise `KeyError` as `query` does."""
    out = {"pin": str(request.pin)} if picture.pin and request.pin is not None else {}
    if picture.variants:
        out |= {f"variant{number}": write_variant(each) for number, each in request.variants.items()}
    for choice in picture.choices:
        if choice.key in picture.depends and (value := request[choice]) != choice.default(request):
            if isinstance(value, Held) and not value.name:
                raise KeyError(choice.key)
            out[choice.key] = choice.text(value)
    return out


def other_models(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return {id: name} of the models in a picture, {} if it shows just the sidebar's."""
    found = {} if picture.shows is None else dict(picture.shows(request, picture))
    return {} if list(found) == [request.model] else found


def fits_in_url(spec: RopeSpec, model: str, layer: str) -> bool:
    """True if an address can hold the spec; otherwise it must be stored and named in `Now.held`."""
    return _linked(spec, model, layer, None)[1]


@cache_by_config(256)
def _linked(spec: RopeSpec, model: str, layer: str, own: Upload | None) -> tuple[Mapping[str, str], bool]:
    out = write_model(spec, model, layer, own)
    opened, _ = read_model(out, own if config_link.KEY in out else None)
    same = opened.spec == spec and not opened.problems and (opened.model, opened.layer) == (model, layer)
    return out, same and len(urlencode({**out, config_link.KEY: ""})) <= LONGEST
