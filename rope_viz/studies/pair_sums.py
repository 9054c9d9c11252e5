"""Sums of q and k over tokens, by head and pair: enough for energy, strength and concentration, whatever the length.

Sums of several texts or machines add up. The product of every query with the mean of the keys, and back, is the product
of the means, since both are linear: it needs no sum of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, Pairing
from rope_viz.studies.correlation import pair_members

PARTS = ("real", "imaginary", "size", "energy")
"""Σ of the first and of the second number of a pair, of its length, and of its length squared."""


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over the tokens of one layer, float64: `q` is (4, heads, pairs), `k` (4, key heads, pairs), see `PARTS`.

    The last columns are unrotated dimensions, in twos. Neighbouring query heads share a key head.
    """

    q: FloatArray
    k: FloatArray
    tokens: int

    def __add__(self, other: PairSums) -> PairSums:
        """Return the sums over the tokens of both. Raises `ValueError` for other sizes."""
        if self.q.shape != other.q.shape or self.k.shape != other.k.shape:
            raise ValueError(f"sums of {self.q.shape[1:]} and {other.q.shape[1:]} heads and pairs do not add up")
        return PairSums(self.q + other.q, self.k + other.k, self.tokens + other.tokens)

    def means(self) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return the mean query and the mean key of each query head and pair, complex (heads, pairs)."""
        q, k = ((sums[0] + 1j * sums[1]) / self.tokens for sums in (self.q, self.k))
        return q, self.by_query_head(k)

    def sizes(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean lengths of q and k of each query head and pair, (heads, pairs)."""
        return self.q[2] / self.tokens, self.by_query_head(self.k[2] / self.tokens)

    def energies(self) -> tuple[FloatArray, FloatArray]:
        """Return each pair's share of the energy of q and of k, (heads, pairs)."""
        q, k = (energy_share(sums[3] / self.tokens) for sums in (self.q, self.k))
        return q, self.by_query_head(k)

    def concentrations(self) -> tuple[FloatArray, FloatArray]:
        """Return R of q (heads, pairs) and of k (key heads, pairs): the length of the mean over the mean length.

        1 if all tokens have one direction, 0 if directions cancel; 0 also where all are zero.
        """
        q, k = (divide(np.hypot(sums[0], sums[1]), sums[2]) for sums in (self.q, self.k))
        return q, k

    def by_query_head(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of key heads for every query head."""
        return np.repeat(values, self.q.shape[1] // self.k.shape[1], axis=0)


def add_up(q: NDArray[Any], k: NDArray[Any], pairs: int, pairing: Pairing) -> PairSums:
    """Return the sums of q (heads, tokens, head_dim) and k (key heads, tokens, head_dim) before rotation."""
    sums = []
    for x in (q, k):
        values = to_pairs(x, pairs, pairing)
        total, size = values.sum(axis=1), np.abs(values)
        sums.append(np.stack([total.real, total.imag, size.sum(axis=1), (size**2).sum(axis=1)]))
    return PairSums(sums[0], sums[1], int(q.shape[1]))


def to_pairs(x: NDArray[Any], pairs: int, pairing: Pairing) -> NDArray[np.complex128]:
    """Return the pairs of heads (…, head_dim) as complex numbers (…, ⌈head_dim/2⌉), rotating ones first."""
    if x.shape[-1] < 2 * pairs:
        raise ValueError(f"q and k must have at least the {2 * pairs} dimensions that rotate, got {x.shape[-1]}")
    values = x.astype(np.float64)
    if x.shape[-1] % 2:
        values = np.concatenate([values, np.zeros((*x.shape[:-1], 1))], axis=-1)
    first, second = pair_members(values.shape[-1], pairs, pairing)
    return np.asarray(values[..., first] + 1j * values[..., second])


def energy_share(energy: FloatArray) -> FloatArray:
    """Return each pair's share of a head's energy; equal shares for a head without energy."""
    total = energy.sum(axis=-1, keepdims=True)
    return np.where(total > 0, energy / np.where(total > 0, total, 1.0), 1.0 / energy.shape[-1])


def divide(values: FloatArray, by: FloatArray) -> FloatArray:
    """Return a quotient, 0 where the divisor is 0."""
    return np.where(by > 0, values / np.where(by > 0, by, 1.0), 0.0)
