"""Linear attention with RoPE: the same output from all pairs of tokens and from a running state.

Su et al., RoFormer, section 3.3, equation 19, https://arxiv.org/abs/2104.09864: φ(q) and φ(k) are rotated in the
numerator only, so that the denominator stays positive. φ = elu + 1 is from Katharopoulos et al.,
https://arxiv.org/abs/2006.16236. The resulting weights can be negative and need not sum to 1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.spec import FloatArray, RopeSpec, require_number
from rope_viz.studies.rotation import check_heads, largest_entry, rotate
from rope_viz.studies.vectors import draw_normals

ROWS = 256
MAX_TOKENS = 8192


def feature_map(x: FloatArray) -> FloatArray:
    """Return φ(x) = elu(x) + 1: x + 1 above 0, eˣ below; positive."""
    return np.where(x > 0.0, x + 1.0, np.exp(np.minimum(x, 0.0)))


@dataclass(frozen=True, eq=False)
class LinearAttention:
    """Results of both computations for one input.

    `weights`, shape (tokens, tokens), rows are queries; `by_pairs` and `by_state`, shape (tokens, value size), are the
    outputs; `error` is their largest difference, `negative` the share of visible weights below 0, `row_sums` the sums
    of their rows.
    """

    weights: FloatArray
    by_pairs: FloatArray
    by_state: FloatArray
    error: float
    negative: float
    row_sums: FloatArray


def linear_attention(
    spec: RopeSpec,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    positions: ArrayLike | None = None,
    causal: bool = True,
    length: int | None = None,
) -> LinearAttention:
    """Compute linear attention of q and k, shape (tokens, head_dim), and v, shape (tokens, value size), both ways.

    `positions`, shape (tokens,), default to 0, 1, 2 …; `causal` uses the order of the tokens. The attention factor is
    not applied, because it would scale only the numerator.
    """
    phi_q, phi_k, turned_q, turned_k = rotate_features(spec, q, k, positions=positions, length=length)
    visible = np.tri(len(phi_q), dtype=bool) if causal else np.ones((len(phi_q), len(phi_k)), dtype=bool)
    numerator, denominator = np.where(visible, turned_q @ turned_k.T, 0.0), np.where(visible, phi_q @ phi_k.T, 0.0)
    weights: FloatArray = numerator / denominator.sum(axis=-1, keepdims=True)
    values = np.asarray(v, dtype=np.float64)
    by_pairs = weights @ values
    by_state = state_outputs(spec, q, k, values, positions=positions, causal=causal, length=length)
    return LinearAttention(
        weights,
        by_pairs,
        by_state,
        largest_entry(by_pairs - by_state),
        float(np.mean(weights[visible] < 0.0)),
        weights.sum(axis=-1),
    )


def pair_outputs(spec: RopeSpec, q: ArrayLike, k: ArrayLike, v: ArrayLike, *, causal: bool = True) -> FloatArray:
    """Return the outputs from all token pairs, shape (tokens, value size), in blocks of queries to bound the memory."""
    phi_q, phi_k, turned_q, turned_k = rotate_features(spec, q, k)
    values = np.asarray(v, dtype=np.float64)
    outputs = np.empty((len(phi_q), values.shape[-1]))
    for start in range(0, len(phi_q), ROWS):
        stop = min(start + ROWS, len(phi_q))
        end = stop if causal else len(phi_q)
        numerator, denominator = turned_q[start:stop] @ turned_k[:end].T, phi_q[start:stop] @ phi_k[:end].T
        if causal:
            visible = np.arange(end) <= np.arange(start, stop)[:, None]
            numerator, denominator = numerator * visible, denominator * visible
        outputs[start:stop] = numerator @ values[:end] / denominator.sum(axis=-1, keepdims=True)
    return outputs


def state_outputs(
    spec: RopeSpec,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    positions: ArrayLike | None = None,
    causal: bool = True,
    length: int | None = None,
) -> FloatArray:
    """Return the outputs from the running state S = Σ Rₙφ(kₙ)vₙᵀ and z = Σ φ(kₙ), shape (tokens, value size): O(N).

    A causal query uses the state up to its own token, otherwise the state of all tokens.
    """
    phi_q, phi_k, turned_q, turned_k = rotate_features(spec, q, k, positions=positions, length=length)
    values = np.asarray(v, dtype=np.float64)
    if not causal:
        full: FloatArray = turned_q @ (turned_k.T @ values) / (phi_q @ phi_k.sum(axis=0))[:, None]
        return full
    outputs = np.empty((len(phi_q), values.shape[-1]))
    state, total = np.zeros((spec.head_dim, values.shape[-1])), np.zeros(spec.head_dim)
    for n in range(len(phi_q)):
        state += turned_k[n][:, None] * values[n]
        total += phi_k[n]
        outputs[n] = turned_q[n] @ state / (phi_q[n] @ total)
    return outputs


@dataclass(frozen=True)
class Operations:
    """Multiply-adds of both ways for one head: `pairs` grows with N², `state` with N."""

    tokens: int
    pairs: int
    state: int


def operations(tokens: int, head_dim: int, value_dim: int, *, causal: bool = True) -> Operations:
    """Count the multiply-adds of numerator, denominator and output; both share the rotation, 2·head_dim per token.

    By pairs: N(N+1)/2 visible pairs (N² if not causal), each head_dim for numerator and denominator and value_dim for
    the output. By state, per token: head_dim·value_dim to write and as many to read, 2·head_dim for z.
    """
    for name, value in (("tokens", tokens), ("head_dim", head_dim), ("value_dim", value_dim)):
        require_number(value, name, least=1, integer=True)
    visible = tokens * (tokens + 1) // 2 if causal else tokens * tokens
    return Operations(tokens, visible * (2 * head_dim + value_dim), tokens * (2 * head_dim * value_dim + 2 * head_dim))


def crossover(head_dim: int, value_dim: int, *, causal: bool = True) -> int:
    """Return the number of tokens from which the running state needs fewer multiply-adds."""
    a_token, a_pair = 2 * head_dim * value_dim + 2 * head_dim, 2 * head_dim + value_dim
    return max(2 * a_token // a_pair, 1) if causal else a_token // a_pair + 1


@dataclass(frozen=True)
class Timing:
    """Seconds of both ways for one length, the best of the repeats, and the largest difference of their outputs."""

    tokens: int
    pairs: float
    state: float
    error: float


def measure(
    spec: RopeSpec, lengths: Sequence[int], *, causal: bool = True, repeats: int = 3, seed: int = 0
) -> tuple[Timing, ...]:
    """Time both ways in NumPy on this machine, on random q, k, v of head_dim, up to 8,192 tokens.

    The causal state is a Python loop over tokens, so its times include that loop's cost.
    """
    timings = []
    for tokens in lengths:
        require_number(tokens, "tokens", least=1, most=MAX_TOKENS, integer=True)
        q, k, v = (draw_normals(f"linear {name} {seed}", int(tokens), spec.head_dim) for name in "qkv")
        best, outputs = [], []
        for way in (pair_outputs, state_outputs):
            seconds = []
            for _ in range(max(repeats, 1)):
                start = time.perf_counter()
                result = way(spec, q, k, v, causal=causal)
                seconds.append(time.perf_counter() - start)
            best.append(min(seconds))
            outputs.append(result)
        timings.append(Timing(int(tokens), best[0], best[1], largest_entry(outputs[0] - outputs[1])))
    return tuple(timings)


def rotate_features(
    spec: RopeSpec, q: ArrayLike, k: ArrayLike, *, positions: ArrayLike | None = None, length: int | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return φ(q), φ(k) and both rotated, each of shape (tokens, head_dim)."""
    phi_q, phi_k = feature_map(check_heads(spec, q)), feature_map(check_heads(spec, k))
    if phi_q.shape != phi_k.shape or phi_q.ndim != 2:
        raise ValueError(f"q and k must both be (tokens, head_dim), got {phi_q.shape} and {phi_k.shape}")
    places = np.arange(len(phi_q)) if positions is None else np.asarray(positions)
    if places.shape != phi_q.shape[:1]:
        raise ValueError(f"positions must have one entry per token, {len(phi_q)} of them, got shape {places.shape}")
    turned_q, turned_k = (rotate(spec, phi, places, length=length) for phi in (phi_q, phi_k))
    return phi_q, phi_k, turned_q, turned_k
