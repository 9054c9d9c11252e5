"""A RopeSpec seen along one axis: pairs of the other axes have zero frequency."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec, freeze


@dataclass(frozen=True)
class AlongAxis(RopeSpec):
    """A RopeSpec in which only the pairs `listens` (indices), those of one axis, rotate.

    Scaling is still that of the whole ladder, over the pair index.
    """

    listens: tuple[int, ...] = ()

    def inv_freq(self, length: int | None = None) -> FloatArray:
        """Return radians per position along the axis, (pairs,); 0 for pairs of other axes."""
        rotating = np.isin(np.arange(self.pairs), self.listens)
        return freeze(np.where(rotating, super().inv_freq(length), 0.0))


def along_axis(spec: RopeSpec, pairs: Iterable[int]) -> AlongAxis:
    """Return the spec along the axis that these pairs belong to."""
    fields = {item.name: getattr(spec, item.name) for item in dataclasses.fields(RopeSpec)}
    return AlongAxis(**fields, listens=tuple(int(pair) for pair in pairs))
