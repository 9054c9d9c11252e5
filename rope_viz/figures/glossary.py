"""The glossary: the terms that texts link to, and their meanings."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable

from rope_viz.texts import Texts

TEXTS = Texts("glossary")
WORDS = {
    TEXTS.entries[f"{key}.term"]: TEXTS.entries[f"{key}.meaning"]
    for key in (name.removesuffix(".term") for name in TEXTS.entries if name.endswith(".term"))
}
"""{term: meaning}, in the order of the file."""

LINKED = (
    *("logit", "head", "θᵢ", "wavelength", "band", "ramp", "attention factor", "λ", "mean cosine", "softmax"),
    *("entropy", "pairing", "bound", "sinusoidal", "bf16", "zero frequency"),
)
"""Terms that texts link to. The others are too common to link."""

SLUG = {term: f"word-{index}" for index, term in enumerate(WORDS)}

# Where no link may be inserted: links, code, formulas, tags and headings.
_SKIPPED = r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$|<a [^>]*>.*?</a>|<[^>]*>|^#.*$"
_TERMS = "|".join(sorted((re.escape(term) for term in WORDS), key=len, reverse=True))
_FOUND = re.compile(
    rf"(?P<skip>{_SKIPPED})|(?<![\w/.-])(?P<term>{_TERMS})(?P<many>s?)(?![\w(′/-])", re.MULTILINE | re.DOTALL
)


def linked(markdown: str, *, terms: Iterable[str] = LINKED) -> str:
    """Link the first mention of every term in a Markdown text that is part of the app."""
    return _marked(markdown, tuple(terms), "[{word}](#{slug})")


def linked_html(sentence: str, *, terms: Iterable[str] = LINKED) -> str:
    """Link the first mention of every term in an HTML sentence."""
    return _marked(sentence, tuple(terms), '<a href="#{slug}">{word}</a>')


def listed() -> dict[str, str]:
    """Return slug -> term and meaning as HTML, for the browser."""
    return {SLUG[term]: f"<b>{html.escape(term)}</b>: {html.escape(meaning)}" for term, meaning in WORDS.items()}


@functools.lru_cache(512)
def _marked(text: str, terms: tuple[str, ...], form: str) -> str:
    remaining = set(terms)

    def link(found: re.Match[str]) -> str:
        term = found["term"]
        if term is None or term not in remaining:
            return found[0]
        remaining.discard(term)
        return form.format(word=found["term"] + found["many"], slug=SLUG[term])

    return _FOUND.sub(link, text)
