"""The table of trainers and servers, and the texts of its cells."""

from __future__ import annotations

import math

from rope_viz.advice.training.match_training import SCORE_TOLERANCE, Match
from rope_viz.advice.training.training_matrix import TrainingMatrix, state_of
from rope_viz.pages.model.runtimes.words import TEXTS


def matrix(found: TrainingMatrix) -> list[dict[str, str]]:
    """Return a table row per trainer, a column per server."""
    texts = {
        id(match): format_cell(match) for match in {id(match): match for row in found.rows for match in row}.values()
    }
    servers = [one.name for one in found.emulations]
    return [
        {TEXTS("trainer"): one.name, **{name: texts[id(match)] for name, match in zip(servers, row, strict=True)}}
        for one, row in zip(found.trainings, found.rows, strict=True)
    ]


def format_cell(match: Match) -> str:
    """Return the verdict of a match, with the ratio of frequencies, or else of scores, where it differs."""
    state = state_of(match)
    return f"{TEXTS(f'states.{state}')} {format_ratio(match)}" if state == "differs" else str(TEXTS(f"states.{state}"))


def format_ratio(match: Match) -> str:
    """Return by how much a training and a server differ, as short as a cell needs it."""
    if match.effect is not None:
        return f"×{match.effect.ratio:.3g}"
    if match.widths_differ:
        return str(TEXTS("other_pairs"))
    ratios = [ratio for ratio in (match.score_ratio, match.score_ratio_unrotated) if ratio is not None]
    ratio = next((one for one in ratios if not math.isclose(one, 1.0, rel_tol=SCORE_TOLERANCE)), None)
    return str(TEXTS("other_pairs")) if ratio is None else str(TEXTS("scores", ratio=ratio))
