"""Read the sizes that memory depends on, of any config: with RoPE, without it, or of an unknown type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.models.architecture import Architecture
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.parameter_formulas import class_aliases, class_defaults

# {usual key: other names under which published configs keep the size}.
OTHER_NAMES = {
    "num_hidden_layers": (
        *("n_layer", "n_layers", "num_layers", "num_transformer_layers", "decoder_layers", "num_decoder_layers"),
        *("encoder_layers",),
    ),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads"),
    "hidden_size": ("n_embd", "d_model", "model_dim", "dim", "n_embed"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "decoder_ffn_dim", "inner_hidden_size"),
    "num_key_value_heads": ("num_kv_heads", "n_kv_heads", "n_head_kv", "num_attention_groups"),
    "head_dim": ("attention_head_dim", "kv_channels", "d_kv"),
    "vocab_size": ("padded_vocab_size",),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts", "n_experts"),
}
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
    listed = config.get("layer_types")
    names = ("num_hidden_layers", *OTHER_NAMES["num_hidden_layers"])
    known = any(config.get(name) is not None for name in names)
    return {"num_hidden_layers": len(listed)} if isinstance(listed, (list, tuple)) and listed and not known else {}


def list_assumed_sizes(model: ModelConfig) -> list[str]:
    """Return the sizes that a config leaves out and that its class of transformers has a default for."""
    fields = read_given_fields(model)
    aliases, defaults = class_aliases(fields.kind), class_defaults(fields.kind)
    found = []
    for name in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"):
        names = {name, *OTHER_NAMES[name], *(other for pair in aliases.items() if name in pair for other in pair)}
        given = any(fields.config.get(other) is not None for other in names) or name in count_listed_layers(
            fields.config
        )
        if names & defaults.keys() and not given:
            found.append(name)
    return found


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
    return found | count_listed_layers(config)


def copy_usual_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes that a config keeps under other names, by their usual keys."""
    found = {}
    for usual in COPIED:
        if config.get(usual) is None:
            value = next((config[name] for name in OTHER_NAMES[usual] if config.get(name) is not None), None)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found[usual] = value
    return found
