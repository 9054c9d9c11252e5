"""Sentences of the Heads page: the bands that heads use, and the effect of scaling on one of them."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.figures.heads import TEXTS
from rope_viz.texts import Sentence, join
from rope_viz.texts.lists import join_list

BANDS = ("kept", "blended", "divided")
LEAST_SHARE = 0.05
"""Smallest share of a band that the sentence mentions."""


def describe_layer(name: str, layer: int, strength: FloatArray, positional: FloatArray, unrotated: int) -> Sentence:
    """Give the strongest pairs of a layer, and the number of its heads that depend mostly on distance.

    `strength` is (heads, pairs); its last `unrotated` columns do not rotate. `positional` is (heads,).
    """
    share = strength.sum(axis=0) / max(float(strength.sum()), 1e-300)
    rotated = share[: len(share) - unrotated]
    top = np.argsort(rotated)[::-1][: max(1, len(rotated) // 10)]
    numbers = {"number": layer, "name": name, "rotated": len(rotated), "share": float(rotated[top].sum())}
    middle = int(np.median(np.sort(top)))
    rest = float(share[len(rotated) :].sum())
    return join(
        TEXTS("layer.strongest", count=len(top), middle=middle, **numbers),
        TEXTS("layer.middle", middle=middle) if len(top) > 1 else "",
        TEXTS("layer.unrotated", unrotated=rest) if unrotated else "",
        TEXTS("layer.positional", positional=int((positional > 0.5).sum()), heads=len(positional)),
    )


def describe_head(head: int, positional: float, bands: Bands, parts: FloatArray) -> Sentence:
    """Classify a head as positional or semantic, and give the shares of the bands in its logits.

    `positional` is the share of the logits' variance that distance explains. `parts` is what each pair adds to the
    logits of attended tokens, (pairs,); entries beyond those of `bands` do not rotate.
    """
    sums = [abs(float(parts[: len(bands.kind)][bands.kind == kind].sum())) for kind in range(len(BANDS))]
    shares = dict(zip(BANDS, (each / (sum(sums) or 1.0) for each in sums), strict=True))
    named = [TEXTS(f"one.{band}", **{band: share}) for band, share in shares.items() if share >= LEAST_SHARE]
    return join(
        TEXTS("one.positional" if positional > 0.5 else "one.semantic", head=head, positional=positional),
        TEXTS("one.bands", bands=join_list(named)) if named else "",
    )


def describe_change(within: int, before: float, after: float) -> Sentence:
    """Give the attention within so many tokens, as captured and with the chosen method."""
    return TEXTS("one.near", near=within, before=before, after=after)
