"""The pages by name: their order, doors, titles and pictures, loaded on first use."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.picture.choices import StoredChoice
from rope_viz.picture.page import Page, Picture
from rope_viz.texts import Texts, cache_by_language

TEXTS = Texts("app")
FOLDER = Path(__file__).parent

ORDER = (
    "home",
    "learn",
    "rotation",
    "frequencies",
    "scaling",
    "decay",
    "axes",
    "lab",
    "recall",
    "heads",
    "model",
    "compare",
    "differences",
    "attention",
    "precision",
    "kernels",
    "conversion",
    "pairings",
    "linear",
    "gallery",
)
"""The pages in the order of lists and of each door's tabs. The first is at the root address."""

LAYOUTS = {name: Page(name, door="lab") for name in ("lab", "conversion", "pairings", "linear", "gallery")}
"""Pages without pictures of their own: they show what other pages declare as `shown_on`."""


def list_groups(folder: Path = FOLDER) -> dict[str, str]:
    """Return {group of pictures: its module} in order: each page's, or those of the folders inside the page's.

    Raise `ValueError` for a page without a folder, and for a folder that `ORDER` does not list.
    """
    found: dict[str, str] = {}
    for name in ORDER:
        if name in LAYOUTS:
            continue
        if not (folder / name / "__init__.py").is_file():
            raise ValueError(f"ORDER of the pages lists '{name}', but there is no rope_viz/pages/{name}/__init__.py")
        inner = sorted(path.parent.name for path in (folder / name).glob("*/__init__.py"))
        found |= {each: f"rope_viz.pages.{name}.{each}" for each in inner} or {name: f"rope_viz.pages.{name}"}
    if others := {path.parent.name for path in folder.glob("*/__init__.py")}.difference(ORDER):
        name = min(others)
        raise ValueError(f"add '{name}' to ORDER in rope_viz/pages/registry.py: there is a folder of this name")
    return found


PAGES = list_groups()
"""{group of pictures: its module}. A group has its page's name, but My model has two."""


def load_page(module: str) -> Page:
    """Return the `PAGE` of a module. Raise `ValueError` if it has none, or one of another name."""
    found = getattr(importlib.import_module(module), "PAGE", None)
    name = module.rpartition(".")[2]
    if not isinstance(found, Page) or found.name != name:
        file = f"{module.replace('.', '/')}/__init__.py"
        raise ValueError(f'{file} has no page: write PAGE = Page("{name}", door="lab")')
    return found


@functools.cache
def page(name: str) -> Page:
    """Return a group of pictures, loaded on first use. Raise `KeyError` with a sentence for an unknown one."""
    if name not in PAGES:
        raise KeyError(TEXTS("address.page", name=short_repr(name), pages=", ".join(PAGES)))
    return load_page(PAGES[name])


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


def text_of(name: str, key: str) -> str:
    """Return an entry of a page's or a group's own texts."""
    return Texts(PAGES.get(name, name).removeprefix("rope_viz.pages.").replace(".", "/"))(key)


def title_of(name: str) -> str:
    """Return the title of a page or a group of pictures."""
    return text_of(name, "title")


@functools.cache
def doors() -> dict[str, tuple[str, ...]]:
    """Return {door: its pages in the order of the tabs}; a door opens its first page.

    Raise `ValueError` for a page whose door does not exist. Only the first page may have none.
    """
    found: dict[str, list[str]] = {door: [] for door in TEXTS.group("doors")}
    pages = [LAYOUTS.get(name) or load_page(f"rope_viz.pages.{name}") for name in ORDER[1:]]
    for each in sorted(pages, key=lambda each: each.last):
        if each.door not in found:
            raise ValueError(f"page {each.name} has the door '{each.door}': choose one of {', '.join(found)}")
        found[each.door].append(each.name)
    return {door: tuple(names) for door, names in found.items()}


@cache_by_language()
def titles() -> dict[str, str]:
    """Return {page: its title} in menu order."""
    return {name: title_of(name) for name in (ORDER[0], *(name for names in doors().values() for name in names))}


@functools.cache
def door_of(page: str) -> str:
    """Return the door of a page, "" for Home."""
    return next((door for door, pages in doors().items() if page in pages), "")


@functools.cache
def pictures_on(page: str) -> tuple[Picture, ...]:
    """Return the pictures that a page shows, the first one first.

    Raise `ValueError` for a picture that is shown on a page that does not exist.
    """
    for each in pictures():
        if each.shown_on not in ORDER:
            raise ValueError(f"{each.address} is shown on '{each.shown_on}', which is no page: see ORDER of the pages")
    return tuple(sorted((each for each in pictures() if each.shown_on == page), key=lambda each: not each.first))


@functools.cache
def groups_of(page: str) -> tuple[str, ...]:
    """Return the picture groups of a page, whose names begin the keys of its choices in the address."""
    return tuple(name for name in PAGES if any(each.page == name for each in pictures_on(page)))


def method_first(name: str) -> bool:
    """True if the scaling method is the point of a page."""
    return any(page(group).method_first for group in groups_of(name))


@functools.cache
def moved() -> dict[str, tuple[str, str]]:
    """Return {address of an older release: the page that has its content, with a query}."""
    return {name: (page(name).shown_on, page(name).query) for name in PAGES if page(name).shown_on}
