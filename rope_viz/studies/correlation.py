"""Mean logit by distance of a whole sequence, in O(T log T): one cross-correlation over all pairs, by FFT.

After rotation, q and k of a pair are complex signals over the positions. The sum over all queries of their scores at
distance Δ is the real part of their cross-correlation. Correlations add up in the frequency domain, so any number of
pairs needs one inverse transform. Dimensions that do not rotate are pairs with zero frequency.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import FixedTurns, check_inv_freq, fixed_angles, fixed_turns
from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing, short_repr

Complex: TypeAlias = NDArray[np.complex128]

AT_ONCE = 8  # pairs transformed at once per thread
STEP = 256  # positions between exact angles; those in between are products of two rotations
MAX_TOKENS = 1 << 21


def mean_logits(
    q: ArrayLike,
    k: ArrayLike,
    inv_freq: ArrayLike,
    *,
    pairing: Pairing = "half",
    attention_factor: float = 1.0,
    threads: int | None = None,
) -> FloatArray:
    """Return the mean over all m of (R_m q_m)·(R_{m−Δ} k_{m−Δ}) at Δ = 0 … tokens − 1, float64 (heads, tokens).

    `q` is (heads, tokens, head_dim) before rotation, `k` (key heads, tokens, head_dim) with a number of heads that
    divides that of `q`. The first 2·pairs dimensions rotate, the rest is added unrotated. The error is below 1e-12 of
    the largest possible |q||k|; memory beyond the result is about 16·(2 AT_ONCE + 2)·2 tokens bytes per thread.
    """
    query, key = np.asarray(q), np.asarray(k)
    omega = check_inv_freq(inv_freq)
    require_heads(query, key, 2 * len(omega))
    if query.shape[2] % 2:
        query, key = (np.pad(x, ((0, 0), (0, 0), (0, 1))) for x in (query, key))
    heads, tokens, dim = query.shape
    first, second = pair_members(dim, len(omega), pairing)
    zeros = np.zeros(len(first) - len(omega))
    turn = fixed_turns(np.concatenate([omega, zeros]))
    gain = np.concatenate([np.full(len(omega), float(attention_factor)), zeros + 1.0])
    size, group = fast_size(2 * tokens - 1), heads // len(key)

    def work(jobs_of_worker: Sequence[tuple[int, int]]) -> Complex:
        """Return the summed spectra of some (key head, first pair), (key heads, group, size)."""
        total = np.zeros((len(key), group, size), dtype=np.complex128)
        left, right = np.zeros((2, AT_ONCE, size), dtype=np.complex128)
        for of, begin in jobs_of_worker:
            chosen = slice(begin, begin + AT_ONCE)
            count = len(first[chosen])
            rotation = gain[chosen, None] * exact_rotations((turn[0][chosen], turn[1][chosen]), tokens)
            write_transforms(key[of], first[chosen], second[chosen], rotation, right[:count])
            np.conjugate(right, out=right)
            for number in range(group):
                write_transforms(query[of * group + number], first[chosen], second[chosen], rotation, left[:count])
                for pair in range(count):
                    left[pair] *= right[pair]
                    total[of, number] += left[pair]
        return total

    jobs = [(of, begin) for of in range(len(key)) for begin in range(0, len(first), AT_ONCE)]
    workers = min(len(jobs), threads or os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        total = sum(pool.map(work, [jobs[worker::workers] for worker in range(workers)]))
    found = np.fft.ifft(np.reshape(total, (heads, size)), axis=1)[:, :tokens].real
    return np.asarray(found / np.arange(tokens, 0, -1))


def write_transforms(
    x: NDArray[Any], first: NDArray[np.int64], second: NDArray[np.int64], rotation: Complex, out: Complex
) -> None:
    """Write the transforms of some rotated pairs of one head into `out` (pairs, size): `x` is (tokens, head_dim)."""
    tokens = len(x)
    out.real[:, :tokens] = x[:, first].T
    out.imag[:, :tokens] = x[:, second].T
    out[:, :tokens] *= rotation
    out[:, tokens:] = 0.0
    np.fft.fft(out, axis=1, out=out)


def exact_rotations(turn: FixedTurns, tokens: int) -> Complex:
    """Return e^(i·m·θ) at positions 0 … tokens − 1, (pairs, tokens): exact at every 256th, products in between."""
    anchors = STEP * np.arange(-(-tokens // STEP), dtype=np.int64)
    at, between = (fixed_angles(turn, positions).T for positions in (anchors, np.arange(min(STEP, tokens))))
    rotation = (np.exp(1j * at)[:, :, None] * np.exp(1j * between)[:, None, :]).reshape(len(at), -1)
    return np.asarray(rotation[:, :tokens])


def pair_members(head_dim: int, pairs: int, pairing: Pairing) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and second dimension of every pair: rotating pairs first, then the rest in twos."""
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing must be 'half' or 'interleaved', got {short_repr(pairing)}")
    pair, rest = np.arange(pairs), np.arange(2 * pairs, head_dim, 2)
    first, second = (pair, pair + pairs) if pairing == "half" else (2 * pair, 2 * pair + 1)
    return np.concatenate([first, rest]), np.concatenate([second, rest + 1])


def fast_size(least: int) -> int:
    """Return the smallest size ≥ `least` with a fast transform: a power of two times 1, 3, 5, 9 or 15."""
    return min(odd << max(0, (-(-least // odd) - 1).bit_length()) for odd in (1, 3, 5, 9, 15))


def require_heads(query: NDArray[Any], key: NDArray[Any], rotated: int) -> None:
    """Raise `ValueError` unless these are heads of one sequence."""
    if query.ndim != 3 or key.ndim != 3 or query.shape[1:] != key.shape[1:] or not query.size:
        raise ValueError(
            f"q and k must be (heads, tokens, head_dim) of the same tokens, got {query.shape} and {key.shape}"
        )
    if not len(key) or len(query) % len(key):
        raise ValueError(f"{len(query)} query heads cannot share {len(key)} key heads")
    if query.shape[2] < rotated:
        raise ValueError(f"q and k must have at least the {rotated} dimensions that rotate, got {query.shape[2]}")
    if query.shape[1] > MAX_TOKENS:
        raise ValueError(f"at most {MAX_TOKENS:,} tokens, got {query.shape[1]:,}")
    for name, values in (("q", query), ("k", key)):
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError(f"{name} must hold finite numbers")
