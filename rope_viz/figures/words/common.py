"""Helpers shared by the sentences of several pages."""

from __future__ import annotations

import re

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import KEPT, STILL


def is_scaled(spec: RopeSpec) -> bool:
    """Return True if any pair with a nonzero frequency changes it between training and the target length."""
    found = spectrum.bands(spec, length=spec.target)
    return found.count(KEPT) + found.count(STILL) < spec.pairs


def counted(count: int, what: str) -> str:
    """Join a number and its noun, plural unless 1."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def plain(text: str) -> str:
    """Escape any text for Markdown, so that it is shown literally.

    Bare addresses become links even when escaped, so a zero-width joiner breaks them.
    """
    return ADDRESS.sub("\u2060", POWERFUL.sub(r"\\\g<0>", " ".join(text.split())))


# Characters with a meaning anywhere, a colon before a word (":red["), and list markers at the start.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
