"""Algebra of the rotation: its matrix, the two pairings, and one vector through every equivalent form.

Su et al., RoFormer, section 3.4, https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec, require_number

ComplexArray = NDArray[np.complex128]
IntArray = NDArray[np.intp]

MAX_DENSE_DIM = 1024


def position_angles(spec: RopeSpec, positions: ArrayLike, *, length: int | None = None) -> FloatArray:
    """Return position times inv_freq, radians, float64, shape of `positions` + (pairs,), not reduced by whole turns.

    For the given float64 inv_freq the product is accurate to 1.1e-16 of the angle, 1.1e-10 rad at 1M and 1.1e-9 rad at
    10M. NumPy's sine and cosine reduce whole turns without further loss.
    """
    product: FloatArray = np.asarray(positions, dtype=np.float64)[..., None] * spec.inv_freq(length)
    return product


def rotate(
    spec: RopeSpec, x: ArrayLike, positions: ArrayLike, *, length: int | None = None, gain: float = 1.0
) -> FloatArray:
    """Rotate `x`, shape (..., head_dim), at `positions`, shape (...), in the spec's pairing; float64.

    `gain` multiplies cos and sin: 1 is a rotation, `spec.attention_factor()` is what a scaled model computes.
    Dimensions beyond the rotated ones are unchanged.
    """
    values = check_heads(spec, x)
    turned = to_complex(spec, values) * (gain * np.exp(1j * position_angles(spec, positions, length=length)))
    return from_complex(spec, turned, values)


def rotation_matrix(
    spec: RopeSpec, position: float, *, pairing: Pairing | None = None, length: int | None = None
) -> FloatArray:
    """Return the matrix R of one position, shape (head_dim, head_dim), in the spec's pairing or the given one.

    Interleaved pairing gives a block-diagonal matrix, half pairing two off-diagonals. Raises `ValueError` above 1,024
    dimensions, where a dense matrix is too large to show.
    """
    require_number(spec.head_dim, "head_dim, for a dense matrix,", most=MAX_DENSE_DIM)
    first, second = pair_dimensions(spec, pairing)
    angle = position_angles(spec, position, length=length)
    matrix = np.eye(spec.head_dim)
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[first, second] = -np.sin(angle)
    matrix[second, first] = np.sin(angle)
    return matrix


def pairing_permutation(spec: RopeSpec, source: Pairing, to: Pairing) -> IntArray:
    """Return indices that convert pairing `source` to `to`, as `x[indices]`; shape (head_dim,)."""
    permutation = np.arange(spec.head_dim)
    for old, new in zip(pair_dimensions(spec, source), pair_dimensions(spec, to), strict=True):
        permutation[new] = old
    return permutation


@dataclass(frozen=True)
class Law:
    """A statement about R and its largest error in float64."""

    statement: str
    error: float


def matrix_laws(spec: RopeSpec, m: float, n: float, *, length: int | None = None) -> tuple[Law, ...]:
    """Return the laws of the rotation matrix at positions m and n, each with the largest error over all entries."""
    at_m, at_n, between = (rotation_matrix(spec, p, length=length) for p in (m, n, n - m))
    other = other_pairing(spec)
    order = pairing_permutation(spec, spec.pairing, other)
    moved = at_m[np.ix_(order, order)] - rotation_matrix(spec, m, pairing=other, length=length)
    return (
        Law("RRᵀ = I", largest_entry(at_m @ at_m.T - np.eye(spec.head_dim))),
        Law("det R = 1", abs(float(np.linalg.det(at_m)) - 1.0)),
        Law("RₘᵀRₙ = Rₙ₋ₘ", largest_entry(at_m.T @ at_n - between)),
        Law("P R Pᵀ is R of the other pairing", largest_entry(moved)),
    )


@dataclass(frozen=True, eq=False)
class Form:
    """One way to rotate a vector: its result, its cost and its distance from the dense product.

    `numbers` counts the values read and written: input, table or matrix, and output.
    """

    name: str
    result: FloatArray
    multiplications: int
    additions: int
    numbers: int
    bytes: int
    error: float


def equivalent_forms(
    spec: RopeSpec, x: ArrayLike, position: float, *, length: int | None = None, itemsize: int = 4
) -> tuple[Form, ...]:
    """Rotate one vector, shape (head_dim,), by the four forms; every result is in the spec's pairing.

    The forms of the other pairing get the permuted vector and their result is permuted back. `itemsize` is the bytes
    per number, 4 for float32. The counts are for the plain rotation without an attention factor.
    """
    vector = check_heads(spec, x)
    angle = position_angles(spec, position, length=length)
    dim, pairs = spec.head_dim, spec.pairs
    rest = 2 * (dim - 2 * pairs)
    dense = rotation_matrix(spec, position, length=length) @ vector
    results = (
        ("dense", dense, dim * dim, dim * (dim - 1), dim * dim + 2 * dim),
        (
            "interleaved",
            rotate_elementwise(spec, vector, angle, "interleaved"),
            *elementwise_cost(pairs, rest),
        ),
        (
            "half",
            rotate_elementwise(spec, vector, angle, "half"),
            *elementwise_cost(pairs, rest),
        ),
        (
            "complex",
            from_complex(spec, to_complex(spec, vector) * np.exp(1j * angle), vector),
            4 * pairs,
            2 * pairs,
            6 * pairs + rest,
        ),
    )
    return tuple(
        Form(name, result, multiplications, additions, numbers, numbers * itemsize, largest_entry(result - dense))
        for name, result, multiplications, additions, numbers in results
    )


def rotate_elementwise(spec: RopeSpec, vector: FloatArray, angle: FloatArray, pairing: Pairing) -> FloatArray:
    """Return x·cos + swapped(x)·sin with cos and sin expanded to every dimension, as libraries compute it."""
    order = pairing_permutation(spec, spec.pairing, pairing)
    x = vector[order]
    first, second = pair_dimensions(spec, pairing)
    cos, sin, swapped = np.ones(spec.head_dim), np.zeros(spec.head_dim), np.zeros(spec.head_dim)
    cos[first] = cos[second] = np.cos(angle)
    sin[first] = sin[second] = np.sin(angle)
    swapped[first], swapped[second] = -x[second], x[first]
    result = np.empty(spec.head_dim)
    result[order] = x * cos + swapped * sin
    return result


def elementwise_cost(pairs: int, rest: int) -> tuple[int, int, int]:
    """Return multiplications, additions and numbers moved by the elementwise form: 2, 1 and 4 per rotated dimension."""
    return 4 * pairs, 2 * pairs, 8 * pairs + rest


def pair_dimensions(spec: RopeSpec, pairing: Pairing | None = None) -> tuple[IntArray, IntArray]:
    """Return the first and the second dimension of every pair, each of shape (pairs,)."""
    index = np.arange(spec.pairs)
    if (pairing or spec.pairing) == "interleaved":
        return 2 * index, 2 * index + 1
    return index, index + spec.pairs


def to_complex(spec: RopeSpec, x: FloatArray) -> ComplexArray:
    """Return the rotated dimensions as complex numbers, shape (..., pairs)."""
    first, second = pair_dimensions(spec)
    pairs: ComplexArray = x[..., first] + 1j * x[..., second]
    return pairs


def from_complex(spec: RopeSpec, pairs: ComplexArray, x: FloatArray) -> FloatArray:
    """Return pairs, shape (..., pairs), in the spec's layout, with the unrotated rest of `x`; shape (..., head_dim)."""
    result = np.broadcast_to(x, (*pairs.shape[:-1], spec.head_dim)).copy()
    first, second = pair_dimensions(spec)
    result[..., first], result[..., second] = pairs.real, pairs.imag
    return result


def other_pairing(spec: RopeSpec) -> Pairing:
    """Return the pairing that the spec does not have."""
    return "interleaved" if spec.pairing == "half" else "half"


def check_heads(spec: RopeSpec, x: ArrayLike) -> FloatArray:
    """Return `x` as float64 with a last axis of head_dim, or raise `ValueError`."""
    values: FloatArray = np.asarray(x, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != spec.head_dim:
        raise ValueError(f"the last axis must have head_dim = {spec.head_dim} entries, got shape {values.shape}")
    return values


def largest_entry(difference: NDArray[Any]) -> float:
    """Return the largest absolute entry."""
    return float(np.max(np.abs(difference), initial=0.0))
