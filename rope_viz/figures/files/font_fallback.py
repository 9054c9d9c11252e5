"""Find fonts for the user's own title and labels, such as Chinese text, and refuse characters without a font."""

from __future__ import annotations

import functools
import unicodedata

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files.style import Style

BOXES = "Last Resort"
"""How the names of fonts begin whose glyphs are all placeholder boxes."""


def find_families(style: Style) -> tuple[str, ...]:
    """Return the fonts to draw with: those of the style, then installed ones needed for its title and labels.

    Raise `ValueError` with the characters that no font has.
    """
    from matplotlib.font_manager import FontProperties, findfont

    own = style.families
    words = style.title + "".join(label for _, label in style.labels)
    if not words:
        return own
    files = (str(findfont(FontProperties(family=family))) for family in own)
    lacks = {sign for sign in words if not is_invisible(sign)}.difference(*map(read_characters, files))
    more: list[str] = []
    for name, file in sorted(find_font_files().items()) if lacks else []:
        if found := lacks & read_characters(file):
            more.append(name)
            lacks -= found
    if lacks:
        missing = "".join(sorted(lacks, key=words.index))
        which = f"the sign {missing}" if len(lacks) == 1 else f"the signs {short_repr(missing)}"
        raise ValueError(f"no font of this machine has {which} of a title or label: install one, or take html")
    return (*own, *more)


def is_invisible(sign: str) -> bool:
    """Return True for characters without a glyph of their own: joiners and variation selectors."""
    return unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def find_font_files() -> dict[str, str]:
    """Return {name: file} of the fonts that Matplotlib finds on this machine."""
    from matplotlib.font_manager import fontManager

    return {entry.name: entry.fname for entry in fontManager.ttflist if not entry.name.startswith(BOXES)}


@functools.lru_cache(maxsize=256)
def read_characters(file: str) -> frozenset[str]:
    """Return the characters of a font file."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(file).get_charmap()))
