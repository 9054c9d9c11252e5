"""Sentences of the Scaling page, with the current numbers."""

from __future__ import annotations

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import ClippedRope, LongRope, Proportional
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.compared import compare_factor, short_label
from rope_viz.figures.words import describe_bands
from rope_viz.pages.scaling.figures import TEXTS
from rope_viz.studies.distance_maps import Chunks, Groups
from rope_viz.texts import Sentence, join
from rope_viz.texts.numbers import format_number


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


def describe_maps(trained: int, chunks: Chunks, groups: Groups, *, own: bool) -> Sentence:
    """Say what dual chunk attention and SelfExtend do to distances, with their sizes."""
    return join(
        TEXTS("maps.about", trained=trained),
        TEXTS("maps.chunks_cap", length=chunks.length, size=chunks.size),
        TEXTS("maps.groups_share", window=groups.window, group=groups.size),
        TEXTS("maps.own") if own else TEXTS("maps.released"),
    )
