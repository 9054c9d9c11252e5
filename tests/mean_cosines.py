"""Mean cosines of a table over displacements, from the angle of every pair: the exact ways are compared with them."""

import numpy as np


def mean_cosine(spec, axis, displacements):
    """Return the mean over all pairs of cos(w·Δ) along one axis, (n,)."""
    return np.cos(np.multiply.outer(displacements, spec.along(axis))).mean(axis=1)


def mean_cosine_map(spec, rows, columns, axes):
    """Return the mean over all pairs at every displacement (rows[i], columns[j]) on two axes, (rows, columns)."""
    down, across = (
        np.multiply.outer(places, spec.along(axis)) for places, axis in zip((rows, columns), axes, strict=True)
    )
    return np.cos(down[:, None] + across[None]).mean(axis=-1)
