"""Records of model types: everything that is known about how the code of one model type reads its config.

There is one JSON file per model type in `architectures/`; CONTRIBUTING.md has the recipe for a new one.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rope_viz.embedding.spec import Pairing

FOLDER = Path(__file__).with_name("architectures")


@dataclass(frozen=True)
class TextPart:
    """Where a composite config keeps its language model.

    `path` leads to it, `type` is its model type where the part names none (`fixed_type`: whatever it names). `fills`
    are values that the wrapper's class adds to a missing part, with `merges` to an existing one too. `hoisted` are keys
    that the wrapper takes from its own level where there is no part. `other_names` are older keys for the part,
    `between` is the type of a wrapper in between that names none. `rotates`: the model rotates something of its own
    next to the language model. `needs_type`: the class raises where the part names no type. `checks_late`: a scaling of
    its own level is checked after all keys of that level are set.
    """

    path: tuple[str, ...]
    type: str
    fixed_type: bool = False
    fills: Mapping[str, Any] = field(default_factory=dict)
    merges: bool = False
    hoisted: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    between: str = ""
    rotates: bool = False
    needs_type: bool = False
    checks_late: bool = False


UNSCALED_RULES = frozenset(("fixed_base", "written_base", "qwen1", "telechat"))
"""Rules of `rope_parameters.RULES` for classes that read no scaling: GPT-J, CodeGen, Baichuan, Qwen 1, TeleChat."""


@dataclass(frozen=True)
class RopeReading:
    """How a class brings its RoPE keys together.

    `rule` names a function of `rope_parameters.RULES`; the other fields are what these functions and the general rule
    need. `layer_types` are those with an embedding of their own. `bases` has key and default of the base by layer type.
    `nested` tells when parameters must be nested by layer type, `layer_sizes` names a function of
    `config_reader.LAYER_SIZES`. `learned` is the end of the name of a tensor whose exponential multiplies the
    frequencies.
    """

    rule: str = ""
    layer_types: tuple[str, ...] = ()
    bases: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    scales_both: bool = False
    base_key: str = ""
    rotary_pct: float | None = None
    nested: Literal["", "always", "with_rope_scaling"] = ""
    refuses_flat_scaling: bool = False
    late_partial: bool = False
    layer_sizes: Literal["", "global_heads", "linear_heads", "sliding_heads"] = ""
    plain_partial_default: float = 1.0
    alpha_is_ntk: bool = False
    short_mscale_is_attention: bool = False
    takes_null_base: bool = False
    empty_base: float | None = None
    learned: str = ""

    @property
    def global_heads(self) -> bool:
        """Whether full-attention layers have heads of another size."""
        return self.layer_sizes == "global_heads"

    @property
    def reads_scaling(self) -> bool:
        """Whether the class computes its frequencies from any key that scales them; else they are in its code.

        Of such a class no config.json can be scaled, for any runtime. llama.cpp's flags still change what it computes.
        """
        return self.rule not in UNSCALED_RULES


@dataclass(frozen=True)
class LayerPattern:
    """Layers of two types in turn: every n-th is `nth`, the others are `usual`; the config may say n under `key`.

    `from_end`: counted backward from the last layer, which is `nth`.
    """

    every: int
    usual: str
    nth: str
    key: str = ""
    from_end: bool = False


@dataclass(frozen=True)
class LayerRules:
    """Which layers of a class rotate and which see only a window.

    `pattern` is what the class fills in where the config lists no layers; `cache_pattern` the same where every layer
    rotates alike. `rotating` says what decides: a key with a list ("no_rope_layers", "layer_rope_theta",
    "attn_type_list"), or the kind of layer ("sliding", "sliding_if_window", "attention"; "linear_rope": as that, where
    the key of this name is false). `nth_without_rope`: where the
    list is missing, the `nth` layers of `pattern` do not rotate. `all_windowed`: every layer has the window if there is
    one. `window` and `chunk` are class defaults in tokens.
    """

    pattern: LayerPattern | None = None
    cache_pattern: LayerPattern | None = None
    rotating: str = ""
    nth_without_rope: bool = False
    all_windowed: bool = False
    window: int | None = None
    chunk: int | None = None


WHOLE = tuple(
    """
    head_dim? hidden_size intermediate_size max_position_embeddings num_attention_heads num_hidden_layers
    num_key_value_heads? vocab_size
    """.split()
)


@dataclass(frozen=True)
class Validation:
    """What the configuration class of transformers refuses.

    `whole` are keys that must be whole numbers, with a question mark where null is taken and a plus sign where a list
    of them is; `also_whole` are those that were read by hand or that only the model refuses. `also_layers` are entries
    of layer_types that the class takes in addition to the usual ones. `flags` must be true or
    false; a null under one of `not_null` raises. The rest are checks of single classes, named after what they ask for.
    """

    whole: tuple[str, ...] = WHOLE
    also_whole: tuple[str, ...] = ()
    also_layers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    heads_divide_width: bool = False
    window_needs_layer_types: bool = False
    every_nth_key: str = ""
    lists_no_rope_layers: bool = False
    even_rotary_dim: bool = False
    default_type_only: bool = False
    phi3_longrope: bool = False
    needs_mscales: bool = False
    old_rope_types: tuple[str, ...] = ()
    null_head_dim: bool = False
    derives_head_dim: bool = False


@dataclass(frozen=True)
class MemoryFacts:
    """What the size of cache and weights depends on in addition to the usual keys.

    `cache` is "none" for a model that keeps none, "unknown" where heads and windows do not decide it. `cache_cycle`
    are the layer types that the class repeats where the config lists none (`last_is_full`: but for the last layer),
    `window` is its default window. `shared_experts` and `first_dense` are class defaults, too.
    """

    cache: Literal["", "none", "unknown"] = ""
    needs_layer_types: bool = False
    two_matrix_mlp: bool = False
    ties_embeddings: bool = False
    gated_attention: bool = False
    indexer: bool = False
    window_switch: bool = False
    mamba_beside_attention: bool = False
    shared_expert: bool = False
    multi_query: bool = False
    conv_layers: bool = False
    square_state: bool = False
    halves_intermediate: bool = False
    shared_experts: int = 0
    first_dense: int = 0
    cache_cycle: tuple[str, ...] = ()
    last_is_full: bool = False
    window: int | None = None


@dataclass(frozen=True)
class Axes:
    """How a class gives the rotated pairs of its language model to several position axes (M-RoPE).

    `pattern` names the order of the pairs, `sections` are the pairs of each axis where the config names none, `names`
    the axes. `release_names` are other names of the model in lower case without punctuation. `runtimes` are those that
    compute the model with all its axes. `like` is the type of its language model where it has no record.

    `prompt` has the traits of positions along prompts, () where these are not known:
    "side", "largest": after an image, text continues in transformers 5 after its longer side or its largest position.
    "stamped": every frame of a video is an image after a time stamp. "seconds": its time is counted in seconds.
    "merged time": some frames are merged into one. "gap": there are tokens between frames. "still": it takes no video.
    "audio": it takes audio. "from zero": rows and columns of an image begin at 0. "own": a numbering in code.
    """

    pattern: Literal["sections", "interleaved", "h w then t", "t behind h w", "even and odd", "doubled", "scheduled"]
    sections: tuple[int, ...] = ()
    names: tuple[str, ...] = ("t", "h", "w")
    release_names: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    like: str = ""


@dataclass(frozen=True)
class QueryTemperature:
    """How a class multiplies each query by a factor that depends on its position p.

    `formula` is "steps", 1 + strength·ln(1 + ⌊(p + first) / length⌋); "log", ln(p + first) / ln(length) beyond the
    length, else 1; "power", (1 + (p + first) / length)^strength; or "learned", values in the weights. `strength`,
    `length` and `switch` are keys, with class defaults. `layers` are those that have it.
    """

    formula: Literal["steps", "log", "power", "learned"]
    first: int = 0
    strength: str = ""
    length: str = ""
    switch: str = ""
    default_strength: float | None = None
    default_length: int | None = None
    layers: Literal["all", "unrotated"] = "all"


@dataclass(frozen=True)
class RotatedVectors:
    """Which vectors of an attention layer a class rotates in addition to q and k, and which channels of their heads.

    `part` are the channels of q and k that rotate where not all do; latent attention always has them last. `backward`:
    q and k rotate by the opposite angle, which changes no score.
    `one_key_value`: the rotated key is the value, too. `value_switch`: the key of a config that makes values rotate.
    `turns_back`: the output of attention is rotated back by its query's position. `blocks` are {kind of layer: tokens}
    of layers with one more key for so many tokens, at the position of the first. `index` are the channels that rotate
    of the indexer's q and k, "" where that is not known, `index_pairing` their pairing where it is not that of q.
    `index_block_key`: the key with the number of tokens for which the indexer has one key.
    """

    part: Literal["first", "last"] = "first"
    backward: bool = False
    one_key_value: bool = False
    value_switch: str = ""
    turns_back: bool = False
    blocks: Mapping[str, int] = field(default_factory=dict)
    index: Literal["", "first", "last"] = ""
    index_pairing: Pairing | Literal[""] = ""
    index_block_key: str = ""

    def rotates_value(self, config: Mapping[str, Any]) -> bool:
        """Return whether values rotate in the model of this config."""
        return self.one_key_value or bool(self.value_switch and config.get(self.value_switch))


@dataclass(frozen=True)
class Architecture:
    """One model type as its code was read or executed.

    `defaults` are class defaults by the usual keys, `aliases` maps a config's own key to the usual one. `head_size`
    names the keys whose value, sum or quotient is the size of the rotated head; `head_dim_wins`: a head_dim in the file
    overrides it. `partial_rotary`: plain RoPE honours partial_rotary_factor. `not_text`: the model has several position
    axes and no language model. `runtimes` has, by runtime, the file that reads the type and what that file does
    otherwise; `executed` {runtime and version: {golden: rope types that were run}}. `axes` is None for a model with one
    position axis, `query_temperature` is None where no factor multiplies the queries, `vectors` where nothing but q and
    k rotates, as far as is known. `since` is the first of the known transformers releases that has the type. `twin` is
    a type that servers read by the same file, `by_class` {class in `architectures`: the type whose code it is}.
    `other_code`: another published code of the same type computes otherwise, as the texts say.
    `documented_lengths` has {limit: (trained length, source)} where the maker says that limits leave room beyond it.
    `listed` is False for a type without a record.
    """

    model_type: str
    source: str = ""
    text: TextPart | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    head_size: str = "head_dim"
    head_dim_wins: bool = False
    pads_odd_head: bool = False
    partial_rotary: bool = False
    partial_rotary_fixed: bool = False
    pairing: Pairing = "half"
    reads_rope_interleave: bool = False
    not_text: bool = False
    remote_code: bool = False
    rope: RopeReading = RopeReading()
    layers: LayerRules = LayerRules()
    validation: Validation = Validation()
    memory: MemoryFacts = MemoryFacts()
    axes: Axes | None = None
    query_temperature: QueryTemperature | None = None
    vectors: RotatedVectors | None = None
    since: str = ""
    twin: str = ""
    by_class: Mapping[str, str] = field(default_factory=dict)
    other_code: bool = False
    documented_lengths: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    runtimes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    executed: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    listed: bool = True

    def config_keys(self) -> frozenset[str]:
        """Return the keys of a config that the fields of this record name."""
        validation, rope, temperature = self.validation, self.rope, self.query_temperature
        whole = (*validation.whole, *validation.also_whole)
        found = {*self.defaults, *self.aliases, *self.aliases.values(), *re.findall(r"[a-z]\w*", self.head_size)}
        found.update(word.rstrip("?+") for word in whole)
        found.update(validation.flags, validation.not_null, (validation.every_nth_key,))
        found.update((rope.base_key, *rope.base_key.split(".")), rope.layer_types, rope.bases)
        found.update(key for key, _ in rope.bases.values())
        found.update(pattern.key for pattern in (self.layers.pattern, self.layers.cache_pattern) if pattern)
        if self.text is not None:
            found.update(self.text.path, self.text.other_names, self.text.hoisted, self.text.fills)
        if temperature is not None:
            found.update((temperature.strength, temperature.length, temperature.switch))
        if self.vectors is not None:
            found.update((self.vectors.value_switch, self.vectors.index_block_key))
        return frozenset(found - {""})

    def runtime(self, name: str) -> Mapping[str, Any]:
        """Return what a runtime, "vllm" or "vllm 0.8.5", does with this type; empty where nothing is known."""
        return self.runtimes.get(name, {})


@functools.cache
def listed_types() -> frozenset[str]:
    """Return the model types that have a record."""
    return frozenset(path.stem for path in FOLDER.glob("*.json"))


@functools.lru_cache(1024)
def find_architecture(model_type: str) -> Architecture | None:
    """Return the record of a model type, None where there is none."""
    if model_type not in listed_types():
        return None
    return parse_record(model_type, json.loads((FOLDER / f"{model_type}.json").read_text(encoding="utf-8")))


def parse_record(model_type: str, record: Mapping[str, Any]) -> Architecture:
    """Return the record of a model type from its JSON. Raises `TypeError` for a key that no record has."""
    parts = {
        "text": TextPart,
        "rope": RopeReading,
        "layers": LayerRules,
        "validation": Validation,
        "memory": MemoryFacts,
        "axes": Axes,
        "query_temperature": QueryTemperature,
        "vectors": RotatedVectors,
    }
    values = {key: parts[key](**freeze_lists(value)) if key in parts else value for key, value in record.items()}
    return Architecture(model_type=model_type, **values)


def freeze_lists(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a record with tuples in place of lists and its layer patterns parsed."""
    found: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    for key in ("pattern", "cache_pattern"):
        if isinstance(record.get(key), Mapping):
            found[key] = LayerPattern(**record[key])
    return found


@functools.cache
def all_architectures() -> Mapping[str, Architecture]:
    """Return {model type: record} of all of them."""
    return {name: record for name in sorted(listed_types()) if (record := find_architecture(name)) is not None}
