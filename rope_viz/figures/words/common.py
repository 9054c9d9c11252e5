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


def footnote(source: str) -> str:
    """Return a source as a footnote in Markdown, "" if there is none.

    It is a link to `#source` with the source as its text. The browser shows a number instead, which opens the source
    (web/navigation.js); plain text shows the source in brackets (`spell_out_footnotes`).
    """
    return f"[{plain(source)}](#source)" if source else ""


def plain_with_footnote(text: str, source: str) -> str:
    """Escape any text for Markdown, and make `source` a footnote where the text has it in brackets."""
    return plain(text).replace(f" ({plain(source)})", footnote(source)) if source else plain(text)


def spell_out_footnotes(markdown: str) -> str:
    """Replace each footnote by its source in brackets, still escaped for Markdown."""
    return FOOTNOTE.sub(lambda found: f" ({found[1]})".replace("\u2060", ""), markdown)


def plain_cell(text: str) -> str:
    """Return the text of a table's cell, which has no markup but footnotes, with its sources in brackets."""
    return FOOTNOTE.sub(lambda found: f" ({unescape(found[1])})", text)


def unescape(markdown: str) -> str:
    """Return the text that `plain` escaped."""
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u2060", "")


# A source may contain escaped brackets.
FOOTNOTE = re.compile(r"\[((?:\\.|[^\\\]])*)\]\(#source\)")
# Characters with a meaning anywhere, a colon before a word (":red["), and list markers at the start.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
