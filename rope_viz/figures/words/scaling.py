"""Sentences of the Scaling page, with the current numbers."""

from __future__ import annotations

from typing import Any

from rope_viz.embedding import spectrum
from rope_viz.embedding.clipped_rope import ClippedRope
from rope_viz.embedding.scaling import LongRope, Proportional
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL
from rope_viz.figures.scaling import TEXTS, compare_factor, short_label
from rope_viz.studies.distance_maps import Chunks, Groups
from rope_viz.texts import Sentence, join
from rope_viz.texts.lists import join_list
from rope_viz.texts.numbers import format_number

BANDS = {KEPT: "kept", BLENDED: "blended", DIVIDED: "divided", SPED: "sped", STILL: "zero"}
"""The name of each band in the text file, in the order of a sentence."""


def describe_marks(shown: str, *, others: bool) -> Sentence:
    """Explain the marks of one view of the main figure; `others` is True if it compares methods."""
    return join(TEXTS(f"legends.{shown}"), TEXTS("legends.others") if others and shown != "paper" else "")


def describe_scaling(spec: RopeSpec, *, example: bool = False) -> Sentence:
    """Say what the current method does to the frequencies and logits of this model, or what an example would do."""
    if example:
        return join(TEXTS("unscaled.example"), describe_scaling(spec))
    if spec.scaling.name == "none":
        factor = compare_factor(spec)
        return join(TEXTS("unscaled.kept"), TEXTS("unscaled.others", factor=factor), TEXTS("unscaled.choose"))
    return join(name_method(spec), describe_bands(spec), describe_logits(spec))


def name_method(spec: RopeSpec) -> Sentence:
    """Name the method and its factor, plus the factor at the target length if it differs."""
    factor, grown = spec.scaling.factor_for(spec), spectrum.whole_factor(spec, length=spec.target)
    if isinstance(spec.scaling, LongRope):
        return TEXTS("method.divisors")
    if isinstance(spec.scaling, ClippedRope):
        return TEXTS("method.clipped", count=spec.scaling.count_clipped(spec))
    if isinstance(spec.scaling, Proportional):
        divided = "" if factor == 1.0 else TEXTS("method.share_factor", factor=factor)
        return join(TEXTS("method.share", share=spec.scaling.share), divided)
    return join(
        TEXTS("method.factor", method=short_label(spec.scaling.name), factor=factor),
        TEXTS("method.grown", target=spec.target, grown=grown) if format_number(grown) != format_number(factor) else "",
    )


def describe_bands(spec: RopeSpec) -> Sentence:
    """Count the pairs of each band at the target length, with the smallest and largest change of frequency."""
    share, kind = spectrum.ratio(spec, length=spec.target), spectrum.bands(spec, length=spec.target).kind
    found = {band: share[kind == band] for band in BANDS if band in kind}
    if len(found) == 1:
        ((band, shares),) = found.items()
        each = "only" if spec.pairs == 1 else "all"
        return TEXTS(f"bands.{each}.{BANDS[band]}", pairs=spec.pairs, **_numbers(band, shares))
    kept = len(found.pop(KEPT, ()))
    first = TEXTS("bands.kept" if kept else "bands.none_kept", count=kept, kept=kept, pairs=spec.pairs)
    others = [
        TEXTS(f"bands.some.{BANDS[band]}", count=len(shares), **_numbers(band, shares))
        for band, shares in found.items()
    ]
    return join(first, TEXTS("bands.others", others=join_list(others)))


def describe_logits(spec: RopeSpec) -> Sentence:
    """Give the factor on the logits, with more digits if four would round it to 1."""
    logits = spec.attention_factor(spec.target) ** 2
    if abs(logits - 1.0) <= 1e-9:
        return TEXTS("logits.same")
    return TEXTS("logits.close_to_1" if format_number(logits) == "1" else "logits.times", logits=logits)


def describe_attention_factor(spec: RopeSpec) -> Sentence:
    """Give the attention factor and its square."""
    factor = spec.attention_factor(spec.target)
    value = TEXTS("attention.one") if factor == 1.0 else TEXTS("attention.square", factor=factor, square=factor**2)
    return join(TEXTS("attention.about"), value)


def _numbers(band: int, shares: FloatArray) -> dict[str, Any]:
    """Return the number of pairs of a band and, if it is divided or sped up, the smallest and largest factor."""
    name = BANDS[band]
    if band not in (DIVIDED, SPED):
        return {name: len(shares)}
    factors = 1.0 / shares if band == DIVIDED else shares
    low, high = float(factors.min()), float(factors.max())
    is_range = format_number(low) != format_number(high)
    by = TEXTS("bands.factors" if is_range else "bands.one_factor", low=low, high=high)
    return {name: len(shares), "by": by, f"{name}_low": low, f"{name}_high": high}


def describe_maps(trained: int, chunks: Chunks, groups: Groups, *, own: bool) -> Sentence:
    """Say what dual chunk attention and SelfExtend do to distances, with their sizes."""
    return join(
        TEXTS("maps.about", trained=trained),
        TEXTS("maps.chunks_cap", length=chunks.length, size=chunks.size),
        TEXTS("maps.groups_share", window=groups.window, group=groups.size),
        TEXTS("maps.own") if own else TEXTS("maps.released"),
    )
