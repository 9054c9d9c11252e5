"""The languages of the screen: which there are, which one is current, and the entries of their text files."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")

FOLDER = Path(__file__).parent
PAGES = FOLDER.parent / "pages"
ENGLISH = "en"
"""The language that has every entry: another one falls back to it, sentence by sentence."""


@functools.cache
def list_languages() -> tuple[str, ...]:
    """Return the languages that have a folder of shared texts, English first."""
    found = {path.name for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("_")}
    return ENGLISH, *sorted(found - {ENGLISH})


def check_language(language: str) -> str:
    """Return the language. Raise `ValueError` with a sentence if there are no texts in it."""
    if language not in list_languages():
        raise ValueError(f"there are no texts in the language '{language[:20]}'; choose {', '.join(list_languages())}")
    return language


_CURRENT: ContextVar[str] = ContextVar("language")


def no_language() -> str:
    """Return "", which is English. The default `FALLBACK`."""
    return ""


FALLBACK: Callable[[], str] = no_language
"""Returns the language of a thread without `use_language`. The app puts its own here, for callbacks of a session."""


def current_language() -> str:
    """Return the language of this thread's texts: that of `use_language`, else of `FALLBACK`, else English.

    Another thread or process does not inherit it. What crosses to one, such as a picture request, holds its language.
    """
    return _CURRENT.get("") or FALLBACK() or ENGLISH


def set_process_language(language: str) -> None:
    """Make a language that of all threads of this process. Raise `ValueError` as `use_language` does."""
    global FALLBACK
    check_language(language)
    FALLBACK = lambda: language  # noqa: E731


@contextmanager
def use_language(language: str) -> Iterator[None]:
    """Make a language the current one. Raise `ValueError` with a sentence if there are no texts in it."""
    token = _CURRENT.set(check_language(language))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def cache_by_language(maxsize: int | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function whose result holds texts: `functools.lru_cache` with one cache for each language."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.cache
        def make_cache(language: str) -> Any:
            return functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            found: T = make_cache(current_language())(*args, **kwargs)
            return found

        call.cache_clear = make_cache.cache_clear  # type: ignore[attr-defined]
        call.cache_info = lambda: make_cache(current_language()).cache_info()  # type: ignore[attr-defined]
        return call

    return decorate


class cached_text_property(Generic[T]):  # noqa: N801 (named as `functools.cached_property` is)
    """A property whose value holds texts: it is computed once for each language."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        """Take the method that computes the value."""
        self.function, self.__doc__ = function, function.__doc__
        self.name = f"_{function.__name__} by language"

    @overload
    def __get__(self, instance: None, owner: type) -> cached_text_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_text_property[T] | T:
        """Return the value in the current language."""
        if instance is None:
            return self
        values: dict[str, T] = instance.__dict__.setdefault(self.name, {})
        language = current_language()
        if language not in values:
            values[language] = self.function(instance)
        return values[language]


@functools.cache
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


def read_file(page: str, language: str) -> dict[str, str]:
    """Return the entries of one file. Raise `FileNotFoundError` with a sentence if the language has no such file."""
    return dict(_flatten(tomllib.loads(find_file(page, language).read_text(encoding="utf-8"))))


@functools.cache
def read_entries(page: str, language: str) -> dict[str, str]:
    """Return the entries of a page; those that the language lacks are English.

    Raise `FileNotFoundError` with a sentence if English has no such page.
    """
    english = read_file(page, ENGLISH) if language == ENGLISH else read_entries(page, ENGLISH)
    try:
        own = english if language == ENGLISH else read_file(page, language)
    except FileNotFoundError:
        return english
    # A language without a singular has the form "other" alone.
    singular = {f"{key.removesuffix('other')}one": text for key, text in own.items() if key.endswith(".other")}
    return english | {key: text for key, text in singular.items() if key in english} | own


def _flatten(table: Mapping[str, Any], start: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        found += _flatten(value, f"{start}{key}.") if isinstance(value, dict) else [(start + key, value)]
    return found
