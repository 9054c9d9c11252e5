"""Where a text may be broken into lines, and how wide it is: scripts without spaces break between their signs."""

from __future__ import annotations

import re

# Signs that take the width of two letters: Han, kana, and full-width punctuation.
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
# What begins no line, and what ends none. Lines do not break at a no-break space either.
_CLOSING = "，。、；：？！）》」』】％”’,.;:?!)%"
_OPENING = "（《「『【"
_JOINING = "\u00a0\u202f"
PIECE = re.compile(rf"[^\S{_JOINING}]*[{_OPENING}]*(?:[{_WIDE}]|(?:[^\s{_WIDE}]|[{_JOINING}])+)[{_CLOSING}]*|\S+|\s+$")
"""A part of a text that is not broken, with the blanks before it."""
_WIDE_SIGN = re.compile(f"[{_WIDE}]")


def count_letters(text: str) -> int:
    """Return the width of a text in letters."""
    return len(text) + len(_WIDE_SIGN.findall(text))


def split_pieces(text: str) -> list[str]:
    """Return the parts of a text between which a line may break, each but the first with the blank before it."""
    found: list[str] = PIECE.findall(" ".join(text.split()))
    return found


def wrap_letters(text: str, most: float) -> list[str]:
    """Return the lines of a text of fewer than `most` letters each; a longer part has a line of its own."""
    lines = [""]
    for piece in split_pieces(text):
        part = piece.lstrip()
        if lines[-1] and count_letters(lines[-1]) + count_letters(part) >= most:
            lines.append("")
        lines[-1] += piece if lines[-1] else part
    return lines
