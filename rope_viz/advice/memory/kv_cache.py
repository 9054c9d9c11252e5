"""The size of the KV cache by length, layer by layer.

Per token a layer with full attention keeps a key and a value for each of its KV heads, 2 · heads · head_dim numbers.
A layer with a window or chunks keeps as many tokens as its window. Multi-head latent attention (DeepSeek) keeps one
latent vector and one rotated key. A recurrence or a convolution keeps a state of one size at every length.
Sources: the cache classes of transformers 5.23.0, run (tests/goldens/memory.json; a window w keeps w - 1 tokens there);
the bytes per token of DeepSeek-V3, Qwen2.5 72B and Llama 3.1 405B in https://arxiv.org/abs/2505.09343, table 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rope_viz.advice.memory import TEXTS
from rope_viz.embedding.spec import MAX_LENGTH, require_number, short_repr
from rope_viz.models.architecture import Architecture
from rope_viz.models.config_reader import Fields
from rope_viz.models.formats.json_source import refuse_unread, source_file
from rope_viz.models.layer_patterns import LISTS, MAX_LAYERS, repeat_pattern, resolve_layer_types
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.parameter_formulas import (
    Sizes,
    cache_layouts,
    class_aliases,
    class_defaults,
    default_layer_types,
    default_list,
    list_default_sizes,
)
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items

# {usual key: other names under which published configs keep the size; "object.key" inside an object}.
NAMES = read_own(__file__, "names.json")
OTHER_NAMES: Mapping[str, Sequence[str]] = NAMES["sizes"]

# Expert counts are read in place, because a class may give two of these keys a meaning of their own.
COPIED = tuple(name for name in OTHER_NAMES if name != "num_experts")


def read_memory_fields(model: ModelConfig) -> Fields:
    """Return the fields of the language model under the usual keys, whether or not its RoPE can be computed."""
    fields = read_given_fields(model)
    return fields.with_values(**find_class_defaults(fields))


def read_given_fields(model: ModelConfig) -> Fields:
    """Return the fields that a config gives, under the usual keys."""
    try:
        fields = model.fields
    except ValueError:
        part = model.part
        record = part.architecture or Architecture(model_type=part.kind, listed=False)
        fields = Fields(part.config, record, wrapper=part.unlisted)
    return fields.with_values(**copy_usual_keys(fields.config))


def count_listed_layers(config: Mapping[str, Any]) -> dict[str, int]:
    """Return {"num_hidden_layers": count} where a config lists its layers but does not count them, else {}."""
    lists = (config.get(key) for key in ("layer_types", "layers_block_type", "hybrid_override_pattern"))
    listed = next((one for one in lists if one), None)
    names = ("num_hidden_layers", *OTHER_NAMES["num_hidden_layers"])
    known = any(config.get(name) is not None for name in names)
    return {"num_hidden_layers": len(listed)} if isinstance(listed, (list, tuple, str)) and not known else {}


MAIN_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


def list_assumed_sizes(model: ModelConfig) -> list[str]:
    """Return the main sizes that a config leaves out and that its class of transformers has a default for."""
    fields = read_given_fields(model)
    defaults = class_defaults(fields.kind)
    found = [name for name in MAIN_SIZES if find_spellings(fields, name) & defaults.keys()]
    found = [name for name in found if not is_given(fields, name) and name not in count_listed_layers(fields.config)]
    return [*found, *(["layer_types"] if find_fixed_layers(fields) else [])]


def list_other_assumed_sizes(model: ModelConfig) -> list[str]:
    """Return the further sizes of the formulas that a config leaves out and that its class has a default for."""
    fields = read_given_fields(model)
    names = (name for name in list_default_sizes(fields.kind) if "." not in name)
    main = {spelling for name in MAIN_SIZES for spelling in find_spellings(fields, name)}
    return [name for name in names if name not in main and not find_spellings(fields, name) & fields.config.keys()]


def find_spellings(fields: Fields, name: str) -> set[str]:
    """Return every name of a size."""
    pairs = (pair for pair in class_aliases(fields.kind).items() if name in pair)
    usual = (key for key, others in OTHER_NAMES.items() if name in others)
    return {name, *OTHER_NAMES.get(name, ()), *usual, *(other for pair in pairs for other in pair)}


def is_given(fields: Fields, name: str) -> bool:
    """Return whether a config gives a size under any of its names."""
    return any(fields.config.get(other) is not None for other in find_spellings(fields, name))


def find_class_defaults(fields: Fields) -> dict[str, Any]:
    """Return the class defaults of the keys that a config leaves out under all their names."""
    config, aliases = fields.config, {**class_aliases(fields.kind), **fields.architecture.aliases}
    given = {usual for other, usual in aliases.items() if config.get(other) is not None}
    given |= {usual for usual, others in OTHER_NAMES.items() if any(config.get(other) is not None for other in others)}
    found = {key: value for key, value in class_defaults(fields.kind).items() if "." not in key}
    found = {key: value for key, value in found.items() if key not in config and key not in given}
    for other, own in class_aliases(fields.kind).items():
        pairs = ((other, own), (own, other))
        values = {**found, **{key: value for key, value in config.items() if value is not None}}
        found.update({new: values[old] for new, old in pairs if old in values and new not in values})
    # The usual names of keys that the class calls otherwise.
    for usual, others in OTHER_NAMES.items():
        if config.get(usual) is None and usual not in found and usual not in given:
            value = next((found[name] for name in others if name in found), None)
            found.update({} if value is None else {usual: value})
    return found | count_listed_layers(config) | find_fixed_layers(fields)


def find_fixed_layers(fields: Fields) -> dict[str, Any]:
    """Return {"layer_types": list, "num_hidden_layers": count} of a class that counts a list of its own, else {}.

    Such a class has the same layers whatever number of layers a file gives.
    """
    types = default_list(fields.kind, MAX_LAYERS, "layer_types", "layers_block_type")
    fixed = types is not None and len(types) < MAX_LAYERS and "num_hidden_layers" not in class_defaults(fields.kind)
    if not fixed or types is None or any(fields.config.get(key) for key in LISTS):
        return {}
    return {"layer_types": types, "num_hidden_layers": len(types)}


def read_inside(config: Mapping[str, Any], name: str) -> Any:
    """Return the value under a key, or under "object.key" where an object of the config has it."""
    outer, _, key = name.rpartition(".")
    place = config.get(outer) if outer else config
    return place.get(key) if isinstance(place, Mapping) else None


def copy_usual_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a config keeps under other names, by their usual keys."""
    found = {}
    for usual in COPIED:
        if config.get(usual) is None:
            value = next((one for name in OTHER_NAMES[usual] if (one := read_inside(config, name)) is not None), None)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found[usual] = value
    return found


# {name of a cache's type: bytes per number}. q8_0 and q4_0 are llama.cpp's: blocks of 32 numbers with one half.
DTYPES = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0, "fp8": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
GPU = 80e9
"""Bytes of an 80 GB GPU."""
USED = 0.9
"""The share of a GPU that vLLM takes by default (--gpu-memory-utilization)."""

ATTENTION = ("full_attention", "sliding_attention", "chunked_attention", "indexed_attention")


@dataclass(frozen=True)
class Group:
    """Layers that keep the same: how many, of what kind, bytes per token, tokens at most, bytes whatever the length.

    A layer that compresses adds `entry` bytes for each `every` tokens; those that are fewer wait, in `waiting` bytes.
    """

    kind: str
    layers: int
    per_token: float
    window: int | None = None
    state: float = 0.0
    every: int = 1
    entry: float = 0.0
    waiting: float = 0.0

    def bytes(self, length: int, kept: int | None = None) -> float:
        """Return the bytes of all its layers for one sequence of this length, `kept` tokens of it uncompressed."""
        if kept is None:
            kept = length if self.window is None else min(length, self.window)
        entries, waits = divmod(length, self.every)
        state = self.state if entries else 0.0
        return self.layers * (self.per_token * kept + state + self.entry * entries + self.waiting * waits)

    @property
    def per_new_token(self) -> float:
        """Bytes that one more token adds in each layer, beyond its window."""
        return (self.per_token if self.window is None else 0.0) + self.entry / self.every


@dataclass(frozen=True)
class Cache:
    """The cache of one model per sequence, group by group, with `notes` on what was assumed."""

    groups: tuple[Group, ...]
    dtype: str
    notes: tuple[str, ...] = ()

    def bytes(self, length: int, sequences: int = 1) -> float:
        """Return the bytes for so many sequences of this length."""
        return sequences * sum(group.bytes(length) for group in self.groups)

    @property
    def per_token(self) -> float:
        """Bytes that one more token takes, once every window is full."""
        return sum(group.layers * group.per_new_token for group in self.groups)

    def peak(self, length: int, sequences: int = 1) -> float:
        """Return the most bytes on the way to this length: an entry takes less than the tokens that waited for it."""
        ends = {length, *(length - length % group.every - 1 for group in self.groups)}
        return max(self.bytes(end, sequences) for end in ends if end >= 0)

    def longest(self, room: float, sequences: int = 1) -> int | None:
        """Return the longest length that a cache can grow to in so many bytes; 0 if it fits none, None if all."""
        longest = bisect_right(range(1, MAX_LENGTH + 1), room, key=lambda length: self.peak(length, sequences))
        return None if longest == MAX_LENGTH else longest


def cache(config: Source, *, dtype: str = "bfloat16") -> Cache:
    """Return what the model of a config.json keeps for every token.

    `dtype` is one of `DTYPES`. Raises `ValueError` where the config does not say enough, with the key that is missing.
    """
    if dtype not in DTYPES:
        raise ValueError(TEXTS("reason.dtype", types=join_items([*DTYPES]), dtype=short_repr(dtype)))
    model = ModelConfig.read(config)
    refuse_unread(model.mapping, "attention")
    fields = read_memory_fields(model)
    facts = fields.architecture.memory
    if has_no_cache(fields):
        raise ValueError(TEXTS("reason.encoder", kind=fields.kind))
    if facts.cache == "unknown" and fields.kind not in cache_layouts():
        raise ValueError(TEXTS("reason.layout", kind=fields.kind))
    notes = []
    size = DTYPES[dtype]
    groups = make_block_groups(fields, size) if fields.config.get("block_configs") else None
    if groups is None:
        kinds = find_layer_kinds(fields)
        # A GGUF file says what each layer keeps.
        numbers = source_file(model.mapping).get("kept", [])
        each = zip(kinds, [*numbers, *[None] * (len(kinds) - len(numbers))], strict=False)
        groups = [make_group(fields, kind, layers, size, kept) for (kind, kept), layers in Counter(each).items()]
    if facts.indexer or (fields.config.get("index_head_dim") is not None and fields.size("kv_lora_rank")):
        notes.append(describe_indexer(fields, size, any(one.kind == "indexed_attention" for one in groups)))
    if any(one.state and one.every == 1 for one in groups):
        notes.append(TEXTS("note.recurrent"))
    return Cache(tuple(groups), dtype, tuple(notes))


def describe_indexer(fields: Fields, size: float, is_counted: bool) -> str:
    """Return a sentence on the keys of a sparse attention's indexer; in fp8 each has a scale of 4 bytes."""
    numbers = count_index_numbers(fields)
    if not is_counted:
        return TEXTS("note.indexer", size=numbers + 4)
    return TEXTS("note.indexer_counted", size=numbers * size, fp8=numbers + 4)


# Types of encoders; where a config names one, its attention reads the whole text at once.
ENCODERS = tuple(
    """
    bert roberta xlm-roberta xlm-roberta-xl camembert electra distilbert albert deberta deberta-v2 mpnet ernie
    funnel longformer big_bird nomic_bert modernbert eurobert esm new gte neobert jina_embeddings_v3 nystromformer
    convbert roformer mobilebert layoutlm
    """.split()
)


def has_no_cache(fields: Fields) -> bool:
    """Return whether the model reads a whole text at once: an encoder, or a decoder without its causal mask."""
    if fields.architecture.memory.cache == "none" or fields.config.get("use_bidirectional_attention") is True:
        return True
    return fields.kind.replace("jina_", "") in ENCODERS and fields.config.get("is_decoder") is not True


def make_block_groups(fields: Fields, size: float) -> list[Group]:
    """Return the layers of a model that lists each block's attention (block_configs of Nemotron NAS)."""
    heads, head_dim = fields.required("num_attention_heads"), fields.head_dim()
    found: Counter[tuple[int, int | None]] = Counter()
    blocks = fields.config["block_configs"]
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(block, Mapping) for block in blocks):
        raise ValueError(TEXTS("reason.block_configs"))
    for block in blocks:
        attention = block.get("attention")
        attention = attention if isinstance(attention, Mapping) else {}
        if attention.get("no_op") or attention.get("replace_with_linear"):
            continue
        shared, window = attention.get("n_heads_in_group"), attention.get("window_length")
        if shared is None:
            kept = attention.get("num_key_value_heads") or count_kv_heads(fields)
        else:
            require_number(shared, "n_heads_in_group", least=1, most=heads, integer=True)
            kept = heads // int(shared)
        require_number(kept, "num_key_value_heads", least=1, most=MAX_LENGTH, integer=True)
        if window is not None:
            require_number(window, "window_length", least=1, most=MAX_LENGTH, integer=True)
        found[int(kept), None if window is None else int(window)] += 1
    kinds = {True: "full_attention", False: "sliding_attention"}
    return [
        Group(kinds[window is None], layers, 2.0 * kept * head_dim * size, window)
        for (kept, window), layers in found.items()
    ]


def find_layer_kinds(fields: Fields) -> list[str]:
    """Return the kind of each layer: full_attention, sliding_attention, chunked_attention, or its recurrence."""
    layout = cache_layouts().get(fields.kind, {})
    if "layers" in layout:
        count = Sizes(fields.config, fields.kind).evaluate(layout["layers"])
    elif class_aliases(fields.kind).get("num_hidden_layers") == "encoder_layers":
        count = fields.required("decoder_layers")
    else:
        count = fields.required("num_hidden_layers")
    if count > MAX_LAYERS:
        raise ValueError(TEXTS("reason.layers", count=count))
    kinds = resolve_layer_types(fields) or find_unlisted_kinds(fields, count)
    if find_layer_window(fields) is None:
        kinds = ["full_attention" if kind == "sliding_attention" else kind for kind in kinds]
    recurrent = "mamba" if fields.config.get("mamba_n_heads") else ""
    recurrent = "conv" if fields.architecture.memory.conv_layers else recurrent
    if fields.kind not in cache_layouts():
        kinds = [recurrent or kind if kind == "linear_attention" else kind for kind in kinds]
    kinds = kinds[:count]
    # Cross-attention layers keep keys of an image, and none of the text.
    crossing = fields.config.get("cross_attention_layers") or ()
    share = fields.size("cla_share_factor") if fields.config.get("use_cla") is True else None
    shared = [index for index in range(len(kinds)) if share and index % share]
    for index in (*crossing, *shared):
        if isinstance(index, int) and 0 <= index < len(kinds):
            kinds[index] = "cross_attention" if index in crossing else "shared_attention"
    own = count - (fields.size("num_kv_shared_layers", least=0) or 0)
    kinds = [kind if index < own else "shared_attention" for index, kind in enumerate(kinds)]
    # An indexer that takes the choice of the layer before it keeps no keys of its own.
    modes = fields.config.get("indexer_types") or default_list(fields.kind, count, "indexer_types") or ()
    for index, mode in enumerate(modes[: len(kinds)]):
        if mode == "shared" and kinds[index] == "indexed_attention":
            kinds[index] = "full_attention"
    sparse = read_sparse_layers(fields)
    return ["indexed_attention" if flag else kind for kind, flag in zip(kinds, sparse, strict=False)] + kinds[
        len(sparse) :
    ]


def read_sparse_layers(fields: Fields) -> list[bool]:
    """Return which layers keep an index key for every token (MiniMax-M3); [] where the config lists none."""
    given = fields.config.get("sparse_attention_config")
    listed = given.get("sparse_attention_freq") if isinstance(given, Mapping) else None
    return [bool(flag) for flag in listed] if isinstance(listed, (list, tuple)) else []


def count_index_numbers(fields: Fields) -> int:
    """Return how many numbers an index key has."""
    given = fields.config.get("sparse_attention_config")
    value = given.get("sparse_index_dim") if isinstance(given, Mapping) else None
    value = fields.config.get("index_head_dim", 128) if value is None else value
    require_number(value, "sparse_index_dim", least=1, most=MAX_LENGTH, integer=True)
    return int(value)


def find_unlisted_kinds(fields: Fields, count: int) -> list[str]:
    """Return the kind of each layer where neither the config nor the class lists layer types."""
    config, layers, facts = fields.config, fields.architecture.layers, fields.architecture.memory
    windowed = find_layer_window(fields) is not None
    pattern = None if layers.cache_pattern is None else repeat_pattern(fields, layers.cache_pattern, count)
    if pattern is not None:
        return pattern
    if facts.cache_cycle:
        cycle = [facts.cache_cycle[index % len(facts.cache_cycle)] for index in range(count)]
        return [*cycle[:-1], "full_attention"] if facts.last_is_full else cycle
    blocks = config.get("block_types") or config.get("_block_types")
    if fields.kind == "recurrent_gemma" and isinstance(blocks or (), (list, tuple)):
        blocks = blocks or ("recurrent", "recurrent", "attention")
        types = {"recurrent": "recurrent_gemma", "attention": "sliding_attention"}
        return [types.get(str(blocks[index % len(blocks)]), "full_attention") for index in range(count)]
    every = fields.size("layer_group_size")
    if every is not None:
        # The last layer of every group has softmax attention (Ring and Ling linear).
        return ["full_attention" if (index + 1) % every == 0 else "linear_attention" for index in range(count)]
    if layers.all_windowed and windowed:
        return ["sliding_attention"] * count
    if config.get("use_sliding_window") and windowed:
        first = min(fields.size("max_window_layers") or 0, count)
        return ["full_attention"] * first + ["sliding_attention"] * (count - first)
    filled = default_layer_types(fields.kind, count)
    if filled is not None:
        return filled
    if facts.needs_layer_types:
        raise ValueError(TEXTS("reason.windows", kind=fields.kind))
    # The caches of transformers and vLLM take a window for any type.
    slides = config.get("sliding_window") and not facts.window_switch
    return ["sliding_attention" if slides else "full_attention"] * count


def find_layer_window(fields: Fields) -> int | None:
    """Return how many tokens a sliding layer looks back; None where it looks at all."""
    if fields.kind == "recurrent_gemma":
        return fields.size("attention_window_size", default=2048)
    if fields.config.get("use_sliding_window") is False:
        return None
    if "sliding_window" not in fields.config:
        return fields.architecture.layers.window or fields.architecture.memory.window
    return fields.size("sliding_window") if fields.config["sliding_window"] else None


def make_group(fields: Fields, kind: str, layers: int, size: float, kept: int | None = None) -> Group:
    """Return the layers of one kind, for numbers of `size` bytes; `kept` are numbers per token where a file says so."""
    layouts = cache_layouts().get(fields.kind, {})
    layout = layouts.get(kind) or layouts.get("*")
    if kept is not None and kind in ATTENTION:
        layout = None
    if layout is not None:
        return make_group_of_formulas(fields, kind, layers, size, layout)
    fields = fields.layer(kind) if fields.architecture.rope.global_heads else fields
    if kind == "recurrent_gemma":
        width = fields.size("lru_width") or fields.required("hidden_size")
        return Group(
            "recurrent", layers, 0.0, None, width * (4.0 + (fields.size("conv1d_width", default=4) - 1) * size)
        )
    if kind in ("moe", "recurrent", "mlp", "cross_attention", "shared_attention"):
        return Group(kind, layers, 0.0)
    if kind in ("linear_attention", "mamba", "conv"):
        return Group(kind, layers, 0.0, None, count_state_bytes(fields, kind, size))

    def token() -> float:
        return count_token_bytes(fields, size) if kept is None else kept * size

    if kind in ("sliding_attention", "chunked_attention"):
        chunk = fields.size("attention_chunk_size") or 8192
        window = find_layer_window(fields) if kind == "sliding_attention" else chunk
        return Group(kind, layers, token(), window)
    if kind not in ATTENTION and not fields.architecture.memory.mamba_beside_attention:
        raise ValueError(TEXTS("reason.kind", kind=short_repr(kind)))
    if kind == "indexed_attention":
        return Group(kind, layers, token() + count_index_numbers(fields) * size)
    both = count_state_bytes(fields, "mamba", size) if fields.architecture.memory.mamba_beside_attention else 0.0
    return Group("full_attention", layers, token(), None, both)


def make_group_of_formulas(fields: Fields, kind: str, layers: int, size: float, layout: Mapping[str, str]) -> Group:
    """Return the layers of one kind whose sizes are formulas of the config."""
    sizes = Sizes(fields.config, fields.kind)
    token, state, exact = (sizes.evaluate(layout.get(key, "0")) for key in ("token", "state", "float"))
    entry, waiting = (sizes.evaluate(layout.get(key, "0")) for key in ("entry", "waiting"))
    every = sizes.evaluate(layout.get("every", "1"))
    require_number(every, "compress_rates", least=1, most=MAX_LENGTH, integer=True)
    window = find_layer_window(fields) if "sliding" in kind or "every" in layout else None
    return Group(kind, layers, token * size, window, state * size + exact * 4.0, every, entry * size, waiting * size)


def count_token_bytes(fields: Fields, size: float) -> float:
    """Return the bytes per token and layer."""
    latent = fields.size("kv_lora_rank")
    if latent is not None:
        return (latent + fields.required("qk_rope_head_dim")) * size
    if fields.architecture.head_size == "qk_rope_head_dim":
        raise ValueError(TEXTS("reason.kv_lora_rank"))
    return 2.0 * count_kv_heads(fields) * fields.head_dim() * size


def count_kv_heads(fields: Fields) -> int:
    """Return how many heads keep keys and values."""
    one = fields.config.get("multi_query", fields.architecture.memory.multi_query)
    if one and not fields.config.get("new_decoder_architecture"):
        return 1
    for key in ("multi_query_group_num", "num_key_value_heads"):
        found = fields.config.get(key)
        if found is not None:
            require_number(found, key, least=1, most=MAX_LENGTH, integer=True)
            return int(found)
    if one:
        return 1
    return fields.required("num_attention_heads")


class Recurrence(NamedTuple):
    """Sizes of a recurrent layer: of all keys, of all values, of one key, its value heads, the convolution's kernel."""

    keys: int
    values: int
    key: int
    heads: int
    kernel: int


def read_linear_attention(fields: Fields) -> Recurrence:
    """Return the sizes of a layer with linear attention."""
    key, heads = fields.size("linear_key_head_dim") or 128, fields.size("linear_num_value_heads") or 32
    keys = (fields.size("linear_num_key_heads") or 16) * key
    values = heads * (fields.size("linear_value_head_dim") or 128)
    return Recurrence(keys, values, key, heads, fields.size("linear_conv_kernel_dim") or 4)


def read_mamba(fields: Fields) -> Recurrence:
    """Return the sizes of a Mamba layer, whose states take the place of keys."""
    heads, key = fields.required("mamba_n_heads"), fields.required("mamba_d_state")
    head = None if fields.config.get("mamba_d_head") == "auto" else fields.size("mamba_d_head")
    # The classes fill in the head size from the width, which is their default.
    width = fields.size("mamba_d_ssm") or (fields.size("mamba_expand") or 2) * fields.required("hidden_size")
    values = width if head is None else heads * head
    keys = (fields.size("mamba_n_groups") or 1) * key
    return Recurrence(keys, values, key, heads, fields.size("mamba_d_conv") or 4)


def count_state_bytes(fields: Fields, kind: str, size: float) -> float:
    """Return the bytes of a recurrent layer's state, for one sequence."""
    if kind == "conv":
        return fields.required("hidden_size") * (fields.size("conv_L_cache") or 3) * size
    if kind != "mamba" and fields.architecture.memory.square_state:
        return fields.required("num_attention_heads") * fields.head_dim() ** 2 * size
    sizes = read_mamba(fields) if kind == "mamba" else read_linear_attention(fields)
    # The recurrence itself is kept in float32: one (key × value) matrix per head.
    return (2 * sizes.keys + sizes.values) * sizes.kernel * size + sizes.values * sizes.key * 4.0


def human(count: float) -> str:
    """Return bytes in units, as 4.5 GB or 147 KB: powers of ten, as GPUs are sold."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return TEXTS("bytes", size=count)
