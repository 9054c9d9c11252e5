"""Where a config keeps its language model: the whole of it, or the part that a wrapper names.

Wrappers of transformers 5.23.0 are known one by one (`architectures.json`, asked of the classes); in others the part is
looked for under the names that published configs use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.spec import shorten
from rope_viz.models import no_rope_types
from rope_viz.models.config_reader import Fields, entry, insist, name_of, table
from rope_viz.models.unknown_types import refuse_others, unlisted_fields

Path: TypeAlias = tuple[str, ...]

# Where composite configurations of unknown type keep their language model, most telling first.
TEXT_KEYS = (
    *("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "text_model_config"),
    *("lm_config", "llm_cfg", "text_cfg", "language_model", "llm", "vlm_config", "decoder", "decoder_config"),
)
# What stands beside a language model, by its key: towers, parts that speak or draw, settings.
BESIDE_TEXT = re.compile(
    "vis|vit|image|img|video|audio|speech|sound|encoder|tower|talker|proj|quant|generat|draft|adapter|lora|tokenizer"
    "|diffusion|perceiver|resampler|rope|attn|moe|ssm|^_"
)
# Wrappers whose class also knows the name that the original checkpoints use.
OTHER_NAMES = {"unlimited_ocr": ("language_config",)}
# What stands between these and their language model where it names no type.
BETWEEN = {"colpali": "paligemma", "colqwen2": "qwen2_vl", "colmodernvbert": "modernvbert"}
# What such classes take of their own level beside what concerns RoPE, each class asked key by key.
MANY = ("num_hidden_layers", "num_key_value_heads", "intermediate_size", "vocab_size")
WINDOWS = ("use_sliding_window", "sliding_window", "max_window_layers", "layer_types")
SIZES = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), (*MANY, *WINDOWS)),
    **dict.fromkeys(("hunyuan_vl", "paddleocr_vl"), (*MANY, "tie_word_embeddings")),
    "fuyu": ("num_hidden_layers", "intermediate_size", "vocab_size"),
}
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_hidden_layers", "n_layer", "n_layers")
DEEPEST = 4


@dataclass(frozen=True)
class Part:
    """The part of a config that describes the language model.

    `config` holds its keys, with what its wrapper's class fills in; `kind` is its model type and `facts` what is known
    of that type, None where nothing is. `path` leads to where these keys stand in the file, or would have to stand
    where it has none (`stands` is false then). `loaded` leads to them in the object that transformers makes of the
    file; it is longer than `path` where a wrapper takes keys of its own level for its part. `taken` are then the keys
    that it takes. `unlisted` names the outermost wrapper whose class is not known, None where there is none.
    """

    config: Mapping[str, Any]
    facts: Mapping[str, Any] | None
    kind: str
    path: Path = ()
    loaded: Path = ()
    stands: bool = True
    taken: Path = ()
    unlisted: str | None = None


def text_part(config: Mapping[str, Any]) -> Part:
    """The language model inside a config, which may be the whole config. Raises `ValueError` naming a wrong key."""
    part = Part(config, None, name_of(config))
    for _ in range(DEEPEST):
        facts = entry(part.kind)
        if facts is None:
            key = wrapper_key(part.config)
            if key is None:
                break
            part = opened(part, key)
        elif "text" in facts:
            part = unwrapped(part, facts)
        else:
            break
    # DeepSeek VL2 Tiny has the attention of the first DeepSeek MoE in its language model, and the type of the second.
    kind = "deepseek" if part.kind == "deepseek_v2" and part.config.get("use_mla") is False else part.kind
    return Part(**{**vars(part), "kind": kind, "facts": table().get(kind)})


def unwrapped(part: Part, facts: Mapping[str, Any]) -> Part:
    """The language model of a wrapper whose class is known."""
    keys = tuple(facts["text"])
    between = inside(part.config, keys[:1])
    if part.kind in BETWEEN and between is not None:
        path, loaded, kind = (*part.path, keys[0]), (*part.loaded, keys[0]), name_of(between) or BETWEEN[part.kind]
        return Part(between, None, kind, path, loaded, part.stands, (), part.unlisted)
    inner = inside(part.config, keys)
    for name in OTHER_NAMES.get(part.kind, ()):
        if inner is None and part.config.get(name) is not None:
            keys, inner = (name,), inside(part.config, (name,))
    stands, path, taken = inner is not None and part.stands, (*part.path, *keys), ()
    if inner is None:
        # Early checkpoints of Qwen2-VL and its like keep the text keys at the top.
        hoisted = tuple(facts.get("flat", ()))
        hoisted = (*hoisted, *SIZES.get(part.kind, ())) if "rope_scaling" in hoisted else ()
        inner = {key: part.config[key] for key in hoisted if key in part.config}
        if inner:
            stands, path, taken = part.stands, part.path, hoisted
    kind = facts["type"] if facts.get("fixed") else name_of(inner) or facts["type"]
    # A part that is there, and be it empty, gets the wrapper's values from some classes only.
    fills = facts.get("fills", {}) if facts.get("merges") or not (stands or inner) else {}
    loaded = (*part.loaded, *facts["text"])
    return Part({**fills, **inner}, None, kind, path, loaded, stands, taken, part.unlisted)


def opened(part: Part, key: str) -> Part:
    """The part that a wrapper of unknown type keeps under this key; it may go without a type of its own."""
    inner = part.config[key]
    unlisted = part.kind if part.unlisted is None else part.unlisted
    return Part(inner, None, name_of(inner) or part.kind, (*part.path, key), (*part.loaded, key), True, (), unlisted)


def wrapper_key(config: Mapping[str, Any]) -> str | None:
    """The key under which a config of unknown type keeps its language model; None where it is one itself."""
    complete = speaks(config)
    for key in TEXT_KEYS:
        inner = config.get(key)
        # A model of its own may have a decoder, and a config with both the text twice: then what is inside must speak.
        if isinstance(inner, Mapping) and (not complete or speaks(inner)):
            return key
    if complete:
        return None
    # Under any other name where it is the only one that can be meant.
    found = [
        key
        for key, inner in config.items()
        if isinstance(inner, Mapping) and not BESIDE_TEXT.search(key) and (speaks(inner) or wrapper_key(inner))
    ]
    return found[0] if len(found) == 1 else None


def speaks(config: Mapping[str, Any]) -> bool:
    """Whether these are the keys of a model with attention, and not of what is wrapped around one."""
    return any(config.get(key) is not None for key in HEADS)


def inside(config: Mapping[str, Any], keys: Path) -> Mapping[str, Any] | None:
    """The object at a place, None where there is none. Raises `ValueError` where something else stands there."""
    part: Mapping[str, Any] | None = config
    for key in keys:
        found: Any = None if part is None else part.get(key)
        if found is not None and not isinstance(found, Mapping):
            raise ValueError(f"{key} must be an object, got {shorten(found)}")
        part = found
    return part


def text_fields(config: Mapping[str, Any]) -> Fields:
    """The fields of the language model inside a config, which may be the whole config.

    Raises `NoRope` where it has no rotary embedding, and `ValueError` where it is no language model.
    """
    part = text_part(config)
    why = no_rope_types.reason(part.kind, part.config, listed=part.facts is not None)
    if why:
        raise no_rope_types.NoRope(
            f"{said(part.kind or no_rope_types.by_class(part.config))} has no rotary embedding: {why}"
        )
    if part.facts is None:
        refuse_others(part.config, part.kind)
        return unlisted_fields(part.config, part.kind, part.unlisted)
    if part.facts.get("not_text"):
        raise ValueError(f"model_type must be a language model's: {part.kind} has positions in more than one dimension")
    if part.kind == "chatglm" and part.config.get("position_encoding_2d") is True:
        raise ValueError(
            "position_encoding_2d is true: ChatGLM-6B rotates by two positions, which is not computed here"
        )
    if part.path and part.unlisted is None:
        for key in ("vision_config", "audio_config"):
            inside(config, (key,))
    fields = Fields(part.config, part.facts, part.kind, wrapper=part.unlisted)
    insist(fields)
    return fields


def said(kind: str) -> str:
    """A model type in a sentence."""
    return shorten(kind).strip("'\"") if kind else "this model"
