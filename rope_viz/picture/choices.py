"""Kinds of page choices, each declared once for the widget, the address and the command line.

A choice has a key, `<page>.<name>`, a default and a text form. `parse` reads text and raises `ValueError` with a
sentence if it can never be valid; `resolve` moves a value to the nearest one that the rest allows.
Options, limits and defaults may be functions of `PictureRequest`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from rope_viz.embedding.spec import Knob, short_repr
from rope_viz.models import spec_url
from rope_viz.own_files.blob_store import StoredContent, require_size
from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.picture.picture_request import Choice, PictureRequest, T, always
from rope_viz.storage.limits import CONTENT_BYTES, NUMBERS_FILE_BYTES
from rope_viz.storage.read_file import read_limited
from rope_viz.texts import Texts, Translated, TranslatedOptions
from rope_viz.texts.outside_text import clean_text, printable

TEXTS = Texts("app")
Name = TypeVar("Name", bound=str)
Names: TypeAlias = tuple[str, ...]
JOINERS = "\u200c\u200d"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pick(Choice[Name]):
    """One of a few options (name -> label); `offered` are those that currently apply, with their labels.

    The default is `usual` if offered, else the first. `menu`: show a menu of this width in pixels instead of buttons.
    """

    options: TranslatedOptions[Name] = TranslatedOptions()
    offered: Callable[[PictureRequest], Mapping[Name, str]] | None = None
    usual: Callable[[PictureRequest], Name] | None = None
    menu: int = 0

    def shown(self, request: PictureRequest) -> Mapping[Name, str]:
        """Return the options that currently apply."""
        return self.options if self.offered is None else self.offered(request)

    def default(self, request: PictureRequest) -> Name:
        shown = self.shown(request)
        if self.usual is not None and (preferred := self.usual(request)) in shown:
            return preferred
        return next(iter(shown), next(iter(self.options)))

    def parse(self, text: str) -> Name:
        for name in self.options:
            if name == text:
                return name
        options = ", ".join(self.options)
        raise ValueError(TEXTS("choices.one_of", name=self.key, options=options, value=short_repr(text)))

    def resolve(self, value: Name, request: PictureRequest) -> Name:
        return value if value in self.shown(request) else self.default(request)

    def describe(self) -> str:
        return ", ".join(self.options)


def make_tab_choice(page: str, tabs: Mapping[str, Sequence[Choice[Any]]], texts: Texts) -> Pick[str]:
    """Return the choice of a page's tab from {tab: the choices that it shows}, with the page's texts as labels.

    An address with one of these choices opens its tab; any other opens the first.
    """

    def find_tab(request: PictureRequest) -> str:
        named = (tab for tab, shown in tabs.items() if any(each.key in request.given for each in shown))
        return next(named, next(iter(tabs)))

    labels = texts.group("tabs", only=tabs)
    return Pick(key=f"{page}.tab", label=texts("choices.tab"), options=labels, usual=find_tab)


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstOf(Pick[Name]):
    """One of a few options. Older addresses may name several, separated by commas: the first counts."""

    def parse(self, text: str) -> Name:
        return super().parse(text.partition(",")[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Menu(Choice[str]):
    """One of many entries (name -> label) that depend on the other choices, in a menu of `width` pixels.

    The default is `usual` if present, else the first. `check` is true for a name that can be valid at all.
    """

    entries: Callable[[PictureRequest], Mapping[str, str]]
    usual: Callable[[PictureRequest], str]
    check: Callable[[str], bool]
    width: int = 260

    def default(self, request: PictureRequest) -> str:
        shown, preferred = self.entries(request), self.usual(request)
        return preferred if preferred in shown else next(iter(shown))

    def parse(self, text: str) -> str:
        if not self.check(text):
            raise ValueError(TEXTS("choices.no_entry", name=self.key, value=short_repr(text)))
        return text

    def resolve(self, value: str, request: PictureRequest) -> str:
        return value if value in self.entries(request) else self.default(request)


@dataclass(frozen=True, kw_only=True, eq=False)
class Borders(Choice[tuple[int, ...]]):
    """A division of pairs among names, shown as a bar with movable borders; `shares` (name -> share) is the default."""

    shares: Callable[[PictureRequest], Mapping[str, int]]

    def default(self, request: PictureRequest) -> tuple[int, ...]:
        return tuple(self.shares(request).values())

    def parse(self, text: str) -> tuple[int, ...]:
        counts = text.split(",")
        if not 1 <= len(counts) <= 16 or not all(re.fullmatch(r"[0-9]{1,4}", count) for count in counts):
            raise ValueError(TEXTS("choices.shares", name=self.key, value=short_repr(text)))
        return tuple(int(count) for count in counts)

    def resolve(self, value: tuple[int, ...], request: PictureRequest) -> tuple[int, ...]:
        default = self.default(request)
        return value if len(value) == len(default) and sum(value) == sum(default) else default

    def text(self, value: tuple[int, ...]) -> str:
        return ",".join(map(str, value))

    def describe(self) -> str:
        return TEXTS("choices.shares_form")


@dataclass(frozen=True, kw_only=True, eq=False)
class Several(Choice[Names]):
    """Any number of `options` (name -> label), in the order chosen; `offered` are those that the model has.

    The widget shows only `drawn`, the options that affect the current picture; the value keeps the others.
    """

    options: TranslatedOptions[str] = TranslatedOptions()
    usual: Callable[[PictureRequest], Sequence[str]]
    offered: Callable[[PictureRequest], Mapping[str, str]] | None = None
    drawn: Callable[[PictureRequest], Collection[str]] | None = None

    def default(self, request: PictureRequest) -> Names:
        return tuple(self.usual(request))

    def parse(self, text: str) -> Names:
        names = tuple(dict.fromkeys(name for name in text.split(",") if name))
        for name in names:
            if name not in self.options:
                options = ", ".join(self.options)
                raise ValueError(TEXTS("choices.several", name=self.key, options=options, value=short_repr(name)))
        return names

    def resolve(self, value: Names, request: PictureRequest) -> Names:
        shown = self.shown(request)
        return tuple(name for name in value if name in shown)

    def shown(self, request: PictureRequest) -> Mapping[str, str]:
        return self.options if self.offered is None else self.offered(request)

    def visible(self, request: PictureRequest) -> Mapping[str, str]:
        """Return the options that the widget shows."""
        drawn = self.options if self.drawn is None else self.drawn(request)
        return {name: label for name, label in self.shown(request).items() if name in drawn}

    def text(self, value: Names) -> str:
        return ",".join(value)

    def describe(self) -> str:
        return TEXTS("choices.several_form", options=", ".join(self.options))


@dataclass(frozen=True, kw_only=True, eq=False)
class Switch(Choice[bool]):
    """A yes or no."""

    on: bool = False

    def default(self, request: PictureRequest) -> bool:
        return self.on

    def parse(self, text: str) -> bool:
        if text not in ("yes", "no"):
            raise ValueError(TEXTS("choices.switch", name=self.key, value=short_repr(text)))
        return text == "yes"

    def describe(self) -> str:
        return "yes, no"


@dataclass(frozen=True, kw_only=True, eq=False)
class Number(Choice[Any]):
    """A number with a slider. `limit` lowers the knob's maximum depending on the other choices."""

    knob: Knob
    usual: float | Callable[[PictureRequest], float]
    limit: Callable[[PictureRequest], float] | None = None
    label: Translated = Translated("")

    def ends(self, request: PictureRequest) -> Knob:
        """Return the knob with its current maximum."""
        if self.limit is None:
            return self.knob
        return Knob(**{**vars(self.knob), "high": max(self.knob.low, min(self.knob.high, self.limit(request)))})

    def default(self, request: PictureRequest) -> float:
        return self.resolve(self.usual(request) if callable(self.usual) else self.usual, request)

    def parse(self, text: str) -> float:
        knob = self.knob
        try:
            value = spec_url.parse_number(text, knob.unit)
        except ValueError as error:
            raise ValueError(f"{self.key}: {error}") from None
        if not knob.low <= value <= knob.high or (knob.integer and value != int(value)):
            key = "choices.whole_number" if knob.integer else "choices.number"
            low, high = spec_url.format_value(knob.low), spec_url.format_value(knob.high)
            raise ValueError(TEXTS(key, name=self.key, low=low, high=high, value=short_repr(text)))
        return int(value) if knob.integer else value

    def near(self, text: str) -> float:
        """Read a number and clamp it to the knob's range. Raise `ValueError` if it is not a number."""
        value = min(max(spec_url.parse_number(text, self.knob.unit), self.knob.low), self.knob.high)
        return round(value) if self.knob.integer else value

    def resolve(self, value: float, request: PictureRequest) -> float:
        knob = self.ends(request)
        value = min(max(value, knob.low), knob.high)
        return round(value) if knob.integer else float(value)

    def describe(self) -> str:
        low, high = spec_url.format_value(self.knob.low), spec_url.format_value(self.knob.high)
        return TEXTS("choices.number_form", low=low, high=high)


def length(
    key: str,
    label: str,
    usual: float | Callable[[PictureRequest], float],
    *,
    least: int = 16,
    most: int = 10_000_000,
    unit: str = "tokens",
    limit: Callable[[PictureRequest], float] | None = None,
    when: Callable[[PictureRequest], bool] = always,
    needs: tuple[Choice[Any], ...] = (),
    shared: str = "",
) -> Number:
    """Make a choice of a number of tokens."""
    knob = Knob(label, least, most, "", log=True, integer=True, unit=unit)
    return Number(key=key, label=label, knob=knob, usual=usual, limit=limit, when=when, needs=needs, shared=shared)


@dataclass(frozen=True, kw_only=True, eq=False)
class TextLine(Choice[str]):
    """A line of the user's own text, at most `most` characters; an empty one means the default.

    `check` raises `ValueError` with a sentence for text that cannot be used.
    """

    usual: str
    check: Callable[[str], object]
    most: int = 400

    def default(self, request: PictureRequest) -> str:
        return self.usual

    def parse(self, text: str) -> str:
        line = clean_line(text, self.most) or self.usual
        self.check(line)
        return line


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces(TextLine):
    """A line made of at most `count` pieces, such as a prompt of text and images.

    `parts` parses a line into pieces as plain data; `kinds` are the kinds that can currently be added.
    """

    parts: Callable[[str], Sequence[Mapping[str, Any]]]
    kinds: Callable[[PictureRequest], Sequence[str]]
    count: int

    def describe(self) -> str:
        return TEXTS("choices.pieces_form", example=self.usual)


UNSET = -1
"""In place of a position that an address does not set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionPair(Choice[tuple[int, int]]):
    """Two positions, as `m,n`, each at most `most`: of the query and of the key, whose default completes `m` alone."""

    usual: Callable[[PictureRequest], tuple[int, int]]
    most: int

    def default(self, request: PictureRequest) -> tuple[int, int]:
        return self.usual(request)

    def parse(self, text: str) -> tuple[int, int]:
        given = text.split(",")
        if len(given) > 2 or not all(one.isascii() and one.isdecimal() and len(one) < 9 for one in given):
            raise ValueError(TEXTS("choices.positions", name=self.key, value=short_repr(text)))
        m, n = [min(int(one), self.most) for one in given] if len(given) == 2 else [min(int(text), self.most), UNSET]
        return m, n

    def resolve(self, value: tuple[int, int], request: PictureRequest) -> tuple[int, int]:
        m, n = value
        return m, self.usual(request)[1] if n == UNSET else n

    def describe(self) -> str:
        return TEXTS("choices.positions_form")


@dataclass(frozen=True)
class StoredValue(Generic[T]):
    """A value that an address cannot hold, and the name under which its content is stored."""

    name: str
    value: T = field(compare=False)


def accept_any(held: StoredValue[Any], request: PictureRequest) -> None:
    """Accept every value: the default `check`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredChoice(Choice[StoredValue[T] | None]):
    """A value that an address cannot hold; the address has the name of a stored content instead. None: no content.

    `decode` reads a content; `load` makes one from a command-line argument, a file name or text. `check` raises
    `ValueError` for a value that does not fit the model; the page shows that after `instead`. `typed`: text fields,
    name -> (label, placeholder). `suffixes`: the file types to upload; `missing` is shown without a file. A content has
    at most `largest` bytes.
    """

    reads_outside: ClassVar[bool] = True
    decode: Callable[[bytes], T]
    """A function of a module, which another process finds."""
    load: Callable[[str], bytes]
    check: Callable[[StoredValue[T], PictureRequest], object] = accept_any
    instead: Translated = Translated(TEXTS("controls.not_used"))
    missing: Translated = Translated(TEXTS("controls.no_file"))
    typed: Callable[[PictureRequest], Mapping[str, tuple[str, str]]] | None = None
    suffixes: tuple[str, ...] = ()
    largest: int = CONTENT_BYTES

    def default(self, request: PictureRequest) -> StoredValue[T] | None:
        return None

    def parse(self, text: str) -> StoredValue[T] | None:
        return self.read_value(text, HERE)

    def name_content(self, text: str) -> Content[T]:
        return StoredContent(text, self.decode)

    def read_value(self, text: str, reader: Reader) -> StoredValue[T] | None:
        return StoredValue(text, reader.read_outside(self.name_content(text))[0])

    def text(self, value: StoredValue[T] | None) -> str:
        return "" if value is None else value.name

    def describe(self) -> str:
        return TEXTS("choices.file_form")


def clean_line(text: str, most: int) -> str:
    """Return text as one printable line cut to `most`; joiners, which some scripts need, are kept."""
    shown = (each if each.isprintable() or each in JOINERS else " " for each in text[:most])
    return " ".join("".join(shown).split())


def filed(name: str, data: bytes) -> bytes:
    """Join a file's name and data into a stored content."""
    return clean_text(name).encode() + b"\0" + data


def name_of(filed: bytes) -> str:
    """Return the file name of a stored content, as it is shown."""
    return printable(filed.partition(b"\0")[0].decode(errors="replace"))


def data_of(filed: bytes) -> bytes:
    """Return the data of a stored content."""
    return filed.partition(b"\0")[2]


def load_file(written: str, largest: int = CONTENT_BYTES) -> bytes:
    """Read a file into the form of a stored content."""
    return filed(Path(written).name, read_limited(written, largest))


def load_bytes(written: str) -> bytes:
    """Read a file whose name does not matter."""
    return read_limited(written, CONTENT_BYTES)


def decode_file(read: Callable[[bytes], T], largest: int, content: bytes) -> T:
    """Return what a function reads from a stored file of at most `largest` bytes."""
    require_size(content, largest)
    return read(data_of(content))


def json_file(read: Callable[[bytes], T], *, largest: int = NUMBERS_FILE_BYTES, **more: Any) -> StoredChoice[T]:
    """Make a choice of a JSON file of at most `largest` bytes that `read` decodes."""
    # Partials of functions of modules, because another process reads the content.
    decode = functools.partial(decode_file, read, largest)
    load = functools.partial(load_file, largest=largest)
    return StoredChoice(decode=decode, load=load, suffixes=(".json",), largest=largest, **more)
