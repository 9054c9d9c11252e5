"""Where a config keeps its language model: the whole of it, or the part that a wrapper names.

Wrappers of transformers 5.24.0 are known one by one (`architectures.json`, asked of the classes); in others the part is
looked for under the names that published configs use.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS, no_rope_types
from rope_viz.models.architecture import Architecture, TextPart, find_architecture
from rope_viz.models.config_reader import Fields, read_model_type
from rope_viz.models.no_rope_types import read_unknown_fields, refuse_others

Path: TypeAlias = tuple[str, ...]

# Where composite configurations of unknown type keep their language model, most telling first.
TEXT_KEYS = tuple(
    """
    text_config llm_config language_config language_model_config thinker_config text_model_config lm_config llm_cfg
    text_cfg language_model llm vlm_config decoder decoder_config
    """.split()
)
# Keys of what a config holds in addition to its language model: towers, parts that speak or draw, settings.
OTHER_PARTS = re.compile(
    "vis|vit|image|img|video|audio|speech|sound|encoder|tower|talker|proj|quant|generat|draft|adapter|lora|tokenizer"
    "|diffusion|perceiver|resampler|rope|attn|moe|ssm|^_"
)
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_hidden_layers", "n_layer", "n_layers")
DEEPEST = 4


@dataclass(frozen=True)
class Part:
    """The part of a config that describes the language model.

    `config` holds its keys, with what its wrapper's class fills in; `kind` is its model type and `architecture` the
    record of that type, None where there is none. `path` leads to these keys in the file, or to where they would be
    (`is_in_file` is false then). `loaded` leads to them in the object that transformers makes of the file; it is longer
    than `path` where a wrapper takes keys of its own level for its part, and `taken` are then those keys. `unlisted`
    names the outermost wrapper without a record, None where there is none. `wrappers` are the types of all wrappers,
    the outermost first.
    """

    config: Mapping[str, Any]
    architecture: Architecture | None
    kind: str
    path: Path = ()
    loaded: Path = ()
    is_in_file: bool = True
    taken: Path = ()
    unlisted: str | None = None
    wrappers: Path = ()


def find_text_part(config: Mapping[str, Any]) -> Part:
    """Return the language model inside a config, which may be the whole. Raises `ValueError` naming a wrong key."""
    part = Part(config, None, read_model_type(config))
    for _ in range(DEEPEST):
        found = find_architecture(part.kind)
        if found is None:
            key = find_wrapper_key(part.config)
            if key is None:
                break
            part = open_part(part, key)
        elif found.text is not None:
            part = unwrap(part, found.text)
        else:
            break
    # DeepSeek VL2 Tiny has the attention of the first DeepSeek MoE in its language model, and the type of the second.
    kind = "deepseek" if part.kind == "deepseek_v2" and part.config.get("use_mla") is False else part.kind
    record = find_architecture(kind)
    kind = find_type_of_class(part.config, record) or kind
    record = find_architecture(kind)
    return dataclasses.replace(part, kind=kind, architecture=record if record is None or record.text is None else None)


def find_type_of_class(config: Mapping[str, Any], record: Architecture | None) -> str:
    """Return the type of the code that `architectures` names, where a model type has two codes; else empty."""
    names = config.get("architectures")
    if record is None or not record.by_class or not isinstance(names, list):
        return ""
    return next((record.by_class[name] for name in names if isinstance(name, str) and name in record.by_class), "")


def unwrap(part: Part, text: TextPart) -> Part:
    """Return the language model of a wrapper that has a record."""
    keys, wrappers = text.path, (*part.wrappers, part.kind)
    between = get_object(part.config, keys[:1])
    if text.between and between is not None:
        path, loaded, kind = (*part.path, keys[0]), (*part.loaded, keys[0]), read_model_type(between) or text.between
        return Part(between, None, kind, path, loaded, part.is_in_file, (), part.unlisted, wrappers)
    inner = get_object(part.config, keys)
    for name in text.other_names:
        if inner is None and part.config.get(name) is not None:
            keys, inner = (name,), get_object(part.config, (name,))
    taken: Path = ()
    is_in_file, path = inner is not None and part.is_in_file, (*part.path, *keys)
    if inner is None:
        # Early checkpoints of Qwen2-VL and its like keep the text keys at the top.
        hoisted = text.hoisted if "rope_scaling" in text.hoisted else ()
        inner = {key: part.config[key] for key in hoisted if key in part.config}
        if inner:
            is_in_file, path, taken = part.is_in_file, part.path, hoisted
    kind = text.type if text.fixed_type else read_model_type(inner) or text.type
    # A part that is there, and be it empty, gets the wrapper's values from some classes only.
    fills = text.fills if text.merges or not (is_in_file or inner) else {}
    loaded = (*part.loaded, *text.path)
    return Part({**fills, **inner}, None, kind, path, loaded, is_in_file, taken, part.unlisted, wrappers)


def open_part(part: Part, key: str) -> Part:
    """Return the part that a wrapper without a record keeps under this key; it may name no type."""
    inner = part.config[key]
    unlisted = part.kind if part.unlisted is None else part.unlisted
    return dataclasses.replace(
        part,
        config=inner,
        kind=read_model_type(inner) or part.kind,
        path=(*part.path, key),
        loaded=(*part.loaded, key),
        is_in_file=True,
        taken=(),
        unlisted=unlisted,
        wrappers=(*part.wrappers, part.kind),
    )


def find_wrapper_key(config: Mapping[str, Any]) -> str | None:
    """Return the key under which a config of unknown type keeps its language model; None where it is one itself."""
    complete = has_attention_keys(config)
    for key in TEXT_KEYS:
        inner = config.get(key)
        # A model of its own may have a decoder, and a config with both the text twice: then what is inside must speak.
        if isinstance(inner, Mapping) and (not complete or has_attention_keys(inner)):
            return key
    if complete:
        return None
    # Under any other name where it is the only one that can be meant.
    found = [
        key
        for key, inner in config.items()
        if isinstance(inner, Mapping)
        and not OTHER_PARTS.search(key)
        and (has_attention_keys(inner) or find_wrapper_key(inner))
    ]
    return found[0] if len(found) == 1 else None


def has_attention_keys(config: Mapping[str, Any]) -> bool:
    """Return whether these are the keys of a model with attention, and not of a wrapper."""
    return any(config.get(key) is not None for key in HEADS)


def find_inside(part: Any, path: Path) -> Any:
    """Return what a config has at a place, None where it has nothing there."""
    for key in path:
        part = part.get(key) if isinstance(part, Mapping) else None
    return part


def get_object(config: Mapping[str, Any], keys: Path) -> Mapping[str, Any] | None:
    """Return the object at a path, None where there is none. Raises `ValueError` where the value is no object."""
    part: Mapping[str, Any] | None = config
    for key in keys:
        found: Any = None if part is None else part.get(key)
        if found is not None and not isinstance(found, Mapping):
            raise ValueError(TEXTS("value.object", name=key, got=short_repr(found)))
        part = found
    return part


def read_text_fields(part: Part) -> Fields:
    """Return the fields of the language model of a config.

    Raises `NoRope` where it has no rotary embedding, and `ValueError` where it is no language model.
    """
    why = no_rope_types.find_no_rope_reason(part.kind, part.config, listed=part.architecture is not None)
    if why:
        kind = short_repr(part.kind or no_rope_types.type_of_class(part.config)).strip("'\"")
        raise no_rope_types.NoRope(TEXTS("no_rope.model" if kind else "no_rope.this_model", kind=kind, why=why))
    if part.architecture is None:
        refuse_others(part.config, part.kind)
        return read_unknown_fields(part.config, part.kind, part.unlisted)
    if part.architecture.not_text:
        raise ValueError(TEXTS("text_config.several_axes", kind=part.kind))
    if part.kind == "chatglm" and part.config.get("position_encoding_2d") is True:
        raise ValueError(TEXTS("text_config.two_positions"))
    return Fields(part.config, part.architecture, wrapper=part.unlisted, wrappers=part.wrappers)
