"""The pages by name: their doors, titles and pictures, loaded on first use."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.picture.choices import StoredChoice
from rope_viz.picture.page import Page, Picture
from rope_viz.texts import Texts

TEXTS = Texts("app")

PAGES: dict[str, str] = {
    name: TEXTS(f"pages.{name}")
    for name in (
        *("home", "learn", "rotation", "frequencies", "scaling", "decay", "axes"),
        *("recall", "heads", "extend", "runtimes", "compare", "attention", "precision", "kernels"),
    )
}
"""{name of a group of pictures: title} in menu order."""
FOLDERS = {"extend": "model.extend", "runtimes": "model.runtimes"}
"""The module in `rope_viz.pages` of a group that has not a folder of its name."""


@functools.cache
def page(name: str) -> Page:
    """Return a page by name, loaded on first use. Raise `KeyError` with a sentence for an unknown one."""
    if name not in PAGES:
        raise KeyError(TEXTS("address.page", name=short_repr(name), pages=", ".join(PAGES)))
    found: Page = importlib.import_module(f"rope_viz.pages.{FOLDERS.get(name, name)}").PAGE
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


@functools.cache
def kept_choices() -> dict[str, StoredChoice[Any]]:
    """Return the choices of all pages whose value is a stored content, by key."""
    return {choice.key: choice for name in PAGES for choice in page(name).choices if isinstance(choice, StoredChoice)}


def decode_content_of(key: str, content: bytes) -> Any:
    """Return what a choice reads from a content. Raise `ValueError` as its decoder does."""
    found = next(choice for choice in page(key.partition(".")[0]).choices if choice.key == key)
    assert isinstance(found, StoredChoice)
    return found.decode(content)


DOORS: dict[str, tuple[str, ...]] = {
    "learn": ("learn",),
    "explore": ("rotation", "frequencies", "scaling", "decay", "attention", "axes"),
    "model": ("model", "compare"),
    "lab": ("lab", "recall", "heads", "precision", "kernels", "conversion", "pairings", "linear", "gallery"),
}
"""{door: its pages in the order of the tabs}; the door opens its first page. Home belongs to none."""

TITLES: dict[str, str] = {
    name: TEXTS(f"pages.{name}") for name in ("home", *(page for pages in DOORS.values() for page in pages))
}
"""{page: its title}; Home comes first."""

GROUPS: dict[str, tuple[str, ...]] = {
    "model": ("extend", "runtimes"),
    "lab": (),
    "gallery": (),
    "conversion": ("rotation",),
    "pairings": ("rotation",),
    "linear": ("attention",),
}
"""The picture groups of the pages that do not show exactly the one of their own name."""

MOVED = {"extend": ("model", ""), "runtimes": ("model", "extend.tab=runtimes")}
"""{page of an older release: the page that has its content, with a query}; its picture group keeps the name."""

SHOWN_ON = {
    "rotation/permutation": "conversion",
    "rotation/mistakes": "conversion",
    "rotation/pairings": "pairings",
    "attention/weights": "linear",
    "attention/costs": "linear",
}
"""{picture: the page that shows it}, where that is not the page of its group."""

FIRST = {
    "conversion": "rotation/permutation",
    "pairings": "rotation/pairings",
    "linear": "attention/weights",
    "compare": "compare/differences",
}
"""The first picture of a page, where it is not the first of its group."""


def door_of(page: str) -> str:
    """Return the door of a page, "" for Home."""
    return next((door for door, pages in DOORS.items() if page in pages), "")


def groups_of(page: str) -> tuple[str, ...]:
    """Return the picture groups of a page, whose names begin the keys of its choices in the address."""
    return GROUPS.get(page, (page,))
