"""The fonts that an author's own words need, such as one with Chinese signs; a sign that none has is refused."""

from __future__ import annotations

import functools
import unicodedata

from rope_viz.embedding.spec import shorten
from rope_viz.figures.files.style import Style

BOXES = "Last Resort"
"""The font that has every sign, as a box."""


def families(style: Style) -> tuple[str, ...]:
    """The fonts to draw with: those of the style, and those of this machine that its title and labels need beside.

    Raises `ValueError` with the signs that no font has.
    """
    from matplotlib.font_manager import FontProperties, findfont

    own = style.families
    words = style.title + "".join(label for _, label in style.labels)
    if not words:
        return own
    files = (str(findfont(FontProperties(family=family))) for family in own)
    lacks = {sign for sign in words if not unseen(sign)}.difference(*map(signs, files))
    more: list[str] = []
    for name, file in sorted(installed().items()) if lacks else []:
        if found := lacks & signs(file):
            more.append(name)
            lacks -= found
    if lacks:
        said = "".join(sorted(lacks, key=words.index))
        which = f"the sign {said}" if len(lacks) == 1 else f"the signs {shorten(said)}"
        raise ValueError(f"no font of this machine has {which} of a title or label: install one, or take html")
    return (*own, *more)


def unseen(sign: str) -> bool:
    """Whether a sign leaves no ink in any font: joiners, and what chooses a form of the sign before."""
    return unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def installed() -> dict[str, str]:
    """{name: file} of the fonts that Matplotlib finds on this machine."""
    from matplotlib.font_manager import fontManager

    return {entry.name: entry.fname for entry in fontManager.ttflist if not entry.name.startswith(BOXES)}


@functools.lru_cache(maxsize=256)
def signs(file: str) -> frozenset[str]:
    """The signs that the font in a file has."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(file).get_charmap()))
