"""Statistics of the pairs of a head, from its q and k before rotation: energy, strength, phase, distance.

Strength by pair: Barbero et al., https://arxiv.org/abs/2410.06205 (the norm of each pair, averaged over the sequence,
and the Cauchy-Schwarz bound it puts on a logit); massive values in q and k: Jonasson, https://arxiv.org/abs/2503.01832.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.exact_angles import exact_angles
from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec
from rope_viz.studies.correlation import mean_logits
from rope_viz.studies.pair_sums import PairSums, add_up, divide, to_pairs

Rows: TypeAlias = NDArray[np.int64]

ROWS = 64  # sample size where all queries would be too many


@dataclass(frozen=True, eq=False)
class Turning:
    """How the pairs rotate: `inv_freq` (pairs,) in radians per position, and the factor on cos and sin."""

    inv_freq: FloatArray
    attention_factor: float = 1.0

    @staticmethod
    def from_spec(spec: RopeSpec, length: int | None = None) -> Turning:
        """Return the rotation of a spec in a sequence of `length` tokens."""
        return Turning(spec.inv_freq(length), spec.attention_factor(length))


@dataclass(frozen=True, eq=False)
class Heads:
    """q and k of one layer before rotation, for the first tokens of a sequence.

    `q` is (heads, tokens, head_dim), `k` (key heads, tokens, head_dim); neighbouring query heads share a key head. The
    rotating dimensions come first. `scale` multiplies every logit (1/√head_dim in most models), `cap` c replaces a
    logit x by c·tanh(x/c), `window` is how many tokens a query sees, itself included, and `sinks` (heads,) is an
    additional logit that attracts attention without a key.
    """

    q: NDArray[Any]
    k: NDArray[Any]
    pairing: Pairing = "half"
    scale: float = 1.0
    cap: float | None = None
    window: int | None = None
    sinks: NDArray[Any] | None = None

    @property
    def tokens(self) -> int:
        return int(self.q.shape[1])

    def key_of(self, head: int) -> NDArray[Any]:
        """Return the keys of a query head, (tokens, head_dim)."""
        return np.asarray(self.k[head * len(self.k) // len(self.q)])


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Statistics per query head and pair, (heads, pairs): share of energy in q and k, strength, and phase.

    `strength` is the mean of |qᵢ||kᵢ| over all queries and keys, times the scale: the most that the pair can add to a
    logit on average. `phase` is the angle Δθᵢ at which the mean query and mean key agree best. `steady` is the share of
    the strength that the means keep: 1 if all tokens have one direction (the pair can only encode distance), 0 if
    directions are spread evenly (it can only encode content).
    """

    energy_q: FloatArray
    energy_k: FloatArray
    strength: FloatArray
    phase: FloatArray
    steady: FloatArray


def pair_statistics(heads: Heads, pairs: int) -> PairStatistics:
    """Return statistics of every head's pairs before rotation; the last columns are unrotated dimensions, in twos."""
    return statistics_of_sums(add_up(heads.q, heads.k, pairs, heads.pairing), heads.scale)


def statistics_of_sums(sums: PairSums, scale: float) -> PairStatistics:
    """Return statistics of every head's pairs from the sums of a layer whose logits are multiplied by `scale`."""
    mean_q, mean_k = sums.means()
    size_q, size_k = sums.sizes()
    energy_q, energy_k = sums.energies()
    mean, strength = mean_q * mean_k.conj(), size_q * size_k
    return PairStatistics(
        energy_q,
        energy_k,
        scale * strength,
        # The score of the means at distance Δ is |mean|·cos(Δθ + arg): largest for Δθ = −arg.
        np.asarray(-np.angle(mean)),
        divide(np.abs(mean), strength),
    )


def mean_logit(heads: Heads, turn: Turning) -> FloatArray:
    """Return the mean logit of every head by distance, (heads, tokens), over all queries and keys at that distance.

    Before the softmax and before a cap. Exact, in O(tokens·log tokens) per pair.
    """
    found = mean_logits(
        heads.q,
        heads.k,
        turn.inv_freq,
        pairing=heads.pairing,
        attention_factor=turn.attention_factor,
    )
    return heads.scale * found


def logits(heads: Heads, head: int, rows: Rows, turn: Turning) -> FloatArray:
    """Return the logits of some queries to all keys, (rows, tokens), float64; −∞ for keys they cannot see."""
    q, k = rotate_head(heads, head, rows, turn)
    found = heads.scale * (q.real @ k.real.T + q.imag @ k.imag.T)
    if heads.cap:
        found = heads.cap * np.tanh(found / heads.cap)
    distance = rows[:, None] - np.arange(heads.tokens)
    return np.where((distance < 0) | (distance >= (heads.window or heads.tokens)), -np.inf, found)


def weights(heads: Heads, head: int, rows: Rows, turn: Turning) -> FloatArray:
    """Return the attention of some queries, (rows, tokens): each row sums to 1 minus the share of a sink."""
    found = logits(heads, head, rows, turn)
    sink = -np.inf if heads.sinks is None else float(heads.sinks[head])
    top = np.maximum(found.max(axis=1, keepdims=True), sink)
    powers = np.exp(found - top)
    return np.asarray(powers / (powers.sum(axis=1, keepdims=True) + np.exp(sink - top)))


def attention_by_distance(heads: Heads, head: int, turn: Turning) -> FloatArray:
    """Return the mean attention by distance, (tokens,), over the sampled queries that have a token that far back."""
    rows = sample_queries(heads.tokens)
    found = weights(heads, head, rows, turn)
    total = np.zeros(heads.tokens)
    for row, row_weights in zip(rows, found, strict=True):
        total[: row + 1] += row_weights[row::-1]
    return np.asarray(total / (rows[:, None] >= np.arange(heads.tokens)).sum(axis=0))


def contributions(heads: Heads, head: int, turn: Turning) -> FloatArray:
    """Return what each pair adds to the logits of attended tokens, relative to any visible token: (pairs,).

    The mean over sampled queries of the pair's score weighted by attention, minus its plain mean over the visible keys.
    The last entries are the unrotated dimensions, in twos. A cap is ignored, because it bounds the sum, not its parts.
    """
    rows = sample_queries(heads.tokens)
    attended = weights(heads, head, rows, turn)
    visible = np.isfinite(logits(heads, head, rows, turn))
    q, k = rotate_head(heads, head, rows, turn)
    above = attended - visible / visible.sum(axis=1, keepdims=True)
    # Σₙ aboveₘₙ Re(qₘ·conj kₙ), pair by pair.
    return np.asarray(heads.scale * (q * (above @ k).conj()).real.mean(axis=0))


def positional_share(heads: Heads, turn: Turning) -> FloatArray:
    """Return the share of each head's logit variance that distance explains, (heads,): 1 positional, 0 semantic.

    Over sampled queries and all keys they see; the mean by distance is that of the whole sequence.
    """
    means = mean_logit(heads, turn)
    rows = sample_queries(heads.tokens)
    out = np.zeros(len(heads.q))
    for head, mean in enumerate(means):
        q, k = rotate_head(heads, head, rows, turn)
        found = heads.scale * (q.real @ k.real.T + q.imag @ k.imag.T)
        distance = rows[:, None] - np.arange(heads.tokens)
        visible = (distance >= 0) & (distance < (heads.window or heads.tokens))
        values, by_distance = found[visible], mean[distance[visible]]
        spread = values.var()
        out[head] = max(0.0, 1.0 - ((values - by_distance) ** 2).mean() / spread) if spread > 0 else 0.0
    return out


def rotate_head(
    heads: Heads, head: int, rows: Rows, turn: Turning
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return a head's rotated queries (rows, pairs) and keys (tokens, pairs), complex, unrotated pairs last."""
    pairs = len(turn.inv_freq)
    q, k = (to_pairs(x, pairs, heads.pairing) for x in (heads.q[head][rows], heads.key_of(head)))
    rotation = np.exp(1j * exact_angles(turn.inv_freq, np.arange(heads.tokens))) * turn.attention_factor
    q[:, :pairs] *= rotation[rows]
    k[:, :pairs] *= rotation
    return q, k


def sample_queries(tokens: int, count: int = ROWS) -> Rows:
    """Return evenly spaced queries, including the last one."""
    return np.unique(np.linspace(0, tokens - 1, min(count, tokens)).round().astype(np.int64))


def mean_logit_of_centres(sums: PairSums, scale: float, turn: Turning, distances: Rows) -> FloatArray:
    """Return the mean logit of every head at some distances as its mean q and mean k alone give it, (heads, distances).

    It is exact where q and k of tokens at this distance are not correlated: scale · Re Σᵢ q̄ᵢ k̄ᵢ* e^(i·Δ·θᵢ).
    """
    mean_q, mean_k = sums.means()
    products, pairs = mean_q * mean_k.conj(), len(turn.inv_freq)
    rotation = np.exp(1j * exact_angles(turn.inv_freq, distances)) * turn.attention_factor**2
    rotated = (products[:, :pairs] @ rotation.T).real
    return np.asarray(scale * (rotated + products[:, pairs:].sum(axis=1).real[:, None]))
