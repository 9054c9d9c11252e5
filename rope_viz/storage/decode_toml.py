"""Decode TOML from outside: a suite of figures, and a pyproject.toml."""

from __future__ import annotations

import tomllib
from typing import Any

from rope_viz.texts.outside_text import clean_values


def decode_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; NUL is replaced, and TOML has no surrogates.

    Raises `ValueError`, and `RecursionError` for a text that is nested deeply.
    """
    table: dict[str, Any] = clean_values(tomllib.loads(text))
    return table
