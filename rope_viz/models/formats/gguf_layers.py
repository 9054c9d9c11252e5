"""Which layers of a GGUF file have a window, attention or a recurrence, and what each keeps for a token.

The rules are those of llama.cpp's loader (`gguf_loader.json`); the types of layers are named as transformers does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import MAX_LENGTH, require_number
from rope_viz.models.formats.gguf_keys import LOADER, MOST_LAYERS, HeaderKeys
from rope_viz.models.parameter_formulas import default_layer_types

# Architectures whose layers have a recurrence where head_count_kv is 0.
MARKED_BY_HEADS = frozenset(
    """
    bailingmoe3 glm5-next granitehybrid jamba kimi-k3 kimi-linear lfm2 lfm2moe nemotron_h nemotron_h_moe plamo2
    """.split()
)
# {architecture: every n-th layer has attention where the file does not list the layers with a recurrence}.
INTERVALS = {**dict.fromkeys(("qwen35", "qwen35moe", "qwen3next", "qwen4exp"), 4), "minimax-01": 8}
SLIDING_SIZES = ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa")
# Their cache is not that of heads with keys and values in each block.
OTHER_CACHES = ("deepseek4", "hrm_text", "nanbeige")


@dataclass(frozen=True)
class WindowRules:
    """How the loader finds the sliding layers of one architecture; the fields are described in `gguf_loader.json`."""

    every: int = 0
    first: bool = False
    listed: bool = False
    all: bool = False
    window: int | None = None
    fixed: bool = False
    blocks: int | None = None
    needs_window: bool = False
    chunked: bool = False
    base: str = ""
    main_only: bool = False
    scaled: bool = False


def find_window_rules(kind: str) -> WindowRules | None:
    """Return the rules of one of llama.cpp's architectures, None where its layers have no window there."""
    found = LOADER["windows"].get(LOADER["aliases"].get(kind, kind))
    return None if found is None else WindowRules(**found)


@dataclass(frozen=True)
class LayerFacts:
    """What a header says of the layers: their number, types, KV heads and numbers kept for each token.

    `types` is None where the file says nothing about them, `kept` where heads do not decide it. `window` is 0 where
    no layer has one.
    """

    count: int
    types: list[str] | None
    heads: list[int]
    kept: list[int] | None
    window: int
    lacks_pattern: bool = False

    def heads_of(self, layer: str) -> int | None:
        """Return the most KV heads of a layer of this type, None where there is none."""
        return max(
            (each for each, type in zip(self.heads, self.types or (), strict=False) if type == layer), default=None
        )


def read_layers(keys: HeaderKeys, model_type: str, key_length: int, value_length: int) -> LayerFacts | None:
    """Return what a header says of the layers, None where it does not count them."""
    blocks = keys.size("block_count", most=MOST_LAYERS)
    if blocks is None:
        return None
    # The last blocks may predict further tokens; these are no layers of the model.
    count = max(blocks - (keys.size("nextn_predict_layers") or 0), 0)
    heads = keys.layers("attention.head_count", blocks) or [0] * blocks
    kv_heads = (keys.layers("attention.head_count_kv", blocks) or heads)[:count]
    rules = find_window_rules(keys.kind)
    window, slides = (0, None) if rules is None else read_window(keys, rules, blocks)
    recurrent = read_recurrent(keys, blocks, kv_heads)
    lacks = rules is not None and rules.listed and slides is None
    types = None
    if slides is not None or any(recurrent):
        default = default_layer_types(model_type, count) or ()
        full = "indexed_attention" if "indexed_attention" in default else "full_attention"
        local = "chunked_attention" if rules is not None and rules.chunked else "sliding_attention"
        types = [local if slides and slides[index] else full for index in range(count)]
        types = [recurrent[index] or kind for index, kind in enumerate(types)]
    sizes = (key_length, value_length)
    swa = sizes
    if slides is not None and not any(slides):
        keys.ignore(*SLIDING_SIZES)
    elif keys.kind not in OTHER_CACHES:
        swa = (keys.size(SLIDING_SIZES[0]) or key_length, keys.size(SLIDING_SIZES[1]) or value_length)
    if keys.has("attention.key_length_mla"):
        kept = [each * key_length for each in kv_heads]
    else:
        kept = [each * sum(swa if slides and slides[index] else sizes) for index, each in enumerate(kv_heads)]
    is_latent = keys.has("attention.kv_lora_rank") and not keys.has("attention.key_length_mla")
    has_own_cache = keys.kind in OTHER_CACHES or is_latent or not any(kv_heads)
    return LayerFacts(count, types, kv_heads, None if has_own_cache else kept, window, lacks)


def read_window(keys: HeaderKeys, rules: WindowRules, blocks: int) -> tuple[int, list[bool] | None]:
    """Return the window in tokens, 0 for none, and which layers have it, None where the file had to list them."""
    window = keys.size("attention.sliding_window", most=MAX_LENGTH)
    if rules.fixed and window != 0 and (window is not None or not rules.needs_window):
        window = rules.window
    given = window if window is not None else None if rules.needs_window else rules.window
    if not given or (window is None and rules.blocks not in (None, blocks)):
        return 0, [False] * blocks
    pattern = keys.get("attention.sliding_window_pattern") if not rules.all else None
    if isinstance(pattern, list):
        flags = keys.layers("attention.sliding_window_pattern", min(blocks, len(pattern)), at_least=True) or []
        return given, [bool(flag) for flag in flags] + [False] * (blocks - len(flags))
    if rules.all:
        return given, [True] * blocks
    if rules.listed:
        return given, None
    every = rules.every if pattern is None else pattern
    require_number(every, f"{keys.name}.attention.sliding_window_pattern", least=0, integer=True)
    every = int(every)
    if not every:
        return given, [True] * blocks
    return given, [index % every != (0 if rules.first else every - 1) for index in range(blocks)]


def read_recurrent(keys: HeaderKeys, blocks: int, kv_heads: list[int]) -> list[str]:
    """Return the type of each layer without softmax attention, "" for the others."""
    if keys.kind in INTERVALS:
        listed = keys.layers("attention.recurrent_layers", blocks)
        every = keys.size("full_attention_interval") or INTERVALS[keys.kind]
        if not any(keys.layers("attention.compress_ratios", blocks, peek=True) or ()):
            keys.get("attention.compress_ratios")
        flags = listed or [int((index + 1) % every != 0) for index in range(blocks)]
        return ["linear_attention" if flag else "" for flag in flags[: len(kv_heads)]]
    if keys.kind not in MARKED_BY_HEADS:
        # A block without heads is a feed-forward part alone.
        return ["" if each or not any(kv_heads) else "mlp" for each in kv_heads]
    inner = keys.layers("feed_forward_length", blocks) or [0] * blocks
    is_nemotron = keys.kind.startswith("nemotron_h")
    other = ["moe" if is_nemotron and size else "linear_attention" for size in inner]
    return ["" if each else other[index] for index, each in enumerate(kv_heads)]


def read_recurrence(keys: HeaderKeys) -> Mapping[str, Any]:
    """Return the sizes of recurrent and latent layers, under the keys of a config of this architecture."""
    found = {}
    for name, written in LOADER["sizes"].get(keys.kind, {}).items():
        key, _, divisor = written.partition("/")
        value, by = keys.size(key), keys.size(divisor) if divisor else 1
        if value is not None and by:
            found[name] = value // by
    return found
