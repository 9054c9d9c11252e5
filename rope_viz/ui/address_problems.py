"""Sentences about a page's choices in its address that cannot be read."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.pages.registry import PAGES, page
from rope_viz.picture.choices import Kept, Line, Number
from rope_viz.picture.picture_request import Choice


def find_address_problems(query: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of a page's choices in its address that cannot be read, and for each unknown one.

    Keys without the prefix of a page belong to others. Lines of text are reported next to their field.
    """
    out: list[str] = []
    for key, text in query.items():
        name, dot, _ = key.partition(".")
        if not dot or name not in PAGES:
            continue
        choices = {choice.key: choice for choice in page(name).choices}
        if key not in choices:
            close = difflib.get_close_matches(key, choices, 1)
            shown = short_repr(key)
            out.append(
                APP("address.meant", name=shown, meant=close[0]) if close else APP("address.unknown", name=shown)
            )
        elif not isinstance(choices[key], Line | Kept):
            out += _value_problem(choices[key], text)
    return out


def _value_problem(choice: Choice[Any], text: str) -> list[str]:
    """Return a sentence if a value cannot be read, with what is shown instead."""
    try:
        choice.parse(text)
    except ValueError as error:
        if isinstance(choice, Number):
            with contextlib.suppress(ValueError):
                return [APP("address.clamped", problem=error, value=choice.text(choice.near(text)))]
        return [APP("address.ignored", problem=error)]
    return []
