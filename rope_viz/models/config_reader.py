"""Read the keys of a language model's config with the defaults of its class behind them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, require_number, shorten
from rope_viz.models.architecture import Architecture

Params: TypeAlias = dict[str, Any]

# Names of layer types in older files: {older name: today's}.
RENAMED_LAYERS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


@dataclass(frozen=True)
class Fields:
    """The keys of one language model. Every method raises `ValueError` naming the key that cannot be read.

    `own_keys` are unusual keys by which a type without a record says its sizes. `wrapper` is the type of the outermost
    wrapper without a record, None where every level has one.
    """

    config: Mapping[str, Any]
    architecture: Architecture
    own_keys: tuple[str, ...] = ()
    wrapper: str | None = None

    @property
    def kind(self) -> str:
        """The model type."""
        return self.architecture.model_type

    @property
    def is_listed(self) -> bool:
        """Whether the model type has a record; the others are read by general rules."""
        return self.architecture.listed

    def with_values(self, *, general_rules: bool = False, **values: Any) -> Fields:
        """Return a copy with these values in the config; with `general_rules`, as of a type without a record."""
        architecture = dataclasses.replace(self.architecture, listed=False) if general_rules else self.architecture
        return dataclasses.replace(self, config={**self.config, **values}, architecture=architecture)

    def raw(self, key: str) -> Any:
        """Return the value under this key or an alias of it, None where there is none."""
        names = [key, *(other for other, usual in self.architecture.aliases.items() if usual == key)]
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def default(self, key: str) -> Any:
        """Return the class default under this key, None where there is none."""
        return self.architecture.defaults.get(key)

    def number(self, key: str, **bounds: Any) -> float | None:
        """Return the number under this key, or the class default, or None."""
        value = self.raw(key)
        value = self.default(key) if value is None else value
        if value is not None:
            require_number(value, key, **bounds)
        return None if value is None else float(value)

    def size(self, key: str) -> int | None:
        """Return a whole number of at least 1 under this key, or the class default, or None."""
        value = self.number(key, least=1, most=MAX_LENGTH, integer=True)
        return None if value is None else int(value)

    def required(self, key: str) -> int:
        """Return a whole number as `size` does, and raise `ValueError` where there is none."""
        value = self.size(key)
        if value is None:
            raise ValueError(f"{key} is missing: expected a whole number")
        return value

    def mapping(self, key: str) -> Params | None:
        """Return a copy of the object under this key, None where it is absent or empty."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{key} must be an object, got {shorten(value)}")
        return (
            {name: dict(part) if isinstance(part, Mapping) else part for name, part in value.items()} if value else None
        )

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
        return self.raw("kv_lora_rank") is not None or self.architecture.head_size == "qk_rope_head_dim"

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
            raise ValueError(f"layer_types must be a list of names, got {shorten(value)}")
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
    """Return the head size of a layer type where full-attention layers have one of their own (Gemma 4)."""
    return {"head_dim": fields.config.get("global_head_dim", 512)} if layer == "full_attention" else {}


def sliding_head_sizes(fields: Fields, layer: str) -> Params:
    """Return the head sizes of a layer type where sliding layers have their own (dots.3)."""
    if layer != "sliding_attention":
        return {}
    head, plain = fields.config.get("swa_head_dim", 256), fields.config.get("swa_qk_nope_head_dim", 192)
    require_number(head, "swa_head_dim", least=1, most=MAX_HEAD_DIM)
    require_number(plain, "swa_qk_nope_head_dim", least=0, most=MAX_HEAD_DIM)
    return {"head_dim": head, "qk_rope_head_dim": fields.config.get("swa_qk_rope_head_dim", head - plain)}


LAYER_SIZES = {"global_heads": global_head_sizes, "sliding_heads": sliding_head_sizes}


def read_model_type(config: Mapping[str, Any]) -> str:
    """Return the model type that a config names, empty where it names none."""
    value = config.get("model_type")
    if value is not None and not isinstance(value, str):
        raise ValueError(f"model_type must be a name, got {shorten(value)}")
    return value or ""


def name_config(config: Mapping[str, Any]) -> str:
    """Return what to call a config: its path's last two words, else its type; only what a name consists of."""
    for key, words in (("_name_or_path", 2), ("model_type", 1)):
        value = config.get(key)
        if isinstance(value, str):
            parts = [part for part in re.split(r"[/\\]", value[:200]) if part not in ("", ".", "..")]
            name = re.sub(r"[^\w /.+-]", "", "/".join(parts[-words:])).strip(" /")[:48]
            if name:
                return name
    return "Your config"
