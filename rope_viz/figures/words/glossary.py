"""Glossary: the terms that pages link to, with one sentence each."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable

WORDS = {
    "logit": "The number by which one word looks at another, q·k/√d, before softmax makes shares of them.",
    "score": "What a query and a key say to each other: the sum of their products over the dimensions of the head.",
    "query": "What a token asks with, one vector for every head; called q, at position m.",
    "key": "What a token is found by, one vector for every head; called k, at position n.",
    "head": "One of the parallel parts of attention, with queries and keys of its own, often of 128 numbers.",
    "pair": "Two dimensions of a head that are turned together, as a point in the plane; there are d/2 of them.",
    "position": "The number of a token in the text, from 0 on.",
    "distance": "How far the key lies behind the query, m − n, in tokens.",
    "θᵢ": "How far pair i turns from one token to the next, in radians: b⁻²ⁱᐟᵈ before scaling.",
    "base": "The number b from which the speeds are made (rope_theta): the larger, the slower the last pairs turn.",
    "wavelength": "The tokens that a pair takes for one whole turn, 2π/θᵢ.",
    "trained length": "Where a new scaling method starts: the documented length of training, else the original length, "
    "else the limit.",
    "original length": "The length that the scaling in a config divides from: original_max_position_embeddings.",
    "limit": "max_position_embeddings: the longest sequence that the config allows.",
    "target length": "The length that the model is to read up to, in tokens.",
    "factor": "By how much a scaling method stretches positions, called s: 8 means that a text 8 times as long fits.",
    "band": "Pairs that a scaling method treats alike: kept at their speed, blended, or divided by the factor.",
    "kept": "Pairs that keep their full speed: they went round often in training.",
    "blended": "Pairs between the fast and the slow ones, which a ramp slows by a part of the factor.",
    "divided": "Pairs that are slowed by the whole factor: they hardly went round in training.",
    "ramp": "How the slowing grows from the kept pairs to the divided ones, a number γ from 1 to 0.",
    "attention factor": "A number that multiplies cos and sin, so that every logit is multiplied by its square, λ.",
    "λ": "The square of the attention factor: what YaRN multiplies logits by, since more tokens flatten softmax.",
    "mean cosine": "The mean of cos Δθᵢ over the pairs: the score of equal q and k at a distance Δ, 1 at distance 0.",
    "softmax": "What makes shares of 1 out of the logits of one query: the largest takes most.",
    "entropy": "How widely attention is spread over the tokens, in nats: 0 is all on one, ln L evenly on L.",
    "pairing": "Which two dimensions make a pair: neighbours (interleaved) or one of each half of the head.",
    "bound": "What a value can never exceed. It need not come near it, so a bound that falls promises no decay.",
    "sinusoidal": "The encoding of the first transformers: sines and cosines of the position are added to the word.",
    "bf16": "A number format of 16 bits with 8 significant ones: above 256 it does not hold every whole number.",
}
"""{term: sentence}; terms are spelled as in the texts."""

LINKED = (
    *("logit", "head", "θᵢ", "wavelength", "band", "ramp", "attention factor", "λ", "mean cosine", "softmax"),
    *("entropy", "pairing", "bound", "sinusoidal", "bf16"),
)
"""Terms that texts link to. The others are too common to link."""

SLUG = {term: f"word-{index}" for index, term in enumerate(WORDS)}

# Where no link may be inserted: links, code, formulas, tags and headings.
_SKIPPED = r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$|<[^>]*>|^#.*$"
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
    """Return slug -> term and sentence as HTML, for the browser."""
    return {SLUG[term]: f"<b>{html.escape(term)}</b>: {html.escape(sentence)}" for term, sentence in WORDS.items()}


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
