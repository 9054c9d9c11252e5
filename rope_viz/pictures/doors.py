"""The four doors of the app, the pages behind each, and the picture groups that a page shows.

A picture group (`registry.PAGES`) keeps its address when its pictures move to another page.
"""

from __future__ import annotations

from rope_viz.texts import Texts

TEXTS = Texts("app")

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
