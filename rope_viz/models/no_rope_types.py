"""Model types without rotary embedding, and the switches by which a type that has one goes without it.

Read in the modeling files of transformers 5.23.0: no class of a type named here rotates queries and keys of a text.
The types that left transformers before (transfo-xl and its like) and those whose code travels with the model were read
there.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import short_repr


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
    """Return {reason: {"why": half a sentence, "types": model types}}."""
    found: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("no_rope_types.json").read_text(encoding="utf-8")
    )
    return found


def explain(reason: str) -> str:
    """Return why a model has no rotary embedding, as the second half of a sentence."""
    return str(table()[reason]["why"])


# What position_embedding_type may say besides rope and rotary, in any config.
NOT_ROTARY = {
    **dict.fromkeys(("absolute", "learned", "learned_absolute"), "learned"),
    **dict.fromkeys(("relative", "relative_key", "relative_key_query"), "relative"),
    **{"sinusoidal": "sinusoidal", "alibi": "alibi", "nope": "none", "none": "none"},
}


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
            return f"{key} is {short_repr(value)}, so {explain('alibi')}"
        return explain(reasons()[kind])
    if not listed and "ssm_cfg" in config and not config.get("attn_layer_idx"):
        return explain("recurrent")
    if kind in ("esm", "granitemoehybrid") or not listed:
        wanted = {"esm": "rotary", "granitemoehybrid": "rope"}.get(kind)
        known = NOT_ROTARY.get(value.lower()) if isinstance(value, str) else None
        if known or (wanted and key in config and value != wanted):
            return f"{key} is {short_repr(value)}, so {explain(known or 'none')}"
    if (kind == "falcon" or not listed) and (config.get("alibi") is True or config.get("use_alibi") is True):
        return f"alibi is true, so {explain('alibi')}"
    if kind == "baichuan" and config.get("hidden_size") == 5120:
        return f"its 13B models do not rotate: {explain('alibi')}"
    if kind == "zamba2" and config.get("use_mem_rope") is False:
        return f"use_mem_rope is false, so {explain('hybrid')}"
    if kind == "olmo_hybrid" and has_null_base(config):
        return f"rope_theta is null, so {explain('hybrid')}"
    attention = config.get("attn_config")
    if not listed and isinstance(attention, Mapping) and attention.get("alibi") is True:
        return f"attn_config.alibi is true, so {explain('alibi')}"
    for key in ("rotary_pct", "rope_pct", "rotary_emb_fraction", "qk_rope_head_dim"):
        if kind == "deepseek":
            break  # its attention rotates whole heads, whatever those keys say
        if isinstance(config.get(key), (int, float)) and not isinstance(config.get(key), bool) and config[key] == 0:
            return f"{key} is 0, so no dimension of a head rotates"
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
