"""Overrides of a config as each loader merges them into the object that transformers has made of the file.

By then the base, the scaling and the rotated share are in one dict, `rope_parameters`. So a loader may replace that
dict whole and lose the base, or set an attribute that nothing reads any more. tests/goldens/make_overrides.py runs the
merging code of all three.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.models.edit_config import Change
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, find_original_length, read_rope_type

Config = dict[str, Any]

FLAGS = {
    "transformers": "from_pretrained(…, rope_scaling=…)",
    "vllm": "--hf-overrides",
    "sglang": "--json-model-override-args",
}
"""Where each loader takes overrides from."""
NAMES = {"transformers": "transformers 5.23.0", "vllm": "vLLM 0.33.0", "sglang": "SGLang 0.5.23"}
ROPE_DICTS = ("rope_scaling", "rope_parameters")
# Old keys of the base and of the share: after loading, both are in the rope dict.
FOLDED = {
    **dict.fromkeys(("rope_theta", "rotary_emb_base"), "rope_theta"),
    **dict.fromkeys(("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"), "partial_rotary_factor"),
}
# set_default_rope_theta of vLLM's model files; get_rope takes 10,000 for all others.
VLLM_BASES = {
    **dict.fromkeys(("qwen2", "qwen3", "qwen3_dflash", "exaone4", "exaone_moe"), 1_000_000.0),
    **dict.fromkeys(("ernie45_moe", "ernie45_vl_moe"), 500_000.0),
    "falcon_h1": 1e11,
}
GENERAL_BASE = 10_000.0


@dataclass(frozen=True)
class Merged:
    """A config with overrides in it.

    `config` is a config.json that means what the loader then holds. `notes` tell which overrides change nothing, or
    what they lose. `refusal` is why the loader or the model raises; then `config` is the file alone.
    """

    loader: str
    config: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    refusal: str = ""


class Lost(Exception):  # noqa: N818 - an outcome of the loader, not an error of ours
    """The loader or the model raises after the override."""


def merge_overrides(source: Source, overrides: Mapping[str, Any], loader: str) -> Merged:
    """Return the config after a loader has merged overrides into it: transformers, vllm or sglang.

    Raises `ValueError` where RoPE cannot be read from the config, or for a loader that takes no overrides.
    """
    if loader not in FLAGS:
        raise ValueError(f"overrides are for {', '.join(FLAGS)}, not for {short_repr(loader)}")
    model = ModelConfig.read(source)
    if model.problems:
        raise ValueError(model.problems[0])
    merge = Merge(model, loader)
    try:
        for key in order_keys(overrides, loader):
            merge.apply(key, copy.deepcopy(overrides[key]))
        merge.fill_base()
    except Lost as error:
        return Merged(loader, dict(model.mapping), tuple(merge.notes), str(error))
    return Merged(loader, merge.config, tuple(merge.notes))


def order_keys(overrides: Mapping[str, Any], loader: str) -> list[str]:
    """Return the keys in the order in which a loader sets them: vLLM sets objects last."""
    return sorted(overrides, key=lambda key: isinstance(overrides[key], Mapping)) if loader == "vllm" else [*overrides]


def fold_rope(model: ModelConfig) -> Config:
    """Return the rope dict that the loaded config holds."""
    layers = {name: {key: part for key, part in one.items() if part is not None} for name, one in fill(model).items()}
    return layers.get("", {**layers})


def fill(model: ModelConfig) -> dict[str, Config]:
    """Return the RoPE parameters by layer type, with type and original length filled in as the classes do."""
    filled = {}
    for layer, params in model.rope_parameters.items():
        kind = read_rope_type(model.fields, params)
        filled[layer] = {"rope_type": kind, **params}
        if kind in PRETRAINED_TYPES:
            filled[layer][ORIGINAL] = find_original_length(model.fields, layer, params, kind, model.limit)
    return filled


class Merge:
    """A loaded config while overrides are merged into it."""

    def __init__(self, model: ModelConfig, loader: str) -> None:
        self.loader, self.model = loader, model
        self.rope = fold_rope(model)
        self.is_nested = "" not in model.rope_parameters
        part = model.part
        removed = {key: None for key in ("rope_scaling", *FOLDED) if key in part.config}
        self.config: Config = Change(model.mapping, part, {**removed, "rope_parameters": self.rope}).whole
        self.base = model.specs[model.main_layer].base
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        return NAMES[self.loader]

    @property
    def text(self) -> Config:
        place = self.config
        for key in self.model.part.path:
            place = place[key]
        return place

    def apply(self, key: str, value: Any) -> None:
        loaded = self.model.part.loaded
        if not loaded:
            self.set_in_text(key, value)
        elif key != loaded[0]:
            self.set_in_wrapper(key, value)
        elif not isinstance(value, Mapping):
            raise Lost(f"{key} would be {short_repr(value)} and no config any more")
        else:
            self.set_part(loaded, value)

    def set_part(self, loaded: tuple[str, ...], values: Mapping[str, Any]) -> None:
        """Set keys of the language model's part, as the override of its wrapper holds them."""
        key = loaded[0]
        if len(loaded) > 1:
            inner = values.get(loaded[1])
            if inner is None:
                return
            if self.loader != "vllm" or not isinstance(inner, Mapping):
                raise Lost(f"{self.name} replaces {'.'.join(loaded[:2])} as a whole, and it is no config any more")
            self.set_part(loaded[1:], inner)
            return
        if self.loader == "transformers":
            # The class is built again from the keys that it has and the new ones.
            self.text.update(values)
            if any(name in values for name in ROPE_DICTS):
                self.note_lost_keys(values, key)
            return
        for name, value in values.items():
            if name not in ROPE_DICTS or not isinstance(value, Mapping):
                self.set_in_text(name, value)
            elif self.loader == "vllm":
                update_nested(self.rope, value)
            else:
                self.replace_rope(name, value)

    def note_lost_keys(self, values: Mapping[str, Any], key: str) -> None:
        new = values.get("rope_scaling") or values.get("rope_parameters") or {}
        lost = [name for name in self.rope if name not in new and name not in ("rope_type", "type")]
        if lost:
            self.notes.append(
                f"{self.name} replaces the rope dict of {key} as a whole: {', '.join(lost)} of the file no longer "
                "counts. Repeat it in the override"
            )

    def set_in_wrapper(self, key: str, value: Any) -> None:
        """Set a key next to the language model's part, where RoPE does not read it."""
        path = ".".join(self.model.part.loaded)
        if key in (*ROPE_DICTS, *FOLDED, "max_position_embeddings"):
            self.notes.append(
                f"{key} of the override changes nothing: the language model's keys are in {path}. Put it there"
            )
            kind = value.get("rope_type", value.get("type")) if isinstance(value, Mapping) else None
            limit = self.config.get("max_position_embeddings")
            if key == "rope_scaling" and self.loader != "transformers" and kind in PRETRAINED_TYPES and limit is None:
                raise Lost(f"AttributeError: the wrapper has no max_position_embeddings. Put rope_scaling into {path}")
            if key in (*ROPE_DICTS, *FOLDED):
                return
        if self.model.part.path or key not in self.text:
            self.config[key] = value

    def set_in_text(self, key: str, value: Any) -> None:
        if key in FOLDED:
            self.set_folded(key, value)
        elif key not in ROPE_DICTS:
            self.text[key] = value
        elif not isinstance(value, Mapping):
            self.replace_rope(key, {})
        elif self.loader == "sglang":
            self.rope.update(value)
            self.fill_original(key)
        else:
            self.replace_rope(key, value)

    def replace_rope(self, key: str, value: Mapping[str, Any]) -> None:
        """Replace the rope dict. Its setter by the old name fills in an original length, and null for the base."""
        self.rope.clear()
        self.rope.update(copy.deepcopy(dict(value)))
        if key == "rope_scaling" and value and not self.is_nested and self.rope.get("rope_theta") is None:
            lost = f"replaces the rope dict as a whole, so the base {self.base:,.0f} of the file is lost"
            raise Lost(f"{self.name} {lost}: TypeError. Add rope_theta to the override")
        self.fill_original(key)

    def fill_original(self, key: str) -> None:
        """Fill in the original length where the setter of rope_scaling does."""
        kind = self.rope.get("rope_type", self.rope.get("type"))
        if key == "rope_scaling" and kind in PRETRAINED_TYPES and not self.is_nested:
            outer = self.text.get(ORIGINAL)
            if outer is not None:
                self.rope[ORIGINAL] = outer
            self.rope.setdefault(ORIGINAL, self.text.get("max_position_embeddings", self.model.limit))

    def set_folded(self, key: str, value: Any) -> None:
        """Set the base or the share outside the rope dict, where only vLLM still looks for a share."""
        name = FOLDED[key]
        layers = self.layers
        missing = [part for part in layers if part.get(name) is None]
        if self.loader == "vllm" and missing and value is not None:
            for part in missing:
                part[name] = value
            return
        self.notes.append(
            f"{key} of the override changes nothing: {self.name} reads {name} inside rope_parameters. "
            f"Write rope_parameters with the whole rope dict"
        )

    @property
    def layers(self) -> list[Config]:
        """The rope dicts that hold a base: one per layer type, or the only one."""
        return [part for part in self.rope.values() if isinstance(part, dict)] if self.is_nested else [self.rope]

    def require_original(self) -> None:
        """Raise `Lost` where get_rope of vLLM looks for an original length. SGLang takes the limit for it."""
        kinds = [part.get("rope_type", part.get("type")) for part in self.layers if part.get(ORIGINAL) is None]
        if self.loader == "vllm" and any(kind in PRETRAINED_TYPES for kind in kinds):
            raise Lost(f"KeyError: {self.name} looks for {ORIGINAL} in the rope dict. Add it to the override")

    def fill_base(self) -> None:
        """Fill in the base that the runtime takes where the rope dict has none left. Raises `Lost` for an error."""
        missing = [layer for layer in self.model.specs if layer and layer not in self.rope]
        if self.is_nested and missing:
            raise Lost(f"KeyError: the rope dict has no {missing[0]} any more. Write all layer types")
        nested = [key for key, part in self.rope.items() if isinstance(part, dict)]
        if nested and not self.is_nested:
            raise Lost(f"the override nests by {nested[0]}, but all layers of this model share one embedding")
        self.require_original()
        without = [part for part in self.layers if "rope_theta" not in part]
        if not without or (self.loader == "transformers" and self.model.part.loaded):
            return
        if self.loader == "transformers":
            raise Lost(f"{self.name} finds no base: TypeError. Add rope_theta {self.base:,.0f} to the override")
        if self.is_nested:
            raise Lost("a layer type of the override has no rope_theta: what counts then is not known. Add it")
        file = self.model.architecture.runtime("vllm").get("file", "") if self.loader == "vllm" else ""
        base = VLLM_BASES.get(str(file), GENERAL_BASE)
        self.rope["rope_theta"] = base
        if base != self.base:
            self.notes.append(
                f"the override has no rope_theta, so {self.name} takes {base:,.0f} in place of the file's "
                f"{self.base:,.0f}. Add it to the override"
            )


def update_nested(target: dict[str, Any], updates: Mapping[str, Any]) -> None:
    """Merge one dict into another and so the dicts in them, as _update_nested of vLLM does."""
    for key, value in updates.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            update_nested(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
