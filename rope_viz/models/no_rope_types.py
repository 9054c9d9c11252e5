"""Model types without rotary embedding, and the switches by which a type that has one goes without it.

Read in the modeling files of transformers 5.24.0: no class of a type named here rotates queries and keys of a text.
The types that left transformers before (transfo-xl and its like) and those whose code travels with the model were read
there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.embedding import TEXTS as EMBEDDING
from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Architecture, RopeReading, listed_types
from rope_viz.models.config_reader import Fields
from rope_viz.models.rope_parameters import get_dotted
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items


class NoRope(ValueError):  # noqa: N818 - nothing is wrong
    """The config describes a model without rotary embedding: nothing is wrong with it, and RoPE does not apply."""


@functools.cache
def reasons() -> Mapping[str, str]:
    """Return {model type without rotary embedding: the key of its reason}."""
    return {kind: reason for reason, entry in table().items() for kind in entry["types"]}


@functools.cache
def types_by_letters() -> Mapping[str, str]:
    """Return {letters and digits of a model type: the type} of the types without rotary embedding."""
    return {re.sub("[^a-z0-9]", "", kind.lower()): kind for kind in sorted(reasons())}


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """Return {reason: {"types": model types}}."""
    found: dict[str, dict[str, Any]] = read_own(__file__, "no_rope_types.json")
    return found


def explain(reason: str) -> str:
    """Return why a model has no rotary embedding, as the second half of a sentence."""
    return TEXTS(f"no_rope.why.{reason}")


# What position_embedding_type may say besides rope and rotary, in any config.
UNLISTED = read_own(__file__, "unlisted_types.json")
NOT_ROTARY: Mapping[str, str] = UNLISTED["not_rotary"]


def find_no_rope_reason(kind: str, config: Mapping[str, Any], *, listed: bool) -> str:
    """Return why a model has no rotary embedding; empty where it has one.

    `listed` says whether the type is one whose code was read: of others the unmistakable keys are believed.
    """
    key, value = "position_embedding_type", config.get("position_embedding_type")
    kind = kind or type_of_class(config)
    if kind in reasons():
        if names_other_class(config) or asks_for_rotary(config) or (kind == "mpt" and has_mosaic_rope(config)):
            return ""
        if isinstance(value, str) and NOT_ROTARY.get(value.lower()) == "alibi":
            return TEXTS("no_rope.value", key=key, value=short_repr(value), why=explain("alibi"))
        return explain(reasons()[kind])
    if not listed and "ssm_cfg" in config and not config.get("attn_layer_idx"):
        return explain("recurrent")
    if kind in ("esm", "granitemoehybrid") or not listed:
        wanted = {"esm": "rotary", "granitemoehybrid": "rope"}.get(kind)
        known = NOT_ROTARY.get(value.lower()) if isinstance(value, str) else None
        if known or (wanted and key in config and value != wanted):
            return TEXTS("no_rope.value", key=key, value=short_repr(value), why=explain(known or "none"))
    if (kind == "falcon" or not listed) and (config.get("alibi") is True or config.get("use_alibi") is True):
        return TEXTS("no_rope.value", key="alibi", value="true", why=explain("alibi"))
    if kind == "baichuan" and config.get("hidden_size") == 5120:
        return TEXTS("no_rope.baichuan", why=explain("alibi"))
    if kind == "zamba2" and config.get("use_mem_rope") is False:
        return TEXTS("no_rope.value", key="use_mem_rope", value="false", why=explain("hybrid"))
    if kind == "olmo_hybrid" and has_null_base(config):
        return TEXTS("no_rope.value", key="rope_theta", value="null", why=explain("hybrid"))
    attention = config.get("attn_config")
    if not listed and isinstance(attention, Mapping) and attention.get("alibi") is True:
        return TEXTS("no_rope.value", key="attn_config.alibi", value="true", why=explain("alibi"))
    for key in ("rotary_pct", "rope_pct", "rotary_emb_fraction", "qk_rope_head_dim"):
        if kind == "deepseek":
            break  # its attention rotates whole heads, whatever those keys say
        if isinstance(config.get(key), (int, float)) and not isinstance(config.get(key), bool) and config[key] == 0:
            return TEXTS("no_rope.zero", key=key)
    return ""


def type_of_class(config: Mapping[str, Any]) -> str:
    """Return the type without RoPE that the config's class name means, where it names no type; else empty."""
    named = config.get("architectures")
    name = str(named[0]) if isinstance(named, list) and named else ""
    letters = re.match(r"(\w+?)(LMHead|For[A-Z]|DoubleHeads|Model\b|PreTrained)", name)
    return "" if letters is None else types_by_letters().get(letters[1].lower(), "")


def asks_for_rotary(config: Mapping[str, Any]) -> bool:
    """Return whether a type that usually has no RoPE asks for it, as remote code and sound encoders do."""
    values = (config.get("position_embedding_type"), config.get("position_embeddings_type"))
    return any(isinstance(value, str) and value.lower() in ("rotary", "rope") for value in values)


def names_other_class(config: Mapping[str, Any]) -> bool:
    """Return whether the named class is known to belong to another type: Grok 2 is published as "git"."""
    named = config.get("architectures")
    return isinstance(named, list) and "Grok1ForCausalLM" in named


def has_null_base(config: Mapping[str, Any]) -> bool:
    """Return whether the base is null where OLMo Hybrid reads it."""
    params = config.get("rope_scaling") or config.get("rope_parameters")
    places = [params if isinstance(params, Mapping) and "rope_theta" in params else config]
    return all("rope_theta" in place and place["rope_theta"] is None for place in places)


def has_mosaic_rope(config: Mapping[str, Any]) -> bool:
    """Return whether MPT's attn_config turns RoPE on, as llm-foundry does; transformers has ALiBi only."""
    attention = config.get("attn_config")
    return isinstance(attention, Mapping) and attention.get("rope") is True


# {the usual key: names that cannot be mistaken for anything else, whatever the type}
UNMISTAKABLE: Mapping[str, Sequence[str]] = UNLISTED["unmistakable"]

# Keys that no config.json of a whole model has.
NO_CONFIG_KEYS = ("peft_type", "weight_map", "image_processor_type", "feature_extractor_type", "added_tokens_decoder")

SIZES = ("hidden_size", "num_attention_heads", "head_dim", "rope_scaling", "rope_parameters", "rope_theta")


def refuse_others(config: Mapping[str, Any], kind: str) -> None:
    """Raise `ValueError` for a file that is no model's config, or whose language model is elsewhere."""
    sizes = {name for usual in SIZES for name in (usual, *UNMISTAKABLE.get(usual, ()))}
    heads = ("num_attention_heads", *UNMISTAKABLE["num_attention_heads"])
    if any(config.get(name) is not None for name in (heads if "text_model_id" in config else sizes)):
        return
    # Files that come with a config.json are told by a key that only they have.
    found = next((TEXTS(f"other_file.{key}") for key in TEXTS.group("other_file") if key in config), None)
    if found is None and not kind:
        found = TEXTS("no_model")
    if found is not None:
        base = config.get("base_model_name_or_path", config.get("text_model_id"))
        named = TEXTS("other_file_of", file=found, base=short_repr(base)) if isinstance(base, str) else found
        raise ValueError(named)


def is_model_config(config: Mapping[str, Any]) -> bool:
    """Return whether an object looks like the config of a model: it names a type, or heads and a width."""
    if any(key in config for key in NO_CONFIG_KEYS):
        return False
    heads, widths = (
        any(isinstance(config.get(name), int) for name in (usual, *UNMISTAKABLE[usual]))
        for usual in ("num_attention_heads", "hidden_size")
    )
    return isinstance(config.get("model_type"), str) or (heads and widths)


def read_unknown_fields(config: Mapping[str, Any], kind: str, wrapper: str | None) -> Fields:
    """Return the fields of a model type without a record, with the defaults of a Llama."""
    read, taken = dict(config), []
    head_size = "head_dim"
    for usual, others in UNMISTAKABLE.items():
        name = next(
            (name for name in others if config.get(usual) is None and get_dotted(config, name) is not None), None
        )
        if name is not None:
            read[usual] = get_dotted(config, name)
            taken.append(name)
    if config.get("qk_rope_head_dim") is not None:
        head_size = "qk_rope_head_dim"
        taken.append("qk_rope_head_dim")
    elif config.get("rotary_dim") is not None and read.get("partial_rotary_factor") is None:
        fields = Fields(read, Architecture(kind, listed=False))
        rotary, head_dim = fields.required("rotary_dim"), fields.head_dim()
        if rotary > head_dim:
            raise ValueError(EMBEDDING("errors.rotary_dim", head_dim=head_dim, value=rotary))
        read["partial_rotary_factor"] = rotary / head_dim
        taken.append("rotary_dim")
    # Partial rotation and pairing are believed where the config names them.
    architecture = Architecture(
        kind,
        head_size=head_size,
        partial_rotary=True,
        reads_rope_interleave=True,
        rope=RopeReading(alpha_is_ntk=kind.startswith("hunyuan")),
        listed=False,
    )
    return Fields(read, architecture, own_keys=tuple(taken), wrapper=wrapper)


def letters_of(kind: str) -> str:
    """Return a model type in lower case, without punctuation."""
    return "".join(letter for letter in kind.lower() if letter.isalnum())


def describe_other_code(fields: Fields) -> str:
    """Return a sentence where two published codes have this model type; empty where there is one."""
    return TEXTS(f"other_code.{fields.kind}") if fields.architecture.other_code else ""


def describe_doubt(fields: Fields) -> str:
    """Return a sentence where this model type, or its wrapper's, has no record; empty where both have one."""
    if fields.is_listed:
        if not fields.wrapper:
            return ""
        return TEXTS("type.wrapper", wrapper=short_repr(fields.wrapper), kind=fields.kind)
    used = join_items(fields.own_keys)
    if not fields.kind:
        return TEXTS("type.missing_with_keys" if used else "type.missing", keys=used)
    letters = letters_of(fields.kind)
    spelled = next((name for name in sorted(listed_types()) if letters_of(name) == letters), "")
    if spelled:
        return TEXTS("type.misspelled", kind=short_repr(fields.kind), meant=spelled)
    return TEXTS("type.unknown_with_keys" if used else "type.unknown", kind=short_repr(fields.kind), keys=used)
