"""The glossary: the terms that texts link to, and their meanings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from rope_viz.texts import Texts, cache_by_language

TEXTS = Texts("glossary")
SLUG = {
    key.removesuffix(".term"): f"word-{index}"
    for index, key in enumerate(key for key in TEXTS.entries if key.endswith(".term"))
}
"""{entry: the anchor of its links}, in the order of the file."""

LINKED = (
    *("logit", "head", "theta", "wavelength", "band", "ramp", "attention_factor", "lambda", "mean_cosine", "softmax"),
    *("entropy", "pairing", "bound", "sinusoidal", "bf16", "zero_frequency"),
)
"""Entries whose terms texts link to. The others are too common to link."""

# Where no link may be inserted: links, code, formulas, tags and headings.
_SKIPPED = r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$|<a [^>]*>.*?</a>|<[^>]*>|^#.*$"
# A letter of a word next to a term: scripts without spaces have no such letters.
_LETTER = r"[^\W\u2e80-\u9fff]"


def linked(markdown: str, *, terms: Iterable[str] = LINKED) -> str:
    """Link the first mention of every term in a Markdown text that is part of the app; `terms` are entries."""
    return _marked(markdown, tuple(terms), "[{word}](#{slug})")


def linked_html(sentence: str, *, terms: Iterable[str] = LINKED) -> str:
    """Link the first mention of every term in an HTML sentence."""
    return _marked(sentence, tuple(terms), '<a href="#{slug}">{word}</a>')


def meanings() -> dict[str, str]:
    """Return {term: meaning}, in the order of the file."""
    return {TEXTS.entries[f"{key}.term"]: TEXTS.entries[f"{key}.meaning"] for key in SLUG}


def listed() -> dict[str, str]:
    """Return slug -> term and meaning as HTML, for the browser."""
    return {
        slug: f"<b>{html.escape(TEXTS.entries[f'{key}.term'])}</b>: {html.escape(TEXTS.entries[f'{key}.meaning'])}"
        for key, slug in SLUG.items()
    }


@cache_by_language()
def _compile_terms() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return what finds terms and what to skip, and {term: entry}."""
    entries = {TEXTS.entries[f"{key}.term"]: key for key in SLUG}
    terms = "|".join(sorted((re.escape(term) for term in entries), key=len, reverse=True))
    found = rf"(?P<skip>{_SKIPPED})|(?<!{_LETTER})(?<![/.-])(?P<term>{terms})(?P<many>s?)(?!{_LETTER}|[(′/-])"
    return re.compile(found, re.MULTILINE | re.DOTALL), entries


@cache_by_language(512)
def _marked(text: str, terms: tuple[str, ...], form: str) -> str:
    found_by, entries = _compile_terms()
    remaining = set(terms)

    def link(found: re.Match[str]) -> str:
        entry = entries.get(found["term"])
        if entry not in remaining:
            return found[0]
        remaining.discard(entry)
        return form.format(word=found["term"] + found["many"], slug=SLUG[entry])

    return found_by.sub(link, text)
