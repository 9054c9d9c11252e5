"""Extensions that keep what a model was trained with: its LongRoPE lists, its partly rotating heads, its windows."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from rope_viz.embedding.scaling import LARGEST_FACTOR, LongRope, Proportional
from rope_viz.embedding.spec import RopeSpec

FAST, SLOW = 32.0, 1.0
"""Turns within the trained length from which a pair keeps its frequency, and below which it is divided in full.

Source: YaRN, https://arxiv.org/abs/2309.00071, section 3.2.
"""
LARGEST_BASE = 1e15


def stretch_long_list(spec: RopeSpec, reach: int, target: int) -> RopeSpec | None:
    """Return LongRoPE whose long list goes on from the trained one to the target; None where it has no list.

    Pairs that turn often within `reach` keep the trained divisor, slow ones are divided by target / reach more.
    """
    scaling = spec.scaling
    if not isinstance(scaling, LongRope) or not scaling.long_factor:
        return None
    trained, ratio = np.asarray(scaling.long_factor, dtype=np.float64), max(target / reach, 1.0)
    turned = reach * spec.plain_inv_freq / trained / (2.0 * math.pi)
    weight = np.clip((turned - SLOW) / (FAST - SLOW), 0.0, 1.0)
    longer = trained / (weight + (1.0 - weight) / ratio)
    if longer.max() >= LARGEST_FACTOR:
        return None
    lists = dataclasses.replace(scaling, long_factor=tuple(float(f"{value:.12g}") for value in longer))
    if lists.factor is not None:
        lists = dataclasses.replace(lists, factor=min(lists.factor * ratio, LARGEST_FACTOR))
    return dataclasses.replace(spec, target=target, scaling=lists)


def grow_base(spec: RopeSpec, length: int, target: int) -> RopeSpec | None:
    """Return a partly rotating head with a larger base, which divides its slowest rotating pair by target / length.

    None for other methods: only this one has pairs of zero frequency, which other methods would rotate.
    """
    if not isinstance(spec.scaling, Proportional):
        return None
    slowest = int(np.count_nonzero(spec.inv_freq())) - 1
    if slowest < 1:
        return None
    base = spec.base * (target / length) ** (spec.rotary_dim / (2.0 * slowest))
    return dataclasses.replace(spec, base=base, target=target) if base < LARGEST_BASE else None


def raise_limit(spec: RopeSpec, target: int) -> RopeSpec:
    """Return the embedding as it is with a longer limit."""
    return dataclasses.replace(spec, target=max(spec.target, target))
