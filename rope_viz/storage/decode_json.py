"""Decode JSON from outside (reports, vectors, evaluations, captures, configs) without surprises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rope_viz.storage.limits import JSON_LEVELS
from rope_viz.texts.outside_text import clean_json

T = TypeVar("T")


class ContentError(ValueError):
    """A content that a user sent and that cannot be read; the message says why. The server answers it with 422."""


def decode_json(content: bytes | str, problem: str) -> Any:
    """Return the value of a JSON text. Raise `ContentError(problem)` if it is none or nested beyond `JSON_LEVELS`.

    The caller checks the types and bounds of what it uses. NaN and Infinity are read, as Python does. Lone surrogates
    and NUL are replaced (`outside_text`).
    """
    try:
        if isinstance(content, bytes):
            # As json.loads decodes bytes, which lets surrogates pass.
            content = content.decode(json.detect_encoding(content), "surrogatepass")
        found = json.loads(clean_json(content))
    except (ValueError, RecursionError):  # a ValueError also for bytes that are no text, and for very long numbers
        raise ContentError(problem) from None
    if is_deeper(found, JSON_LEVELS):
        raise ContentError(problem)
    return found


def estimate_memory(content: bytes) -> int:
    """Return how many bytes of memory the value of a JSON text takes at most, roughly, in CPython.

    A text of empty lists, `[],[],…`, takes 24 times its length. Signs inside strings are counted, too.
    """
    values = {b"[": 72, b"{": 240, b",": 66, b":": 60}
    # One character outside of ASCII makes a string of up to four bytes for each of its characters.
    text = len(content) * (1 if content.isascii() else 4)
    return 2 * text + sum(size * content.count(sign) for sign, size in values.items())


def read_own(module: str, name: str) -> Any:
    """Return the value of one of the package's own JSON files, `name` in the folder of the file `module`."""
    return json.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


def decode_content(decode: Callable[[bytes], T], content: bytes) -> T:
    """Return what a decoder makes of a content. Raise `ContentError` with the decoder's sentence if it refuses it."""
    try:
        return decode(content)
    except ValueError as error:
        raise ContentError(str(error)) from error


def is_deeper(part: Any, levels: int) -> bool:
    """Return whether objects and lists are nested deeper than `levels`."""
    level = [part] if isinstance(part, (dict, list)) else []
    for _ in range(levels + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True
