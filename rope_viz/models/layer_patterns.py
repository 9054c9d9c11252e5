"""Which layers of a model rotate, where not all of them do.

Read in the configuration classes and modeling files of transformers 5.23.0, and run (tests/goldens/turning.json): the
patterns are those that a class fills in where the config does not list its layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.embedding.spec import require_number, shorten
from rope_viz.models.config_reader import GLOBAL_HEADS, RENAMED_LAYERS, Fields

# A list under `no_rope_layers` (1: the layer rotates), or every n-th layer without.
LISTED = ("llama4_text", "smollm3", "mistral_large4_text")
# Sliding-window layers rotate, the others have no positions; some only where there is a window at all.
SLIDING = ("cohere2", "cohere2_moe", "afmoe", "flint", "beam")
SLIDING_IF_WINDOW = ("exaone4", "exaone_moe", "kolibri1")
# All layers have the window, where there is one.
WINDOWED = ("mistral", "mixtral", "phi3", "starcoder2")
# `sliding_window` of a class, in tokens, where the config has no such key.
WINDOWS = {"mistral": 4096, "cohere2": 4096, "cohere2_moe": 4096, "afmoe": 1024, "flint": 513, "beam": 512}
WINDOWS |= {"exaone4": 4096, "exaone_moe": 4096, "kolibri1": 513}
CHUNK = 8192
"""`attention_chunk_size` of Llama 4, whose rotating layers attend within chunks."""
# `layer_rope_theta`: a base per layer, 0 where it does not rotate.
BASES = ("granite_swa", "granitemoe_swa", "muse_spark_text", "muse_glimmer_text")
# Attention here, a recurrence or a convolution there.
MIXED = (
    *("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text", "lfm2", "lfm2_moe", "lfm3", "bamba"),
    *("granitemoehybrid", "olmo_hybrid", "zamba2", "minimax", "recurrent_gemma", "bailing_hybrid"),
)
# `attn_type_list`: 1 for an attention layer, 0 for lightning attention, which does not rotate.
LIGHTNING = ("minimax_text_01", "minimax_m1")
WITHOUT_ATTENTION = ("linear_attention", "conv", "mamba", "recurrent", "moe")
# {type: (key, its default, type of the usual layers, type of every n-th)}
PATTERNS = {
    **dict.fromkeys(("cohere2", "cohere2_moe"), ("sliding_window_pattern", 4, "sliding_attention", "full_attention")),
    **dict.fromkeys(("exaone4", "exaone_moe"), ("sliding_window_pattern", 4, "sliding_attention", "full_attention")),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"),
        ("full_attention_interval", 4, "linear_attention", "full_attention"),
    ),
    "afmoe": ("global_attn_every_n_layers", 4, "sliding_attention", "full_attention"),
    "olmo_hybrid": ("", 4, "linear_attention", "full_attention"),
    "gemma3_text": ("sliding_window_pattern", 6, "sliding_attention", "full_attention"),
    "bailing_hybrid": ("layer_group_size", 6, "linear_attention", "full_attention"),
    "llama4_text": ("no_rope_layer_interval", 4, "chunked_attention", "full_attention"),
}
MOST = 10_000
"""Layers. No model has as many."""


def layer_kinds(fields: Fields) -> list[str] | None:
    """The type of every layer in order, None where neither the config nor a pattern of its class says it."""
    given = fields.layer_types() or named(fields, "layers_block_type")
    if given:
        return given
    count, pattern = fields.size("num_hidden_layers"), PATTERNS.get(fields.kind)
    for key in ("full_attn_idxs", "attn_layer_indices"):
        if fields.config.get(key) and count is not None:
            chosen = {int(index) for index in numbers(fields.config[key], key)}
            return ["full_attention" if i in chosen else "linear_attention" for i in range(min(count, MOST))]
    if count is None or pattern is None:
        return None
    key, default, usual, nth = pattern
    every = fields.config.get(key, default)
    if isinstance(every, str):
        # "LLLG": local and global layers in turn.
        return [usual if every[i % len(every)].upper() == "L" else nth for i in range(min(count, MOST))] or None
    if every is None:
        return None
    require_number(every, key, least=1, integer=True)
    return [nth if (i + 1) % int(every) == 0 else usual for i in range(min(count, MOST))]


def turning(fields: Fields) -> list[bool] | None:
    """Whether each layer rotates; None where it is not known layer by layer."""
    count = fields.size("num_hidden_layers")
    if fields.kind in LISTED:
        given = fields.config.get("no_rope_layers")
        if given:
            return [bool(flag) for flag in numbers(given, "no_rope_layers")]
        every = fields.config.get("no_rope_layer_interval", 4)
        require_number(every, "no_rope_layer_interval", least=1, integer=True)
        return None if count is None else [(i + 1) % int(every) != 0 for i in range(min(count, MOST))]
    if fields.kind in BASES:
        given = fields.config.get("layer_rope_theta")
        return [bool(base) for base in numbers(given, "layer_rope_theta")] if given else None
    if fields.kind in LIGHTNING:
        given = fields.config.get("attn_type_list")
        return [bool(flag) for flag in numbers(given, "attn_type_list")] if given else None
    kinds = layer_kinds(fields)
    if kinds is None:
        return None
    if windowed(fields):
        return [kind == "sliding_attention" for kind in kinds]
    return [kind not in WITHOUT_ATTENTION for kind in kinds] if fields.kind in MIXED else None


def windowed(fields: Fields) -> bool:
    """Whether the sliding-window layers alone rotate."""
    given = fields.config.get("sliding_window", WINDOWS.get(fields.kind))
    return fields.kind in SLIDING or (fields.kind in SLIDING_IF_WINDOW and given is not None)


def window(fields: Fields) -> int | None:
    """The window or chunk, in tokens, that all rotating layers of a model keep to; None where some see everything."""
    if fields.kind == "llama4_text":
        size = fields.config.get("attention_chunk_size", CHUNK)
    elif windowed(fields) or fields.kind in WINDOWED:
        size = fields.config.get("sliding_window", WINDOWS.get(fields.kind))
    else:
        return None
    if size is not None:
        require_number(size, "sliding_window", least=0, integer=True)
    return int(size) if size else None


def named(fields: Fields, key: str) -> list[str] | None:
    """A list of layer types under an older key, under their present names."""
    given = fields.config.get(key)
    if not isinstance(given, (list, tuple)):
        return None
    return [RENAMED_LAYERS.get(str(name), str(name)) for name in given]


def numbers(given: object, key: str) -> Sequence[float]:
    """A list of numbers under this key. Raises `ValueError` where it is something else."""
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"{key} must be a list of numbers, got {shorten(given)}")
    for value in given:
        require_number(int(value) if isinstance(value, bool) else value, f"{key} entries")
    return given


def partly(fields: Fields) -> str:
    """One sentence that says which layers rotate; empty where all do, or all alike."""
    turns = turning(fields)
    which = where(fields)
    if turns is not None and all(turns):
        return ""
    if not which:
        return ""
    if turns is None:
        return f"Only some layers rotate: {which}."
    return f"Only some layers rotate, {sum(turns)} of {len(turns)}: {which}."


def where(fields: Fields) -> str:
    """Which layers rotate and which do not, in words."""
    kind = fields.kind
    if kind in LISTED:
        return "those with a 1 in no_rope_layers (by default every 4th has no positions)"
    if kind in BASES:
        return "those whose layer_rope_theta is not 0"
    if kind in LIGHTNING:
        return "those with a 1 in attn_type_list; lightning attention keeps the order itself"
    if windowed(fields):
        return "the sliding-window layers; the full-attention layers have no positions"
    if kind in MIXED:
        return "the attention layers; the recurrent or convolution layers between them keep the order themselves"
    return ""


def shares(fields: Fields) -> str:
    """For Gemma 4 and its like: how much of a head turns in either type of layer."""
    if fields.kind not in GLOBAL_HEADS:
        return ""
    return (
        "The sliding-attention layers rotate the whole head, the full-attention layers only the first pairs of a "
        "larger one (partial_rotary_factor, 0.25 by default): the rest stands still."
    )
