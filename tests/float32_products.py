"""Compare products of float32 that may have been computed by other kernels, in another order of additions.

How far two orders are apart depends on the terms, not on their sum: a sum of terms that cancel is small and has the
error of the large terms. Bounds are therefore relative to the sum of magnitudes, sum |a_i| |b_i| (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, section 3.1).
"""

import numpy as np

LAYERS = 16
"""Roundings of one layer's inputs that precede a product, as multiples of those of the product itself."""


def allow_products(magnitudes, terms):
    """Return how far two results of sums of `terms` terms may be apart, whose sums of magnitudes are at most these."""
    unit = np.finfo(np.float32).eps / 2
    return LAYERS * np.sqrt(terms) * unit * magnitudes


def assert_products_close(found, wanted, magnitudes, terms):
    """Fail where two results differ by more than `allow_products`."""
    allowed = np.broadcast_to(allow_products(magnitudes, terms), np.shape(wanted))
    excess = np.abs(np.asarray(found, np.float64) - np.asarray(wanted, np.float64)) / allowed
    assert np.all(excess <= 1.0), f"{excess.max():.3g} times what float32 explains"


def bound_products(weights, gain):
    """Return a bound of the sum of magnitudes of `weights @ x` for x of an RMS norm with a gain: a single number.

    By Cauchy and Schwarz it is at most the norm of the weights' row by that of x, which is the root of its size.
    """
    rows = np.linalg.norm(np.asarray(weights, np.float64) * np.asarray(gain, np.float64), axis=-1)
    return float(rows.max() * np.sqrt(np.shape(weights)[-1]))
