"""Sentences about what trainers compute and servers serve."""

from __future__ import annotations

from rope_viz.advice.match_training import describe_match
from rope_viz.advice.training_matrix import TrainingMatrix, state_of
from rope_viz.figures.words.common import plain
from rope_viz.texts import Texts

TEXTS = Texts("training")


def summarise(found: TrainingMatrix) -> str:
    """Count the trainers that agree with the first server, and describe the largest difference."""
    if found.problem:
        return str(TEXTS("problem", problem=plain(found.problem)))
    states = [state_of(row[0]) for row in found.rows]
    counts = {state: states.count(state) for state in ("same", "differs", "refused", "not known")}
    first = found.emulations[0].name
    parts = [TEXTS("agree", same=counts["same"], count=len(states), server=first)]
    parts += [TEXTS(f"counts.{key}", count=counts[key]) for key in ("differs", "refused") if counts[key]]
    if counts["not known"]:
        parts = [TEXTS("unknown", server=first)]
    sentence = "" if found.worst is None else plain(describe_match(found.find(*found.worst)))
    largest = TEXTS("worst", sentence=sentence) if sentence else TEXTS("none_differs")
    return f"{'; '.join(parts)}. {largest}"
