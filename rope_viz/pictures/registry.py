"""All pages by name, and the conversion between a picture's address and its request."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import importlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from rope_viz.embedding.spec import RopeSpec, knobs, require_number, short_repr
from rope_viz.models import spec_url
from rope_viz.models.spec_url import Opened
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import KEYS as VARIANT_KEYS
from rope_viz.models.variant import Variant, from_compared_models, read_variant, write_variant
from rope_viz.pictures import blob_store, config_link, configs
from rope_viz.pictures.choices import Borders, Held, Kept, Line, Number
from rope_viz.pictures.config_cache import cache_by_config
from rope_viz.pictures.page import Page, Picture
from rope_viz.pictures.picture_request import NOTHING, Choice, Now
from rope_viz.texts import Texts

TEXTS = Texts("app")
PAGES: dict[str, str] = {
    name: TEXTS(f"pages.{name}")
    for name in (
        *("home", "learn", "rotation", "frequencies", "scaling", "decay", "axes"),
        *("recall", "heads", "extend", "runtimes", "compare", "attention", "precision", "kernels"),
    )
}
"""{name: title} in menu order; `rope_viz.pictures.<name>` holds the page's choices and pictures."""

LONGEST = 2000
"""Characters of a query; a longer spec is stored under a name instead."""
MODEL_KEYS = (*spec_url.KEYS, config_link.KEY)
"""Query keys of the model, with the user's own config."""
STORED_KEYS = ("own", "spec")
"""Query keys of stored contents, in addition to those of a page."""
OTHER_KEYS = ("pin", *VARIANT_KEYS, "view", "knob", "value", "coarse", "part", *STORED_KEYS)
"""Query keys other than those of the model and of the page's choices."""

COMPARED_MODELS = "decay.models"
"""The key of compared models in addresses before curves could be pinned; it is still read."""

FILE = "file"
"""The value of `own` in the address of a copied command: the config is in a file that the command names."""


@functools.cache
def page(name: str) -> Page:
    """Return a page by name, loaded on first use. Raise `KeyError` with a sentence for an unknown one."""
    if name not in PAGES:
        raise KeyError(TEXTS("address.page", name=short_repr(name), pages=", ".join(PAGES)))
    found: Page = importlib.import_module(f"rope_viz.pictures.{name}").PAGE
    return found


def picture(page_name: str, name: str) -> Picture:
    """Return a picture by page and name. Raise `KeyError` with a sentence for an unknown one."""
    found = page(page_name).pictures
    if name not in found:
        listed = ", ".join(found)
        raise KeyError(TEXTS("address.picture", name=short_repr(name), page=page_name, pictures=listed))
    return found[name]


def pictures() -> list[Picture]:
    """Return all pictures of all pages."""
    return [each for name in PAGES for each in page(name).pictures.values()]


def read_request(page: Page, query: Mapping[str, str], own: Upload | None = None) -> Now:
    """Read a query. Raise `ValueError` with a sentence for anything in it that is unknown or invalid.

    `own` is the user's config if the query comes with a file.
    """
    query = rename_models(query)
    known = {*MODEL_KEYS, *OTHER_KEYS, *(choice.key for choice in page.choices)}
    for key in query:
        if key not in known:
            raise ValueError(TEXTS("address.key", name=short_repr(key)))
    opened, own = read_model({key: text for key, text in query.items() if key in MODEL_KEYS}, own)
    if opened.problems:
        raise ValueError(" ".join(opened.problems))
    held = {key: query[key] for key in ("own", "spec") if key in query}
    own = blob_store.STORE.load(held["own"], configs.upload_of) if "own" in held else own
    spec = blob_store.STORE.load(held["spec"], configs.spec_of) if "spec" in held else opened.spec
    if own is not None and opened.model != spec_url.CUSTOM:
        raise ValueError(TEXTS("address.own", custom=spec_url.CUSTOM, model=opened.model))
    coarse, given = query.get("coarse") == "1", strict(page.choices, query)
    pin, view, part = pin_of(query, spec.pairs), view_of(query), part_of(query)
    now = Now(spec, opened.model, opened.layer, own, pin, given, view, coarse, part, held)
    now = dataclasses.replace(now, variants=variants_of(query, now.current))
    return moved(page, now, query["knob"], query.get("value", "")) if "knob" in query else now


def write_model(spec: RopeSpec, model: str, layer: str, own: Upload | None) -> dict[str, str]:
    """Return a choice of a model as a query: with the user's config and what was changed, else with all numbers."""
    text = "" if own is None or model != spec_url.CUSTOM else config_link.write_config(own)
    if own is None or not text:
        return spec_url.write_query(spec, model=model, layer=layer)
    return spec_url.write_query(spec, model=model, layer=layer, own=own.specs) | {config_link.KEY: text}


def read_model(params: Mapping[str, str], own: Upload | None = None) -> tuple[Opened, Upload | None]:
    """Read the query of `write_model`; `own` is the config if the caller has it.

    Raise `ValueError` with a sentence for a config that cannot be read.
    """
    if config_link.KEY in params and own is None:
        own = config_link.read_config(params[config_link.KEY])
    if own is not None and params.get("model") != spec_url.CUSTOM:
        raise ValueError(TEXTS("link.model", custom=spec_url.CUSTOM))
    return spec_url.read_query(params, own=None if own is None else own.specs), own


def stored_contents(page: Page, query: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the salted contents that a query names. Raise `UnknownError` for one that is not stored."""
    keys = (*STORED_KEYS, *(choice.key for choice in page.choices if isinstance(choice, Kept)))
    found = []
    for name in dict.fromkeys(query[key] for key in keys if key in query):
        salted = blob_store.STORE.salted(name)
        if salted is None:
            raise blob_store.UnknownError(name)
        found.append(salted)
    return tuple(found)


def needs_reading(page: Page, query: Mapping[str, str]) -> bool:
    """True if a query has a config or names a content, which a server reads in a process with limits."""
    keys = (config_link.KEY, *STORED_KEYS, *(choice.key for choice in page.choices if choice.reads_outside))
    return any(key in query for key in keys)


@functools.cache
def kept_choices() -> dict[str, Kept[Any]]:
    """Return the choices of all pages whose value is a stored content, by key."""
    return {choice.key: choice for name in PAGES for choice in page(name).choices if isinstance(choice, Kept)}


def decode_content_of(key: str, content: bytes) -> Any:
    """Return what a choice reads from a content. Raise `ValueError` as its decoder does."""
    found = next(choice for choice in page(key.partition(".")[0]).choices if choice.key == key)
    assert isinstance(found, Kept)
    return found.decode(content)


def moved(page: Page, now: Now, name: str, value: str) -> Now:
    """Return `now` with one knob of the spec, its method or the page moved. Raise `ValueError` if it is invalid."""
    choice = next((each for each in page.choices if each.key == name and isinstance(each, Number | Borders)), None)
    if choice is not None:
        return dataclasses.replace(now, given={**now.given, name: choice.parse(value)})
    knob = (knobs(now.spec) | knobs(now.spec.scaling)).get(name)
    if knob is None:
        raise ValueError(TEXTS("address.knob", name=short_repr(name)))
    number = spec_url.parse_number(value, knob.unit)
    require_number(number, knob.label, least=knob.low, most=knob.high, integer=knob.integer)
    spec = spec_url.move_knob(now.spec, name, number)
    pin = now.pin if now.pin is not None and now.pin < spec.pairs else None
    return dataclasses.replace(now, spec=spec, pin=pin)


def lenient(choices: Sequence[Choice[Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Read choices from a page's address: drop unreadable values and clamp numbers."""
    out: dict[str, Any] = {}
    for choice in choices:
        if choice.key in query:
            text = query[choice.key]
            try:
                out[choice.key] = choice.near(text) if isinstance(choice, Number) else choice.parse(text)
            except ValueError:
                continue
    return out


def address_problems(query: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of a page's choices in its address that cannot be read, and for each unknown one.

    Keys without the prefix of a page belong to others. Lines of text are reported next to their field.
    """
    out: list[str] = []
    for key, text in query.items():
        name, dot, _ = key.partition(".")
        if not dot or name not in PAGES:
            continue
        choices = {choice.key: choice for choice in page(name).choices}
        if key not in choices:
            close = difflib.get_close_matches(key, choices, 1)
            shown = short_repr(key)
            out.append(
                TEXTS("address.meant", name=shown, meant=close[0]) if close else TEXTS("address.unknown", name=shown)
            )
        elif not isinstance(choices[key], Line | Kept):
            out += _value_problem(choices[key], text)
    return out


def _value_problem(choice: Choice[Any], text: str) -> list[str]:
    """Return a sentence if a value cannot be read, with what is shown instead."""
    try:
        choice.parse(text)
    except ValueError as error:
        if isinstance(choice, Number):
            with contextlib.suppress(ValueError):
                return [TEXTS("address.clamped", problem=error, value=choice.text(choice.near(text)))]
        return [TEXTS("address.ignored", problem=error)]
    return []


def strict(choices: Sequence[Choice[Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Read choices from a query. Raise `ValueError` with a sentence for an invalid one."""
    return {choice.key: choice.parse(query[choice.key]) for choice in choices if choice.key in query}


def query(now: Now, picture: Picture) -> dict[str, str]:
    """Return the shortest query that holds everything this picture depends on.

    Raise `KeyError` if an address cannot hold it and no content is stored for it.
    """
    own = None if "own" in now.held else now.own
    linked, fits = _linked(now.spec, now.model, now.layer, own if picture.config else None)
    if not fits:
        # The config may hold lists that are too long for an address.
        linked, fits = _linked(now.spec, now.model, now.layer, own)
    out = dict(linked)
    if not fits:
        out = {key: text for key, text in out.items() if key in ("model", "layer")} | {"spec": now.held["spec"]}
    if picture.config and now.own is not None and config_link.KEY not in out:
        out["own"] = now.held["own"]
    return out | choices_query(now, picture)


def link_query(now: Now, picture: Picture) -> dict[str, str]:
    """Return the query of a link to a picture, which another server can read: it carries the user's config.

    It is that of `query` if no address can hold what the picture depends on.
    """
    try:
        return query(dataclasses.replace(now, held=NOTHING), picture)
    except KeyError:
        return query(now, picture)


def choices_query(now: Now, picture: Picture) -> dict[str, str]:
    """Return the part of the query for the pin and the page's own choices. Raise `KeyError` as `query` does."""
    out = {"pin": str(now.pin)} if picture.pin and now.pin is not None else {}
    if picture.variants:
        out |= {f"variant{number}": write_variant(each) for number, each in now.variants.items()}
    for choice in page(picture.page).choices:
        if choice.key in picture.depends and (value := now[choice]) != choice.default(now):
            if isinstance(value, Held) and not value.name:
                raise KeyError(choice.key)
            out[choice.key] = choice.text(value)
    return out


def other_models(now: Now, picture: Picture) -> dict[str, str]:
    """Return {id: name} of the models in a picture, {} if it shows just the sidebar's."""
    shows = page(picture.page).shows
    found = {} if shows is None else dict(shows(now, picture))
    return {} if list(found) == [now.model] else found


def fits_in_url(spec: RopeSpec, model: str, layer: str) -> bool:
    """True if an address can hold the spec; otherwise it must be stored and named in `Now.held`."""
    return _linked(spec, model, layer, None)[1]


@cache_by_config(256)
def _linked(spec: RopeSpec, model: str, layer: str, own: Upload | None) -> tuple[Mapping[str, str], bool]:
    out = write_model(spec, model, layer, own)
    opened, _ = read_model(out, own if config_link.KEY in out else None)
    same = opened.spec == spec and not opened.problems and (opened.model, opened.layer) == (model, layer)
    return out, same and len(urlencode({**out, config_link.KEY: ""})) <= LONGEST


def key(now: Now, picture: Picture) -> tuple[Hashable, ...]:
    """Return the cache key: equal for all requests that lead to the same picture."""
    return (
        picture.address,
        now.model,
        now.layer,
        now.spec,
        _own_key(now) if picture.config else None,
        now.pin if picture.pin else None,
        tuple(now.variants.items()) if picture.variants else None,
        now.view if picture.zooms else None,
        now.coarse,
        min(now.part, picture.parts(now) - 1),
        # Of the needed choices too: the value of a used one may be the same while they differ.
        *(choice.text(now[choice]) for choice in page(picture.page).choices if choice.key in picture.depends),
    )


def _own_key(now: Now) -> str | None:
    return now.held.get("own") or (None if now.own is None else config_link.write_config(now.own))


def rename_models(query: Mapping[str, str]) -> Mapping[str, str]:
    """Return a query of an older release with its compared models as variants."""
    if COMPARED_MODELS not in query:
        return query
    rest = {key: text for key, text in query.items() if key != COMPARED_MODELS}
    return from_compared_models(query[COMPARED_MODELS]) | rest


def variants_of(query: Mapping[str, str], current: Variant) -> dict[int, Variant]:
    """Read the pinned curves by number. Raise `ValueError` if one is invalid."""
    return {number: read_variant(query[key], current) for key, number in VARIANT_KEYS.items() if key in query}


def lenient_variants(query: Mapping[str, str], current: Variant) -> tuple[dict[int, Variant], list[str]]:
    """Read the pinned curves of a page's address; return them with a sentence for each unusable one."""
    found, problems = dict[int, Variant](), list[str]()
    for key, number in VARIANT_KEYS.items():
        try:
            if key in query:
                variant = read_variant(query[key], current)
                write_variant(variant)  # raises if no address can hold it
                found[number] = variant
        except ValueError as error:
            problems.append(str(TEXTS("variants.ignored", name=key, error=error)))
    return found, problems


def pin_of(query: Mapping[str, str], pairs: int) -> int | None:
    """Read the pinned pair. Raise `ValueError` if it is invalid."""
    text = query.get("pin")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < pairs):
        raise ValueError(TEXTS("address.pin", last=pairs - 1, value=short_repr(text)))
    return int(text)


def part_of(query: Mapping[str, str]) -> int:
    """Read the part of a slow picture. Raise `ValueError` if it is invalid."""
    text = query.get("part", "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 3):
        raise ValueError(TEXTS("address.part", value=short_repr(text)))
    return int(text)


def view_of(query: Mapping[str, str]) -> tuple[float, float] | None:
    """Read the zoomed x range. Raise `ValueError` if it is invalid."""
    text = query.get("view")
    if text is None:
        return None
    try:
        low, high = sorted(float(end) for end in text.split(","))
    except ValueError:
        raise ValueError(TEXTS("address.view", value=short_repr(text))) from None
    if not (-1e15 < low < high < 1e15):
        raise ValueError(TEXTS("address.view_range", value=short_repr(text)))
    return low, high
