"""A ladder along one axis: the pairs that listen to it turn, those of the other axes stand still."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec, frozen


@dataclass(frozen=True)
class AlongAxis(RopeSpec):
    """A RopeSpec as a move along one axis of the position sees it.

    `listens` are the numbers of the pairs that turn. Scaling is still that of the whole ladder, over the pair index.
    """

    listens: tuple[int, ...] = ()

    def inv_freq(self, length: int | None = None) -> FloatArray:
        """Radians per position along the axis, (pairs,); 0 where a pair does not listen to it."""
        turning = np.isin(np.arange(self.pairs), self.listens)
        return frozen(np.where(turning, super().inv_freq(length), 0.0))


def along(spec: RopeSpec, pairs: Iterable[int]) -> AlongAxis:
    """The spec as a move sees it that turns these pairs alone."""
    fields = {item.name: getattr(spec, item.name) for item in dataclasses.fields(RopeSpec)}
    return AlongAxis(**fields, listens=tuple(int(pair) for pair in pairs))
