"""Mean cosines over displacements on two axes, exact in float64.

If a pair has one axis, its angle is w·Δ; with directions, cos(w_y·y + w_x·x) splits by the addition formula, so a map
of blocks is one product of the means along each axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.axes_spec import AxesSpec
from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import bin_mean


def block_means(
    spec: AxesSpec, rows: ArrayLike, columns: ArrayLike, *, axes: tuple[str, str] = ("h", "w")
) -> FloatArray:
    """Return the exact mean cosine over blocks of whole displacements, (rows − 1, columns − 1).

    `rows` and `columns` are increasing whole edges: block (i, j) holds rows[i] … rows[i + 1] − 1 and so on. For a table
    that is not a rotation it is the mean over queries and equal keys of every direction, hence over both members of
    every pair; this mean depends on the displacement alone.
    """
    tables = [spec.weights] if spec.second is None else [spec.weights, spec.second]
    first, second = spec.index(axes[0]), spec.index(axes[1])
    weights = np.concatenate(tables)
    down, across = bin_mean(weights[:, first], rows), bin_mean(weights[:, second], columns)
    return np.asarray((down.real.T @ across.real - down.imag.T @ across.imag) / len(weights))
