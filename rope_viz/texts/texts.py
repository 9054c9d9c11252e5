"""Sentences that remember their numbers, from the entries of the text files."""

from __future__ import annotations

import functools
import string
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from rope_viz.texts.languages import ENGLISH, current_language, find_file, read_entries
from rope_viz.texts.numbers import (
    format_brief,
    format_number,
    format_percent,
    format_share,
    format_signed,
    format_tokens,
    format_wavelength,
)
from rope_viz.texts.outside_text import printable

Name = TypeVar("Name", bound=str)
FORMATS = {
    "number": format_number,
    "brief": format_brief,
    "tokens": format_tokens,
    "wavelength": format_wavelength,
    "percent": format_percent,
    "share": format_share,
    "signed": format_signed,
}


class Sentence(str):
    """A text as the screen shows it, with the values that were put into it and the entries that it was made from.

    `values` holds them before formatting, by placeholder; `entries` holds the keys in the text file, in order.
    `source` is what `translate` needs: language, page, key and values of the one entry, if it was made from one.
    """

    values: Mapping[str, Any]
    entries: tuple[str, ...]
    source: tuple[str, str, str, Mapping[str, Any]] | None

    def __new__(
        cls,
        text: str = "",
        values: Mapping[str, Any] | None = None,
        entries: tuple[str, ...] = (),
        source: tuple[str, str, str, Mapping[str, Any]] | None = None,
    ) -> Sentence:
        """Return the text with its values and entries."""
        self = super().__new__(cls, text)
        self.values, self.entries, self.source = dict(values or {}), entries, source
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Sentence:
        """Return the sentence itself, which nothing changes: figures copy all of their texts."""
        return self


class Texts:
    """The texts of one page in the current language. Call it with a key, such as "curves.crosses", and its values."""

    def __init__(self, page: str) -> None:
        """Take the name of a text file. Raise `FileNotFoundError` if English has no such page."""
        # The file is read at the first call: a command that needs none of its texts starts sooner.
        self.page = page
        # {(language, key): entries that it was made from, sentence} of sentences without values.
        self._made: dict[tuple[str, str], tuple[Mapping[str, str], Sentence]] = {}
        find_file(page, ENGLISH)

    @property
    def entries(self) -> Mapping[str, str]:
        """Return the entries by key, as they are."""
        return read_entries(self.page, current_language())

    def __call__(self, key: str, /, **values: Any) -> Sentence:
        """Return an entry with its placeholders filled in. Raise `KeyError` for an unknown entry or a missing value.

        `{at:tokens}`, `{at:wavelength}`, `{at:number}`, `{at:brief}`, `{at:percent}`, `{at:share}` and `{at:signed}`
        use the formats of `rope_viz.texts.numbers`; other formats are Python's. An entry with the forms `one` and
        `other` is chosen by the value `count`.
        """
        language = current_language()
        entries = read_entries(self.page, language)
        if not values:
            made = self._made.get((language, key))
            if made is not None and made[0] is entries:
                return made[1]
        form = key if key in entries else f"{key}.{'one' if values.get('count') == 1 else 'other'}"
        if form not in entries:
            raise KeyError(f"{find_file(self.page, ENGLISH).name} of page {self.page} lacks '{key}'")
        merged, made_from = dict(values), [key]
        for value in values.values():
            if isinstance(value, Sentence):
                merged |= value.values
                made_from += value.entries
        try:
            entry = entries[form]
            # Python's own formatting takes a tenth of the time.
            text = _FORMATTER.vformat(entry, (), values) if _uses_formats(entry) else entry.format(**values)
            # Values may be names from a config; what is shown of them is made printable here, for all sentences.
            text = printable(text)
        except KeyError as error:
            raise KeyError(f"'{form}' of the texts {self.page} needs a value for {error}") from None
        sentence = Sentence(text, merged, tuple(made_from), (language, self.page, key, values))
        if not values:
            self._made[language, key] = entries, sentence
        return sentence

    def group(self, name: str, only: Collection[str] | None = None) -> TextGroup:
        """Return the entries below `name` as they are, such as the labels of a choice's options.

        `only` are those to have, in their order.
        """
        return TextGroup(self.page, name, only)


class TextGroup(Mapping[str, str]):
    """The entries below a name, in the language that is current when they are read."""

    def __init__(self, page: str, name: str, only: Collection[str] | None = None) -> None:
        """Take what `Texts.group` takes. Raise `KeyError` for an entry of `only` that is not there."""
        found = _find_keys(page, name)
        self._page, self._keys = page, found if only is None else {key: found[key] for key in only}

    def __getitem__(self, key: str) -> str:
        return read_entries(self._page, current_language())[self._keys[key]]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __or__(self, other: Mapping[str, str]) -> dict[str, str]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, str]) -> dict[str, str]:
        return {**other, **self}


@functools.cache
def _find_keys(page: str, name: str) -> dict[str, str]:
    """Return {end of a key: the whole key} of the entries below a name."""
    start = f"{name}."
    return {key.removeprefix(start): key for key in read_entries(page, ENGLISH) if key.startswith(start)}


class Translated:
    """A field of a dataclass that holds a text made at import: it is read in the current language."""

    def __init__(self, default: str | None = None) -> None:
        """Take the field's default, None for none."""
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> str:
        """Return the text. Raise `AttributeError` for the class if the field has no default."""
        if instance is not None:
            text: str = instance.__dict__[self._name]
            return translate(text)
        if self._default is None:
            raise AttributeError(self._name)
        return self._default

    def __set__(self, instance: object, value: str) -> None:
        instance.__dict__[self._name] = value


class TranslatedOptions(Generic[Name]):
    """A field of a dataclass that holds a mapping to texts made at import, as `Translated` does for one text."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Mapping[Name, str]:
        """Return the mapping. Raise `AttributeError` for the class, as there is no default."""
        if instance is None:
            raise AttributeError(self._name)
        options: Any = instance.__dict__[self._name]
        if isinstance(options, TextGroup):
            return cast(Mapping[Name, str], options)
        # A run of a page reads some options a hundred times.
        made: dict[str, dict[Name, str]] = instance.__dict__.setdefault(f"_{self._name} by language", {})
        language = current_language()
        if language not in made:
            made[language] = {name: translate(each) for name, each in options.items()}
        return made[language]

    def __set__(self, instance: object, value: Mapping[Name, str]) -> None:
        instance.__dict__[self._name] = value


def translate(text: str) -> str:
    """Return a sentence that was made from one entry in the current language, and any other text as it is."""
    if not isinstance(text, Sentence) or text.source is None:
        return text
    language, page, key, values = text.source
    if language == current_language():
        return text
    return Texts(page)(
        key, **{name: translate(each) if isinstance(each, str) else each for name, each in values.items()}
    )


def join(*sentences: str) -> Sentence:
    """Join the sentences that are not empty as the language does, with the values and entries of all."""
    values: dict[str, Any] = {}
    entries: tuple[str, ...] = ()
    for sentence in sentences:
        if isinstance(sentence, Sentence):
            values |= sentence.values
            entries += sentence.entries
    return Sentence(LANGUAGE.entries["sentences"].join(each for each in sentences if each), values, entries)


def split_at_colon(text: str) -> tuple[str, str, str]:
    """Return what is before the first colon of a sentence, the colon, and what is after it, as `str.partition`."""
    return text.partition(LANGUAGE.entries["colon"])


def put_in_brackets(text: str) -> str:
    """Return a reason or a source in brackets, with the blank before them if the language has one."""
    return LANGUAGE("brackets", text=text)


def language_code() -> str:
    """Return the code of the current language for browsers and screen readers."""
    return LANGUAGE.entries["code"]


class _Formatter(string.Formatter):
    """Python's format language with the formats of `FORMATS`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        found = FORMATS.get(format_spec)
        return format(value, format_spec) if found is None else found(value)


_FORMATTER = _Formatter()


@functools.cache
def _uses_formats(entry: str) -> bool:
    return any(spec in FORMATS for _, _, spec, _ in string.Formatter().parse(entry))


TEXTS, LANGUAGE = Texts("lists"), Texts("language")


def join_items(items: Iterable[str]) -> str:
    """Return "a, b, c" as the language lists names."""
    return TEXTS.entries["comma"].join(items)


def join_clauses(clauses: Sequence[str]) -> str:
    """Return "a; b; c" as the language separates clauses."""
    return TEXTS.entries["clauses"].join(clauses)


def split_clauses(text: str) -> list[str]:
    """Return the clauses that `join_clauses` joins."""
    return text.split(TEXTS.entries["clauses"])


def join_list(items: Sequence[str], end: str = "end", more: str = "more") -> Sentence:
    """Return "a, b and c", or with the end "or" "a, b or c", with the values and entries of all items.

    With "end" as `more`: "a and b and c". Empty for no items.
    """
    joined = ""
    for index, item in enumerate(items):
        is_last = index == len(items) - 1
        joined = TEXTS(end if is_last else more, items=joined, item=item) if index else item
    return joined if isinstance(joined, Sentence) else Sentence(joined)
