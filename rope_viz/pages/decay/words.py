"""Sentences of the Decay page, with the current numbers."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words import name_length
from rope_viz.models.query_temperature import Temperature
from rope_viz.pages.decay.figures import BOUND_LONGEST, first_negative, score_and_bound
from rope_viz.pages.decay.per_distance import choose_bases, find_feasible, total
from rope_viz.studies.decay import s_at
from rope_viz.studies.scores import Parts
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.numbers import format_number

TEXTS = Texts("decay")


def decay(spec: RopeSpec, view: str, length: int, kind: str, own: Parts, *, tokens: int = 0) -> Sentence:
    """Describe the chosen view. `tokens` is the length of the sequence if `own` is its first token, else 0."""
    if view == "bound":
        return bound(spec, length)
    if view == "random" and kind == "iid":
        return join(TEXTS("random.independent"), TEXTS("random.median"))
    if view == "random":
        return join(TEXTS("random.noisy"), _unrotated(spec))
    if view == "own":
        return score(spec, min(1000, length - 1), own, sequence=tokens)
    return entropy(spec) if view == "softmax" else mean(spec, length)


def mean(spec: RopeSpec, length: int) -> Sentence:
    """Say where the mean cosine first falls below 0, for the unscaled and the scaled model."""
    scaled = first_negative(spec, length)
    after = join(_no_limit(spec, scaled), _unrotated(spec))
    at = "stays" if scaled is None else "crosses"
    if np.array_equal(spec.plain().inv_freq(), spec.inv_freq(spec.target)):
        return join(TEXTS(f"mean.{at}", scaled=scaled, length=length), after)
    plain = first_negative(spec.plain(), length)
    first = TEXTS("mean.plain_stays" if plain is None else "mean.plain_crosses", plain=plain, length=length)
    return join(first, TEXTS(f"mean.scaled_{at}", scaled=scaled, length=length), after)


def score(spec: RopeSpec, distance: int, own: Parts, *, sequence: int = 0) -> Sentence:
    """Give the score of one query and key at a distance, its unrotated part, and RoFormer's bound there."""
    value, most = score_and_bound(spec, distance, own)
    unrotated, factor = spec.head_dim - 2 * spec.pairs, spec.attention_factor(spec.target) ** 2
    return join(
        TEXTS("score.token" if sequence else "score.own"),
        TEXTS("score.value", distance=distance, score=value, bound=most),
        TEXTS("score.unrotated", unrotated=own[2], dimensions=_dimensions(unrotated)) if unrotated else "",
        TEXTS("score.factor", factor=factor) if format_number(factor) != "1" else "",
        TEXTS("score.sequence", sequence=sequence) if sequence else "",
    )


def bound(spec: RopeSpec, length: int) -> Sentence:
    """Give the start of RoFormer's bound and the lowest of some 200 values spread over the drawn distances."""
    at = np.unique(np.geomspace(1, max(min(length, BOUND_LONGEST) - 1, 1), 200).astype(np.int64))
    values = s_at(spec.inv_freq(spec.target), at)
    start, lowest = (spec.pairs + 1) / 2, int(values.argmin())
    drawn = TEXTS("bound.drawn", drawn=BOUND_LONGEST) if length > BOUND_LONGEST else ""
    if values[lowest] > start * (1.0 - 1e-4):
        return join(TEXTS("bound.flat", start=start), TEXTS("bound.no_promise"), drawn)
    numbers = TEXTS("bound.numbers", start=start, lowest=float(values[lowest]), at=int(at[lowest]))
    falls = TEXTS("bound.falls" if np.all(np.diff(values) <= 0.0) else "bound.wavers")
    return join(falls, numbers, TEXTS("bound.no_promise"), drawn)


def entropy(spec: RopeSpec) -> Sentence:
    """Explain the entropy, and the effect of the attention factor on it."""
    factor = spec.attention_factor(spec.target)
    if not spec.inv_freq(spec.target).any():
        return join(TEXTS("entropy.about"), TEXTS("entropy.uniform"))
    if abs(factor**2 - 1.0) < 1e-12:
        return TEXTS("entropy.about")
    effect = "entropy.sharper" if factor**2 > 1.0 else "entropy.flatter"
    return join(TEXTS("entropy.about"), TEXTS(effect, factor=factor))


def pair_by_pair(spec: RopeSpec, distance: int, own: Parts) -> Sentence:
    """Give the total of the pairs at one distance."""
    value, part = total(spec, distance, own), own[2]
    count = "one" if spec.pairs == 1 else "all"
    unrotated = spec.head_dim - 2 * spec.pairs
    if not unrotated:
        return join(TEXTS(f"pairs.{count}", distance=distance, pairs=spec.pairs, total=value), TEXTS("pairs.pin"))
    numbers = {"distance": distance, "pairs": spec.pairs, "rotated": value - part, "unrotated": part}
    parts = TEXTS(f"pairs.rotated_{count}", **numbers, dimensions=_dimensions(unrotated))
    return join(parts, TEXTS("pairs.sum", total=value), TEXTS("pairs.pin"))


def bases(spec: RopeSpec, length: int, *, quick: bool = False) -> Sentence:
    """Say which of the drawn bases support the length, and whether this model's unscaled base does."""
    holds, drawn = find_feasible(spec, length, quick=quick), choose_bases(spec, length, quick=quick)
    at = first_negative(spec.plain(), length)
    ends = {"low": float(drawn[0]), "high": float(drawn[-1])}
    if holds.all():
        which = TEXTS("bases.all", **ends)
    elif not holds.any():
        which = TEXTS("bases.none", **ends)
    elif np.count_nonzero(np.diff(holds)) == 1:
        first = float(drawn[holds.argmax() if holds[-1] else holds.argmin()])
        which = TEXTS("bases.from" if holds[-1] else "bases.below", first=first)
    else:
        which = TEXTS("bases.gaps")
    verdict = TEXTS("bases.holds" if at is None else "bases.negative", base=spec.base, at=at)
    return join(TEXTS("bases.green", length=length), which, verdict, _unrotated(spec))


def temperature(found: Temperature, stop: int) -> Sentence:
    """Say which layers multiply their queries, from which position on, and by how much at the last position."""
    last = stop - 1
    numbers = {"start": found.start, "last": last, "factor": float(found.factor(np.array([float(last)]))[0])}
    amount = TEXTS("temperature.start" if found.start else "temperature.grows", **numbers)
    return join(TEXTS(f"temperature.{found.rule.layers}"), amount, TEXTS("temperature.effect"))


def _no_limit(spec: RopeSpec, at: int | None) -> Sentence:
    """Explain that a negative mean cosine is not a limit: it weighs all pairs alike, unlike a trained head."""
    if at is None:
        return Sentence()
    return join(TEXTS("mean.no_limit"), TEXTS("mean.learned", length_name=name_length(spec), context=spec.context))


def _unrotated(spec: RopeSpec) -> Sentence:
    """Say how unrotated dimensions count in the mean cosine; empty if there are none."""
    count = spec.head_dim - 2 * spec.pairs
    return TEXTS("unrotated.cosine", count=count) if count else Sentence()


def _dimensions(count: int) -> Sentence:
    return TEXTS("unrotated.dimensions", count=count)
