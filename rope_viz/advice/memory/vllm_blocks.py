"""What vLLM reserves for one request: whole blocks of one size, from a pool that all kinds of layers share.

Read in vLLM 0.32.0 (v1/core/kv_cache_utils.py, v1/kv_cache_interface.py, platforms/interface.py), and compared with what
its engine says of its cache (tests/goldens/caches.json). Layers with the same kind of cache are split into groups of as
many layers as the rarest kind has, and every group takes blocks of its own. A block holds a page of each layer of one
group. So a request takes the sum of the blocks of all groups, times the bytes of the largest group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

BLOCK = 16
"""Tokens of a block on NVIDIA GPUs, where the user names none."""
LATENT_BLOCK = 128
"""Tokens of which a block is a multiple where layers have both latent attention and a recurrence."""
BATCHED_TOKENS = 8192
"""Tokens of one batch (max_num_batched_tokens) by default, on GPUs of 70 GiB and more but the A100."""
BATCHES = 2
"""Batches in flight, since the next one is scheduled while one runs."""
STATES = 2
"""Pages of each recurrent layer: that of the last whole block, for the prefix cache, and the current one."""
MOST_PADDING = 1.5
"""The commonest kind sets the size of groups where it has less than this many times the layers of the rarest."""


@dataclass(frozen=True)
class Engine:
    """How an engine is started: tokens of a block and of a batch, and the batches in flight."""

    block: int = BLOCK
    batched_tokens: int = BATCHED_TOKENS
    batches: int = BATCHES


@dataclass(frozen=True)
class Layers:
    """Layers with the same cache: how many, bytes per token or bytes of a state, and tokens that they look back.

    `chunk` is the size of a chunk, of which they see the begun one alone. `block` and `page` are filled in when the
    sizes of all are known.
    """

    count: int
    token: float
    window: int | None = None
    chunk: int | None = None
    state: float = 0.0
    block: int = 0
    page: float = 0.0

    def count_blocks(self, length: int, engine: Engine) -> int:
        """Return how many blocks one request takes in a group of these layers."""
        if self.state:
            return STATES
        flying = engine.batches * engine.batched_tokens
        if self.window is not None:
            # The window need not begin where a block does.
            return divide_up(min(self.window - 1 + flying, length), self.block) + 1
        if self.chunk is not None:
            return divide_up(min(self.chunk + flying, length), self.block)
        return divide_up(length, self.block)


def divide_up(count: float, by: float) -> int:
    """Return a quotient, rounded up."""
    return int(-(-count // by))


def count_request_bytes(layers: Sequence[Layers], length: int, engine: Engine, *, is_latent: bool = False) -> int:
    """Return the bytes that vLLM reserves for one request of this length."""
    if not layers:
        return 0
    sized = unify_pages(size_pages(layers, engine, is_latent))
    full = all(one.window is None and one.chunk is None and not one.state for one in layers)
    if full or len(sized) == 1:
        return round(sum(one.count * one.page for one in sized) * sized[0].count_blocks(length, engine))
    counts = [one.count for one in sized]
    size = min(counts)
    if max(counts) < MOST_PADDING * size:
        size = max(counts)
    blocks = sum(divide_up(one.count, size) * one.count_blocks(length, engine) for one in sized)
    return round(size * sized[0].page * blocks)


def size_pages(layers: Sequence[Layers], engine: Engine, is_latent: bool) -> list[Layers]:
    """Return the layers with their blocks and pages. A block is as long as its page needs to hold the largest state."""
    block, state = engine.block, max(one.state for one in layers)
    token = max(one.token for one in layers)
    if state and token:
        step = max(block, LATENT_BLOCK) if is_latent else block
        block = max(block, step * divide_up(state, step * token))
    return [replace(one, block=block, page=block * (token if one.state else one.token) or one.state) for one in layers]


def unify_pages(layers: Sequence[Layers]) -> list[Layers]:
    """Return the layers with pages of one size: smaller ones get longer blocks where these fit, else padding."""
    largest = max(one.page for one in layers)
    if all(one.window is None and one.chunk is None and not one.state for one in layers):
        return list(layers)
    return [
        replace(one, page=largest, block=one.block * int(largest // one.page) if largest % one.page == 0 else one.block)
        for one in layers
    ]
