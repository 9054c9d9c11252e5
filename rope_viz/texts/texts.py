"""Reading of the text files, and sentences that remember their numbers."""

from __future__ import annotations

import functools
import os
import string
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rope_viz.texts.numbers import (
    format_brief,
    format_number,
    format_percent,
    format_share,
    format_tokens,
    format_wavelength,
)

FOLDER = Path(__file__).parent
PAGES = FOLDER.parent / "pages"
LANGUAGE = os.environ.get("ROPE_VIZ_LANGUAGE", "en")
FORMATS = {
    "number": format_number,
    "brief": format_brief,
    "tokens": format_tokens,
    "wavelength": format_wavelength,
    "percent": format_percent,
    "share": format_share,
}


class Sentence(str):
    """A text as the screen shows it, with the values that were put into it and the entries that it was made from.

    `values` holds them before formatting, by placeholder; `entries` holds the keys in the text file, in order.
    """

    values: Mapping[str, Any]
    entries: tuple[str, ...]

    def __new__(
        cls, text: str = "", values: Mapping[str, Any] | None = None, entries: tuple[str, ...] = ()
    ) -> Sentence:
        """Return the text with its values and entries."""
        self = super().__new__(cls, text)
        self.values, self.entries = dict(values or {}), entries
        return self


class Texts:
    """The texts of one page. Call it with the key of an entry, such as "curves.crosses", and its values."""

    def __init__(self, page: str) -> None:
        """Read `<page>.toml`. Raise `FileNotFoundError` if the language has no such page."""
        self.page, self.entries = page, _read_page(page, LANGUAGE)

    def __call__(self, key: str, **values: Any) -> Sentence:
        """Return an entry with its placeholders filled in. Raise `KeyError` for an unknown entry or a missing value.

        `{at:tokens}`, `{at:wavelength}`, `{at:number}`, `{at:brief}`, `{at:percent}` and `{at:share}` use the formats
        of `rope_viz.texts.numbers`; other formats are Python's. An entry with the forms `one` and `other` is chosen by
        the value `count`.
        """
        form = key if key in self.entries else f"{key}.{'one' if values.get('count') == 1 else 'other'}"
        if form not in self.entries:
            raise KeyError(f"{find_file(self.page, LANGUAGE).name} of page {self.page} lacks '{key}'")
        merged, made_from = dict(values), [key]
        for value in values.values():
            if isinstance(value, Sentence):
                merged |= value.values
                made_from += value.entries
        try:
            return Sentence(_FORMATTER.vformat(self.entries[form], (), values), merged, tuple(made_from))
        except KeyError as error:
            raise KeyError(f"'{form}' of the texts {self.page} needs a value for {error}") from None

    def group(self, name: str) -> dict[str, str]:
        """Return the entries below `name` as they are, such as the labels of a choice's options."""
        start = f"{name}."
        return {key.removeprefix(start): text for key, text in self.entries.items() if key.startswith(start)}


def join(*sentences: str) -> Sentence:
    """Join the sentences that are not empty by spaces, with the values and entries of all."""
    values: dict[str, Any] = {}
    entries: tuple[str, ...] = ()
    for sentence in sentences:
        if isinstance(sentence, Sentence):
            values |= sentence.values
            entries += sentence.entries
    return Sentence(" ".join(each for each in sentences if each), values, entries)


class _Formatter(string.Formatter):
    """Python's format language with the formats of `FORMATS`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        found = FORMATS.get(format_spec)
        return format(value, format_spec) if found is None else found(value)


_FORMATTER = _Formatter()


def find_file(page: str, language: str) -> Path:
    """Return the file of a page's texts: in the page's folder, or among those that pages share.

    Raise `FileNotFoundError` with a sentence if there is neither.
    """
    folder = PAGES / page
    own = folder / f"texts.{language}.toml" if folder.is_dir() else PAGES / f"{page}.{language}.toml"
    found = own if own.is_file() else FOLDER / language / f"{page}.toml"
    if not found.is_file():
        raise FileNotFoundError(f"there are no texts for {page}: write rope_viz/pages/{page}/texts.{language}.toml")
    return found


def list_texts(language: str) -> list[str]:
    """Return the names of all texts: those of pages and those that pages share."""
    own = [
        path.relative_to(PAGES).as_posix().removesuffix(f".{language}.toml")
        for path in PAGES.rglob(f"*.{language}.toml")
    ]
    return sorted(
        [name.removesuffix("/texts") for name in own] + [path.stem for path in (FOLDER / language).glob("*.toml")]
    )


@functools.cache
def _read_page(page: str, language: str) -> dict[str, str]:
    return dict(_flatten(tomllib.loads(find_file(page, language).read_text(encoding="utf-8"))))


def _flatten(table: Mapping[str, Any], start: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        found += _flatten(value, f"{start}{key}.") if isinstance(value, dict) else [(start + key, value)]
    return found


TEXTS = Texts("lists")


def join_list(items: Sequence[str]) -> Sentence:
    """Return "a, b and c" with the values and entries of all items; empty for no items."""
    joined = ""
    for index, item in enumerate(items):
        is_last = index == len(items) - 1
        joined = TEXTS("end" if is_last else "more", items=joined, item=item) if index else item
    return joined if isinstance(joined, Sentence) else Sentence(joined)
