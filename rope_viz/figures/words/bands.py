"""The sentences about the bands of the pairs, which several pages show."""

from __future__ import annotations

from typing import Any

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.lists import join_list
from rope_viz.texts.numbers import format_number

TEXTS = Texts("scaling")

BANDS = {KEPT: "kept", BLENDED: "blended", DIVIDED: "divided", SPED: "sped", STILL: "zero"}
"""The name of each band in the text file, in the order of a sentence."""


def describe_bands(spec: RopeSpec) -> Sentence:
    """Count the pairs of each band at the target length, with the smallest and largest change of frequency."""
    share, kind = spectrum.ratio(spec, length=spec.target), spectrum.bands(spec, length=spec.target).kind
    found = {band: share[kind == band] for band in BANDS if band in kind}
    if len(found) == 1:
        ((band, shares),) = found.items()
        each = "only" if spec.pairs == 1 else "all"
        return TEXTS(f"bands.{each}.{BANDS[band]}", pairs=spec.pairs, **_numbers(band, shares))
    kept = len(found.pop(KEPT, ()))
    first = TEXTS("bands.kept" if kept else "bands.none_kept", count=kept, kept=kept, pairs=spec.pairs)
    others = [
        TEXTS(f"bands.some.{BANDS[band]}", count=len(shares), **_numbers(band, shares))
        for band, shares in found.items()
    ]
    return join(first, TEXTS("bands.others", others=join_list(others)))


def _numbers(band: int, shares: FloatArray) -> dict[str, Any]:
    """Return the number of pairs of a band and, if it is divided or sped up, the smallest and largest factor."""
    name = BANDS[band]
    if band not in (DIVIDED, SPED):
        return {name: len(shares)}
    factors = 1.0 / shares if band == DIVIDED else shares
    low, high = float(factors.min()), float(factors.max())
    is_range = format_number(low) != format_number(high)
    by = TEXTS("bands.factors" if is_range else "bands.one_factor", low=low, high=high)
    return {name: len(shares), "by": by, f"{name}_low": low, f"{name}_high": high}
