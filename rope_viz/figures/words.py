"""Helpers shared by the sentences of several pages."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.numbers import format_number
from rope_viz.texts.outside_text import printable
from rope_viz.texts.texts import join_list, put_in_brackets


def is_scaled(spec: RopeSpec) -> bool:
    """Return True if any pair with a nonzero frequency changes it between training and the target length."""
    found = spectrum.bands(spec, length=spec.target)
    return found.count(KEPT) + found.count(STILL) < spec.pairs


def plain(text: str) -> str:
    """Escape any text for Markdown, so that it is shown literally.

    Bare addresses become links even when escaped, so a zero-width joiner breaks them.
    """
    return ADDRESS.sub("\u2060", POWERFUL.sub(r"\\\g<0>", printable(" ".join(text.split()))))


def footnote(source: str) -> str:
    """Return a source as a footnote in Markdown, "" if there is none.

    It is a link to `#source` with the source as its text. The browser shows a number instead, which opens the source
    (web/navigation.js); plain text shows the source in brackets (`spell_out_footnotes`).
    """
    return f"[{plain(source)}](#source)" if source else ""


def plain_with_footnote(text: str, source: str) -> str:
    """Escape any text for Markdown, and make `source` a footnote where the text has it in brackets."""
    return plain(text).replace(put_in_brackets(plain(source)), footnote(source)) if source else plain(text)


def spell_out_footnotes(markdown: str) -> str:
    """Replace each footnote by its source in brackets, still escaped for Markdown."""
    return FOOTNOTE.sub(lambda found: put_in_brackets(found[1]).replace("\u2060", ""), markdown)


def plain_cell(text: str) -> str:
    """Return the text of a table's cell, which has no markup but footnotes, with its sources in brackets."""
    return FOOTNOTE.sub(lambda found: put_in_brackets(unescape(found[1])), text)


def unescape(markdown: str) -> str:
    """Return the text that `plain` escaped."""
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u2060", "")


# A source may contain escaped brackets.
FOOTNOTE = re.compile(r"\[((?:\\.|[^\\\]])*)\]\(#source\)")
# Characters with a meaning anywhere, a colon before a word (":red["), and list markers at the start.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)

PAIRS = Texts("pairs")

BANDS = {KEPT: "kept", BLENDED: "blended", DIVIDED: "divided", SPED: "sped", STILL: "zero"}
"""The name of each band in the text file, in the order of a sentence."""


def name_band(kind: int) -> str:
    """Return the name of a band as a label."""
    return PAIRS(f"band_names.{BANDS[kind]}")


def name_layer(layer: str) -> str:
    """Return the words for a type of layers; one without words is the config's own name."""
    return PAIRS.group("layers").get(layer, printable(layer.replace("_", " ")))


def name_length(spec: RopeSpec) -> str:
    """Return the word for the length that the scaling starts from: trained or original."""
    return str(PAIRS(f"length_names.{spec.length_name}"))


def describe_bands(spec: RopeSpec) -> Sentence:
    """Count the pairs of each band at the target length, with the smallest and largest change of frequency."""
    share, kind = spectrum.ratio(spec, length=spec.target), spectrum.bands(spec, length=spec.target).kind
    found = {band: share[kind == band] for band in BANDS if band in kind}
    if len(found) == 1:
        ((band, shares),) = found.items()
        each = "only" if spec.pairs == 1 else "all"
        return PAIRS(f"bands.{each}.{BANDS[band]}", pairs=spec.pairs, **_numbers(band, shares))
    kept = len(found.pop(KEPT, ()))
    first = PAIRS("bands.kept" if kept else "bands.none_kept", count=kept, kept=kept, pairs=spec.pairs)
    others = [
        PAIRS(f"bands.some.{BANDS[band]}", count=len(shares), **_numbers(band, shares))
        for band, shares in found.items()
    ]
    return join(first, PAIRS("bands.others", others=join_list(others)))


def _numbers(band: int, shares: FloatArray) -> dict[str, Any]:
    name = BANDS[band]
    if band not in (DIVIDED, SPED):
        return {name: len(shares)}
    factors = 1.0 / shares if band == DIVIDED else shares
    low, high = float(factors.min()), float(factors.max())
    is_range = format_number(low) != format_number(high)
    by = PAIRS("bands.factors" if is_range else "bands.one_factor", low=low, high=high)
    return {name: len(shares), "by": by, f"{name}_low": low, f"{name}_high": high}


def count_unturned(spec: RopeSpec) -> Sentence:
    """Count the pairs with zero frequency, and of the others those without a full turn in training, before scaling."""
    turns = spectrum.trained_inv_freq(spec) * spec.context / spectrum.TAU
    zero, slow = int(np.count_nonzero(turns == 0.0)), int(np.count_nonzero((turns > 0.0) & (turns < 1.0)))
    others = spec.pairs - zero
    how_many = "all" if not slow else "none" if slow == others else "some"
    length = PAIRS("training.length", length_name=name_length(spec), count=spec.context, context=spec.context)
    numbers = {"slow": slow, "pairs": spec.pairs, "zero": zero, "others": others, "length": length}
    if not zero:
        return PAIRS(f"training.{how_many}", **numbers)
    return join(PAIRS("training.zero", count=zero, **numbers), PAIRS(f"training.others_{how_many}", **numbers))
