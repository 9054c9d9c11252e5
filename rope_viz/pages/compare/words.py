"""Sentences of the page that compares two models."""

from __future__ import annotations

import numpy as np

from rope_viz.advice.plan.compare_models import ModelComparison
from rope_viz.embedding.spectrum import find_peak
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.texts import join_list

TEXTS = Texts("compare")
NEAR = 1e-6
"""Relative difference below which two frequencies count as equal: configs round their numbers."""


def describe_ratio(found: ModelComparison) -> Sentence:
    """Count the pairs whose frequencies differ, and give the largest ratio."""
    ratio, (first, second) = found.ratio, found.sides
    pairs = first.spec.pairs, second.spec.pairs
    more = ""
    if pairs[0] != pairs[1]:
        more = TEXTS("words.lengths", first=first.name, second=second.name, first_pairs=pairs[0], second_pairs=pairs[1])
    with np.errstate(divide="ignore"):
        away = np.nan_to_num(np.abs(np.log(ratio)), nan=0.0, posinf=0.0)
    count = int(np.count_nonzero(away > NEAR))
    if not count:
        return join(TEXTS("words.same_frequencies", length=found.length), more)
    pair = find_peak(away)
    numbers = {"count": count, "pairs": len(ratio), "ratio": float(ratio[pair]), "pair": pair}
    return join(TEXTS("words.frequencies", length=found.length, **numbers), more)


def describe_differences(found: ModelComparison) -> Sentence:
    """Count the properties that differ, and list the others."""
    same = [fact.label for fact in found.facts if not fact.differs]
    count = len(found.facts) - len(same)
    if not count:
        return TEXTS("words.none")
    return TEXTS("words.differ", count=count, same=join_list(same)) if same else TEXTS("words.all_differ")
