"""What vLLM reserves for one request: whole blocks of one size, from a pool that all kinds of layers share.

Read in vLLM 0.32.0 (v1/core/kv_cache_utils.py, v1/kv_cache_interface.py, platforms/interface.py), and compared with
what its engine says of its cache (tests/goldens/caches.json). Layers with the same kind of cache are split into groups
of as many layers as the rarest kind has, and every group takes blocks of its own. A block holds a page of each layer of
one group. So a request takes the sum of the blocks of all groups, times the bytes of the largest group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rope_viz.advice.memory import TEXTS
from rope_viz.advice.memory.kv_cache import DTYPES, Cache, Group, cache, read_memory_fields
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig

BLOCK = 16
"""Tokens of a block on NVIDIA GPUs, where the user names none."""
LATENT_BLOCK = 128
"""Tokens of which a block is a multiple where layers have both latent attention and a recurrence."""
BATCHED_TOKENS = 8192
"""Tokens of one batch (max_num_batched_tokens) by default, on GPUs of 70 GiB and more but the A100."""
BATCHES = 2
"""Batches in flight, since the next one is scheduled while one runs."""
MOST_PADDING = 1.5
"""The commonest kind sets the size of groups where it has less than this many times the layers of the rarest."""


KERNELS = ("linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel", "conv_L_cache")
STATE_DTYPES = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")


@dataclass(frozen=True)
class VllmSettings:
    """How an engine is started: tokens of a block and of a batch, and the batches in flight.

    `float_states` is True where recurrences are kept in float32 whatever the config says, as on processors.
    """

    block: int = BLOCK
    batched_tokens: int = BATCHED_TOKENS
    batches: int = BATCHES
    float_states: bool = False


@dataclass(frozen=True)
class PagedLayers:
    """Layers with the same cache: how many, bytes per token or bytes of a state, and tokens that they look back.

    `chunk` is the size of a chunk, of which they see the begun one alone. `states` are those that a recurrent layer
    keeps of one request: the current one and that of the last whole block, which the prefix cache shares, and in layers
    of Mamba 2 one more for the end of the prompt. `block` and `page` are filled in when the sizes of all are known.
    """

    count: int
    token: float
    window: int | None = None
    chunk: int | None = None
    state: float = 0.0
    states: int = 2
    block: int = 0
    page: float = 0.0

    def count_blocks(self, length: int, engine: VllmSettings) -> int:
        """Return how many blocks one request takes in a group of these layers."""
        if self.state:
            return self.states
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


def count_request_bytes(
    layers: Sequence[PagedLayers], length: int, engine: VllmSettings, *, is_latent: bool = False
) -> int:
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


def size_pages(layers: Sequence[PagedLayers], engine: VllmSettings, is_latent: bool) -> list[PagedLayers]:
    """Return the layers with their blocks and pages. A block is as long as its page needs to hold the largest state."""
    block, state = engine.block, max(one.state for one in layers)
    token = max(one.token for one in layers)
    if state and token:
        step = max(block, LATENT_BLOCK) if is_latent else block
        block = max(block, step * divide_up(state, step * token))
    return [replace(one, block=block, page=block * (token if one.state else one.token) or one.state) for one in layers]


def unify_pages(layers: Sequence[PagedLayers]) -> list[PagedLayers]:
    """Return the layers with pages of one size: smaller ones get longer blocks where these fit, else padding."""
    largest = max(one.page for one in layers)
    if all(one.window is None and one.chunk is None and not one.state for one in layers):
        return list(layers)
    return [
        replace(one, page=largest, block=one.block * int(largest // one.page) if largest % one.page == 0 else one.block)
        for one in layers
    ]


def count_reserved_bytes(model: ModelConfig, kept: Cache, length: int, engine: VllmSettings) -> int:
    """Return what vLLM reserves for one request. Raises `ValueError` where this was not run or read."""
    layers = [one for group in kept.groups for one in list_layers(model, group, kept.dtype, engine)]
    return count_request_bytes(layers, length, engine, is_latent=read_memory_fields(model).has_latent_attention)


def list_layers(model: ModelConfig, group: Group, dtype: str, engine: VllmSettings) -> Iterator[PagedLayers]:
    """Yield the layers of one group as vLLM sees them: attention, and a recurrence, also where one layer has both."""
    if group.entry or group.kind == "indexed_attention":
        raise ValueError(TEXTS("reason.compressed"))
    if group.per_token:
        chunk = group.window if group.kind == "chunked_attention" else None
        yield PagedLayers(group.layers, group.per_token, None if chunk else group.window, chunk)
    if group.state:
        fields = read_memory_fields(model)
        states = fields.architecture.runtime("vllm").get("states")
        if states is None:
            raise ValueError(TEXTS("reason.recurrent", kind=fields.kind))
        yield PagedLayers(group.layers, 0.0, state=count_state_bytes(model, group, dtype, engine), states=int(states))


def count_state_bytes(model: ModelConfig, group: Group, dtype: str, engine: VllmSettings) -> float:
    """Return the bytes of a recurrent layer's state in vLLM.

    Its convolution keeps one column less than that of transformers, in the type of the model; the recurrence is of that
    type too, unless the config names another.
    """
    fields = read_memory_fields(model)
    wide = next(one for one in cache(model, dtype="float32").groups if one.kind == group.kind)
    number = DTYPES[dtype]
    columns = (wide.state - group.state) / (DTYPES["float32"] - number)
    exact = (group.state - columns * number) / DTYPES["float32"]
    own = read_dtype(fields, ("dtype", "torch_dtype"), "bfloat16")
    kernel = next((size for name in KERNELS if (size := fields.size(name)) is not None), 4)
    state = "float32" if engine.float_states else read_dtype(fields, STATE_DTYPES, own)
    return columns * (kernel - 1) / kernel * DTYPES[own] + exact * DTYPES[state]


def read_dtype(fields: Fields, names: Sequence[str], default: str) -> str:
    """Return the type that a config names under one of these keys."""
    return next((value for name in names if (value := fields.config.get(name)) in DTYPES), default)
