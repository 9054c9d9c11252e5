"""Text from outside: letters that no output can hold are replaced once, and others before they are shown.

Every decoder (JSON, TOML, GGUF, safetensors, npz, addresses, names of files, messages of the browser) calls
`clean_text`, `clean_values` or `clean_json`, so that no text of the program holds a lone surrogate or a NUL. Such a
letter is replaced and not refused: RoPE is still computed from a config whose name is broken, and an address with one
still opens. What a text shows is another matter: `printable` also replaces control characters and marks that turn the
direction of writing, on the screen, in a terminal and in a file of a picture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

REPLACEMENT = "\ufffd"
"""Unicode's own letter for one that cannot be shown."""

BROKEN = re.compile("[\x00\ud800-\udfff]")
"""NUL, which ends a text for C, and surrogates, which UTF-8 does not have."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What is not shown as it is: control characters but tab and line feed, marks of direction, and non-characters.

XML 1.0 forbids most of them, so that one would make an SVG unreadable. ESC begins a terminal's commands, and U+202E
shows "gpj.exe" as "exe.jpg".
"""

# A pair of surrogates is one letter, so it is matched first; an escaped backslash hides what follows it.
ESCAPE = re.compile(
    r"""
    \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    | (?P<broken> \\u[dD][89a-fA-F][0-9a-fA-F]{2} | \\u0000)
    | (?P<hidden> \\u00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F]) | \\[bfr]
      | \\u202[a-eA-E] | \\u206[6-9] | \\u[fF]{3}[eEfF])
    | \\.
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPED_REPLACEMENT = "\\ufffd"
MAY_HIDE = re.compile(
    r"\\(?:[bfr]|u(?:00[0189]|007[fF]|20[26]|[dD][89a-fA-F]|[fF]{3}))"
    "|[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""A quick first look at JSON that is about to be shown; most has none of these."""


def clean_text(text: str) -> str:
    """Return a text from outside with U+FFFD in place of each lone surrogate and each NUL."""
    if text.isascii() and "\0" not in text:
        return text
    return BROKEN.sub(REPLACEMENT, text)


def clean_values(value: Any) -> Any:
    """Return a decoded value with its texts and keys as `clean_text` returns them; its depth must be limited."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_values(key): clean_values(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [clean_values(inner) for inner in value]
    return value


def clean_query(query: Mapping[str, str]) -> dict[str, str]:
    """Return the keys and values of an address as `clean_text` returns them."""
    return {clean_text(key): clean_text(value) for key, value in query.items()}


def clean_json(text: str) -> str:
    """Return a JSON text whose strings decode to clean ones.

    Lines stay where they are, so that a finding still names its line. A text without escapes costs three searches.
    """
    text = clean_text(text)
    if "\\u" not in text:
        return text
    return ESCAPE.sub(lambda found: ESCAPED_REPLACEMENT if found["broken"] else found[0], text)


def printable(text: str) -> str:
    """Return a text as it is shown: with U+FFFD for what cannot be shown; tab and line feed stay.

    A line that ends as in Windows ends with a line feed.
    """
    if text.isprintable():
        return text
    return HIDDEN.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def dump_printable(value: Any, **options: Any) -> str:
    """Return a value as JSON for a program that shows its texts, which are then as `printable` returns them.

    The options are those of `json.dumps`.
    """
    text = json.dumps(value, **options)
    if MAY_HIDE.search(text) is None:
        return text
    return ESCAPE.sub(_replace_hidden, HIDDEN.sub(REPLACEMENT, text))


def escape_hidden(text: str) -> str:
    """Return a JSON text in which characters that are not shown are written as escapes, which lose nothing."""
    if text.isprintable():
        return text
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _replace_hidden(found: re.Match[str]) -> str:
    if found["hidden"] == "\\r":
        # A text of several lines from Windows: its \n follows.
        return "" if found.string.startswith("\\n", found.end()) else ESCAPED_REPLACEMENT
    return ESCAPED_REPLACEMENT if found["broken"] or found["hidden"] else found[0]


def clean_record(record: logging.LogRecord) -> bool:
    """Make a line of the log printable, with its traceback; a filter for loggers, which keeps every record."""
    # The command line starts without it.
    import logging

    record.msg, record.args = printable(record.getMessage()), ()
    if record.exc_info and not record.exc_text:
        record.exc_text = printable(logging.Formatter().formatException(record.exc_info))
    return True
