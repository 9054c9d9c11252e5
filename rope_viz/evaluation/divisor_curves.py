"""Divisors of the pairs as a monotone curve with few parameters, for a search.

A search over one divisor per pair needs thousands of trials (LongRoPE, https://arxiv.org/abs/2402.13753, section 3).
Here log divisors are straight lines between knots over the pairs. The value at each knot is written as a share of the
room that the value before leaves, so that every point of the unit cube is a monotone curve.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.scaling import METHODS, LongRope
from rope_viz.embedding.spec import FloatArray, RopeSpec

STARTS = ("none", "linear", "ntk", "ntk-by-parts", "yarn")
"""Methods whose divisors a search can start from."""


@dataclass(frozen=True)
class DivisorCurve:
    """Curves over `pairs` pairs with `knots` knots, from 1 to at most `largest`, never falling with the pair index."""

    pairs: int
    knots: int
    largest: float

    def __post_init__(self) -> None:
        if not 2 <= self.knots <= self.pairs:
            raise ValueError(f"the knots must be from 2 to the model's {self.pairs} pairs, got {self.knots}")

    @property
    def places(self) -> FloatArray:
        """Return the pair index of each knot, (knots,)."""
        return np.linspace(0.0, self.pairs - 1, self.knots)

    def divisors(self, shares: ArrayLike) -> FloatArray:
        """Return the divisors (pairs,) of a point of the unit cube, (knots,)."""
        room = np.log(self.largest) * np.cumprod(1.0 - np.asarray(shares, dtype=float))
        return np.asarray(np.exp(np.interp(np.arange(self.pairs), self.places, np.log(self.largest) - room)))

    def shares(self, divisors: FloatArray) -> FloatArray:
        """Return the point whose curve meets these divisors at the knots; they must not fall, and be at least 1."""
        most = np.log(self.largest)
        values = np.interp(self.places, np.arange(self.pairs), np.log(divisors))
        values = np.clip(np.maximum.accumulate(values), 0.0, most)
        room = most - np.concatenate([[0.0], values[:-1]])
        steps = np.diff(values, prepend=0.0)
        return np.asarray(np.divide(steps, room, out=np.zeros_like(steps), where=room > 0))


def start_divisors(spec: RopeSpec, method: str, length: int) -> tuple[FloatArray, float]:
    """Return the divisors and the attention factor of a method whose factor just reaches `length`."""
    scaling = METHODS[method]() if method == "none" else METHODS[method](factor=length / spec.context)  # type: ignore[call-arg]
    scaled = dataclasses.replace(spec, scaling=scaling, target=length)
    return spec.plain_inv_freq / scaled.inv_freq(length), scaled.attention_factor(length)


def longrope_spec(spec: RopeSpec, divisors: FloatArray, attention_factor: float, length: int) -> RopeSpec:
    """Return the embedding that has these divisors beyond the trained length, and is unscaled up to it."""
    scaling = LongRope(
        short_factor=(1.0,) * spec.pairs,
        long_factor=tuple(round(float(value), 6) for value in divisors),
        factor=length / spec.context,
        attention=attention_factor,
    )
    return dataclasses.replace(spec, scaling=scaling, target=length)
