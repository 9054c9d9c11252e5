"""Write another embedding into a config: the keys that say it change where they are read, all others stay.

There are two forms: `rope_parameters`, as transformers 5.24.0 reads it, and `rope_theta` with `rope_scaling` before it.
`rope_parameters.py` and `rope_config.py` know what each architecture reads and which key wins.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, short_repr
from rope_viz.models.config_reader import Params
from rope_viz.models.length_keys import OVER_ALL, USUAL, find_lower_lengths
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, partial_factor_for, read_rope_type, to_config
from rope_viz.models.text_config import Part, Path

Config: TypeAlias = dict[str, Any]

# Keys of a rope dict that belong to its method; every other key there belongs to the model and stays.
METHOD_KEYS = frozenset(
    (
        ORIGINAL,
        *"""
            rope_type type rope_theta partial_rotary_factor factor max_position_embeddings beta_fast beta_slow
            attention_factor mscale mscale_all_dim truncate alpha short_factor long_factor short_mscale long_mscale
            low_freq_factor high_freq_factor attn_factor extrapolation_factor finetuned
        """.split(),
    )
)
# Where an override is merged into a config, old values of these keys would still be read: each with a value that means
# the same as its absence. The mscales are no null because vLLM's DeepSeek takes float() of them.
STILL_READ: Config = {
    "mscale": 1.0,
    "mscale_all_dim": 0.0,
    "attention_factor": None,
    "short_mscale": None,
    "long_mscale": None,
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
        place |= self.keys_to_write
        for key in [key for key, value in self.keys_to_write.items() if value is None]:
            del place[key]
        return changed

    @property
    def fragment(self) -> Config:
        """The changed keys at their place in the file; null for a key that has to go.

        When a user merges it into the file, a rope dict meets the one of its own name, which may not have been read.
        """
        before = self.part.config if self.part.is_in_file else {}
        keys = {
            key: value for key, value in self.keys_to_write.items() if value is not None or before.get(key) is not None
        }
        for key in ("rope_parameters", "rope_scaling"):
            if isinstance(keys.get(key), Mapping) and isinstance(before.get(key), Mapping):
                same = {"type"} - keys[key].keys() if before[key].get("type") == keys[key].get("rope_type") else set()
                merged = cancel_old_method(keys[key], before[key])
                keys[key] = {name: value for name, value in merged.items() if name not in same}
        return nest(self.part.path, keys)

    @property
    def override(self) -> Config:
        """The changed keys for a runtime that merges them into the config that transformers has loaded.

        By then old keys are folded into `rope_parameters`, so no key has to go.
        """
        keys = {key: value for key, value in self.keys.items() if value is not None}
        rope = keys.get("rope_parameters") or keys.pop("rope_scaling", None)
        if rope is not None:
            # A class that takes rope_scaling from its own level keeps it as rope_parameters, too.
            keys["rope_parameters"] = cancel_old_method(rope, loaded_rope(self.part))
        return nest(self.part.loaded, keys)

    @property
    def merged(self) -> Config:
        old = loaded_rope(self.part)
        ropes = {key: cancel_old_method(value, old) for key, value in self.keys.items() if isinstance(value, Mapping)}
        return replace(self, keys=self.keys | {key: merge_dicts(rope, old) for key, rope in ropes.items()}).whole

    @property
    def keys_to_write(self) -> Config:
        """The keys to write, with everything that a part needs which is not in the file yet."""
        if self.part.is_in_file:
            return self.keys
        own = {"model_type": self.part.kind} if self.part.kind else {}
        return {**own, **copy.deepcopy(dict(self.part.config)), **self.keys}


def write_new_keys(source: Source, spec: RopeSpec, layer: str | None = None) -> Change:
    """Return the change that says this embedding in the form of transformers 5.

    `layer` is the layer type, None for the main one; the others keep theirs. What no key of this architecture can say
    stays as it is: read the result back to see. Raises `ValueError` where transformers has no such method, or where the
    config cannot be read or has no such layers.
    """
    request = Current.from_config(ModelConfig.read(source), layer)
    rope = {**request.model_keys(request.layer), **request.parameters(spec, request.layer)}
    if request.layer:
        rope = {**request.keys_beside_layers(), **request.other_layers(), request.layer: rope}
    keys = request.sizes(spec) | request.without_scaling() | request.top_level(spec)
    # Fuyu takes the old key only from its own level.
    only_old = bool(request.config.part.taken) and "rope_parameters" not in request.config.part.taken
    keys["rope_scaling" if only_old else "rope_parameters"] = rope
    return Change(request.config.mapping, request.config.part, keys)


def write_old_keys(source: Source, spec: RopeSpec, layer: str | None = None, *, both_types: bool = False) -> Change:
    """Return the change that says this embedding in the form before transformers 5.

    `both_types` writes the type under both its names, as mlx-lm's model files differ in which they read. Raises
    `ValueError` as `write_new_keys` does.
    """
    request = Current.from_config(ModelConfig.read(source), layer)
    # The one rope_scaling belongs to the full layers where layer types differ.
    shared = request.layer if request.layer in ("", "full_attention", "main") else request.config.main_layer
    if "compress" in request.config.specs:
        shared = "compress"  # DeepSeek V4 scales these layers alone by it
    full = spec if shared == request.layer else request.config.specs[shared]
    params = {**request.model_keys(shared), **request.parameters(full, shared)}
    keys = request.sizes(spec)
    keys["rope_theta"] = params.pop("rope_theta")
    if shared == "compress":
        keys["compress_rope_theta"] = keys["rope_theta"]
        keys["rope_theta"] = (
            request.config.rope_parameters["main"]["rope_theta"] if request.layer != "main" else spec.base
        )
    for other, (name, _) in request.config.architecture.rope.bases.items():
        if name and other in request.config.rope_parameters:
            keys[name] = spec.base if other == request.layer else request.config.rope_parameters[other]["rope_theta"]
    share = params.pop("partial_rotary_factor", None)
    if "partial_rotary_factor" in request.raw or (share is not None and shared != "compress"):
        keys["partial_rotary_factor"] = share
    if params["rope_type"] == "longrope":
        keys[ORIGINAL] = params[ORIGINAL]
        if request.config.architecture.runtime("transformers 4").get("phi3_three_keys"):
            # The class takes exactly these keys before transformers 5.
            params = {"type": "longrope", **{key: params[key] for key in ("short_factor", "long_factor")}}
    elif ORIGINAL in request.raw:
        keys[ORIGINAL] = params.get(ORIGINAL)
    if both_types:
        params["type"] = params.get("rope_type", params.get("type"))
    plain = params.get("rope_type") == "default" and not request.model_keys(shared)
    keys |= request.without_scaling() if plain else {"rope_scaling": params}
    if "rope_parameters" in request.raw:
        keys["rope_parameters"] = None
    return Change(request.config.mapping, request.config.part, keys)


@dataclass(frozen=True)
class Current:
    """A config before the change: `layer` is the layer type that is changed, `raw` the part as it is in the file."""

    config: ModelConfig
    layer: str
    raw: Mapping[str, Any]

    @classmethod
    def from_config(cls, config: ModelConfig, layer: str | None) -> Current:
        """Return the config with the layer type that is meant. Raises `ValueError` where it has no such layers."""
        specs = config.specs
        found = config.main_layer if not layer or "" in specs else layer
        if found not in specs:
            raise ValueError(f"layer_type must be one of {', '.join(specs)}, got {short_repr(found)}")
        return cls(config, found, dict(config.part.config) if config.part.is_in_file else {})

    def name(self, key: str) -> str:
        others = (other for other, usual in self.config.architecture.aliases.items() if usual == key)
        return next((other for other in others if self.raw.get(key) is None and other in self.raw), key)

    def without_scaling(self) -> Config:
        """Return what takes rope_scaling out. A null stays: classes of mlx-lm have no default for the key."""
        refuses_null = "rope_scaling" in self.config.architecture.validation.not_null
        return {"rope_scaling": None} if refuses_null or self.raw.get("rope_scaling") is not None else {}

    def rope_dicts(self) -> list[Mapping[str, Any]]:
        """Return the rope dicts of the file, the winning one last."""
        found = (self.raw.get(key) for key in ("rope_parameters", "rope_scaling"))
        return [part for part in found if isinstance(part, Mapping)]

    def model_keys(self, layer: str) -> Config:
        """Return the keys of a layer's rope dict that belong to the model and not to the method."""
        dicts = [*([] if layer else self.rope_dicts()), self.config.rope_parameters[layer]]
        return copy.deepcopy({key: one[key] for one in dicts for key in one if key not in METHOD_KEYS})

    def keys_beside_layers(self) -> Config:
        """Return what a rope dict has in addition to its layer types, and layer types that have no rotary embedding."""
        defaults = self.config.fields.default("rope_parameters") or {}
        found = {key: value for key, value in defaults.items() if value is None}
        for part in self.rope_dicts():
            if any(isinstance(value, Mapping) for value in part.values()):
                found |= copy.deepcopy(dict(part))
        return found

    def other_layers(self) -> Config:
        """Return the rope dicts of the layer types that stay, such that a longer model changes nothing in them."""
        found: Config = {}
        for layer, params in self.config.rope_parameters.items():
            kind, spec = read_rope_type(self.config.fields, params), self.config.specs[layer]
            rope = copy.deepcopy(params)
            rope.setdefault("rope_type", kind)
            rope.pop("type", None)
            if kind in PRETRAINED_TYPES:
                rope.setdefault(ORIGINAL, spec.context)
            if kind in ("yarn", "longrope") and rope.get("factor") is None:
                # Left out, it is the ratio of the lengths.
                rope["factor"] = spec.target / spec.context
            found[layer] = rope
        return found

    def parameters(self, spec: RopeSpec, layer: str) -> Params:
        """Return the method's keys, with the rotated share wherever another one would be filled in for it."""
        params: Params = dict(to_config(spec)["rope_parameters"])
        params.pop("max_position_embeddings", None)
        if params["rope_type"] not in PRETRAINED_TYPES:
            params.pop(ORIGINAL, None)  # no runtime reads it for the other types
        if params["rope_type"] == "longrope" and "attention_factor" in params:
            # What vLLM and SGLang read in place of attention_factor.
            params |= dict.fromkeys(("short_mscale", "long_mscale"), params["attention_factor"])
        if not spec.scaling.rotates_whole_head:
            params.pop("partial_rotary_factor", None)
            share = self.share(spec, layer)
            params |= {} if share is None else {"partial_rotary_factor": share}
        return params

    def share(self, spec: RopeSpec, layer: str) -> float | None:
        """Return partial_rotary_factor; None where the whole head rotates and no key says otherwise."""
        given = self.config.rope_parameters[layer].get("partial_rotary_factor")
        head_dim = self.head_dim if self.is_padded(spec) else spec.head_dim
        if isinstance(given, (int, float)) and int(head_dim * given) == spec.rotary_dim:
            return float(given)
        if spec.rotary_dim != head_dim:
            return partial_factor_for(spec.rotary_dim, head_dim)
        others = [given, self.config.fields.default("partial_rotary_factor")]
        others += [self.raw.get(key) for key in ("partial_rotary_factor", "rotary_pct")]
        return 1.0 if any(value is not None for value in others) else None

    @property
    def head_dim(self) -> int:
        """The size of a head of the layers that are changed, as the class derives it."""
        return (self.config.fields.layer(self.layer) if self.layer else self.config.fields).head_dim()

    def is_padded(self, spec: RopeSpec) -> bool:
        """Return whether the class rotates its odd default head with one more dimension than there is."""
        return self.config.architecture.pads_odd_head and spec.head_dim == self.head_dim + 1

    def sizes(self, spec: RopeSpec) -> Config:
        """Return the keys that say the length, and head size, rotated dimensions and pairing where these change."""
        before, architecture = self.config.specs[self.layer], self.config.architecture
        limit = int(to_config(spec)["max_position_embeddings"])
        if spec.scaling.reaches_factor and spec.scaling != before.scaling:
            limit = max(limit, min(round(spec.context * spec.scaling.factor_for(spec)), MAX_LENGTH))
        keys = self.lengths(limit, spec.target)
        if spec.head_dim != before.head_dim or spec.rotary_dim != before.rotary_dim:
            keys |= self.head_keys(spec)
        null = architecture.validation.null_head_dim and self.config.fields.raw("head_dim") is None
        if null and spec.scaling.rope_type in MULTIPLIED:
            keys[self.name("head_dim")] = spec.head_dim
        if spec.pairing != before.pairing and architecture.reads_rope_interleave:
            keys["rope_interleave"] = spec.pairing == "interleaved"
        return keys

    def lengths(self, limit: int, longest: int) -> Config:
        """Return the key that says the limit, and every further key that would keep a server below the longest length.

        The limit is the original length for dynamic scaling; then another key says what servers shall accept.
        """
        fields, name, longest = self.config.fields, self.name(USUAL), max(limit, longest)
        keys = {name: limit} | dict.fromkeys(find_lower_lengths(self.raw, longest), longest)
        if limit < longest and fields.architecture.aliases.get(OVER_ALL) != USUAL:
            keys[OVER_ALL] = longest
        return keys | {name: limit}

    def head_keys(self, spec: RopeSpec) -> Config:
        config, architecture = self.config.fields.config, self.config.architecture
        rule = architecture.head_size
        if architecture.rope.global_heads and self.layer == "full_attention" and "per_layer_config" not in config:
            return {"global_head_dim": spec.head_dim}
        if rule == "qk_nope_head_dim+qk_rope_head_dim":
            return {"qk_rope_head_dim": spec.rotary_dim, "qk_nope_head_dim": spec.head_dim - spec.rotary_dim}
        keys: Config = {}
        if spec.head_dim != self.head_dim and not self.is_padded(spec):
            own = rule == "head_dim" or (architecture.head_dim_wins and config.get("head_dim") is not None)
            if own:
                keys[self.name("head_dim")] = spec.head_dim
            if rule == "qk_rope_head_dim":
                keys[self.name(rule)] = spec.head_dim
            elif "hidden_size" in rule and not own:
                heads = self.config.fields.required("num_attention_heads")
                keys[self.name("hidden_size")] = spec.head_dim * heads // (2 if rule.startswith("2") else 1)
        fixed = architecture.rope.rule == "fixed_base" and "rotary_dim" in architecture.defaults
        if fixed or self.raw.get("rotary_dim") is not None:
            keys["rotary_dim"] = spec.rotary_dim
        return keys

    def top_level(self, spec: RopeSpec) -> Config:
        """Return old keys outside the rope dict that would win over it, or contradict it."""
        keys: Config = {}
        rule = self.config.architecture.rope.rule
        has_original = self.raw.get(ORIGINAL) is not None or self.config.fields.default(ORIGINAL) is not None
        if not self.layer and has_original and spec.scaling.name in PRETRAINED_TYPES:
            keys[ORIGINAL] = spec.context
        base, belongs = self.raw.get("rope_theta"), self.layer in ("", "full_attention", "main")
        if rule == "theta_only" or (isinstance(base, (int, float)) and belongs and base != spec.base):
            keys["rope_theta"] = spec.base
        share, wanted = self.raw.get("partial_rotary_factor"), self.share(spec, self.layer)
        if not self.layer and share is not None and wanted is not None and share != wanted:
            keys["partial_rotary_factor"] = wanted
        if rule == "chatglm":
            keys["rope_ratio"] = spec.base / 10_000.0
        return keys


def loaded_rope(part: Part) -> Mapping[str, Any]:
    """Return the rope dict that the loaded config holds: the winning one of the file."""
    found = part.config.get("rope_scaling") or part.config.get("rope_parameters")
    return found if isinstance(found, Mapping) else {}


def cancel_old_method(rope: Mapping[str, Any], old: Mapping[str, Any]) -> Config:
    """Return a rope dict to merge into another one, with keys that undo what would still be read of the old method."""
    merged = dict(rope)
    for key, value in rope.items():
        if isinstance(value, Mapping):
            merged[key] = cancel_old_method(value, old[key] if isinstance(old.get(key), Mapping) else old)
    if rope.get("rope_type") is not None:
        merged |= {key: value for key, value in STILL_READ.items() if old.get(key) is not None and key not in rope}
        merged |= {"type": rope["rope_type"]} if "type" in old else {}
    return merged


def merge_dicts(new: Mapping[str, Any], old: Mapping[str, Any]) -> Config:
    """Return one dict merged into another, and so the dicts in them."""
    merged = copy.deepcopy(dict(old))
    for key, value in new.items():
        before: Any = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        merged[key] = merge_dicts(value, before) if both else value
    return merged


def nest(path: Path, keys: Config) -> Config:
    """Return the keys inside objects of these names."""
    for key in reversed(path):
        keys = {key: keys}
    return keys
