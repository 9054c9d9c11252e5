"""A picture's address as its request."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rope_viz.embedding.spec import knobs, require_number, short_repr
from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import KEYS as VARIANT_KEYS
from rope_viz.models.variant import Variant, from_compared_models, read_variant, write_variant
from rope_viz.own_files import blob_store, config_link, configs
from rope_viz.own_files.blob_store import StoredContent
from rope_viz.own_files.config_link import LinkedConfig
from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.picture.choices import Borders, Number, StoredChoice
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.texts import Texts, current_language, use_language
from rope_viz.texts.outside_text import clean_query, clean_text

TEXTS = Texts("app")

MODEL_KEYS = (*spec_url.KEYS, config_link.KEY)
"""Query keys of the model, with the user's own config."""
LANGUAGE_KEY = "lang"
"""The query key of the language of the texts, absent for English."""
CHOICE_KEYS = (*MODEL_KEYS, "pin", *VARIANT_KEYS, LANGUAGE_KEY)
"""Query keys of what a user chose for all pages."""
STORED: Mapping[str, Callable[[bytes], Any]] = {"own": configs.upload_of, "spec": configs.spec_of}
"""{query key of a stored content: its decoder}, in addition to those of a page."""
STORED_KEYS = tuple(STORED)
OTHER_KEYS = ("pin", *VARIANT_KEYS, "view", "knob", "value", "coarse", "part", LANGUAGE_KEY, *STORED_KEYS)
"""Query keys other than those of the model and of the page's choices."""

COMPARED_MODELS = "decay.models"
"""The key of compared models in addresses before curves could be pinned; it is still read."""

FILE = "file"
"""The value of `own` in the address of a copied command: the config is in a file that the command names."""


def read_request(
    page: Page, query: Mapping[str, str], own: Upload | None = None, reader: Reader = HERE
) -> PictureRequest:
    """Read a query. Raise `ValueError` with a sentence for anything in it that is unknown or invalid.

    Lone surrogates and NUL in it are replaced. `own` is the user's config if the query comes with a file. `reader`
    has what the query names (`list_contents`). Texts are in the query's language, else the current one.
    """
    query = clean_query(query)
    with use_language(query.get(LANGUAGE_KEY, current_language())):
        return _read_request(page, query, own, reader)


def _read_request(page: Page, query: Mapping[str, str], own: Upload | None, reader: Reader) -> PictureRequest:
    query = rename_models(query)
    require_known_keys(page, query)
    model_query = {key: text for key, text in query.items() if key in MODEL_KEYS}
    subject, problems = read_model(model_query, own, reader)
    if problems:
        raise ValueError(" ".join(problems))
    held = {key: query[key] for key in STORED_KEYS if key in query}
    if "own" in held:
        subject = subject._replace(own=reader.read_outside(StoredContent(held["own"], STORED["own"]))[0])
    if "spec" in held:
        subject = subject._replace(spec=reader.read_outside(StoredContent(held["spec"], STORED["spec"]))[0])
    if subject.own is not None and subject.model != spec_url.CUSTOM:
        raise ValueError(TEXTS("address.own", custom=spec_url.CUSTOM, model=subject.model))
    coarse, given = query.get("coarse") == "1", strict(page.choices, query, reader)
    pin, view, part = pin_of(query, subject.spec.pairs), view_of(query), part_of(query)
    request = PictureRequest(subject, pin, given, view, coarse, part, held)
    request = dataclasses.replace(request, variants=variants_of(query, request.current))
    return moved(page, request, query["knob"], query.get("value", "")) if "knob" in query else request


def require_known_keys(page: Page, query: Mapping[str, str]) -> None:
    """Raise `ValueError` with a sentence for a key of a query that a page does not have."""
    known = {*MODEL_KEYS, *OTHER_KEYS, *(choice.key for choice in page.choices)}
    for key in query:
        if key not in known:
            raise ValueError(TEXTS("address.key", name=short_repr(key)))


def list_contents(page: Page, query: Mapping[str, str]) -> tuple[Content[Any], ...]:
    """Return the contents from outside that a query names, each once, in the order in which it is read.

    Raise `ValueError` with a sentence for an unknown key: nothing need be read for such a query.
    """
    query = rename_models(clean_query(query))
    require_known_keys(page, query)
    found: list[Content[Any] | None] = []
    if config_link.KEY in query:
        found.append(LinkedConfig(query[config_link.KEY]))
    found += [StoredContent(query[key], decode) for key, decode in STORED.items() if key in query]
    found += [choice.name_content(query[choice.key]) for choice in page.choices if choice.key in query]
    return tuple(dict.fromkeys(content for content in found if content is not None))


def read_model(
    params: Mapping[str, str], own: Upload | None = None, reader: Reader = HERE
) -> tuple[Subject, tuple[str, ...]]:
    """Read the query of `write_model` as `read_query` does; `own` is the config if the caller has it.

    Raise `ValueError` with a sentence for a config that cannot be read.
    """
    params = clean_query(params)
    if config_link.KEY in params and own is None:
        own = config_link.read_config(params[config_link.KEY], reader)
    if own is not None and params.get("model") != spec_url.CUSTOM:
        raise ValueError(TEXTS("link.model", custom=spec_url.CUSTOM))
    return spec_url.read_query(params, own)


def stored_names(page: Page, query: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of stored contents in a query, each once."""
    keys = (*STORED_KEYS, *(choice.key for choice in page.choices if isinstance(choice, StoredChoice)))
    return tuple(dict.fromkeys(query[key] for key in keys if key in query))


def stored_contents(page: Page, query: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the salted contents that a query names. Raise `UnknownError` for one that is not stored."""
    found = []
    for name in stored_names(page, query):
        salted = blob_store.STORE.salted(name)
        if salted is None:
            raise blob_store.UnknownError(name)
        found.append(salted)
    return tuple(found)


def needs_reading(page: Page, query: Mapping[str, str]) -> bool:
    """True if a query has a config or names a content, which a server reads in a process with limits."""
    keys = (config_link.KEY, *STORED_KEYS, *(choice.key for choice in page.choices if choice.reads_outside))
    return any(key in query for key in keys)


def moved(page: Page, request: PictureRequest, name: str, value: str) -> PictureRequest:
    """Return `request` with one knob of the spec, its method or the page moved. Raise `ValueError` if it is invalid."""
    choice = next((each for each in page.choices if each.key == name and isinstance(each, Number | Borders)), None)
    if choice is not None:
        return dataclasses.replace(request, given={**request.given, name: choice.parse(value)})
    knob = (knobs(request.spec) | knobs(request.spec.scaling)).get(name)
    if knob is None:
        raise ValueError(TEXTS("address.knob", name=short_repr(name)))
    number = spec_url.parse_number(value, knob.unit)
    require_number(number, knob.label, least=knob.low, most=knob.high, integer=knob.integer)
    spec = spec_url.move_knob(request.spec, name, number)
    pin = request.pin if request.pin is not None and request.pin < spec.pairs else None
    return dataclasses.replace(request, subject=request.subject._replace(spec=spec), pin=pin)


def lenient(choices: Sequence[Choice[Any]], query: Mapping[str, str], reader: Reader = HERE) -> dict[str, Any]:
    """Read choices from a page's address: drop unreadable values and clamp numbers."""
    out: dict[str, Any] = {}
    for choice in choices:
        if choice.key in query:
            text = clean_text(query[choice.key])
            try:
                out[choice.key] = choice.near(text) if isinstance(choice, Number) else choice.read_value(text, reader)
            except ValueError:
                continue
    return out


def strict(choices: Sequence[Choice[Any]], query: Mapping[str, str], reader: Reader = HERE) -> dict[str, Any]:
    """Read choices from a query. Raise `ValueError` with a sentence for an invalid one."""
    return {choice.key: choice.read_value(query[choice.key], reader) for choice in choices if choice.key in query}


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
