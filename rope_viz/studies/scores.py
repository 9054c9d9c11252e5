"""Attention scores over the distance, exact in float64 at any length.

A score depends on the distance Δ alone: Σᵢ aᵢ cos(Δθᵢ) + bᵢ sin(Δθᵢ). With Δ = B·u + v, the angle-addition formulas
make a whole curve one matrix product, (length/B, 2·pairs) × (2·pairs, B), from (length/B + B)·pairs sines and cosines.

Su et al., RoFormer, https://arxiv.org/abs/2104.09864 (eq. 35: the score of q and k)
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import (
    MAX_DISTANCE,
    FixedTurns,
    check_distances,
    check_inv_freq,
    exact_angles,
    fixed_angles,
    fixed_turns,
    require_finite,
)
from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing, RopeSpec, require_number, short_repr
from rope_viz.texts import Texts

TEXTS = Texts("studies")

# Limit on the computation of one request, so that no link and no config blocks the server. The unit is one pair at
# one distance; `WORK` of them take about 0.2 seconds on one core.
WORK = 1_000_000_000


@dataclass(frozen=True)
class Thinning:
    """Every distance below `dense` is computed, every `step`-th from there on."""

    start: int
    dense: int
    stop: int
    step: int

    @staticmethod
    def for_curve(start: int, stop: int, pairs: int, *, shares: int = 1, work: float = WORK) -> Thinning:
        """Thin [start, stop) for a curve of this many pairs that gets one of `shares` equal shares of the work."""
        most = max(1024, int(work / (max(pairs, 1) * max(shares, 1))))
        if stop - start <= most:
            return Thinning(start, stop, stop, 1)
        dense = start + most // 2
        return Thinning(start, dense, stop, -(-(stop - dense) // (most // 2)))

    @property
    def parts(self) -> tuple[range, ...]:
        """Return the distances as one or two ranges."""
        near = range(self.start, self.dense)
        return (near,) if self.step == 1 else (near, range(self.dense, self.stop, self.step))

    def sentence(self) -> str:
        """Return a sentence about the omitted distances; empty if there are none."""
        if self.step == 1:
            return ""
        return TEXTS("thinned", dense=self.dense, step=self.step)


def scale_samples(count: int, pairs: int, *, least: int, usual: int = 64) -> int:
    """Return the sample count: `count` for up to `usual` pairs, then fewer in proportion, at least `least`."""
    return max(least, min(count, count * usual // max(pairs, 1)))


Edges: TypeAlias = NDArray[np.int64]

MAX_COLUMNS = 1 << 16


def envelope(
    values: ArrayLike, columns: int, *, start: int = 0, log: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (x, low, high), each (columns,), of values (n,) at the positions start, start + 1, …

    Columns share the positions equally, or their logarithm if `log` (then start must be at least 1). `x` is the middle
    of a column. With no more values than columns, each has its own column, and low and high are the value.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must have shape (n,), got {array.shape}")
    edges = column_edges(start, start + len(array), columns, log=log)
    low = np.full(len(edges) - 1, np.inf)
    high = np.full(len(edges) - 1, -np.inf)
    reduce_block(array, edges - start, low, high)
    return centers(edges), low, high


def column_edges(start: int, stop: int, columns: int, *, log: bool = False) -> Edges:
    """Return borders of the columns, int64 (columns + 1,): column c holds the positions edges[c] … edges[c + 1] − 1.

    No column is empty, so there may be fewer than requested.
    """
    require_number(columns, "columns", least=1, most=MAX_COLUMNS, integer=True)
    require_number(start, "start", least=1 if log else None, integer=True)
    require_number(stop, "stop", above=float(start), integer=True)
    start, stop, columns = int(start), int(stop), int(columns)
    if not log:
        columns = min(columns, stop - start)
        return np.asarray(start + np.arange(columns + 1, dtype=np.int64) * (stop - start) // columns)
    edges = np.rint(np.geomspace(start, stop, columns + 1)).astype(np.int64)
    edges[0], edges[-1] = start, stop
    return np.unique(edges)


def centers(edges: Edges) -> FloatArray:
    """Return the middle position of each column, float64 (columns,)."""
    return np.asarray((edges[:-1] + edges[1:] - 1) / 2.0)


def reduce_block(block: FloatArray, edges: Edges, low: FloatArray, high: FloatArray) -> None:
    """Update `low` and `high` with a block of consecutive values; `edges` count from the block's first value.

    Columns may begin before the block or end after it, so that a curve can be reduced block by block.
    """
    first = int(np.searchsorted(edges, 0, side="right")) - 1
    last = int(np.searchsorted(edges, len(block), side="left"))
    cuts = np.maximum(edges[first:last], 0)
    np.minimum(low[first:last], np.minimum.reduceat(block, cuts), out=low[first:last])
    np.maximum(high[first:last], np.maximum.reduceat(block, cuts), out=high[first:last])


Backend: TypeAlias = Literal["numpy", "torch"]
Parts: TypeAlias = tuple[FloatArray, FloatArray, float]
"""a and b, (pairs,) each, and the constant score of the dimensions that do not rotate."""

MAX_DISTANCES = 1 << 26  # limit per call
MAX_ROWS = 1 << 12  # rows of one matrix product: few, large products wait least for other processes
UNTHREADED = 1 << 18  # OpenBLAS uses one thread up to this m·n·k
BLOCK = 1 << 18  # distances reduced at once: 2 MiB, which fits in the cache


def curve(
    inv_freq: ArrayLike,
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    start: int = 0,
    stop: int,
    stride: int = 1,
    backend: Backend = "numpy",
    device: str | None = None,
) -> FloatArray:
    """Return the score Σ aᵢ cos(Δθᵢ) + bᵢ sin(Δθᵢ) at the distances start, start + stride, … below stop.

    `inv_freq` is (pairs,) in radians per position; `a` and `b` are (pairs,) or (batch, pairs), `b` None is zero.
    Returns float64 (n,) or (batch, n). The error is below 1e-13·Σ(|a| + |b|) at every distance; memory beyond the
    result is about 20 MiB. `backend="torch"` multiplies on `device` ("cpu", "cuda", "mps"): as exact if the device has
    float64, otherwise in two float32 parts (see `split_product`). Raises `ValueError` for shapes that do not fit,
    values that are not finite, and more than 2²⁶ distances in all.
    """
    turn = fixed_turns(inv_freq)
    rows_a, rows_b = check_coefficients(a, b, len(turn[0]))
    span = check_range(start, stop, stride, len(rows_a))
    n = len(span)
    out = np.empty((len(rows_a), n))
    multiply = multiplier(backend, device)
    width, right = inner_table(turn, span)
    for row, (cos_part, sin_part) in enumerate(zip(rows_a, rows_b, strict=True)):
        for first, left in anchor_blocks(turn, cos_part, sin_part, span, width, MAX_ROWS):
            full_rows = min(len(left), (n - first) // width)
            last = first + full_rows * width
            if full_rows:
                multiply(left[:full_rows], right, out[row, first:last].reshape(full_rows, width))
            if full_rows < len(left):
                multiply(left[full_rows:], right[:, : n - last], out[row, last:].reshape(1, n - last))
    return out if np.ndim(a) == 2 else out[0]


def curve_envelope(
    inv_freq: ArrayLike,
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    start: int = 0,
    stop: int,
    columns: int,
    log: bool = False,
    thinning: Thinning | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the smallest and largest score in each pixel column of [start, stop): (x, low, high), each (columns,).

    Every distance is computed, unless `thinning` selects some; only one block is in memory at a time. Columns share the
    range equally, or the logarithm of the distance if `log` (then start must be at least 1). `x` is the middle of a
    column. With no more distances than columns, each has its own column and low equals high. `a` and `b` are (pairs,).
    """

    turn = fixed_turns(inv_freq)
    rows_a, rows_b = check_coefficients(a, b, len(turn[0]))
    if len(rows_a) != 1:
        raise ValueError("curve_envelope takes one set of coefficients, shape (pairs,)")
    parts = [check_range(start, stop, 1, 1)] if thinning is None else thinning.parts
    edges = column_edges(start, stop, columns, log=log)
    low = np.full(len(edges) - 1, np.inf)
    high = np.full(len(edges) - 1, -np.inf)
    buffer = np.empty(BLOCK)
    for span in parts:
        # A border between two computed distances moves to the later one.
        borders = -((span.start - edges) // span.step)
        width, right = inner_table(turn, span)
        for first, left in anchor_blocks(turn, rows_a[0], rows_b[0], span, width, BLOCK // width):
            block = buffer[: len(left) * width]
            multiply_numpy(left, right, block.reshape(len(left), width))
            reduce_block(block[: len(span) - first], borders - first, low, high)
    return centers(edges), low, high


def scores_at(inv_freq: ArrayLike, a: ArrayLike, b: ArrayLike | None, distances: ArrayLike) -> FloatArray:
    """Return the score at any whole distances; negative ones are keys after their query.

    Shapes as in `curve`: `distances` is (n,), the result (n,) or (batch, n). Raises `ValueError` likewise.
    """
    turn = fixed_turns(inv_freq)
    rows_a, rows_b = check_coefficients(a, b, len(turn[0]))
    whole_distances = check_distances(distances)
    if len(whole_distances) * len(rows_a) > MAX_DISTANCES:
        raise ValueError(f"at most {MAX_DISTANCES:,} distances in one call, got {len(whole_distances) * len(rows_a):,}")
    out = np.empty((len(rows_a), len(whole_distances)))
    step = max(1, BLOCK // (4 * len(turn[0])))
    for first in range(0, len(whole_distances), step):
        angle = fixed_angles(turn, whole_distances[first : first + step])
        out[:, first : first + step] = rows_a @ np.cos(angle).T + rows_b @ np.sin(angle).T
    return out if np.ndim(a) == 2 else out[0]


def mean_cosine(inv_freq: ArrayLike, length: int) -> FloatArray:
    """Return the mean over pairs of cos(Δθᵢ) at distances 0 … length − 1, float64 (length,), for a fully rotated head.

    This is the score of a query with an identical key, with equal energy in every pair. For a partially rotated head
    see `even_parts`.
    """
    pairs = len(check_inv_freq(inv_freq))
    require_number(length, "length", least=0, integer=True)
    return curve(inv_freq, np.full(pairs, 1.0 / pairs), stop=int(length))


def contributions(inv_freq: ArrayLike, a: ArrayLike, b: ArrayLike | None, distance: int) -> FloatArray:
    """Return what each pair adds to the score at one distance, (pairs,)."""
    angle = exact_angles(inv_freq, [distance])[0]
    rows_a, rows_b = check_coefficients(a, b, len(angle))
    if len(rows_a) != 1:
        raise ValueError("contributions takes one set of coefficients, shape (pairs,)")
    return np.asarray(rows_a[0] * np.cos(angle) + rows_b[0] * np.sin(angle))


def coefficients(q: ArrayLike, k: ArrayLike, *, pairing: Pairing = "half") -> tuple[FloatArray, FloatArray]:
    """Return (a, b) such that (R_m q)·(R_n k) is the score at distance m − n, for the rotated part of q and k.

    `q` and `k` are (…, 2·pairs), the result (…, pairs). The rest of a partially rotated head is `unrotated_score`.
    """
    real_q, imag_q = split_pairs(q, pairing, "q")
    real_k, imag_k = split_pairs(k, pairing, "k")
    if real_q.shape != real_k.shape:
        raise ValueError(f"q and k must have the same shape, got {np.shape(q)} and {np.shape(k)}")
    return real_q * real_k + imag_q * imag_k, real_q * imag_k - imag_q * real_k


def unrotated_score(q: ArrayLike, k: ArrayLike, rotary_dim: int) -> FloatArray:
    """Return the part of q·k over the dimensions from `rotary_dim` on, which do not rotate; (…, head_dim) gives (…)."""
    left, right = np.asarray(q, dtype=np.float64), np.asarray(k, dtype=np.float64)
    if left.shape != right.shape or left.ndim == 0:
        raise ValueError(f"q and k must have the same shape, got {left.shape} and {right.shape}")
    return np.asarray((left[..., rotary_dim:] * right[..., rotary_dim:]).sum(axis=-1))


def mean_score(q: ArrayLike, k: ArrayLike, inv_freq: ArrayLike, *, pairing: Pairing = "half") -> FloatArray:
    """Return the mean score of a sequence by distance: over all m of (R_m q_m)·(R_{m−Δ} k_{m−Δ}), Δ = 0 … tokens − 1.

    `q` and `k` are (tokens, head_dim) before rotation. Rotates as many dimensions as `inv_freq` has pairs; the rest of
    head_dim is added without rotation. By FFT, see `correlation`.
    """
    # Imported here, because the config check uses only `curve`.
    from rope_viz.studies.correlation import mean_logits

    query, key = np.asarray(q, dtype=np.float64), np.asarray(k, dtype=np.float64)
    if query.ndim != 2 or query.shape != key.shape:
        raise ValueError(f"q and k must both be (tokens, head_dim), got {query.shape} and {key.shape}")
    return np.asarray(mean_logits(query[None], key[None], inv_freq, pairing=pairing)[0])


def parts(spec: RopeSpec, q: ArrayLike, k: ArrayLike) -> Parts:
    """Return the coefficients of q and k, (head_dim,) each, over the rotating pairs, and the score of the rest."""
    rotated = 2 * spec.pairs
    left, right = np.asarray(q, dtype=np.float64), np.asarray(k, dtype=np.float64)
    a, b = coefficients(left[:rotated], right[:rotated], pairing=spec.pairing)
    return a, b, float(unrotated_score(left, right, rotated))


def even_parts(spec: RopeSpec) -> Parts:
    """Return the parts of the mean cosine: k = q with equal energy in every dimension, 1 at distance 0.

    The score is the mean of cos(Δθᵢ) over the whole head. Dimensions that do not rotate count with cos 0 = 1.
    """
    return np.full(spec.pairs, 2.0 / spec.head_dim), np.zeros(spec.pairs), unrotated_share(spec)


def unrotated_share(spec: RopeSpec) -> float:
    """Return the share of the head's dimensions that do not rotate, 0 to 1."""
    return 1.0 - 2.0 * spec.pairs / spec.head_dim


def available_backends(*, devices: bool = False) -> tuple[tuple[Backend, str], ...]:
    """Return the available (backend, device). Only with `devices` is torch imported, to find CUDA and MPS."""
    found: list[tuple[Backend, str]] = [("numpy", "cpu")]
    if importlib.util.find_spec("torch") is None:
        return tuple(found)
    found.append(("torch", "cpu"))
    if devices:
        import torch

        found += [("torch", "cuda")] * torch.cuda.is_available()
        found += [("torch", "mps")] * torch.backends.mps.is_available()
    return tuple(found)


Multiply: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], None]


def inner_table(turn: FixedTurns, span: range) -> tuple[int, FloatArray]:
    """Return the width B and the right factor (2·pairs, B): cosines, then sines, of the offsets 0 … B − 1."""
    width = 1 << min(12, max(5, math.isqrt(len(span)).bit_length() - 1))
    angle = fixed_angles(turn, span.step * np.arange(min(width, len(span)), dtype=np.int64)).T
    table = np.zeros((2 * len(angle), width))
    table[: len(angle), : angle.shape[1]] = np.cos(angle)
    table[len(angle) :, : angle.shape[1]] = np.sin(angle)
    return width, table


def anchor_blocks(
    turn: FixedTurns, a: FloatArray, b: FloatArray, span: range, width: int, step: int
) -> Iterator[tuple[int, FloatArray]]:
    """Yield (index of the first distance, left factor (rows, 2·pairs)) for every `step` rows of B distances."""
    rows = -(-len(span) // width)
    for first in range(0, rows, step):
        anchor = span.start + span.step * width * np.arange(first, min(first + step, rows), dtype=np.int64)
        angle = fixed_angles(turn, anchor)
        cos, sin = np.cos(angle), np.sin(angle)
        yield first * width, np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=1)


def multiplier(backend: Backend, device: str | None) -> Multiply:
    """Return the function (left, right, out) that multiplies on this device, or raise `ValueError`."""
    if backend == "numpy":
        if device not in (None, "cpu"):
            raise ValueError(f"device must be 'cpu' with the numpy backend, got {short_repr(device)}")
        return multiply_numpy
    if backend != "torch":
        raise ValueError(f"backend must be 'numpy' or 'torch', got {short_repr(backend)}")
    if device not in (None, "cpu", "cuda", "mps"):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'mps', got {short_repr(device)}")
    try:
        import torch
    except ImportError:
        raise ValueError("backend 'torch' needs PyTorch: pip install 'rope-viz[kernels]'") from None
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA device is available here")
    if device == "mps":
        if not torch.backends.mps.is_available():
            raise ValueError("no MPS device is available here")
        return lambda left, right, out: split_product(left, right, out, "mps")
    where = torch.device(device or "cpu")
    on_device: dict[int, Any] = {}

    def multiply(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
        if right.shape[1] not in on_device:
            on_device[right.shape[1]] = torch.from_numpy(np.ascontiguousarray(right)).to(where)
        result = torch.from_numpy(out)
        if where.type == "cpu":
            torch.matmul(torch.from_numpy(left), on_device[right.shape[1]], out=result)
        else:
            result.copy_(torch.from_numpy(left).to(where) @ on_device[right.shape[1]])

    return multiply


def multiply_numpy(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Write left @ right into `out`, in slices small enough for one thread if a few are enough.

    OpenBLAS threads wait for each other: on a busy machine that takes 20 ms for a product of 0.02 ms.
    """
    rows = max(1, UNTHREADED // right.size)
    if len(left) > 8 * rows:
        rows = len(left)
    for first in range(0, len(left), rows):
        np.matmul(left[first : first + rows], right, out=out[first : first + rows])


def split_product(left: FloatArray, right: FloatArray, out: FloatArray, device: str) -> None:
    """Write left @ right as two float32 products, for a device without float64; entries of `right` are at most 1.

    Each factor is split into a leading part of few bits and a rest. The product of the leading parts, sums included,
    fits in float32's 24 bits, so it is exact; only the rest is rounded. With K = left.shape[1] and M = max |left| the
    error is below K²·M·2^(−22−bits), bits = ⌊(24 − log₂ K)/2⌋: 1.5e-5·M at worst for 64 pairs, and near 1e-9·K·M in
    practice.
    """
    import torch

    terms = left.shape[1]
    bits = (24 - math.ceil(math.log2(terms))) // 2
    largest = float(np.abs(left).max(initial=0.0)) or 1.0
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(left, -exponent)
    head_left, head_right = np.rint(np.ldexp(scaled, bits)), np.rint(np.ldexp(right, bits))
    rest_left = np.concatenate([head_left * 2.0**-bits, scaled - head_left * 2.0**-bits], axis=1)
    rest_right = np.concatenate([right - head_right * 2.0**-bits, right], axis=0)
    products = []
    for first, second in ((head_left, head_right), (rest_left, rest_right)):
        x, y = (torch.from_numpy(part.astype(np.float32)).to(device) for part in (first, second))
        products.append((x @ y).cpu().numpy().astype(np.float64))
    np.ldexp(products[0] * 4.0**-bits + products[1], exponent, out=out)


def split_pairs(vector: ArrayLike, pairing: Pairing, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the first and second member of every pair, each (…, pairs)."""
    values = require_finite(vector, name)
    if values.ndim == 0 or values.shape[-1] % 2 or not values.shape[-1]:
        raise ValueError(f"{name} must have an even number of rotated dimensions, got shape {values.shape}")
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing must be 'half' or 'interleaved', got {short_repr(pairing)}")
    half = values.shape[-1] // 2
    if pairing == "half":
        return values[..., :half], values[..., half:]
    return values[..., 0::2], values[..., 1::2]


def check_coefficients(a: ArrayLike, b: ArrayLike | None, pairs: int) -> tuple[FloatArray, FloatArray]:
    """Return both coefficient sets as (batch, pairs), or raise `ValueError`."""
    cos_part = require_finite(a, "a")
    sin_part = np.zeros_like(cos_part) if b is None else require_finite(b, "b")
    if cos_part.ndim not in (1, 2) or cos_part.shape[-1] != pairs:
        raise ValueError(f"a must have shape ({pairs},) or (batch, {pairs}), got {cos_part.shape}")
    if sin_part.shape != cos_part.shape:
        raise ValueError(f"b must have the shape of a, {cos_part.shape}, got {sin_part.shape}")
    return np.atleast_2d(cos_part), np.atleast_2d(sin_part)


def check_range(start: int, stop: int, stride: int, batch: int) -> range:
    """Return the range in plain integers; raise `ValueError` if `batch` such curves have too many distances."""
    require_number(start, "start", least=-MAX_DISTANCE, most=MAX_DISTANCE, integer=True)
    require_number(stop, "stop", least=start, most=MAX_DISTANCE, integer=True)
    require_number(stride, "stride", least=1, most=MAX_DISTANCE, integer=True)
    require_number(stop - start, "stop - start", most=MAX_DISTANCE)
    span = range(int(start), int(stop), int(stride))
    if len(span) * batch > MAX_DISTANCES:
        raise ValueError(f"at most {MAX_DISTANCES:,} distances in one call, got {len(span) * batch:,}")
    return span
