"""Position of each token: offsets, packed sequences, context-parallel shards.

A rotation takes one integer position per token; each function maps a layout to those positions. Each takes NumPy arrays
or torch tensors and returns the same kind, without a device sync.

Load-balanced chunks: Llama 3, https://arxiv.org/abs/2407.21783, section 3.3.2; Transformer Engine at d0067d0
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rope_viz.kernels.fixed_point import IntArray


def offset_positions(tokens: int, starts: Any = 0) -> Any:
    """Return start, start + 1, ...: (tokens,) for an integer, (batch, tokens) for starts of shape (batch,).

    >>> offset_positions(3, 10)
    array([10, 11, 12])
    """
    if isinstance(starts, (int, np.integer)):
        return np.arange(tokens, dtype=np.int64) + int(starts)
    return _int64(starts)[:, None] + _arange(tokens, starts)


def packed_positions(cu_seqlens: Any, tokens: int, starts: Any = None, *, size: int = 1, rank: int = 0) -> Any:
    """Return positions (tokens,) of concatenated sequences, each from 0 or from its own start.

    cu_seqlens: (sequences + 1,), the start of each sequence, and the end; starts: (sequences,). With `size` > 1 they
    are the bounds of the full sequences, each a multiple of 2 * size long, of which this `rank` holds its two chunks.
    Tokens past the last bound belong to no sequence and continue the last one's count.

    >>> packed_positions(np.array([0, 2, 5]), 5)
    array([0, 1, 0, 1, 2])
    """
    bounds = _int64(cu_seqlens) // size
    token = _arange(tokens, bounds)
    sequence = (_searchsorted(bounds, token) - 1).clip(0, max(len(bounds) - 2, 0))
    positions = token - bounds[sequence]
    if size > 1:
        positions = balanced_position(positions, (bounds[1:] - bounds[:-1])[sequence], size, rank)
    return positions if starts is None else positions + _int64(starts)[sequence]


def context_parallel_positions(tokens: int, size: int, rank: int) -> IntArray:
    """Return positions (tokens,) of the local `tokens` of one rank out of `size`.

    The full sequence is cut into 2 * size chunks and rank r holds chunks r and 2 * size - 1 - r, so that under a causal
    mask all ranks have equal work. Raises `ValueError` for an odd number of local tokens.

    >>> context_parallel_positions(4, size=2, rank=0)
    array([0, 1, 6, 7])
    """
    if size < 1 or not 0 <= rank < size:
        raise ValueError(f"rank must be from 0 to {size - 1}, got {rank} of {size}")
    token = np.arange(tokens, dtype=np.int64)
    if size == 1:
        return token
    if tokens % 2:
        raise ValueError(f"each rank holds two chunks of equal length, so its tokens must be even, got {tokens}")
    return np.asarray(balanced_position(token, tokens, size, rank))


def balanced_order(tokens: int, size: int) -> IntArray:
    """Return a permutation (tokens,) of the full sequence: the tokens of rank 0, then those of rank 1, ...

    >>> balanced_order(8, 2)
    array([0, 1, 6, 7, 2, 3, 4, 5])
    """
    if tokens % (2 * size) and size > 1:
        raise ValueError(f"the tokens must divide into {2 * size} chunks, got {tokens}")
    return np.concatenate([context_parallel_positions(tokens // size, size, rank) for rank in range(size)])


def balanced_position(local: Any, length: Any, size: int, rank: int) -> Any:
    """Return the position in the full sequence of the local index, for a rank that holds `length` tokens of it."""
    half = length // 2
    return local + rank * half + (local >= half) * (2 * size - 2 - 2 * rank) * half


def _is_tensor(value: Any) -> bool:
    # A tensor implies that torch was imported; otherwise avoid the import.
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _int64(value: Any) -> Any:
    return value.long() if _is_tensor(value) else np.asarray(value).astype(np.int64)


def _arange(tokens: int, like: Any) -> Any:
    if _is_tensor(like):
        return sys.modules["torch"].arange(tokens, device=like.device)
    return np.arange(tokens, dtype=np.int64)


def _searchsorted(bounds: Any, values: Any) -> Any:
    if _is_tensor(bounds):
        return sys.modules["torch"].searchsorted(bounds, values, right=True)
    return np.searchsorted(bounds, values, side="right")
