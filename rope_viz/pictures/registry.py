"""All pages by name, and any picture from its address: a page's name, a picture's name and a query."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.configs import link
from rope_viz.embedding.spec import knobs, require_number, shorten
from rope_viz.pictures.choices import Choice, Number
from rope_viz.pictures.now import Now
from rope_viz.pictures.page import Page, Picture

PAGES = {
    "scaling": "Scaling",
}
"""{name: title}, in the order of the menu; `rope_viz.pictures.<name>` holds the page's choices and pictures."""


def page(name: str) -> Page:
    """A page by name, loaded when asked for. Raises `KeyError`."""
    found: Page = importlib.import_module(f"rope_viz.pictures.{name}").PAGE if name in PAGES else _missing(name)
    return found


def _missing(name: str) -> Page:
    raise KeyError(f"there is no page {shorten(name)}; the pages are {', '.join(PAGES)}")


def settle(now: Now, choices: Sequence[Choice[Any]], given: Mapping[str, Any]) -> Now:
    """`now` with the value of every choice: the one given, as near as it can be, or its default."""
    values: dict[str, Any] = {}
    for choice in choices:
        before = dataclasses.replace(now, values=values)
        taken = choice.key in given and choice.when(before)
        values[choice.key] = choice.settled(given[choice.key], before) if taken else choice.default(before)
    return dataclasses.replace(now, values=values)


def lenient(choices: Sequence[Choice[Any]], written: Mapping[str, str]) -> dict[str, Any]:
    """The values that a page takes from its address: what cannot be read is left out, what is too much cut."""
    out: dict[str, Any] = {}
    for choice in choices:
        if choice.key in written:
            text = written[choice.key]
            try:
                out[choice.key] = choice.near(text) if isinstance(choice, Number) else choice.parse(text)
            except ValueError:
                continue
    return out


def strict(choices: Sequence[Choice[Any]], written: Mapping[str, str]) -> dict[str, Any]:
    """The values of a query. Raises `ValueError` with a sentence for what can never be meant."""
    return {choice.key: choice.parse(written[choice.key]) for choice in choices if choice.key in written}


def written(now: Now, choices: Sequence[Choice[Any]]) -> dict[str, str]:
    """The choices as they stand in an address: those that are not their default."""
    out: dict[str, str] = {}
    for choice in choices:
        if now[choice] != choice.default(now):
            out[choice.key] = choice.text(now[choice])
    return out


def read(page: Page, query: Mapping[str, str]) -> Now:
    """What a query says. Raises `ValueError` with a sentence for anything in it that cannot be taken as it stands."""
    known = {*link.KEYS, "pin", "view", "knob", "value", "coarse", *(choice.key for choice in page.choices)}
    for key in query:
        if key not in known:
            raise ValueError(f"There is nothing named {shorten(key)} to choose here.")
    opened = link.read({key: text for key, text in query.items() if key in link.KEYS})
    if opened.problems:
        raise ValueError(" ".join(opened.problems))
    now = Now(opened.spec, opened.model, opened.layer, pin=_pin(query, opened.spec.pairs), view=_view(query))
    given = strict(page.choices, query)
    now = settle(dataclasses.replace(now, coarse=query.get("coarse") == "1"), page.choices, given)
    return moved(page, now, given, query["knob"], query.get("value", "")) if "knob" in query else now


def moved(page: Page, now: Now, given: Mapping[str, Any], name: str, value: str) -> Now:
    """`now` with one knob, of the spec, its method or the page, somewhere else. Raises `ValueError`."""
    choice = next((each for each in page.choices if each.key == name and isinstance(each, Number)), None)
    if choice is not None:
        return settle(now, page.choices, {**given, name: choice.parse(value)})
    knob = (knobs(now.spec) | knobs(now.spec.scaling)).get(name)
    if knob is None:
        raise ValueError(f"There is no knob {shorten(name)} here.")
    number = link.number(value)
    require_number(number, knob.label, least=knob.low, most=knob.high, integer=knob.integer)
    spec = link.moved(now.spec, name, number)
    pin = now.pin if now.pin is not None and now.pin < spec.pairs else None
    return settle(dataclasses.replace(now, spec=spec, pin=pin), page.choices, given)


def query(now: Now, picture: Picture) -> dict[str, str]:
    """The shortest query that says all this picture depends on: two ways to say the same are one address."""
    out = link.query(now.spec, model=now.model, layer=now.layer)
    if picture.pin and now.pin is not None:
        out["pin"] = str(now.pin)
    return out | written(now, picture.uses)


def _pin(query: Mapping[str, str], pairs: int) -> int | None:
    text = query.get("pin")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < pairs):
        raise ValueError(f"pin must be a pair from 0 to {pairs - 1}, not {shorten(text)}.")
    return int(text)


def _view(query: Mapping[str, str]) -> tuple[float, float] | None:
    text = query.get("view")
    if text is None:
        return None
    try:
        low, high = sorted(float(end) for end in text.split(","))
    except ValueError:
        raise ValueError(f"view must be two numbers with a comma between them, not {shorten(text)}.") from None
    if not (-1e15 < low < high < 1e15):
        raise ValueError(f"view must be a range of finite numbers, not {shorten(text)}.")
    return low, high
