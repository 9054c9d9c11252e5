"""Another embedding in a reader's own config: the keys that say it change where they are read, all others stay.

Today's form is `rope_parameters`, as transformers 5.23.0 reads it; the form before is `rope_theta` and `rope_scaling`.
What each architecture reads, and which key wins, is in `folding` and `models`; this module writes for them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.scaling import LongRope, Proportional
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import Fields, Params
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import (
    ORIGINAL,
    PRETRAINED_TYPES,
    build_specs,
    find_main_layer,
    rope_type,
    share_for,
    to_config,
)
from rope_viz.models.rope_parameters import Layers, rope_layers
from rope_viz.models.text_config import Part, Path

Config: TypeAlias = dict[str, Any]

# What stands in a rope dict for its method; every other key there belongs to the model and stays.
METHOD_KEYS = frozenset(
    (
        *("rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", ORIGINAL, "max_position_embeddings"),
        *("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate", "alpha"),
        *("short_factor", "long_factor", "short_mscale", "long_mscale", "low_freq_factor", "high_freq_factor"),
        *("attn_factor", "extrapolation_factor", "finetuned"),
    )
)
# Where an override is laid over what stands there, old values of these would still be read, in DeepSeek's kind for any
# type; each with what says the same as its absence. The mscales are no null: vLLM's DeepSeek takes float() of them.
STILL_READ: Config = {
    **{"mscale": 1.0, "mscale_all_dim": 0.0, "attention_factor": None},
    **{"short_mscale": None, "long_mscale": None},
}
# Methods for which transformers multiplies head_dim, which some classes leave null.
MULTIPLIED = ("dynamic", "yarn", "longrope")


@dataclass(frozen=True)
class Change:
    """What to write into one config. `keys` are those of the language model's part; None takes a key out."""

    config: Mapping[str, Any]
    part: Part
    keys: Config

    @property
    def whole(self) -> Config:
        """The config with the change in it."""
        changed = copy.deepcopy(dict(self.config))
        place = changed
        for key in self.part.path:
            place[key] = dict(place.get(key) or {})
            place = place[key]
        for key, value in self.written.items():
            if value is None:
                place.pop(key, None)
            else:
                place[key] = value
        return changed

    @property
    def fragment(self) -> Config:
        """The changed keys where they stand in the file; null for a key that has to go.

        Laid over the file, a rope dict is merged into the one of its name, which may not be the one that was read.
        """
        there = self.part.config if self.part.stands else {}
        keys = {key: value for key, value in self.written.items() if self.differs(key)}
        for key in ("rope_parameters", "rope_scaling"):
            if isinstance(keys.get(key), Mapping) and isinstance(there.get(key), Mapping):
                same = {"type"} - keys[key].keys() if there[key].get("type") == keys[key].get("rope_type") else set()
                keys[key] = {name: value for name, value in over(keys[key], there[key]).items() if name not in same}
        return under(self.part.path, keys)

    @property
    def override(self) -> Config:
        """The changed keys where a runtime lays them over the config that transformers has loaded.

        By then old keys are folded into `rope_parameters`, so nothing has to go. Dicts are merged on the way: what
        would be left of the old method and still be read is set to what says nothing.
        """
        keys = {key: value for key, value in self.keys.items() if value is not None}
        rope = keys.get("rope_parameters") or keys.pop("rope_scaling", None)
        if rope is not None:
            # A class that takes rope_scaling from its own level keeps it as rope_parameters, too.
            keys["rope_parameters"] = over(rope, loaded_rope(self.part))
        return under(self.part.loaded, keys)

    @property
    def merged(self) -> Config:
        """The config with the override laid over it, as a runtime that merges dicts gets it."""
        whole = self.whole
        place = whole
        for key in self.part.path:
            place = place[key]
        for key in ("rope_parameters", "rope_scaling"):
            if isinstance(place.get(key), dict):
                place[key] = laid(over(place[key], loaded_rope(self.part)), loaded_rope(self.part))
        return whole

    @property
    def written(self) -> Config:
        """The keys to write, with all that a part needs which does not stand in the file yet."""
        if self.part.stands:
            return self.keys
        own = {"model_type": self.part.kind} if self.part.kind else {}
        return {**own, **copy.deepcopy(dict(self.part.config)), **self.keys}

    def differs(self, key: str) -> bool:
        """Whether the key has to be written: it is new, another, or has to go and is there."""
        value = self.written[key]
        there = self.part.stands and self.part.config.get(key) is not None
        return there if value is None else True


def with_embedding(config: Mapping[str, Any], spec: RopeSpec, layer: str = "") -> Config:
    """The reader's own config with this embedding for one layer type, in the form of transformers 5.

    `layer` is the layer type, "" where all layers share one embedding; the others keep theirs. Sizes change with the
    spec where a key says them. What no key of this architecture can say stays as it is: read the result back with
    `from_config` to see. Raises `ValueError` where transformers has no such method, or the config cannot be read.
    """
    return rewritten(config, spec, layer).whole


def rewritten(config: Mapping[str, Any], spec: RopeSpec, layer: str | None = None) -> Change:
    """The change that says this embedding in today's form."""
    now = Current.of(config, layer)
    params = now.parameters(spec, now.layer)
    if "" in now.layers:
        rope: Config = {**now.extras(""), **params}
    else:
        rope = {**now.beside_layers(), **now.other_layers(), now.layer: {**now.extras(now.layer), **params}}
    keys: Config = {now.name("max_position_embeddings"): length_of(spec), **now.sizes(spec)}
    if "rope_scaling" in now.raw:
        keys["rope_scaling"] = None
    keys |= now.top_level(spec)
    # Fuyu takes the old key only from its own level.
    only_old = bool(now.part.taken) and "rope_parameters" not in now.part.taken
    keys["rope_scaling" if only_old else "rope_parameters"] = rope
    return Change(config, now.part, keys)


def rewritten_old(
    config: Mapping[str, Any], spec: RopeSpec, layer: str | None = None, *, both_types: bool = False
) -> Change:
    """The change that says this embedding in the form before transformers 5.

    `both_types` writes the type under both its names, as mlx-lm's model files differ in which they read.
    """
    now = Current.of(config, layer)
    # The one rope_scaling belongs to the full layers where layer types differ.
    shared = now.layer if now.layer in ("", "full_attention", "main") else find_main_layer(now.layers)
    full = spec if shared == now.layer else now.specs[shared]
    params = {**now.extras(shared), **now.parameters(full, shared)}
    keys: Config = {now.name("max_position_embeddings"): length_of(spec), **now.sizes(spec)}
    keys["rope_theta"] = params.pop("rope_theta")
    for other, (name, _) in now.fields.architecture.rope.bases.items():
        if name and other in now.layers:
            keys[name] = spec.base if other == now.layer else now.layers[other]["rope_theta"]
    share = params.pop("partial_rotary_factor", None)
    if share is not None:
        keys["partial_rotary_factor"] = share
    elif "partial_rotary_factor" in now.raw:
        keys["partial_rotary_factor"] = None
    if isinstance(full.scaling, LongRope):
        keys[ORIGINAL] = params[ORIGINAL]
        if now.fields.architecture.runtime("transformers 4").get("phi3_three_keys"):
            # The class takes exactly these keys before transformers 5.
            params = {"type": "longrope", **{key: params[key] for key in ("short_factor", "long_factor")}}
    elif ORIGINAL in now.raw:
        keys[ORIGINAL] = params.get(ORIGINAL)
    if both_types:
        params["type"] = params.get("rope_type", params.get("type"))
    plain = params.get("rope_type") == "default" and not now.extras(shared)
    keys["rope_scaling"] = None if plain else params
    if "rope_parameters" in now.raw:
        keys["rope_parameters"] = None
    return Change(config, now.part, keys)


@dataclass(frozen=True)
class Current:
    """What a config says now: the part that is changed, its fields, rope dicts and embeddings by layer type.

    `raw` is the part as it stands in the file, {} where it does not. `layer` is the layer type that is changed.
    """

    part: Part
    fields: Fields
    layers: Layers
    specs: Mapping[str, RopeSpec]
    raw: Mapping[str, Any]
    layer: str

    @classmethod
    def of(cls, config: Mapping[str, Any], layer: str | None) -> Current:
        """Raises `ValueError` where the config cannot be read or has no such layers."""
        part, fields = ModelConfig.read(config).part, ModelConfig.read(config).fields
        layers = rope_layers(fields)
        specs = build_specs(fields, layers)
        chosen = find_main_layer(specs) if not layer or "" in specs else layer
        if chosen not in specs:
            raise ValueError(f"layer_type must be one of {', '.join(specs)}, got {chosen!r}")
        raw = {key: value for key, value in part.config.items() if part.stands}
        return cls(part, fields, layers, specs, raw, chosen)

    def name(self, key: str) -> str:
        """The name under which this config has a size."""
        others = (other for other, usual in self.fields.architecture.aliases.items() if usual == key)
        return next((other for other in others if self.raw.get(key) is None and other in self.raw), key)

    def rope_dicts(self) -> list[Mapping[str, Any]]:
        """The rope dicts of the file, the winning one last."""
        found = (self.raw.get(key) for key in ("rope_parameters", "rope_scaling"))
        return [part for part in found if isinstance(part, Mapping)]

    def extras(self, layer: str) -> Config:
        """The keys of a layer's rope dict that belong to the model and not to the method."""
        given = self.rope_dicts() if layer == "" else []
        found = {key: value for part in (*given, self.layers[layer]) for key, value in part.items()}
        return copy.deepcopy({key: value for key, value in found.items() if key not in METHOD_KEYS})

    def beside_layers(self) -> Config:
        """What stands in a rope dict beside its layer types, and layer types that have no rotary embedding."""
        defaults = self.fields.default("rope_parameters") or {}
        found = {key: value for key, value in defaults.items() if value is None}
        for part in self.rope_dicts():
            if any(isinstance(value, Mapping) for value in part.values()):
                found |= copy.deepcopy(dict(part))
        return found

    def other_layers(self) -> Config:
        """The rope dicts of the layer types that stay, such that a longer model changes nothing in them."""
        found: Config = {}
        for layer, params in self.layers.items():
            kept = copy.deepcopy(params)
            kind = rope_type(self.fields, params)
            kept.setdefault("rope_type", kind)
            kept.pop("type", None)
            if kind in PRETRAINED_TYPES:
                kept.setdefault(ORIGINAL, self.specs[layer].context)
            if kind in ("yarn", "longrope") and kept.get("factor") is None:
                # Left out, it is the ratio of the lengths.
                kept["factor"] = self.specs[layer].target / self.specs[layer].context
            found[layer] = kept
        return found

    def parameters(self, spec: RopeSpec, layer: str) -> Params:
        """The method's keys, with the rotated share wherever something else would be filled in for it."""
        params: Params = dict(to_config(spec)["rope_parameters"])
        params.pop("max_position_embeddings", None)
        if isinstance(spec.scaling, LongRope) and spec.scaling.attention is not None:
            # What vLLM and SGLang read in place of attention_factor.
            params |= {"short_mscale": spec.scaling.attention, "long_mscale": spec.scaling.attention}
        if not isinstance(spec.scaling, Proportional):
            share = self.share(spec, layer)
            params = {key: value for key, value in params.items() if key != "partial_rotary_factor"}
            params |= {} if share is None else {"partial_rotary_factor": share}
        return params

    def share(self, spec: RopeSpec, layer: str) -> float | None:
        """partial_rotary_factor; None where the whole head rotates and nothing says otherwise."""
        given = self.layers[layer].get("partial_rotary_factor")
        head_dim = self.head_dim if self.odd(spec) else spec.head_dim
        if isinstance(given, (int, float)) and int(head_dim * given) == spec.rotary_dim:
            return float(given)
        if spec.rotary_dim != head_dim:
            return share_for(spec.rotary_dim, head_dim)
        others = (
            self.fields.default("partial_rotary_factor"),
            *map(self.raw.get, ("partial_rotary_factor", "rotary_pct")),
        )
        return 1.0 if any(value is not None for value in (given, *others)) else None

    @property
    def head_dim(self) -> int:
        """The size of a head of the layers that are changed, as the class derives it."""
        return (self.fields.layer(self.layer) if self.layer else self.fields).head_dim()

    def odd(self, spec: RopeSpec) -> bool:
        """Whether this is a class default with an odd head, which is rotated with one more dimension than there is."""
        return self.fields.architecture.pads_odd_head and spec.head_dim == self.head_dim + 1

    def sizes(self, spec: RopeSpec) -> Config:
        """The keys that say head size, rotated dimensions and pairing, where these are to be others."""
        keys: Config = {}
        before = self.specs[self.layer]
        if spec.head_dim != before.head_dim or spec.rotary_dim != before.rotary_dim:
            keys |= self.head_keys(spec)
        if (
            self.fields.architecture.validation.null_head_dim
            and self.fields.raw("head_dim") is None
            and spec.scaling.name in MULTIPLIED
        ):
            keys[self.name("head_dim")] = spec.head_dim
        if spec.pairing != before.pairing and self.fields.architecture.reads_rope_interleave:
            keys["rope_interleave"] = spec.pairing == "interleaved"
        return keys

    def head_keys(self, spec: RopeSpec) -> Config:
        """The keys that say another head."""
        config, architecture = self.fields.config, self.fields.architecture
        rule = architecture.head_size
        if architecture.rope.global_heads and self.layer == "full_attention" and "per_layer_config" not in config:
            return {"global_head_dim": spec.head_dim}
        if rule == "qk_nope_head_dim+qk_rope_head_dim":
            return {"qk_rope_head_dim": spec.rotary_dim, "qk_nope_head_dim": spec.head_dim - spec.rotary_dim}
        keys: Config = {}
        if spec.head_dim != self.head_dim and not self.odd(spec):
            own = rule == "head_dim" or (architecture.head_dim_wins and config.get("head_dim") is not None)
            if own:
                keys[self.name("head_dim")] = spec.head_dim
            if rule == "qk_rope_head_dim":
                keys[self.name(rule)] = spec.head_dim
            elif "hidden_size" in rule and not own:
                heads = self.fields.required("num_attention_heads")
                keys[self.name("hidden_size")] = spec.head_dim * heads // (2 if rule.startswith("2") else 1)
        if self.raw.get("rotary_dim") is not None or (
            architecture.rope.rule == "fixed_base" and "rotary_dim" in architecture.defaults
        ):
            keys["rotary_dim"] = spec.rotary_dim
        return keys

    def top_level(self, spec: RopeSpec) -> Config:
        """Old keys beside the rope dict that would win over it, or contradict it."""
        keys: Config = {}
        flat = self.layer == ""
        held = self.raw.get(ORIGINAL) is not None or self.fields.default(ORIGINAL) is not None
        if flat and held and spec.scaling.name in PRETRAINED_TYPES:
            keys[ORIGINAL] = spec.context
        base = self.raw.get("rope_theta")
        belongs = flat or self.layer in ("full_attention", "main")
        if self.fields.architecture.rope.rule == "theta_only" or (
            isinstance(base, (int, float)) and belongs and base != spec.base
        ):
            keys["rope_theta"] = spec.base
        share, wanted = self.raw.get("partial_rotary_factor"), self.share(spec, self.layer)
        if share is not None and flat and wanted is not None and share != wanted:
            keys["partial_rotary_factor"] = wanted
        if self.fields.architecture.rope.rule == "chatglm":
            keys["rope_ratio"] = spec.base / 10_000.0
        return keys


def length_of(spec: RopeSpec) -> int:
    """max_position_embeddings of a config that says this embedding."""
    return int(to_config(spec)["max_position_embeddings"])


def loaded_rope(part: Part) -> Mapping[str, Any]:
    """The rope dict that the loaded config holds: the winning one of the file."""
    found = part.config.get("rope_scaling") or part.config.get("rope_parameters")
    return found if isinstance(found, Mapping) else {}


def over(rope: Mapping[str, Any], old: Mapping[str, Any]) -> Config:
    """A rope dict to lay over another one, so that nothing of the old method is read."""
    merged: Config = {}
    for key, value in rope.items():
        before = old.get(key)
        merged[key] = (
            over(value, before if isinstance(before, Mapping) else old) if isinstance(value, Mapping) else value
        )
    kind = rope.get("rope_type")
    if kind is not None:
        merged |= {key: value for key, value in STILL_READ.items() if old.get(key) is not None and key not in rope}
        if "type" in old:
            merged["type"] = kind
    return merged


def laid(new: Mapping[str, Any], old: Mapping[str, Any]) -> Config:
    """One dict laid over another, and so the dicts in them."""
    merged = copy.deepcopy(dict(old))
    for key, value in new.items():
        before = merged.get(key)
        merged[key] = laid(value, before) if isinstance(value, Mapping) and isinstance(before, Mapping) else value
    return merged


def under(path: Path, keys: Config) -> Config:
    """The keys inside objects of these names."""
    for key in reversed(path):
        keys = {key: keys}
    return keys
