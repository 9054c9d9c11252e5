"""The sentences of the Rotation page, with the current numbers in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.theme import digits, tokens
from rope_viz.studies.conversion import Mistake
from rope_viz.studies.rotation import MAX_DENSE_DIM, Law


def rotation(spec: RopeSpec, mode: str = "turn") -> str:
    """What the eye should look for: how far the pairs turn, or that only the distance matters."""
    if mode == "score":
        return (
            "The query turns with its position m, the key with its position n; the angle between them is (m − n)θᵢ. "
            "Move **both together**: the hands spin, yet no angle, no bar, no score changes. Move **one**: all do."
        )
    last = float(spec.inv_freq(spec.target)[-1])
    turns = spec.context * spec.plain_inv_freq / spectrum.TAU
    slow = int(np.count_nonzero(turns < 1))
    reach = f"the last once every {tokens(round(spectrum.TAU / last))}" if last > 0 else "the last stands still"
    return (
        f"At position m, pair i is turned by mθᵢ: the first pair goes round every 6.28 tokens, {reach}. "
        f"In {tokens(spec.context)} tokens of training, **{slow} of {spec.pairs} pairs** never went round."
    )


def matrix(spec: RopeSpec) -> str:
    """How little of R is not zero."""
    d = spec.head_dim
    if d > MAX_DENSE_DIM:
        return f"A dense matrix of {d:,} × {d:,} is too large to look at; choose at most {MAX_DENSE_DIM:,} dimensions."
    filled = 4 * spec.pairs + d - 2 * spec.pairs
    return (
        f"All pairs at once are one matrix R of {d} × {d}; only **{filled:,} of {d * d:,}** entries are not 0. "
        "Interleaved, they stand in blocks on the diagonal; split in halves, on the diagonal and two lines beside it. "
        "A permutation P of the dimensions leads from one to the other, P R Pᵀ: they are the same rotation."
    )


def laws(found: Sequence[Law], m: int, n: int) -> list[str]:
    """Each law with the error by which it fails in float64."""
    what = {
        "RRᵀ = I": "R keeps every length",
        "det R = 1": "R is a rotation, not a mirror",
        "RₘᵀRₙ = Rₙ₋ₘ": f"the score of query and key knows only the distance, here {n - m:,}".replace("-", "−"),
        "P R Pᵀ is R of the other pairing": "the two pairings are one rotation",
    }
    return [f"**{law.statement}**: {what[law.statement]}. Largest error {digits(law.error)}." for law in found]


def forms(spec: RopeSpec) -> str:
    """The counts of the dense product against the elementwise form."""
    d = spec.head_dim
    return (
        f"The same rotation written four ways gives the same numbers to rounding. The dense product costs d² = "
        f"**{d * d:,}** multiplications, the other forms 4 for each pair: **{4 * spec.pairs:,}**."
    )


def converting(spec: RopeSpec) -> str:
    """What the permutation does for this head."""
    return (
        "A checkpoint trained with one pairing runs with the other once the rows of W_q and W_k (and their biases and "
        f"norms) are reordered within each head of {spec.head_dim}. Scores do not change; W_v and W_o stay as they are."
    )


def mistakes(spec: RopeSpec, found: Sequence[Mistake]) -> str:
    """How wrong the scores are for each way to forget it."""
    wrong = {mistake.name: f"{mistake.error:.0%}" for mistake in found}
    return (
        "One random query and key. With neither converted the score is right at distance 0 and drifts off, so short "
        f"prompts may look fine: **{wrong['none']}** off on average over these distances. With only one converted it "
        f"is wrong everywhere: {wrong['q']} with q alone, {wrong['k']} with k alone."
    )


def models() -> str:
    """Why some models have two pairings."""
    return (
        "Which dimensions make a pair is fixed in training. Meta's own Llama files are interleaved; the copies for "
        "transformers were converted to halves, so both occur."
    )
