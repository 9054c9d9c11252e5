"""A picture's request as the query of its address."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from urllib.parse import urlencode

from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.models.variant import write_variant
from rope_viz.own_files import config_link
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.shared_config import share_subject
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import NOTHING, PictureRequest
from rope_viz.picture.read_address import LANGUAGE_KEY, read_model
from rope_viz.storage.limits import WRITTEN_ADDRESS_CHARACTERS
from rope_viz.texts.languages import ENGLISH, current_language


def write_model(subject: Subject) -> dict[str, str]:
    """Return a subject as a query: with the user's config and what was changed, else with all numbers."""
    text = "" if subject.own is None else config_link.write_config(subject.own)
    if not text:
        return spec_url.write_query(share_subject(subject)._replace(own=None))
    return spec_url.write_query(subject) | {config_link.KEY: text}


def query(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return the shortest query that holds everything this picture depends on.

    Raise `KeyError` if an address cannot hold it and no content is stored for it.
    """
    subject = request.subject._replace(own=None) if "own" in request.held else request.subject
    linked, fits = _linked(subject if picture.config else subject._replace(own=None))
    if not fits:
        # The config may hold lists that are too long for an address.
        linked, fits = _linked(subject)
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
    """Return the part of the query for the language, the pin and the page's own choices.

    Raise `KeyError` as `query` does.
    """
    out = write_language(request.language)
    if picture.pin and request.pin is not None:
        out["pin"] = str(request.pin)
    if picture.variants:
        out |= {f"variant{number}": write_variant(each) for number, each in request.variants.items()}
    for choice in picture.choices:
        if choice.key in picture.depends and (value := request[choice]) != choice.default(request):
            if isinstance(value, StoredValue) and not value.name:
                raise KeyError(choice.key)
            out[choice.key] = choice.text(value)
    return out


def write_language(language: str) -> dict[str, str]:
    """Return a language as a query, {} for English."""
    return {} if language == ENGLISH else {LANGUAGE_KEY: language}


def language_query() -> str:
    """Return the current language as a query in an address, "" for English."""
    return urlencode(write_language(current_language()))


def add_language(address: str) -> str:
    """Return an address with the current language in its query; as it is for English."""
    query = language_query()
    return f"{address}{'&' if '?' in address else '?'}{query}" if query else address


def other_models(request: PictureRequest, picture: Picture) -> dict[str, str]:
    """Return {id: name} of the models in a picture, {} if it shows just the sidebar's."""
    found = {} if picture.shows is None else dict(picture.shows(request, picture))
    return {} if list(found) == [request.model] else found


def fits_in_url(subject: Subject) -> bool:
    """True if an address can hold the spec; otherwise it must be stored and named in `PictureRequest.held`."""
    return _linked(subject._replace(own=None))[1]


@cache_by_config(256)
def _linked(subject: Subject) -> tuple[Mapping[str, str], bool]:
    out = write_model(subject)
    found, problems = read_model(out, subject.own if config_link.KEY in out else None)
    same = not problems and found[:3] == subject[:3]
    return out, same and len(urlencode({**out, config_link.KEY: ""})) <= WRITTEN_ADDRESS_CHARACTERS
