"""Sentences of the Rotation page, with the current numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words.common import ends, is_scaled, training, unturned
from rope_viz.studies.conversion import Mistake
from rope_viz.studies.rotation import MAX_DENSE_DIM, Law
from rope_viz.texts.numbers import format_percent


def rotation(spec: RopeSpec, mode: str = "turn") -> str:
    """Say how far the pairs turn, or in mode "score" that only the distance matters."""
    turning = int(np.count_nonzero(spec.inv_freq(spec.target)))
    if mode == "score":
        which = "all do" if turning == spec.pairs else f"the {turning} that turn do" if turning else "still none does"
        return (
            "The query turns with its position m, the key with its position n; the angle between them is (m − n)θᵢ. "
            f"Move **both together**: the hands spin, yet no angle, no bar, no score changes. Move **one**: {which}."
        )
    scaled = is_scaled(spec)
    return (
        f"At position m, pair i is turned by mθᵢ: {ends(spec.inv_freq(spec.target), 'goes round')}"
        f"{' after scaling' if scaled else ''}. {'Before it, in' if scaled else 'In'} {training(spec)}, "
        f"{unturned(spec, 'went round')}."
    )


def matrix(spec: RopeSpec) -> str:
    """Count the nonzero entries of R."""
    d = spec.head_dim
    if d > MAX_DENSE_DIM:
        return f"A dense matrix of {d:,} × {d:,} is too large to look at; choose at most {MAX_DENSE_DIM:,} dimensions."
    # A pair of zero frequency has 1 on the diagonal and sin 0 next to it, like an unrotated dimension.
    filled = d + 2 * int(np.count_nonzero(spec.inv_freq(spec.target)))
    return (
        f"All pairs at once are one matrix R of {d} × {d}; only **{filled:,} of {d * d:,}** entries can differ from 0. "
        "Interleaved, they stand in blocks on the diagonal; split in halves, on the diagonal and two lines beside it. "
        "A permutation P of the dimensions leads from one to the other, P R Pᵀ: they are the same rotation."
    )


def laws(found: Sequence[Law], m: int, n: int) -> list[dict[str, Any]]:
    """Return each law in words, with its largest error in float64."""
    what = {
        "RRᵀ = I": "R keeps every length",
        "det R = 1": "R is a rotation, not a mirror",
        "RₘᵀRₙ = Rₙ₋ₘ": f"the score of query and key knows only the distance, here {n - m:,}".replace("-", "−"),
        "P R Pᵀ is R of the other pairing": "the two pairings are one rotation",
    }
    return [{"law": law.statement, "in words": what[law.statement], "largest error": law.error} for law in found]


def forms(spec: RopeSpec) -> str:
    """Compare the operation counts of the dense product and the elementwise form."""
    d = spec.head_dim
    return (
        f"The same rotation written four ways gives the same numbers to rounding. The dense product costs d² = "
        f"**{d * d:,}** multiplications, the other forms 4 for each pair: **{4 * spec.pairs:,}**."
    )


def converting(spec: RopeSpec) -> str:
    """Say what to permute in a checkpoint with this head size."""
    return (
        "A checkpoint trained with one pairing runs with the other once the rows of W_q and W_k (and their biases and "
        f"norms) are reordered within each head of {spec.head_dim}. Scores do not change; W_v and W_o stay as they are."
    )


def mistakes(spec: RopeSpec, found: Sequence[Mistake]) -> str:
    """Say how wrong the scores are for each wrong conversion."""
    errors = {mistake.name: mistake.error for mistake in found}
    if spec.pairs == 1:
        return "With a single pair both pairings are the same: there is nothing to convert, and no score is wrong."
    if not any(errors.values()):
        return "The attention factor is 0, and with it all that rotates: no way to convert makes a difference."
    wrong = {name: format_percent(error) for name, error in errors.items()}
    alone = f"With only one converted it is wrong: {wrong['q']} with q alone, {wrong['k']} with k alone."
    if not errors["none"]:
        return f"One random query and key. No pair turns, so with neither converted the score is right. {alone}"
    return (
        "One random query and key. With neither converted the score is right at distance 0 and drifts off, so short "
        f"prompts may look fine: **{wrong['none']}** off on average over these distances. {alone}"
    )


def models() -> str:
    """Explain why some models have two pairings."""
    return (
        "Which dimensions make a pair is fixed in training. Meta's own Llama files are interleaved; the copies for "
        "transformers were converted to halves, so both occur."
    )
