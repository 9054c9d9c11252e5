"""Read the keys of a config under any of their names, with the defaults of its class."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard, overload

import numpy as np

from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, FloatArray, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Architecture, find_architecture
from rope_viz.texts.texts import join_items

Params: TypeAlias = dict[str, Any]

# Names under which classes and config files keep the same value.
HEAD_SIZE = ("head_dim", "attention_head_dim", "head_size", "dim_head")
WIDTH = ("hidden_size", "embed_dim", "inner_dim", "dim", "model_dim", "hidden_dim")
HEADS = ("num_attention_heads", "num_heads", "n_heads")
BASE = ("rope_theta", "theta", "base", "freq_base", "temperature", "max_period", "rope_base")
MAX_SIDE = 1 << 20
# Keys that give the rotated pairs of a language model to several position axes.
SECTION_KEYS = ("mrope_section", "xdrope_section", "mrope_interleaved")

# Names of layer types in older files: {older name: today's}.
RENAMED_LAYERS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


UNLISTED = "unlisted"
"""The model type in a config that is shown to others, in place of one that no list has. Nothing is called by it."""


class ConfigReader:
    """Read the keys of a config. Every method raises `ValueError` naming the key that cannot be read.

    A value may have several names. The first name that the config holds counts, then the class defaults likewise.
    """

    config: Mapping[str, Any]

    def __init__(self, config: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        if not isinstance(config, Mapping):
            raise ValueError(TEXTS("value.config", config=short_repr(config)))
        self.config, self._defaults = config, defaults or {}

    def defaults(self) -> Mapping[str, Any]:
        return self._defaults

    def spellings(self, names: Sequence[str]) -> Sequence[str]:
        """Return every key under which the config may hold a value of these names."""
        return names

    def raw(self, *names: str) -> Any:
        """Return the config's own value under these names, None where it has none."""
        return next((self.config[name] for name in self.spellings(names) if self.config.get(name) is not None), None)

    def default(self, *names: str) -> Any:
        """Return the class default under these names, None where there is none."""
        defaults = self.defaults()
        return next((defaults[name] for name in names if defaults.get(name) is not None), None)

    def value(self, *names: str) -> Any:
        """Return the value under these names, else the class default, else None."""
        value = self.raw(*names)
        return self.default(*names) if value is None else value

    def name(self, *names: str) -> str:
        """Return the name that the config uses, for an error message."""
        if len(names) == 1:
            return names[0]
        return next((name for name in names if self.config.get(name) is not None), names[0])

    @overload
    def number(self, *names: str, default: float, **bounds: Any) -> float: ...
    @overload
    def number(self, *names: str, default: None = None, **bounds: Any) -> float | None: ...
    def number(self, *names: str, default: float | None = None, **bounds: Any) -> float | None:
        """Return the number under these names, else the class default, else `default`."""
        value = self.value(*names)
        value = default if value is None else value
        if value is not None:
            require_number(value, self.name(*names), **bounds)
        return None if value is None else float(value)

    @overload
    def size(self, *names: str, default: int, least: int = 1, most: int = MAX_LENGTH) -> int: ...
    @overload
    def size(self, *names: str, default: None = None, least: int = 1, most: int = MAX_LENGTH) -> int | None: ...
    def size(self, *names: str, default: int | None = None, least: int = 1, most: int = MAX_LENGTH) -> int | None:
        """Return the whole number under these names, else the class default, else `default`."""
        value = self.number(*names, default=default, least=least, most=most, integer=True)
        return None if value is None else int(value)

    def required(self, *names: str, least: int = 1, most: int = MAX_LENGTH) -> int:
        """Return a whole number as `size` does. Raises `ValueError` where there is none."""
        value = self.size(*names, least=least, most=most)
        if value is None:
            raise ValueError(TEXTS("value.missing", name=names[0]))
        return value

    def numbers(
        self, *names: str, default: Sequence[float] | None = None, count: int | None = None, **bounds: Any
    ) -> list[float]:
        """Return a list of numbers. A single number is repeated `count` times."""
        value = self.value(*names)
        value = default if value is None else value
        label: str = TEXTS("value.entries", name=self.name(*names))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and count:
            value, label = [value] * count, self.name(*names)
        if not isinstance(value, (list, tuple)):
            raise ValueError(TEXTS("value.list", name=self.name(*names), got=short_repr(value)))
        if count is not None and len(value) != count:
            raise ValueError(
                TEXTS("config_reader.numbers", name=self.name(*names), expected=count, got=short_repr(list(value)))
            )
        for part in value:
            require_number(part, label, **bounds)
        return [float(part) for part in value]

    def sizes(
        self, *names: str, default: Sequence[int] | None = None, count: int | None = None, least: int = 1
    ) -> list[int]:
        """Return a list of whole numbers of at least `least`."""
        values = self.numbers(*names, default=default, count=count, least=least, most=MAX_SIDE, integer=True)
        return [int(value) for value in values]

    def array(self, *names: str) -> FloatArray:
        value = self.value(*names)
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(TEXTS("config_reader.rows", name=self.name(*names), got=short_repr(value))) from None
        if not np.all(np.isfinite(array)):
            raise ValueError(TEXTS("config_reader.finite", name=self.name(*names)))
        return array

    def mapping(self, *names: str) -> Params | None:
        """Return a copy of the object under these names, None where it is absent or empty."""
        value = self.raw(*names)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(TEXTS("value.object", name=self.name(*names), got=short_repr(value)))
        return (
            {name: dict(part) if isinstance(part, Mapping) else part for name, part in value.items()} if value else None
        )

    def part(self, *names: str) -> ConfigReader:
        return ConfigReader(self.mapping(*names) or {})

    def flag(self, *names: str, default: bool = False) -> bool:
        value = self.value(*names)
        if value is not None and not isinstance(value, bool):
            raise ValueError(TEXTS("value.boolean", name=self.name(*names), got=short_repr(value)))
        return default if value is None else value

    def choice(self, *names: str, options: Sequence[str], default: str = "") -> str:
        """Return one of the options; the first where the config names none and there is no `default`."""
        value = self.value(*names)
        if value is not None and value not in options:
            raise ValueError(
                TEXTS("value.one_of", name=self.name(*names), options=join_items([*options]), got=short_repr(value))
            )
        return value if value is not None else default or options[0]

    def head_size(self, default: int | None = None, *, width: str = "", derived: bool = False) -> int:
        """Return the size of a head: under its own name, else the width over the number of heads.

        `width` is the key of the width where a class has several. `derived`: the class ignores a head size where it
        knows a width.
        """
        names = (width,) if width and self.value(width) is not None else WIDTH
        has_width = self.value(*names) is not None and self.value(*HEADS) is not None
        if self.value(*HEAD_SIZE) is not None and not (derived and has_width):
            return self.required(*HEAD_SIZE, least=2, most=MAX_HEAD_DIM)
        if has_width:
            size = self.required(*names) // self.required(*HEADS)
            require_number(size, TEXTS("name.head_size"), least=2, most=MAX_HEAD_DIM)
            return size
        if default is None:
            raise ValueError(TEXTS("config_reader.head_dim"))
        return default

    def base(self, default: float) -> float:
        """Return the base of the frequencies, from the RoPE parameters or the config itself."""
        inner = self.part("rope_parameters", "rope_scaling")
        source = inner if inner.value("rope_theta") is not None else self
        return source.number(*BASE, default=default, above=1.0, most=1e30)


@dataclass(frozen=True)
class Fields(ConfigReader):
    """The keys of one language model, with the aliases and the defaults of its architecture record.

    `own_keys` are unusual keys by which a type without a record says its sizes. `wrapper` is the type of the outermost
    wrapper without a record, None where every level has one. `wrappers` are the types of all wrappers, the outermost
    first.
    """

    config: Mapping[str, Any]
    architecture: Architecture
    own_keys: tuple[str, ...] = ()
    wrapper: str | None = None
    wrappers: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.architecture.model_type

    @property
    def is_listed(self) -> bool:
        """Whether the model type has a record; the others are read by general rules."""
        return self.architecture.listed

    def with_values(self, *, general_rules: bool = False, **values: Any) -> Fields:
        """Return a copy with these values in the config; with `general_rules`, as of a type without a record."""
        architecture = dataclasses.replace(self.architecture, listed=False) if general_rules else self.architecture
        return dataclasses.replace(self, config={**self.config, **values}, architecture=architecture)

    def defaults(self) -> Mapping[str, Any]:
        return self.architecture.defaults

    def spellings(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names with the aliases of the architecture."""
        aliases = self.architecture.aliases
        return [*names, *(other for other, usual in aliases.items() if usual in names)] if aliases else names

    def theta(self, key: str = "rope_theta", default: float | None = None) -> float:
        """Return the base under this key, or the default, or the class default."""
        value = self.config.get(key)
        if value is None:
            value = self.architecture.defaults.get("rope_theta", 10_000.0) if default is None else default
        require_number(value, key)
        return float(value)

    @property
    def has_latent_attention(self) -> bool:
        """Whether keys are compressed and only a part of each head rotates, as in DeepSeek's attention."""
        return self.raw("kv_lora_rank") is not None or self.architecture.head_size.endswith("qk_rope_head_dim")

    def head_dim(self) -> int:
        """Return the size of the part of a head that carries RoPE, as the class derives it."""
        rule, given = self.architecture.head_size, self.config.get("head_dim")
        found = None
        if rule == "head_dim":
            null = "head_dim" in self.config and self.config["head_dim"] is None
            found = None if null else self.size("head_dim")
        elif self.architecture.head_dim_wins and given is not None:
            require_number(given, "head_dim", least=1, most=MAX_LENGTH, integer=True)
            found = int(given)
        elif "hidden_size" not in rule:
            found = sum(self.required(key) for key in rule.split("+"))
        if found is None:
            doubled = 2 if rule == "2*hidden_size" else 1
            found = doubled * self.required("hidden_size") // self.required("num_attention_heads")
        require_number(found, "head_dim", least=2, most=MAX_HEAD_DIM)
        return found

    def layer_types(self) -> list[str] | None:
        """Return the layer types that the config lists, under today's names and in order; None where it lists none."""
        value = self.config.get("layer_types")
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise ValueError(TEXTS("config_reader.layer_types", got=short_repr(value)))
        return [RENAMED_LAYERS.get(str(name), str(name)) for name in value]

    def layer(self, layer: str) -> Fields:
        """Return the fields with what the config overrides for the layers of this type."""
        sizes = self.architecture.rope.layer_sizes
        if sizes and "per_layer_config" not in self.config:
            changed = LAYER_SIZES[sizes](self, layer)
        else:
            types, overrides = self.layer_types(), self.mapping("per_layer_config") or {}
            by_index = {int(key): value for key, value in overrides.items() if key.isdigit() and len(key) < 6}
            named = by_index if types is None else {i: v for i, v in by_index.items() if types[i : i + 1] == [layer]}
            changed = next((dict(value) for value in named.values() if isinstance(value, Mapping)), {})
            if types is None and layer != "full_attention":
                changed = {}
        return self.with_values(**changed)


def global_head_sizes(fields: Fields, layer: str) -> Params:
    """Return the sizes of a layer type where full-attention layers have heads of their own (Gemma 4)."""
    if layer != "full_attention":
        return {}
    found: Params = {"head_dim": fields.config.get("global_head_dim", 512)}
    heads = fields.config.get("num_global_key_value_heads")
    if heads is not None and fields.config.get("attention_k_eq_v", True):
        found["num_key_value_heads"] = heads
    return found


def sliding_head_sizes(fields: Fields, layer: str) -> Params:
    """Return the head sizes of a layer type where sliding layers have their own (dots.3)."""
    if layer != "sliding_attention":
        return {}
    head, plain = fields.config.get("swa_head_dim", 256), fields.config.get("swa_qk_nope_head_dim", 192)
    require_number(head, "swa_head_dim", least=1, most=MAX_HEAD_DIM)
    require_number(plain, "swa_qk_nope_head_dim", least=0, most=MAX_HEAD_DIM)
    return {"head_dim": head, "qk_rope_head_dim": fields.config.get("swa_qk_rope_head_dim", head - plain)}


def linear_head_sizes(fields: Fields, layer: str) -> Params:
    """Return size and pairing of the rotated head where layers of linear attention have plain heads (Ling 2.6)."""
    if layer != "linear_attention":
        return {}
    return {"qk_rope_head_dim": fields.required("head_dim"), "rope_interleave": False}


LAYER_SIZES = {
    "global_heads": global_head_sizes,
    "linear_heads": linear_head_sizes,
    "sliding_heads": sliding_head_sizes,
}


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number, and not true or false."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_model_type(config: Mapping[str, Any]) -> str:
    """Return the model type that a config names, empty where it names none."""
    value = config.get("model_type")
    if value is not None and not isinstance(value, str):
        raise ValueError(f"model_type must be a name, got {short_repr(value)}")
    return value or ""


def is_pipeline_part(config: Mapping[str, Any]) -> bool:
    """Return whether a config is of a part of a diffusion pipeline, known or not: it names its class."""
    return isinstance(config.get("_class_name"), str)


def has_one_axis(config: Mapping[str, Any]) -> bool:
    """Return whether this is a language model with one position axis by its record, and the config names no sections.

    False where it is not known without reading the parts of the config.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or "_class_name" in config or "vision_config" in config:
        return False
    record = find_architecture(kind)
    records = (record, find_architecture(kind.removesuffix("_text")))
    if record is None or record.text or record.not_text or any(found and found.axes for found in records):
        return False
    places = (config, config.get("rope_parameters"), config.get("rope_scaling"))
    keys = [str(key) for place in places if isinstance(place, Mapping) for key in place]
    return not any("section" in key or "mrope" in key for key in keys)


def name_config(config: Mapping[str, Any]) -> str:
    """Return what to call a config: its path's last two words, else its type; only what a name consists of."""
    for key, words in (("_name_or_path", 2), ("model_type", 1)):
        value = config.get(key)
        if isinstance(value, str) and value != UNLISTED:
            parts = [part for part in re.split(r"[/\\]", value[:200]) if part not in ("", ".", "..")]
            name = re.sub(r"[^\w /.+-]", "", "/".join(parts[-words:])).strip(" /")[:48]
            if name:
                return name
    return TEXTS("config_reader.your_config")
