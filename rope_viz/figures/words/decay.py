"""The sentences of the Decay page, with the current numbers in them."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.decay import Parts, first_negative, score_and_bound
from rope_viz.figures.theme import digits, tokens

PAIRS = "What each pair adds to the score at one distance, and the running total"
MAP = "With RoPE every diagonal has one value: the score of a query and a key depends on their distance alone."
BASES = "Bases for which the mean cosine stays at or above 0 up to this length"


def decay(spec: RopeSpec, shown: str, length: int, kind: str, own: Parts, *, tokens: int = 0) -> str:
    """What to look for in the chosen view. `tokens`: how long the sequence is whose first token `own` is, if any."""
    if shown == "bound":
        return (
            "RoFormer's **upper bound** on the score falls with distance, but not steadily: it bounds, "
            "it does not promise decay."
        )
    if shown == "random" and kind == "iid":
        return (
            "For independent random q and k the score has **no decay on average**: the median stays at 0 at every "
            "distance, and the spread does not change."
        )
    if shown == "random":
        return "Where k is a noisy copy of q, the score falls with distance as **2σ²·Σ cos Δθᵢ**, the dashed curve."
    if shown == "own":
        at = min(1000, length - 1)
        score, most = score_and_bound(spec, at, own)
        which = "one query and one key" if not tokens else "token 0's query and key"
        rest = f" Dashed, the mean over all {tokens:,} tokens." if tokens else ""
        return (
            f"The score of {which} at every distance. At {at:,} it is **{digits(score)}**; "
            f"RoFormer's bound allows {digits(most)} there.{rest}"
        )
    if shown == "softmax":
        factor = spec.attention_factor(spec.target)
        sharper = f" The attention factor {digits(factor)} makes it sharper." if factor > 1 else ""
        return f"How widely attention spreads as the context grows: ln L nats is uniform over L tokens.{sharper}"
    return mean(spec, length)


def mean(spec: RopeSpec, length: int) -> str:
    """Where the mean cosine of the plain and of the scaled model first falls below 0."""
    plain = first_negative(spec.plain_inv_freq, length)
    scaled = first_negative(spec.inv_freq(spec.target), length)
    if np.array_equal(spec.plain_inv_freq, spec.inv_freq(spec.target)):
        return f"The mean cosine {_crosses(plain, length)}: beyond it, a similar key is no longer preferred on average."
    return f"Plain, the mean cosine {_crosses(plain, length)}; scaled, it {_crosses(scaled, length)}."


def pair_by_pair(spec: RopeSpec, distance: int, total: float) -> str:
    """The sum at one distance."""
    return f"At distance {distance:,} the {spec.pairs} pairs add up to **{total:.4f}**. Click a pair to pin it."


def bases(spec: RopeSpec, length: int) -> str:
    """Whether this base holds the length."""
    at = first_negative(spec.plain_inv_freq, length)
    verdict = "holds it" if at is None else f"turns negative at {at:,}"
    return (
        f"Green bases keep the mean cosine at or above 0 up to {tokens(length)}. The set has **gaps**: there is no "
        f"single smallest base. This model's base, {digits(spec.base)}, {verdict}."
    )


def _crosses(at: int | None, length: int) -> str:
    return f"stays at or above 0 up to {tokens(length)}" if at is None else f"first falls below 0 at **{at:,}**"
