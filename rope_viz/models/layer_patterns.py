"""Which layers of a model rotate, and which see only a window.

The patterns are those that a class fills in where the config does not list its layers: read in the configuration
classes and modeling files of transformers 5.23.0, and run (tests/goldens/turning.json).
"""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import LayerPattern
from rope_viz.models.config_reader import RENAMED_LAYERS, Fields

WITHOUT_ATTENTION = ("linear_attention", "conv", "mamba", "recurrent", "moe", "mlp")
COMPRESSED_LAYERS = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
"""{entry of DeepSeek V4's `compress_ratios`: layer type}."""
LETTERS = {"M": "linear_attention", "*": "full_attention", "E": "moe", "-": "mlp"}
"""{letter of Nemotron-H's `hybrid_override_pattern`: layer type}."""
WINDOWED = {False: "full_attention", True: "sliding_attention"}
"""{entry of MiMo's `hybrid_layer_pattern`: layer type}."""
LISTS = tuple(
    """
    layer_types layers_block_type hybrid_override_pattern hybrid_layer_pattern compress_ratios attn_type_list
    full_attn_idxs attn_layer_indices linear_attn_config attn_layer_period
    """.split()
)
"""Keys by which a config says of what type each layer is."""
MAX_LAYERS = 10_000
"""No model has as many."""


def resolve_layer_types(fields: Fields) -> list[str] | None:
    """Return the type of every layer in order, None where neither the config nor a pattern of its class says it."""
    given = fields.layer_types() or read_old_layer_types(fields)
    if given:
        return given
    count = fields.size("num_hidden_layers")
    attention = None if count is None else read_attention_layers(fields, min(count, MAX_LAYERS))
    if attention and count is not None:
        word = "hybrid" if fields.kind == "zamba" else "full_attention"
        return [word if i in attention else "linear_attention" for i in range(min(count, MAX_LAYERS))]
    pattern = fields.architecture.layers.pattern
    return None if count is None or pattern is None else repeat_pattern(fields, pattern, count)


def repeat_pattern(fields: Fields, pattern: LayerPattern, count: int) -> list[str] | None:
    """Return the types of `count` layers by a pattern, None where the config says null in its place."""
    every = fields.config.get(pattern.key, pattern.every)
    if isinstance(every, str):
        # "LLLG": local and global layers in turn.
        letters = [every[i % len(every)].upper() for i in range(min(count, MAX_LAYERS))] if every else []
        return [pattern.usual if letter == "L" else pattern.nth for letter in letters] or None
    if every is None:
        return None
    require_number(every, pattern.key, least=1, integer=True)
    offset = -count if pattern.from_end else 0
    return [pattern.nth if (i + 1 + offset) % int(every) == 0 else pattern.usual for i in range(min(count, MAX_LAYERS))]


def find_rotating_layers(fields: Fields) -> list[bool] | None:
    """Return whether each layer rotates, None where it is not known layer by layer."""
    rotating = fields.architecture.layers.rotating
    if rotating == "linear_rope" and not fields.flag("linear_rope", default=True):
        rotating = "attention"
    if rotating in ("no_rope_layers", "layer_rope_theta", "attn_type_list") and fields.config.get(rotating):
        flags = read_numbers(fields.config[rotating], rotating)
        return [bool(flag) for flag in flags[: fields.size("num_hidden_layers")]]
    if fields.architecture.layers.nth_without_rope:
        pattern, layers = fields.architecture.layers.pattern, fields.size("num_hidden_layers")
        types = None if layers is None or pattern is None else repeat_pattern(fields, pattern, layers)
        return None if types is None or pattern is None else [kind != pattern.nth for kind in types]
    if rotating == "no_rope_layers":
        count, every = fields.size("num_hidden_layers"), fields.config.get("no_rope_layer_interval", 4)
        require_number(every, "no_rope_layer_interval", least=1, integer=True)
        return None if count is None else [(i + 1) % int(every) != 0 for i in range(min(count, MAX_LAYERS))]
    types = resolve_layer_types(fields) if rotating in ("sliding", "sliding_if_window", "attention") else None
    if types is None:
        return None
    if rotating == "attention":
        return [kind not in WITHOUT_ATTENTION for kind in types]
    return [kind == "sliding_attention" for kind in types] if only_sliding_rotate(fields) else None


def only_sliding_rotate(fields: Fields) -> bool:
    """Return whether the sliding-window layers alone rotate."""
    rotating = fields.architecture.layers.rotating
    return rotating == "sliding" or (rotating == "sliding_if_window" and raw_window(fields) is not None)


def raw_window(fields: Fields) -> object:
    """Return sliding_window as the config says it, under any of its names, or the class default."""
    given = (fields.config[name] for name in fields.spellings(("sliding_window",)) if name in fields.config)
    return next(given, fields.architecture.layers.window)


def find_window(fields: Fields) -> int | None:
    """Return the window or chunk, in tokens, that all rotating layers keep to; None where some see everything."""
    layers = fields.architecture.layers
    if layers.chunk is not None:
        size: object = fields.config.get("attention_chunk_size", layers.chunk)
    elif only_sliding_rotate(fields) or layers.all_windowed or has_windowed_bases(fields):
        size = raw_window(fields)
    else:
        return None
    if size is None:
        return None
    require_number(size, "sliding_window", least=0, integer=True)
    return int(size) or None  # type: ignore[call-overload, no-any-return]


def find_layer_window(fields: Fields, layer: str) -> int | None:
    """Return the window, in tokens, of the layers of one type; None where some of them see everything.

    Source: transformers 5.23.0; the main layers of DeepSeek V4 have a window, its compressed ones have none.
    """
    if layer not in ("sliding_attention", "main"):
        return find_window(fields) if layer == "" else None
    size = raw_window(fields)
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def has_windowed_bases(fields: Fields) -> bool:
    """Return whether a base is given for every layer, and is 0 for every layer without a window (Muse, Granite)."""
    if fields.architecture.layers.rotating != "layer_rope_theta":
        return False
    turns, types = find_rotating_layers(fields), resolve_layer_types(fields)
    if turns is None or types is None or len(turns) != len(types) or not any(turns):
        return False
    return all(kind == "sliding_attention" for kind, turned in zip(types, turns, strict=True) if turned)


def read_old_layer_types(fields: Fields) -> list[str] | None:
    """Return the layer types that a config lists under an older key, under today's names.

    Source: transformers 5.23.0, executed. Raises `ValueError` for a ratio that DeepSeek V4 does not have, and for an
    unknown letter of a pattern.
    """
    config = fields.config
    ratios = config.get("compress_ratios")
    if fields.kind == "deepseek_v4" and ratios is not None:
        layers = read_numbers(ratios, "compress_ratios")[: fields.size("num_hidden_layers")]
        unknown = next((one for one in layers if one not in COMPRESSED_LAYERS), None)
        if unknown is not None:
            raise ValueError(TEXTS("layers.ratios", unknown=unknown))
        return [COMPRESSED_LAYERS[int(one)] for one in layers]
    given = config.get("layers_block_type")
    if isinstance(given, (list, tuple)):
        return [RENAMED_LAYERS.get(str(name), str(name)) for name in given]
    letters = config.get("hybrid_override_pattern")
    if isinstance(letters, str) and letters:
        foreign = next((letter for letter in letters if letter not in LETTERS), None)
        if foreign is not None:
            raise ValueError(TEXTS("layers.letters", letters=" ".join(LETTERS), foreign=short_repr(foreign)))
        return [LETTERS[letter] for letter in letters[:MAX_LAYERS]]
    windowed = config.get("hybrid_layer_pattern")
    if windowed is not None:
        return [WINDOWED[bool(flag)] for flag in read_numbers(windowed, "hybrid_layer_pattern")]
    flags = config.get("attn_type_list")
    if flags is not None:
        return ["full_attention" if flag else "linear_attention" for flag in read_numbers(flags, "attn_type_list")]
    return None


def read_attention_layers(fields: Fields, count: int) -> set[int]:
    """Return which of `count` layers have attention, the others being recurrent; empty where a config does not say."""
    for key in ("full_attn_idxs", "attn_layer_indices"):
        if fields.config.get(key):
            return {int(index) for index in read_numbers(fields.config[key], key)}
    # Kimi counts its layers from 1.
    listed = (fields.mapping("linear_attn_config") or {}).get("full_attn_layers")
    if listed:
        return {int(one) - 1 for one in read_numbers(listed, "full_attn_layers")}
    period = fields.size("attn_layer_period")
    if period is None:
        return set()
    # Zamba counts from its fourth layer, and the third has attention, too.
    first = 3 if fields.kind == "zamba" else 0
    offset = fields.size("attn_layer_offset", least=0) or 0
    found = {index for index in range(first, count) if (index - first) % period == offset}
    return found | ({first - 1} if first else set())


def read_numbers(given: object, key: str) -> Sequence[float]:
    """Return a list of numbers. Raises `ValueError` naming the key where it is something else."""
    if not isinstance(given, (list, tuple)):
        raise ValueError(TEXTS("value.list", name=key, got=short_repr(given)))
    label = TEXTS("value.entries", name=key)
    for value in given:
        require_number(int(value) if isinstance(value, bool) else value, label)
    return given


def describe_rotating_layers(fields: Fields) -> str:
    """Return a sentence that says which layers rotate; empty where all do."""
    rotating = fields.architecture.layers.rotating
    which = TEXTS.group("rotating.which").get("sliding" if only_sliding_rotate(fields) else rotating, "")
    turns = find_rotating_layers(fields)
    if rotating == "linear_rope" and turns is None:
        return ""
    if not which or (turns is not None and all(turns)):
        return ""
    if turns is None:
        return TEXTS("rotating.some", which=which)
    return TEXTS("rotating.count", rotating=sum(turns), layers=len(turns), which=which)


def describe_rotated_shares(fields: Fields) -> str:
    """Return a sentence on how much of a head rotates by layer type, for Gemma 4 and its like; empty for others."""
    if not fields.architecture.rope.global_heads:
        return ""
    return TEXTS("rotating.shares")
