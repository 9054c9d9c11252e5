"""The badge for model cards: an SVG that says in how many runtimes a config's rotary embedding was checked, and how."""

from __future__ import annotations

import html
import string
import unicodedata
from collections.abc import Sequence

from rope_viz import web
from rope_viz.models.model_config import Source
from rope_viz.runtimes.compare import Comparison, compare
from rope_viz.runtimes.verdict_counts import count_asked, count_states, is_newest
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_clauses

TEXTS = Texts("badge")
AGREES, DIFFERS, UNKNOWN = "#00795A", "#C2410C", "#5B6470"
LEFT, MARGIN = 40, 6
"""Pixels of the part that says "RoPE", and before and after a text."""
WIDTHS = {
    letter: width
    for letters, width in (
        ("ijl", 3.1),
        (" ,;", 3.6),
        ("ft", 4.2),
        ("rs", 5.2),
        ("ckvxyz", 6.3),
        ("m", 10.7),
        ("w", 9.0),
    )
    for letter in letters
}
"""Pixels of letters in DejaVu Sans and Verdana at 11 px; the others are `USUAL` wide."""
USUAL = 6.85
WIDE = 11.0
"""Pixels of Chinese characters and of full-width punctuation."""


def describe(rows: Sequence[Comparison]) -> str:
    """Return the text of the badge: "5 runtimes executed, 1 differs; 1 by rule, agrees".

    It counts the newest release of each runtime that accepts the config, apart by how its answer is known.
    """
    parts, newest = [], [one for one in rows if is_newest(one)]
    for how, counts in count_states(newest).items():
        if computing := counts["agrees"] + counts["differs"]:
            differ, key = counts["differs"], how.replace(" ", "_")
            verdict = TEXTS("differ", count=differ) if differ else TEXTS("agree", count=computing)
            parts.append(TEXTS("part", counts=TEXTS(f"counts.{key}", count=computing), verdict=verdict))
    if asked := count_asked(newest):
        parts.append(TEXTS("counts.asked", count=asked))
    return join_clauses(parts) or str(TEXTS("none"))


def measure(text: str) -> int:
    """Return the width of a text in pixels."""
    wide = sum(unicodedata.east_asian_width(letter) in ("W", "F") for letter in text)
    return round(sum(WIDTHS.get(letter, USUAL) for letter in text) + wide * (WIDE - USUAL))


def make_badge(config: Source, name: str) -> bytes:
    """Return the badge of a config as SVG. Raises `ValueError` as `compare` does.

    The texts have a fixed length, so they fit whatever font the browser has.
    """
    rows = [one for one in compare(config) if is_newest(one)]
    text = describe(rows)
    length = measure(text)
    known = text != TEXTS("none")
    values = {
        "length": length,
        "rest": length + 2 * MARGIN,
        "width": LEFT + length + 2 * MARGIN,
        "colour": DIFFERS if any(one.differs for one in rows) else AGREES if known else UNKNOWN,
        "label": html.escape(str(TEXTS("label" if name else "unnamed", name=" ".join(name.split()), text=text))),
        "text": html.escape(text),
    }
    return string.Template(web.read_inline("badge.svg")).substitute(values).encode()
