"""Scores over a displacement on two axes, exact in float64.

A rotation's score depends on the displacement alone: Σ a·cos(w·Δ) + b·sin(w·Δ) over the pairs. If every pair has one
axis it is a sum, S(y, x) = S_y(y) + S_x(x). With directions, cos(w_y·y + w_x·x) splits by the addition formula, and a
map of H × W displacements is one (H, 2·pairs) × (2·pairs, W) product. A table that is not a rotation has one map per
query position (`scores_from`), by the same product over both members of every pair.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.axes_spec import AxesSpec
from rope_viz.embedding.exact_angles import MAX_DISTANCE, exact_angles, require_finite
from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.embedding.spectrum import bin_mean
from rope_viz.studies.scores import check_coefficients

MAX_CELLS = 1 << 25


def plane(
    spec: AxesSpec,
    a: ArrayLike,
    b: ArrayLike | None,
    rows: ArrayLike,
    columns: ArrayLike,
    *,
    axes: tuple[str, str] = ("h", "w"),
    at: Mapping[str, float] | None = None,
) -> FloatArray:
    """Return the score at every displacement (rows[i], columns[j]) on two axes, (rows, columns) float64.

    `a` and `b` are (pairs,), from `coefficients` or `even_coefficients`; `at` holds displacements on further axes,
    default 0. Displacements may be negative and fractional. The error is below 1e-12·Σ(|a| + |b|) for whole
    displacements up to 2³², and grows with the angle for others.
    Raises `ValueError` if the table is not a rotation, if shapes do not fit, and above 2²⁵ cells.
    """
    if not spec.is_rotation:
        raise ValueError(
            "this table is not a rotation, so the score depends on more than the displacement: use scores_from"
        )
    cos_part, sin_part = shift_coefficients(spec, *check_coefficient_set(a, b, spec.pairs), axes, at or {})
    down, across = check_displacements(rows, "rows"), check_displacements(columns, "columns")
    if len(down) * len(across) > MAX_CELLS:
        raise ValueError(f"at most {MAX_CELLS:,} displacements in one map, got {len(down)} × {len(across)}")
    first, second = spec.along(axes[0]), spec.along(axes[1])
    if not np.any((first != 0.0) & (second != 0.0)):
        # No pair uses both axes: a sum of two curves. Pairs that use neither are constant.
        uses_second = second != 0.0
        vertical = curve(first[~uses_second], cos_part[~uses_second], sin_part[~uses_second], down)
        horizontal = curve(second[uses_second], cos_part[uses_second], sin_part[uses_second], across)
        return np.asarray(vertical[:, None] + horizontal[None, :])
    return product(first, second, cos_part, sin_part, down, across)


def product(
    first: FloatArray, second: FloatArray, a: FloatArray, b: FloatArray, down: FloatArray, across: FloatArray
) -> FloatArray:
    """Return the map as one matrix product, for any weights: (rows, 2·pairs) times (2·pairs, columns)."""
    angle = angles(first, down)
    cos, sin = np.cos(angle), np.sin(angle)
    left = np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=1)
    right = angles(second, across).T
    return np.asarray(left @ np.concatenate([np.cos(right), np.sin(right)]))


def profile(
    spec: AxesSpec,
    a: ArrayLike,
    b: ArrayLike | None,
    axis: str,
    displacements: ArrayLike,
    *,
    at: Mapping[str, float] | None = None,
) -> FloatArray:
    """Return the score along one axis, (n,), with the other displacements from `at` or 0."""
    cos_part, sin_part = shift_coefficients(spec, *check_coefficient_set(a, b, spec.pairs), (axis,), at or {})
    return curve(spec.along(axis), cos_part, sin_part, check_displacements(displacements, "displacements"))


def mean_cosine(spec: AxesSpec, axis: str, displacements: ArrayLike) -> FloatArray:
    """Return the mean over all pairs of cos(w·Δ) along one axis, (n,); 1 at displacement 0."""
    return profile(spec, *even_coefficients(spec), axis, displacements)


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


def even_coefficients(spec: AxesSpec) -> tuple[FloatArray, FloatArray]:
    """Return (a, b) of a query and equal key with the same energy in every pair, for the mean cosine."""
    return np.full(spec.pairs, 1.0 / spec.pairs), np.zeros(spec.pairs)


def coefficients(spec: AxesSpec, q: ArrayLike, k: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return (a, b), each (pairs,), of a query and a key (head_dim,) at displacement query − key.

    They include the squared factor on cos and sin.
    """
    query, key = check_head(spec, q, "q"), check_head(spec, k, "k")
    q_a, q_b = query[spec.dims[:, 0]], query[spec.dims[:, 1]]
    k_a, k_b = key[spec.dims[:, 0]], key[spec.dims[:, 1]]
    squared = spec.factors**2
    return (q_a * k_a + q_b * k_b) * squared, (q_a * k_b - q_b * k_a) * squared


def unrotated_score(spec: AxesSpec, q: ArrayLike, k: ArrayLike) -> float:
    """Return the part of q·k over the dimensions in no pair, which do not rotate."""
    query, key = check_head(spec, q, "q"), check_head(spec, k, "k")
    rest = np.setdiff1d(np.arange(len(query)), spec.dims)
    return float(query[rest] @ key[rest])


def scores_from(
    spec: AxesSpec,
    q: ArrayLike,
    k: ArrayLike,
    origin: ArrayLike,
    rows: ArrayLike,
    columns: ArrayLike,
    *,
    axes: tuple[str, str] = ("h", "w"),
) -> FloatArray:
    """Return the score of a query at `origin` (axes,) with keys at origin + (rows[i], columns[j]), (rows, columns).

    For any table, rotation or not; without the dimensions in no pair.
    """
    start = spec.check_positions(np.asarray(origin, dtype=np.float64)[None])
    turned = spec.rotate(check_head(spec, q, "q")[None], start)[0]
    key = check_head(spec, k, "k")
    first, other = spec.dims[:, 0], spec.dims[:, 1]
    second = spec.weights if spec.second is None else spec.second
    weights = np.concatenate([spec.weights, second])
    factor = spec.factors
    # turned·key' = Σ (qₐkₐ·cos α − qₐk_b·sin α) + (q_bk_b·cos β + q_bkₐ·sin β), α and β at the key's own position.
    a = np.concatenate([turned[first] * key[first] * factor, turned[other] * key[other] * factor])
    b = np.concatenate([-turned[first] * key[other] * factor, turned[other] * key[first] * factor])
    angle = weights @ start[0]
    cos, sin = np.cos(angle), np.sin(angle)
    vertical, horizontal = spec.index(axes[0]), spec.index(axes[1])
    return product(
        weights[:, vertical],
        weights[:, horizontal],
        a * cos + b * sin,
        b * cos - a * sin,
        check_displacements(rows, "rows"),
        check_displacements(columns, "columns"),
    )


def curve(weights: FloatArray, a: FloatArray, b: FloatArray, displacements: FloatArray) -> FloatArray:
    """Return Σ a·cos(w·Δ) + b·sin(w·Δ) at displacements (n,), (n,); 0 for no pairs."""
    if not len(weights):
        return np.zeros(len(displacements))
    angle = angles(weights, displacements)
    return np.asarray(np.cos(angle) @ a + np.sin(angle) @ b)


def angles(weights: FloatArray, displacements: FloatArray) -> FloatArray:
    """Return angles (n, pairs): exact for whole displacements, else the float64 product."""
    if np.all(displacements == np.rint(displacements)) and np.all(np.abs(displacements) <= MAX_DISTANCE):
        return exact_angles(weights, displacements)
    return np.multiply.outer(displacements, weights)


def shift_coefficients(
    spec: AxesSpec, a: FloatArray, b: FloatArray, moved: tuple[str, ...], at: Mapping[str, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients after the displacements `at` on further axes."""
    for axis in (*moved, *at):
        spec.index(axis)
    if len(set(moved)) != len(moved) or set(moved) & set(at):
        raise ValueError(f"the axes of a map must differ from each other and from those held, got {short_repr(moved)}")
    angle = np.zeros(spec.pairs)
    for axis, displacement in at.items():
        angle = angle + angles(spec.along(axis), check_displacements([displacement], "at"))[0]
    cos, sin = np.cos(angle), np.sin(angle)
    return a * cos + b * sin, b * cos - a * sin


def check_coefficient_set(a: ArrayLike, b: ArrayLike | None, pairs: int) -> tuple[FloatArray, FloatArray]:
    """Return one set of coefficients, each (pairs,), or raise `ValueError`."""
    rows_a, rows_b = check_coefficients(a, b, pairs)
    if len(rows_a) != 1:
        raise ValueError(f"a map takes one set of coefficients, shape ({pairs},), got {np.shape(a)}")
    return rows_a[0], rows_b[0]


def check_displacements(values: ArrayLike, name: str) -> FloatArray:
    """Return displacements as float64 (n,), or raise `ValueError`."""
    array = require_finite(values, name)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be displacements of shape (n,), got {array.shape}")
    return array


def check_head(spec: AxesSpec, value: ArrayLike, name: str) -> FloatArray:
    """Return a query or a key as float64 (head_dim,), or raise `ValueError`."""
    array = require_finite(value, name)
    if array.ndim != 1 or len(array) < spec.head_dim:
        raise ValueError(f"{name} must have shape ({spec.head_dim},), got {array.shape}")
    return array
