"""The sentence over each figure: what to look for, with the current numbers in it."""

from __future__ import annotations

import numpy as np

from rope_viz import spectrum
from rope_viz.figures.theme import digits, tokens
from rope_viz.spec import RopeSpec


def frequencies(spec: RopeSpec) -> str:
    """How many pairs completed a turn in training, and what scaling does to them."""
    turns = spec.context * spec.plain_inv_freq / spectrum.TAU
    partial = int(np.count_nonzero(turns < 1))
    slowest = float(spectrum.wavelength(spec.plain_inv_freq)[-1])
    first = (
        f"The first pair turns every 6.28 tokens, the last every {tokens(round(slowest))}: "
        f"**{partial} of {spec.pairs} pairs** never completed a turn in {tokens(spec.context)} tokens of training."
    )
    return f"{first} {bands(spec)}".strip()


def bands(spec: RopeSpec) -> str:
    """Kept, blended and divided pairs in words; empty where nothing is scaled."""
    found = spectrum.bands(spec, length=spec.target)
    kept, blended, divided = (found.count(kind) for kind in range(3))
    if kept == spec.pairs:
        return ""
    factor = digits(spec.scaling.factor_for(spec))
    middle = f", {blended} are blended" if blended else ""
    slowed = f" and {divided} are slowed by {factor}" if divided else ""
    return f"{kept} keep their speed{middle}{slowed}."
