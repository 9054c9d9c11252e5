"""Sentences about heads: the bands they use, and the effect of scaling on one of them."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.models.user_config import join_words
from rope_viz.texts.numbers import format_share

NAMES = ("kept", "blended", "divided")


def across(name: str, layer: int, strength: FloatArray, bands: Bands, positional: FloatArray, still: int) -> str:
    """Say which pairs are strongest in a layer, and how many of its heads depend mostly on position."""
    share = strength.sum(axis=0) / max(float(strength.sum()), 1e-300)
    rotated = share[: len(share) - still]
    top = np.argsort(rotated)[::-1][: max(1, len(rotated) // 10)]
    strongest = (
        f"**{format_share(float(rotated[top].sum()))}** of the strength lies in {len(top)} of {len(rotated)} pairs"
    )
    middle = f"around pair {int(np.median(np.sort(top)))}"
    rest = f", {format_share(float(share[len(rotated) :].sum()))} in dimensions that do not rotate" if still else ""
    count = int((positional > 0.5).sum())
    heads = f"{count} of {len(positional)} heads {'goes' if count == 1 else 'go'} by position more than by content"
    return f"Layer {layer} of {name}: {strongest}, {middle}{rest}; {heads}."


def one(
    head: int, kinds: Bands, parts: FloatArray, positional: float, before: float, after: float, scaled: bool
) -> str:
    """Classify a head, name the bands it uses, and give its attention within 64 tokens before and after scaling."""
    sums = {name: float(parts[: len(kinds.kind)][kinds.kind == kind].sum()) for kind, name in enumerate(NAMES)}
    total = sum(abs(value) for value in sums.values()) or 1.0
    carried = [
        f"{format_share(abs(value) / total)} {name}" for name, value in sums.items() if abs(value) / total >= 0.05
    ]
    kind = "by position" if positional > 0.5 else "by content"
    text = f"Head {head} goes {kind} ({format_share(positional)} of its logits' variance is distance)"
    text += f"; what it attends to is lifted by pairs that are {join_words(carried)}." if carried else "."
    if scaled:
        text += f" Scaling takes its attention within 64 tokens from {format_share(before)} to {format_share(after)}."
    return text
