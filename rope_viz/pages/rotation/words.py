"""Sentences of the Rotation page, with the current numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words import PAIRS, count_unturned, is_scaled
from rope_viz.pages.rotation.figures import TEXTS
from rope_viz.studies.conversion import Mistake
from rope_viz.studies.rotation import MAX_DENSE_DIM, Law
from rope_viz.texts import Sentence, join

LAWS = {
    "RRᵀ = I": "length",
    "det R = 1": "determinant",
    "RₘᵀRₙ = Rₙ₋ₘ": "distance",
    "P R Pᵀ is R of the other pairing": "pairing",
}
"""The entries that explain the laws, by statement."""


def describe_dials(spec: RopeSpec, mode: str = "turn") -> Sentence:
    """Describe how far the pairs turn, or in mode "score" that only the distance matters."""
    return describe_score(spec) if mode == "score" else describe_turning(spec)


def describe_turning(spec: RopeSpec) -> Sentence:
    """Give the wavelengths of the first and the last pair that rotates, and count the pairs without a full turn."""
    frequencies = spec.inv_freq(spec.target)
    rotating = np.flatnonzero(frequencies)
    if not rotating.size:
        return join(TEXTS("turning.angle"), PAIRS("wavelengths.zero"))
    first, last = int(rotating[0]), int(rotating[-1])
    tokens = spectrum.wavelength(frequencies)
    scaled, single = is_scaled(spec), "" if first < last else "_single"
    mark = "scaled_" if scaled else ""
    ends = {f"{mark}shortest": float(tokens[first]), f"{mark}longest": float(tokens[last])}
    wavelengths = PAIRS(f"wavelengths.{'scaled' if scaled else 'plain'}{single}", first=first, last=last, **ends)
    turns = count_unturned(spec)
    return join(TEXTS("turning.angle"), *((turns, wavelengths) if scaled else (wavelengths, turns)))


def describe_score(spec: RopeSpec) -> Sentence:
    """Explain that the angle between query and key depends on their distance only."""
    rotating = int(np.count_nonzero(spec.inv_freq(spec.target)))
    which = "one_all" if rotating == spec.pairs else "one_some" if rotating else "one_none"
    return join(TEXTS("score.angle"), TEXTS("score.both"), TEXTS(f"score.{which}", rotating=rotating))


def describe_matrix(spec: RopeSpec) -> Sentence:
    """Count the entries of R that can be nonzero, or give the reason why R is not shown."""
    d = spec.head_dim
    if d > MAX_DENSE_DIM:
        return join(TEXTS("matrix.too_large", size=d), TEXTS("matrix.most", most=MAX_DENSE_DIM))
    # A pair of zero frequency has 1 on the diagonal and sin 0 next to it, like an unrotated dimension.
    filled = d + 2 * int(np.count_nonzero(spec.inv_freq(spec.target)))
    return join(
        TEXTS("matrix.filled", size=d, filled=filled, entries=d * d),
        TEXTS("matrix.interleaved"),
        TEXTS("matrix.half"),
        TEXTS("matrix.same"),
    )


def list_laws(laws: Sequence[Law], m: int, n: int) -> list[dict[str, Any]]:
    """Return each law in words, with its largest error in float64."""
    distance = f"{n - m:,}".replace("-", "−")
    return [
        {
            TEXTS("law_columns.law"): TEXTS(f"law_names.{LAWS[law.statement]}"),
            TEXTS("law_columns.words"): TEXTS(f"laws.{LAWS[law.statement]}", distance=distance),
            TEXTS("law_columns.error"): law.error,
        }
        for law in laws
    ]


def compare_forms(spec: RopeSpec) -> Sentence:
    """Compare the operation counts of the dense product and the elementwise form."""
    return join(TEXTS("forms.same"), TEXTS("forms.cost", dense=spec.head_dim**2, sparse=4 * spec.pairs))


def explain_converting(spec: RopeSpec) -> Sentence:
    """List what to permute in a checkpoint with this head size."""
    return join(TEXTS("converting.rows", size=spec.head_dim), TEXTS("converting.also"), TEXTS("converting.scores"))


def describe_mistakes(spec: RopeSpec, mistakes: Sequence[Mistake]) -> Sentence:
    """Give the error of the scores for each wrong conversion."""
    errors = {mistake.name: mistake.error for mistake in mistakes}
    if spec.pairs == 1:
        return TEXTS("mistakes.one_pair")
    if not any(errors.values()):
        return TEXTS("mistakes.no_factor")
    neither = TEXTS("mistakes.none", none=errors["none"]) if errors["none"] else TEXTS("mistakes.none_right")
    return join(
        TEXTS("mistakes.example"),
        neither,
        TEXTS("mistakes.short") if errors["none"] else "",
        TEXTS("mistakes.alone", q=errors["q"], k=errors["k"]),
    )


def explain_pairings() -> Sentence:
    """Explain why some models have two pairings."""
    return join(TEXTS("pairings.fixed"), TEXTS("pairings.llama"))
