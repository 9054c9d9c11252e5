"""Sentences of the Decay page, with the current numbers."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.decay import BOUND_LONGEST, first_negative, score_and_bound
from rope_viz.figures.per_distance import bases_drawn, feasible, total
from rope_viz.figures.theme import digits, tokens
from rope_viz.studies.decay import s_at
from rope_viz.studies.scores import Parts

PAIRS = "What each pair adds to the score at one distance, and the running total"
MAP = "With RoPE every diagonal has one value: the score of a query and a key depends on their distance alone."
BASES = "Bases for which the mean cosine stays at or above 0 up to this length"


def decay(spec: RopeSpec, shown: str, length: int, kind: str, own: Parts, *, tokens: int = 0) -> str:
    """Describe the chosen view. `tokens` is the length of the sequence if `own` is its first token, else 0."""
    if shown == "bound":
        return bound(spec, length)
    if shown == "random" and kind == "iid":
        return (
            "For independent random q and k the score has **no decay on average**: the median stays at 0 at every "
            "distance, and the spread does not change."
        )
    if shown == "random":
        return f"Where k is a noisy copy of q, the mean score is **2σ²·Σ cos Δθᵢ**, the dashed curve.{_still(spec)}"
    if shown == "own":
        return score(spec, min(1000, length - 1), own, sequence=tokens)
    return entropy(spec) if shown == "softmax" else mean(spec, length)


def mean(spec: RopeSpec, length: int) -> str:
    """Say where the mean cosine first falls below 0, for the plain and the scaled model."""
    scaled = first_negative(spec, length)
    if np.array_equal(spec.plain().inv_freq(), spec.inv_freq(spec.target)):
        rest = "" if scaled is None else ": there a similar key is no longer preferred on average"
        return f"The mean cosine {_crosses(scaled, length)}{rest}.{_no_limit(spec, scaled)}{_still(spec)}"
    plain = first_negative(spec.plain(), length)
    both = f"Plain, the mean cosine {_crosses(plain, length)}; scaled, it {_crosses(scaled, length)}."
    return both + _no_limit(spec, scaled) + _still(spec)


def score(spec: RopeSpec, distance: int, own: Parts, *, sequence: int = 0) -> str:
    """Give the score of one query and key at a distance, its unrotated part, and RoFormer's bound there."""
    value, most = score_and_bound(spec, distance, own)
    which = "one query and one key" if not sequence else "token 0's query and key"
    still, factor = spec.head_dim - 2 * spec.pairs, spec.attention_factor(spec.target) ** 2
    part = f" {digits(own[2])} of it, at every distance, is from the {_dimensions(still)}." if still else ""
    before = f" The attention factor would multiply what rotates by {digits(factor)}." if digits(factor) != "1" else ""
    rest = f" Dashed, the mean over all {sequence:,} tokens." if sequence else ""
    return (
        f"The score of {which} at every distance. At {distance:,} it is **{digits(value)}**; "
        f"RoFormer's bound allows {digits(most)} there.{part}{before}{rest}"
    )


def bound(spec: RopeSpec, length: int) -> str:
    """Give the start of RoFormer's bound and the lowest of some 200 values spread over the drawn distances."""
    at = np.unique(np.geomspace(1, max(min(length, BOUND_LONGEST) - 1, 1), 200).astype(np.int64))
    values = s_at(spec.inv_freq(spec.target), at)
    start, lowest = (spec.pairs + 1) / 2, int(values.argmin())
    drawn = f" Drawn up to distance {BOUND_LONGEST:,}." if length > BOUND_LONGEST else ""
    if values[lowest] > start * (1.0 - 1e-4):
        return (
            f"RoFormer's **upper bound** on the score does not fall here: mean |S| is {digits(start)} at every "
            f"distance. It bounds, it does not promise decay.{drawn}"
        )
    steadily = "" if np.all(np.diff(values) <= 0.0) else ", but not steadily"
    return (
        f"RoFormer's **upper bound** on the score falls with distance{steadily}: mean |S| is {digits(start)} at "
        f"distance 0 and {digits(float(values[lowest]))} at {at[lowest]:,}. It bounds, it does not "
        f"promise decay.{drawn}"
    )


def entropy(spec: RopeSpec) -> str:
    """Explain the entropy, and the effect of the attention factor on it."""
    text = "How widely attention spreads as the context grows: ln L nats is uniform over L tokens."
    factor = spec.attention_factor(spec.target)
    if not spec.inv_freq(spec.target).any():
        return f"{text} No pair turns, so it is uniform."
    if abs(factor**2 - 1.0) < 1e-12:
        return text
    how = "sharper" if factor**2 > 1.0 else "flatter"
    return f"{text} The attention factor {digits(factor)} makes it {how}."


def pair_by_pair(spec: RopeSpec, distance: int, own: Parts) -> str:
    """Give the total of the pairs at one distance."""
    value, unrotated = total(spec, distance, own), own[2]
    count = "the one pair adds" if spec.pairs == 1 else f"the {spec.pairs} pairs add up to"
    still = spec.head_dim - 2 * spec.pairs
    if not still:
        return f"At distance {distance:,} {count} **{value:.4f}**. Click a pair to pin it."
    return (
        f"At distance {distance:,} {count} {value - unrotated:.4f}, and the {_dimensions(still)} add {unrotated:.4f}: "
        f"**{value:.4f}** in all. Click a pair to pin it."
    )


def bases(spec: RopeSpec, length: int, *, quick: bool = False) -> str:
    """Say which of the drawn bases hold the length, and whether this model's unscaled base does."""
    holds, drawn = feasible(spec, length, quick=quick), bases_drawn(spec, length, quick=quick)
    at = first_negative(spec.plain(), length)
    verdict = "holds it" if at is None else f"turns negative at {at:,}"
    ends = f"{digits(drawn[0])} to {digits(drawn[-1])}"
    if holds.all():
        which = f"All bases from {ends} do"
    elif not holds.any():
        which = f"None from {ends} does"
    elif np.count_nonzero(np.diff(holds)) == 1:
        first = digits(drawn[holds.argmax() if holds[-1] else holds.argmin()])
        which = f"All from {first} on do" if holds[-1] else f"All below {first} do"
    else:
        which = "The set has **gaps**: there is no single smallest base"
    return (
        f"Green bases keep the mean cosine at or above 0 below {tokens(length)}. {which}. This model's base, "
        f"{digits(spec.base)}, {verdict}.{_still(spec)}"
    )


def _crosses(at: int | None, length: int) -> str:
    return f"stays at or above 0 below {tokens(length)}" if at is None else f"first falls below 0 at **{at:,}**"


def _no_limit(spec: RopeSpec, at: int | None) -> str:
    """Explain that a negative mean cosine is not a limit: it weighs all pairs alike, unlike a trained head."""
    if at is None:
        return ""
    trained = tokens(spec.context)
    return (
        " This is about the average, in which all pairs weigh the same, and not where the model stops working: its "
        f"{spec.length_name} length is {trained}, and a head that has learned weighs the pairs it needs."
    )


def _still(spec: RopeSpec) -> str:
    """Say how unrotated dimensions count in the mean cosine; "" if there are none."""
    still = spec.head_dim - 2 * spec.pairs
    if not still:
        return ""
    counts = "count" if still > 1 else "counts"
    return f" It is over the whole head: the {_dimensions(still)} {counts} with cos 0 = 1."


def _dimensions(still: int) -> str:
    return f"{still} dimensions that do not rotate" if still > 1 else "one dimension that does not rotate"
