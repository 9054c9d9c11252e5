"""Which distance two methods give to a query and a key that are further apart than in training.

Neither changes a frequency. An et al., dual chunk attention, https://arxiv.org/abs/2402.17463;
Jin et al., SelfExtend, https://arxiv.org/abs/2401.01325.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray

SHORTEST = 64
"""Tokens of the shortest trained length whose chunks and groups have a sense."""


@dataclass(frozen=True)
class Chunks:
    """The sizes of dual chunk attention: the largest distance, and how many tokens of it reach across a border."""

    size: int
    local: int

    @property
    def length(self) -> int:
        return self.size - self.local

    @staticmethod
    def from_length(trained: int) -> Chunks:
        """Return the sizes that the published code takes for a trained length."""
        return Chunks(trained * 3 // 4, trained // 8)

    def distance(self, query: NDArray[np.int64], key: NDArray[np.int64]) -> FloatArray:
        """Return the distance of each query and key: capped at `size` where they are in different chunks."""
        rows, columns = query % self.length, key % self.length
        apart = query // self.length - key // self.length
        near = np.minimum(rows + self.length, self.size) - columns
        far = min(2 * self.length - 1, self.size) - columns
        return np.asarray(np.where(apart == 0, rows - columns, np.where(apart == 1, near, far)), dtype=np.float64)


@dataclass(frozen=True)
class Groups:
    """The sizes of SelfExtend: tokens that share a position, and the distance up to which none do."""

    size: int
    window: int

    @staticmethod
    def from_lengths(trained: int, target: int) -> Groups:
        """Return a window of a quarter of the trained length, and the smallest group that reaches the target."""
        window = trained // 4
        return Groups(max(1, -(-(target - window) // (trained - window))), window)

    def distance(self, query: NDArray[np.int64], key: NDArray[np.int64]) -> FloatArray:
        """Return the distance of each query and key: that of their groups where it is beyond the window."""
        shared = query // self.size - key // self.size + self.window - self.window / self.size
        return np.asarray(np.where(query - key < self.window, query - key, shared), dtype=np.float64)
