"""Write parameter_formulas.json: how many parameters each class of transformers 5.23.0 has, as a formula of its config.

Run with transformers 5.23.0 and torch 2.13.0: `python tests/goldens/make_parameter_formulas.py [TYPE ...]`. Every class
is built on the meta device from a configuration whose numbers remember how they are used (symbolic_sizes.py): at its
defaults, with other numbers of layers, and with each switch turned. The file is never edited by hand.
"""

from __future__ import annotations

import functools
import json
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import torch
import transformers
from symbolic_sizes import Poly, Quotient, Symbol, add, multiply, poly_of, tracing, write
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto import modeling_auto

from rope_viz.models.parameter_formulas import count_parameters, formulas, is_dense

PATH = Path(__file__).parents[2] / "rope_viz" / "models" / "parameter_formulas.json"
# Numbers that no parameter depends on; a symbol in their place would only cost time.
SKIPPED = re.compile(r"token_id$|_token_index$|^chunk_size_feed_forward$|^num_labels$|^transformers_version$|_token$")
DEPTH = re.compile(
    r"^(?!.*(dense|nextn|hash|kv_shared|moe_layers|mtp))(.*(layers|depth|blocks|num_stages|_per_stack)$"
    r"|.*\bn_layer|.*(num_hidden_groups|inner_group_num|altup_num_inputs)$)"
)
UNRELATED = ("use_cache", "output_attentions", "output_hidden_states", "return_dict", "is_encoder_decoder")
SIZELESS = re.compile("max_|position|theta|_token|per_tok|top_?k|topk|window|period|offset|step|interval|seed")
RATIO = re.compile(r"ratio$|expand|multiplier|ffn_mult|_factor$")
# Types of which the class that generates text does not contain the one that wrappers take.
BODIES: tuple[str, ...] = ()
# What two switches at once, or a number that is null by default, bring to a class: modeling_gemma4.py, read.
# tests/advice/test_gemma4_memory.py compares with models that were built.
GLOBAL_HEADS = (
    " + has(attention_k_eq_v)*has(num_global_key_value_heads)*count(layer_types,full_attention)*512*hidden_size"
    "*(num_global_key_value_heads-num_key_value_heads)"
)
ADDED = {
    "gemma4_text": " + has(enable_moe_block)*num_hidden_layers*(4*hidden_size+num_experts+num_experts*hidden_size"
    "+3*num_experts*hidden_size*moe_intermediate_size)"
    " + (not hidden_size_per_layer_input)*num_hidden_layers*-hidden_size" + GLOBAL_HEADS,
    "gemma4_unified_text": GLOBAL_HEADS,
    # Keys of Kimi-K3, which this class does not read: experts as wide as a latent vector with two projections, gates.
    # tests/advice/test_memory_cases.py compares the sum with the published number of parameters.
    "kimi_linear": " + has(routed_expert_hidden_size)*count(mlp_layer_types,sparse)*(2*hidden_size"
    "*routed_expert_hidden_size+3*moe_intermediate_size*num_local_experts*(routed_expert_hidden_size-hidden_size))"
    " + has(mla_use_output_gate)*count(layer_types,full_attention)*hidden_size*num_attention_heads*v_head_dim"
    " + has(linear_attn_config.use_full_rank_gate)*count(layer_types,linear_attention)*linear_head_dim"
    "*(hidden_size*linear_num_heads-hidden_size-linear_head_dim*linear_num_heads)",
}
# Switches that change what a model returns, and keys of the sizes that caches and parameters depend on.
OUTPUT = re.compile(r"^output_|^return_|^use_cache$|^gradient|^problem|^is_encoder_decoder$|init|dropout|eps$")
MEMORY = re.compile(
    "window|chunk|head|dim|lora|kernel|conv|state|group|layer|share|index|compress|rate|cycle|expand|size|multi_query"
    "|new_decoder|every|interval|period|offset|expert|cla|tie_word|is_decoder|d_model|n_embd|use_mla|k_eq_v|bidirectional|top"
    "|dense|moe|mlp_only"
)
# Sizes of classes that cannot be built at their own defaults, which are null.
STARTS: dict[str, dict[str, Any]] = {
    "dots1": {"n_routed_experts": 128, "n_shared_experts": 2},
    "nemotron": {"num_key_value_heads": 8},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention"]},
    "diffusion_gemma_text": {"num_experts": 8, "moe_intermediate_size": 704, "top_k_experts": 2},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse", "sparse"]},
    "minimax_m3_vl_text": {
        "mlp_layer_types": ["dense", "sparse", "sparse"],
        "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
    },
    "chameleon": {"vocabulary_map": {"<image>": 3, "IMGIMGAA": 4}},
    "emu3": {"vocabulary_map": {"<image>": 3, "<|visual token 000000|>": 4}},
}


def read_start(kind: type, depth: Any = None) -> dict[str, Any]:
    """Return the sizes of a class that has none of its own, lists repeated for this number of layers."""
    found = dict(STARTS.get(kind.model_type, {}))
    count = int.__int__(depth) if isinstance(depth, int) else getattr(kind, "num_hidden_layers", 0)
    return {key: (value * count)[:count] if isinstance(value, list) else value for key, value in found.items()}


# Formulas written by hand, for a class whose defaults have only one of its types of layers.
WRITTEN: dict[str, dict[str, Any]] = {
    # Its class has one type of layers by default, STARTS two.
    "minimax_m3_vl_text": {
        "lists": {"mlp_layer_types": {"cycle": ["sparse"]}, "layer_types": {"cycle": ["full_attention"]}},
    },
    # Its layers follow from two keys at once.
    "gpt_neo": {
        "body": "2*hidden_size+hidden_size*max_position_embeddings+hidden_size*vocab_size"
        "+num_layers*(6*hidden_size+4*hidden_size*hidden_size)"
        "+(not intermediate_size)*num_layers*(4*hidden_size+8*hidden_size*hidden_size)"
        "+has(intermediate_size)*num_layers*(2*hidden_size*intermediate_size+intermediate_size)"
    },
    "lfm2": {
        "body": "hidden_size+hidden_size*vocab_size+num_hidden_layers*2*hidden_size"
        "+count(layer_types,full_attention)*2*head_dim*(1+hidden_size*(num_attention_heads+num_key_value_heads))"
        "+count(layer_types,conv)*(4*hidden_size*hidden_size+hidden_size*conv_L_cache)"
        "+has(conv_bias)*count(layer_types,conv)*5*hidden_size"
        "+has(block_auto_adjust_ff_dim)*num_hidden_layers*3*hidden_size*block_multiple_of"
        "*((block_multiple_of-1+int(block_ffn_dim_multiplier*((2*intermediate_size)//3)))//block_multiple_of)"
        "+(not block_auto_adjust_ff_dim)*num_hidden_layers*3*hidden_size*intermediate_size"
    },
}
COUNTED = re.compile(
    "first_k_dense|num_dense|experts$|n_shared|num_nextn|every|step|interval|period|frequency|kv_shared|start_index"
)
PLACED = re.compile("first_k_dense|num_dense")
"""Numbers of layers that may be 0, among those."""
EXPERTS = re.compile("moe|expert|sparse|mlp_layer_types|mlp_only|first_k_dense|num_dense")
EMBEDDED = re.compile("^(.*\\.)?(embedding_size|word_embed_proj_dim|embedding_dim)$")
INDEXES = re.compile("mlp_only|moe_layers|cross_attention_layers|no_rope_layers")
"""Keys with a list of layers that a class fills in where a file has none."""
LISTED = re.compile("^(layer_types|layers_block_type|block_types)$")
# Dimensions that are rounded, which no other dimension of the model equals: modeling_xlstm.py, read.
ROUNDED = (
    "(ffn_round_up_to_multiple_of*((int(hidden_size*ffn_proj_factor)+ffn_round_up_to_multiple_of-1)"
    "//ffn_round_up_to_multiple_of))"
)
FOLDED_BY_HAND: dict[str, dict[tuple[str, int], str]] = {
    "xlstm": {
        **{(f"blocks.*.ffn.{name}.weight", 0): ROUNDED for name in ("proj_up_gate", "proj_up")},
        ("blocks.*.ffn.proj_down.weight", 1): ROUNDED,
    }
}
HEADS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")


class Group(NamedTuple):
    """Parameters of one place in a layer: the name without numbers, the formula of one, whether the head has it."""

    name: str
    size: str
    is_head: bool


Model = tuple[dict[str, PreTrainedConfig], Counter[Group], dict[Group, Poly], dict[str, tuple[Any, ...]], bool]


def mapped(name: str, config: PreTrainedConfig) -> type | None:
    """Return the class that one of the mappings of transformers has for a configuration."""
    mapping = getattr(modeling_auto, name, None)
    try:
        found = mapping[type(config)] if mapping is not None else None
    except Exception:
        return None
    return found[0] if isinstance(found, (list, tuple)) else found


def body_class(config: PreTrainedConfig) -> type | None:
    """Return the class without a head."""
    return mapped("MODEL_MAPPING", config)


def head_class(config: PreTrainedConfig) -> type | None:
    """Return the class that generates text, with all other parts of the model."""
    order = list(HEADS)
    if config.is_encoder_decoder:
        order = ["SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", *order]
    found = (mapped(f"MODEL_FOR_{name}_MAPPING", config) for name in order)
    return next((kind for kind in found if kind is not None), None)


def fields_of(kind: type, resolved: PreTrainedConfig, prefix: str = "") -> dict[str, Any]:
    """Return {dotted key: the number, switch or list that a configuration class has by default} of all its parts."""
    found: dict[str, Any] = {}
    for key in kind.__dataclass_fields__:
        value = stored(resolved, key)
        if isinstance(value, PreTrainedConfig):
            found.update(fields_of(type(value), value, f"{prefix}{key}."))
        elif not SKIPPED.search(key) and isinstance(value, (int, float, list, tuple, type(None))):
            found[prefix + key] = value
    return found


def make_config(kind: type, resolved: PreTrainedConfig, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """Return a configuration, or the dict of a part of one, with symbols for its numbers and with these changes."""
    depth = changes.get(f"{prefix}num_hidden_layers", getattr(resolved, "num_hidden_layers", None))
    given: dict[str, Any] = read_start(kind, depth)
    for key in kind.__dataclass_fields__:
        value, path = stored(resolved, key), prefix + key
        if isinstance(value, PreTrainedConfig):
            given[key] = make_config(type(value), value, changes, path + ".")
            continue
        if path in changes:
            given[key] = changes[path]
        if SKIPPED.search(key) or (path in changes and not is_number(changes[path])):
            continue
        value = changes.get(path, value)
        if is_repeated(value) and is_number(depth) and len(value) == getattr(resolved, "num_hidden_layers", 0):
            given[key] = [Symbol(value[0], path)] * int.__int__(depth)
        elif is_number(value):
            given[key] = Symbol(value, path)
        elif isinstance(value, float) and RATIO.search(key):
            given[key] = Quotient(value, path)
        elif key == "head_dim" and value is None and path not in changes:
            given.update(head_dim_of(resolved, prefix))
    if takes_head_dim(kind):
        given.update(head_dim_of(resolved, prefix))
    for key in find_taken_keys(kind):
        path = prefix + key
        if path in changes and changes[path] is None:
            continue
        given[key] = Symbol(changes.get(path, resolved.__dict__[key]), path)
    if prefix:
        return {"model_type": kind.model_type, **given}
    with tracing():
        return kind(**given)


def stored(config: PreTrainedConfig, key: str) -> Any:
    """Return the value of a field, which a configuration may keep under another name."""
    return config.__dict__.get(key, config.__dict__.get(config.attribute_map.get(key, key)))


def head_dim_of(resolved: PreTrainedConfig, prefix: str) -> dict[str, Any]:
    """Return the size of a head under its usual name, where a configuration has none but what it follows from."""
    heads, width = (getattr(resolved, key, None) for key in ("num_attention_heads", "hidden_size"))
    if not is_number(heads) or not is_number(width) or not heads or width // heads % 2:
        return {}
    return {"head_dim": Symbol(width // heads, prefix + "head_dim")}


@functools.cache
def takes_head_dim(kind: type) -> bool:
    """Return whether a class without the field head_dim keeps one that a file has."""
    if "head_dim" in kind.__dataclass_fields__ or "head_dim" in kind.attribute_map:
        return False
    try:
        return kind(head_dim=48).__dict__.get("head_dim") == 48
    except Exception:
        return False


def is_repeated(value: Any) -> bool:
    """Return whether a value is a list that has the same number for every layer."""
    return isinstance(value, (list, tuple)) and len(value) > 3 and is_number(value[0]) and len(set(value)) == 1


@functools.cache
def find_taken_keys(kind: type) -> tuple[str, ...]:
    """Return the numbers that a class computes from its fields, but takes from a file that has them."""
    found = []
    for key, value in vars(kind(**read_start(kind))).items():
        if key in kind.__dataclass_fields__ or key.startswith("_") or not is_number(value) or SKIPPED.search(key):
            continue
        if key == "head_dim" or key in kind.attribute_map or DEPTH.search(key) or value < 1:
            continue
        try:
            taken = kind(**{key: value + 8}).__dict__.get(key) == value + 8
        except Exception:
            continue
        found += [key] if taken else []
    return tuple(found)


def is_number(value: Any) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def parts_of(config: PreTrainedConfig, prefix: str = "") -> dict[str, PreTrainedConfig]:
    """Return {dotted path: configuration} of a configuration and all that it contains."""
    found = {prefix.rstrip("."): config}
    for key, value in config.__dict__.items():
        if isinstance(value, PreTrainedConfig):
            found.update(parts_of(value, f"{prefix}{key}."))
    return found


def list_dimensions(parameter: torch.nn.Parameter) -> tuple[int, ...]:
    """Return the sizes of a parameter, with their formulas where these were noted."""
    noted = getattr(parameter, "sizes", None)
    return tuple(parameter.shape) if noted is None or len(noted) != parameter.dim() else noted


def starred(name: str) -> str:
    """Return the name of a parameter without the number of its layer."""
    return re.sub(r"(?<=[._])\d+(?=\.|$)", "*", name)


Folded: TypeAlias = Mapping[tuple[str, int], Poly]
"""{(name of a parameter, index of a dimension): the formula that was lost when the dimension was computed}."""


def make_model(architecture: type, config: PreTrainedConfig) -> Any:
    """Return a model on the meta device."""
    with torch.device("meta"):
        return architecture._from_config(config) if hasattr(architecture, "_from_config") else architecture(config)


def find_folded(kind: type, architecture: type, shallow: Mapping[str, Any]) -> dict[tuple[str, int], Poly]:
    """Return the formulas of dimensions that have none in the trace, found by comparing models of other sizes.

    Such a dimension was computed by a function that drops the formulas. It takes the formula of another dimension, or
    of a sum or product of two, that has the same value in every model.
    """
    resolved = kind(**read_start(kind))
    fields = fields_of(kind, resolved)
    runs = []
    for change in ({}, *find_other_sizes(kind, architecture, fields, shallow)):
        try:
            config = make_config(kind, resolved, {**shallow, **change})
            with tracing():
                model = make_model(architecture, config)
        except Exception:
            # A number that the class computes from others keeps its default here, which may not fit these sizes.
            continue
        runs.append({name: list_dimensions(one) for name, one in model.named_parameters()})
        values = {path: value for path, value in ({**fields, **shallow, **change}).items() if is_number(value)}
        runs[-1][""] = tuple(Symbol(value, path) for path, value in values.items() if value > 1)
    written = FOLDED_BY_HAND.get(kind.model_type, {})
    found: dict[tuple[str, int], Poly] = {}
    for name in runs[0]:
        for (end, index), text in written.items():
            if starred(name).endswith(end):
                found[starred(name), index] = {(text,): 1}
    if len(runs) < 2:
        return found
    known: dict[str, list[int | None]] = {}
    polys: dict[str, Poly] = {}
    for index, run in enumerate(runs):
        for sizes in run.values():
            for size in sizes:
                if isinstance(size, Symbol):
                    text = write(size.poly)
                    polys[text] = size.poly
                    known.setdefault(text, [None] * len(runs))[index] = int.__int__(size)
    complete = {
        text: values for text, values in sorted(known.items(), key=lambda one: len(one[0])) if None not in values
    }
    for name, sizes in runs[0].items():
        for index, size in enumerate(sizes):
            key = starred(name), index
            if not name or isinstance(size, Symbol) or key in found or any(name not in run for run in runs):
                continue
            seen = [int.__int__(run[name][index]) for run in runs if len(run[name]) > index]
            if len(seen) == len(runs) and len(set(seen)) > 1:
                poly = find_expression(seen, complete, polys)
                if poly is not None:
                    found[key] = poly
    return found


def find_expression(seen: list[int], known: Mapping[str, list[Any]], polys: Mapping[str, Poly]) -> Poly | None:
    """Return a formula with these values: a known one, a multiple of it, or the sum or product of two."""
    for times in (1, 2, 3, 4, 6, 8):
        for text, values in known.items():
            if [times * value for value in values] == seen:
                return multiply({(): times}, polys[text])
    if len(seen) < 3 or len(known) > 300:
        return None
    texts = list(known)
    for first, left in enumerate(texts):
        for right in texts[first:]:
            pairs = list(zip(known[left], known[right], strict=True))
            if [a * b for a, b in pairs] == seen:
                return multiply(polys[left], polys[right])
            for times in (1, 2):
                if [a + times * b for a, b in pairs] == seen:
                    return add(polys[left], multiply({(): times}, polys[right]))
    return None


def find_other_sizes(
    kind: type, architecture: type, fields: Mapping[str, Any], shallow: Mapping[str, Any], count: int = 3
) -> list[dict[str, Any]]:
    """Return changes of many numbers at once with which the class still builds a model, other ratios first."""
    chance, found = random.Random(kind.model_type), []
    names = [key for key, value in fields.items() if is_number(value) and value > 1 and not SIZELESS.search(key)]
    names = [key for key in names if not DEPTH.search(key)]
    for attempt in range(15):
        share = 0.9 if attempt < 5 else 0.5 if attempt < 10 else 0.25
        change = {}
        for key in names:
            value = shallow.get(key, fields[key])
            others = [value * 2, value * 3, *([value // 2] if value % 2 == 0 and value > 2 else [])]
            if chance.random() < share:
                change[key] = chance.choice(others)
        try:
            make_model(architecture, make_plain(kind, fields, {**shallow, **change}))
        except Exception:
            continue
        found.append(change)
        if len(found) == count:
            break
    return found


def make_plain(kind: type, fields: Mapping[str, Any], changes: Mapping[str, Any]) -> PreTrainedConfig:
    """Return a configuration with these changes of dotted keys and without symbols."""
    given: dict[str, Any] = {}
    resolved = kind(**read_start(kind))
    filled: dict[str, Any] = {}
    for path, part in parts_of(resolved).items():
        prefix = path + "." if path else ""
        depth = changes.get(f"{prefix}num_hidden_layers", getattr(part, "num_hidden_layers", None))
        filled |= {prefix + key: value for key, value in read_start(type(part), depth).items()}
    for path, value in {**filled, **changes}.items():
        *outer, key = path.split(".")
        place, part = given, resolved
        for step in outer:
            part = getattr(part, step)
            place = place.setdefault(step, {"model_type": part.model_type})
        place[key] = value
    return kind(**given)


def build(architecture: type, config: PreTrainedConfig, folded: Folded = MappingProxyType({})) -> Model:
    """Return the parts of the configuration, the parameters by group, their formulas, and parts that are whole models.

    A module that is the class of another model type is not counted here: {path: (its type, "body" or "all")}.
    """
    with tracing():
        model = make_model(architecture, config)
    parts = parts_of(model.config)
    whole: dict[str, tuple[str, str]] = {}
    for name, module in model.named_modules():
        own = getattr(module, "config", None)
        if not name or not isinstance(own, PreTrainedConfig) or type(own) is type(model.config):
            continue
        if any(name.startswith(other + ".") for other in whole):
            continue
        path = next((path for path, part in parts.items() if part is own and path), None)
        path = path or next((path for path, part in parts.items() if path and type(part) is type(own)), None)
        if path is None or own.model_type not in CONFIG_MAPPING:
            continue
        if type(module) is body_class(own):
            whole[name] = (path, "body")
        elif type(module) is head_class(own):
            whole[name] = (path, "all")
    groups: Counter[Group] = Counter()
    sizes: dict[Group, Poly] = {}
    inner = model.base_model_prefix
    body = getattr(model, inner, None) if type(model) is not body_class(config) else None
    split = body is not None and type(body) is body_class(config)
    for name, parameter in model.named_parameters():
        if any(name.startswith(other + ".") for other in whole):
            continue
        size: Poly = {(): 1}
        for index, one in enumerate(list_dimensions(parameter)):
            lost = None if isinstance(one, Symbol) else folded.get((starred(name), index))
            size = multiply(size, poly_of(one) if lost is None else lost)
        is_head = split and not name.startswith(inner + ".")
        group = Group(starred(name), write(size), is_head)
        groups[group] += 1
        sizes[group] = size
    many = Counter(whole.values())
    found = {
        path: (parts[path].model_type, which, *([many[path, which]] * (many[path, which] > 1))) for path, which in many
    }
    return parts, groups, sizes, found, split


def counters(parts: Mapping[str, PreTrainedConfig]) -> dict[str, int]:
    """Return {text: value} of what a number of layers can be: sizes, and how often a word is in a list."""
    found: dict[str, int] = {}
    for path, part in parts.items():
        prefix = path + "." if path else ""
        depth = getattr(part, "num_hidden_layers", None)
        if is_number(depth) and any(EXPERTS.search(key) for key in part.__dict__):
            found[f"dense({prefix}num_hidden_layers)"] = sum(
                is_dense(part.__dict__.get, index) for index in range(depth)
            )
        for key in ("layer_types", "layers_block_type"):
            listed = getattr(part, key, None)
            if isinstance(listed, (list, tuple)) and key not in part.__dict__:
                for word in sorted(set(listed)):
                    found[f"count({prefix}{key},{word})"] = list(listed).count(word)
        for key in type(part).__dataclass_fields__:
            value = part.__dict__.get(key)
            if is_number(value) and DEPTH.search(key):
                found[prefix + key] = int.__int__(value)
        for key, value in part.__dict__.items():
            if not isinstance(value, (list, tuple)):
                continue
            if value and all(isinstance(word, str) for word in value):
                found[f"len({prefix}{key})"] = len(value)
                for word in sorted(set(value)):
                    found[f"count({prefix}{key},{word})"] = list(value).count(word)
            elif all(is_number(one) for one in value) and key != "moe_layers":
                found[f"len({prefix}{key})"] = len(value)
                depth = getattr(part, "num_hidden_layers", None)
                if is_number(depth):
                    found[f"below({prefix}{key},num_hidden_layers)"] = sum(one < depth for one in value)
                if all(one in (0, 1) for one in value):
                    found[f"sum({prefix}{key})"] = sum(value)
        for key in type(part).__dataclass_fields__:
            value = part.__dict__.get(key)
            if is_number(value) and COUNTED.search(key):
                found[prefix + key] = int.__int__(value)
    return found


def find_counter(values: list[int], options: dict[str, list[int]]) -> str | None:
    """Return the formula by which a number of parameters followed from the configuration in every run."""
    if len(set(values)) == 1:
        return str(values[0])
    for text, seen in options.items():
        for times in (1, 2, 3, 4):
            for more in (0, -1, 1, -2, 2):
                if all(times * one + more == value for one, value in zip(seen, values, strict=True)):
                    return (f"{times}*" if times > 1 else "") + text + (f"{more:+d}" if more else "")
    pairs = [(a, b) for a in options for b in options if a != b]
    for left, right in pairs:
        seen = list(zip(options[left], options[right], strict=True))
        for sign, compute in (
            ("-", lambda a, b: a - b),
            ("+", lambda a, b: a + b),
            ("*", lambda a, b: a * b),
            ("//", lambda a, b: a // b if b else -1),
        ):
            if all(compute(*both) == value for both, value in zip(seen, values, strict=True)):
                return f"{left}{sign}{right}"
        # Every n-th layer, from the n-th or from the first, once or once for each expert.
        if not re.search("step|frequency|interval", right) or not re.search("layers$|depth$", left):
            continue
        if [a - a // b if b else -1 for a, b in seen] == values:
            return f"{left}-{left}//{right}"
        for text, more in ((f"({left}//{right})", 0), (f"(({left}+{right}-1)//{right})", -1)):
            layers = [(a + (b - 1 if more else 0)) // b if b else -1 for a, b in seen]
            if layers == values:
                return text
            for experts in options:
                if [one * many for one, many in zip(layers, options[experts], strict=True)] == values:
                    return f"{experts}*{text}"
    return None


Term = tuple[str, str, bool]
"""(condition, how many, whether of the head), the first two as text; "" for always."""


def derive(kind: type, architecture: type) -> tuple[dict[Term, Poly], Model, list[str]]:
    """Return {(condition, how often, of the head): formula of one}, the first model, and what is in doubt."""
    resolved = kind(**read_start(kind))
    fields = fields_of(kind, resolved)
    shallow = {key: 9 for key, value in fields.items() if is_number(value) and DEPTH.search(key) and value > 12}
    try:
        base = build(architecture, make_config(kind, resolved, shallow))
    except Exception:
        shallow = {}
        base = build(architecture, make_config(kind, resolved, shallow))
    folded = find_folded(kind, architecture, shallow)

    def run(change: Mapping[str, Any]) -> Model | None:
        try:
            return build(architecture, make_config(kind, resolved, {**shallow, **change}), folded)
        except Exception:
            return None

    depths = {key: shallow.get(key, value) for key, value in fields.items() if is_number(value) and DEPTH.search(key)}
    changes: list[dict[str, Any]] = [{}, *({key: value + 5} for key, value in depths.items())]
    changes.append({key: value + 11 + index for index, (key, value) in enumerate(depths.items())})
    counted = [key for key, value in fields.items() if is_number(value) and COUNTED.search(key)]
    changes += [{key: fields[key] + 1} for key in counted if fields[key] or PLACED.search(key)]
    plain = len(changes)
    changes += list_other_layers(kind, base[0], fields)
    runs = [one for one in map(run, changes[:plain]) if one is not None]
    listed = [one for one in map(run, changes[plain:]) if one is not None]
    base = runs[0]
    doubts: list[str] = []
    number: dict[Group, str] = {}
    sizes: dict[Group, Poly] = {}
    for one in (*runs, *listed):
        sizes.update(one[2])
    for group in sizes:
        text = fit(group, [*runs, *listed])
        if text is None:
            doubts.append(f"{group.name} {[one[1].get(group, 0) for one in (*runs, *listed)]}")
            text = fit(group, runs) or str(base[1].get(group, 0))
        number[group] = text
    # What each switch brings or takes away.
    conditions: dict[Group, list[str]] = {group: [] for group in sizes}
    for key, turned, condition, contrary in list_switches(kind, resolved, fields):
        other = run({key: turned})
        if other is None or other[1] == base[1]:
            continue
        turned_runs: list[Model] | None = None
        for group in base[1].keys() | other[1].keys():
            before, after = base[1].get(group, 0), other[1].get(group, 0)
            if before and not after:
                conditions.setdefault(group, []).append(contrary)
            elif after and not before and number.get(group, "0") == "0":
                if turned_runs is None:
                    turned_runs = [one for change in changes if (one := run({**change, key: turned})) is not None]
                number[group] = fit(group, turned_runs) or find_number_of_same_layers(group, after, base[1], number)
                sizes[group] = other[2][group]
                conditions[group] = [condition]
    terms: dict[Term, Poly] = {}
    for group, size in sizes.items():
        term = ("*".join(sorted(set(conditions.get(group, [])))), number[group], group.is_head)
        terms[term] = add(terms.get(term, {}), size)
    return terms, base, doubts


def fit(group: Group, runs: list[Model]) -> str | None:
    """Return the formula by which the number of parameters of a group followed from the configuration in these runs."""
    seen = [counters(run[0]) for run in runs]
    names = dict.fromkeys(name for run in seen for name in run)
    options = {name: [run.get(name, 0) for run in seen] for name in names}
    options = {name: values for name, values in options.items() if len(set(values)) > 1}
    return find_counter([run[1].get(group, 0) for run in runs], options)


def list_switches(
    kind: type, resolved: PreTrainedConfig, fields: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str, str]]:
    """Yield (key, other value, the condition that then holds, the contrary) of what adds or removes parameters.

    These are flags, numbers that may be null, numbers that are null or 0 by default, and widths of embeddings, which
    are projected where they are not the width of the layers.
    """
    for key, value in fields.items():
        if SIZELESS.search(key) or PLACED.search(key) or key.rpartition(".")[2] in UNRELATED:
            continue
        on, off = f"has({key})", f"(not {key})"
        if isinstance(value, bool):
            yield (key, False, off, on) if value else (key, True, on, off)
        elif is_number(value) and value and not DEPTH.search(key) and is_optional(kind, resolved, key):
            if key not in derived_of(kind, resolved, {key}):
                yield key, None, off, on
        elif (value is None or is_number(value)) and not value and takes_number(kind, resolved, key):
            yield key, 16, on, off
        if is_number(value) and EMBEDDED.search(key):
            prefix = key.rpartition(".")[0] + "." * ("." in key)
            width = next((f"{prefix}{one}" for one in ("hidden_size", "d_model") if f"{prefix}{one}" in fields), key)
            differ, same = f"differ({key},{width.rpartition('.')[2]})", f"same({key},{width.rpartition('.')[2]})"
            if width != key and value == fields[width]:
                yield key, 2 * value, differ, same
            elif width != key:
                yield key, fields[width], same, differ


def list_other_layers(
    kind: type, parts: Mapping[str, PreTrainedConfig], fields: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield changes of the lists of words that say what each layer is: each word in all layers but one."""
    for name in fields:
        if re.search(r"(^|\.)(attn_layer_indices|full_attn_idxs)$", name):
            yield {name: [1]}
            yield {name: [1, 3]}
    for path, part in parts.items():
        for key in type(part).__dataclass_fields__:
            value, name = part.__dict__.get(key), f"{path}.{key}".lstrip(".")
            if name not in fields or not isinstance(value, (list, tuple)) or len(value) < 2:
                continue
            words = sorted({word for word in value if isinstance(word, str)})
            if not words or not all(isinstance(word, str) for word in value):
                continue
            # Words that the default of the class may lack: Granite's hybrid has Mamba layers alone.
            if key in ("layer_types", "layers_block_type"):
                words = list(dict.fromkeys([*words, "full_attention", "linear_attention"]))
            for index, word in enumerate(words):
                other = words[index - 1]
                yield {name: [*([word] * (len(value) - 1)), other]}
                yield {name: [other, *([word] * (len(value) - 2)), other]}
                if "num_hidden_layers" not in type(part).__dataclass_fields__:
                    yield {name: [*value, word]}


def find_number_of_same_layers(group: Group, count: int, base: Mapping[Group, int], number: Mapping[Group, str]) -> str:
    """Return how often a parameter exists that only a switch brings: as often as others of the same layers."""
    if count == 1:
        return "1"
    place, _, _ = group.name.rpartition("*")
    same = [number[other] for other in base if base[other] == count and other.name.startswith(place + "*")]
    return same[0] if same else str(count)


def is_optional(kind: type, resolved: PreTrainedConfig, key: str) -> bool:
    """Return whether a configuration class takes null for a number."""
    *path, name = key.split(".")
    for step in path:
        kind, resolved = type(getattr(resolved, step)), getattr(resolved, step)
    return "None" in str(kind.__dataclass_fields__[name].type)


def takes_number(kind: type, resolved: PreTrainedConfig, key: str) -> bool:
    """Return whether a configuration class declares a key as a whole number."""
    *path, name = key.split(".")
    for step in path:
        kind, resolved = type(getattr(resolved, step)), getattr(resolved, step)
    declared = kind.__dataclass_fields__[name].type
    return "int" in str(getattr(declared, "__name__", declared)) or "int" in str(declared)


def find_unfollowed(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return {key: default} of what changes a model of this type otherwise than its formula does.

    Each number and each switch is changed by itself, in a model that is built without symbols. {"*": None} is a formula
    that is wrong at the defaults, too.
    """
    kind = CONFIG_MAPPING[name]
    resolved = kind(**read_start(kind))
    architecture, fields = head_class(resolved) or body_class(resolved), fields_of(kind, resolved)
    which = "all" if head_class(resolved) is not None else "body"
    shallow = {key: 9 for key, value in fields.items() if is_number(value) and DEPTH.search(key) and value > 12}

    def differs(change: Mapping[str, Any]) -> bool | None:
        try:
            config = make_plain(kind, fields, {**shallow, **change})
            model = make_model(architecture, config)
        except Exception:
            return None
        measured = sum(one.numel() for one in model.parameters())
        given = {**config.to_dict(), "model_type": name}
        try:
            return abs(count_parameters(name, given, which) - measured) > 0.002 * measured
        except (ValueError, TypeError):
            return True

    if differs({}) is not False:
        shallow = {}
    if differs({}):
        return {"*": None}
    found: dict[str, Any] = {}
    inside = tuple(path + "." for path in entry.get("parts", {}))
    for key, value in fields.items():
        if key.startswith(inside) or SIZELESS.search(key) or key.rpartition(".")[2] in UNRELATED:
            continue
        if isinstance(value, bool):
            others: list[Any] = [not value]
        elif is_number(value) and value:
            value = shallow.get(key, value)
            others = [2 * value, value + 1, *([value // 2] if value % 2 == 0 else [])]
        elif (value is None or is_number(value)) and takes_number(kind, resolved, key):
            others = [16]
        elif isinstance(value, (list, tuple)) or value is None:
            continue
        else:
            others = [2 * value]
        if any(differs({key: other}) for other in others):
            found[key] = fields[key]
    return found


def text_of(terms: Mapping[Term, Poly]) -> str:
    """Return the sum of all terms as one expression."""
    parts = []
    for (condition, number, _), size in terms.items():
        if not size or number == "0":
            continue
        factors = [condition] if condition else []
        if number != "1":
            factors.append(number if re.fullmatch(r"[\w.]+|\w+\([\w.,-]+\)", number) else f"({number})")
        text = write(size)
        if factors:
            text = f"({text})" if len(size) > 1 or text.startswith("-") else text
        parts.append("*".join([*factors, text]))
    return " + ".join(parts) or "0"


def entry_of(name: str) -> tuple[dict[str, Any], list[str]]:
    """Return what the file says of one model type, and what is in doubt."""
    kind = CONFIG_MAPPING[name]
    config = kind(**read_start(kind))
    body, head = body_class(config), head_class(config)
    entry: dict[str, Any] = {}
    terms, model, doubts = derive(kind, head or body)
    if head is None or head is body or model[4]:
        entry["body"] = text_of({term: size for term, size in terms.items() if not term[2]})
        head_text = text_of({term: size for term, size in terms.items() if term[2]})
        entry.update({"head": head_text} if head_text != "0" else {})
    else:
        entry["all"] = text_of(terms)
        if body is not None and name in BODIES:
            entry["body"] = text_of(derive(kind, body)[0])
    if name in ADDED:
        entry["body"] += ADDED[name]
    if model[3]:
        entry["parts"] = model[3]
    text = " ".join(str(entry.get(key, "")) for key in ("body", "head", "all"))
    names = set(re.findall(r"[a-z_A-Z][\w.]*", text))
    fields = fields_of(kind, config)
    # A class may count a number of its own once more from what it made of it (HRM's layers).
    fields |= {key: value for key, value in raw_defaults(kind).items() if key in fields}
    own = {key: value for key, value in fields.items() if key in names and value is not None}
    own = {key: value[0] if is_repeated(value) else value for key, value in own.items()}
    entry["defaults"] = {key: value for key, value in own.items()}
    computed = {*fields, "head_dim", *find_taken_keys(kind)}
    derived = derived_of(kind, config, {key for key in names if key in computed})
    if derived:
        entry["derived"] = derived
        for key in derived:
            field = kind.__dataclass_fields__.get(key)
            if field is None or field.default is None or is_automatic(kind, key):
                entry["defaults"].pop(key, None)
    lists = {match for match in re.findall(r"(?:count|len|sum|below)\(([\w.]+)", text)}
    found = {key: value for key in sorted(lists) if (value := list_rule(kind, config, key)) is not None}
    if found:
        entry["lists"] = found
    entry["defaults"] = {key: value for key, value in entry["defaults"].items() if not isinstance(value, (list, tuple))}
    aliases = {usual: key for usual, key in kind.attribute_map.items() if key in names}
    if aliases:
        entry["aliases"] = aliases
    return entry, doubts


def memory_defaults(kind: type, config: PreTrainedConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ({key: class default} of numbers and switches, {key: rule} of lists of words) of one level of a config."""
    plain: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    for key in kind.__dataclass_fields__:
        value = stored(config, key)
        optional = kind.__dataclass_fields__[key].default is None or is_automatic(kind, key)
        if SKIPPED.search(key) or OUTPUT.search(key):
            continue
        if isinstance(value, (int, bool)) and not optional:
            plain[key] = value
        elif isinstance(value, (list, tuple)) and value and all(isinstance(word, str) for word in value):
            rule = list_rule(kind, config, key)
            rules.update({key: rule} if rule and ("list" not in rule or LISTED.search(key)) else {})
        elif isinstance(value, (list, tuple)) and 0 < len(value) < 16 and optional and INDEXES.search(key):
            rule = list_rule(kind, config, key)
            plain.update({key: rule["list"]} if rule and "list" in rule else {})
    return plain, rules


def add_memory_defaults(name: str, entry: dict[str, Any]) -> None:
    """Add to the entry of a type what `rope_viz.memory` reads besides formulas."""
    kind = CONFIG_MAPPING[name]
    plain, rules = memory_defaults(kind, kind())
    plain |= {key: value for key, value in raw_defaults(kind).items() if key in plain}
    own = {key: value for key, value in plain.items() if MEMORY.search(key)}
    entry["defaults"] = {**entry.get("defaults", {}), **own, **part_defaults(kind(), entry)}
    aliases = {other: key for other, key in kind.attribute_map.items() if MEMORY.search(other)}
    names = set(re.findall(r"[a-z_A-Z][\w.]*", " ".join(str(entry.get(key, "")) for key in ("body", "head", "all"))))
    for path, part in parts_of(kind()).items():
        pairs = part.attribute_map.items() if path else ()
        aliases |= {f"{path}.{other}": own for other, own in pairs if f"{path}.{own}" in names}
    if aliases:
        entry["aliases"] = {**aliases, **entry.get("aliases", {})}
    if rules:
        entry["lists"] = {**rules, **entry.get("lists", {})}


def part_defaults(config: PreTrainedConfig, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return {dotted key: number} of the parts that a class fills in otherwise than the classes of these parts do."""
    found: dict[str, Any] = {}
    for path in entry.get("parts", {}):
        part = parts_of(config).get(path)
        if part is not None:
            usual = raw_defaults(type(part)) | fields_of(type(part), type(part)())
            given = fields_of(type(part), part, path + ".")
            found |= {
                key: value
                for key, value in given.items()
                if isinstance(value, (int, float)) and value != usual.get(key.removeprefix(path + "."))
            }
    return found


def derived_of(kind: type, resolved: PreTrainedConfig, names: set[str]) -> dict[str, str]:
    """Return {key: formula} of numbers that the class computes from others where the config does not give them."""
    found: dict[str, str] = {}
    if takes_head_dim(kind) and "head_dim" in names:
        names = names - {"head_dim"}
        found["head_dim"] = "(hidden_size//num_attention_heads)"
    taken = find_taken_keys(kind)
    nulls: dict[str, Any] = {
        key: None for key in names if "." not in key and (key in taken or is_optional(kind, resolved, key))
    }
    nulls |= {key: "auto" for key in names if is_automatic(kind, key)}
    if not nulls:
        return found
    try:
        with tracing():
            config = make_config(kind, resolved, nulls)
    except Exception:
        return found
    for key in nulls:
        value = config.__dict__.get(key)
        value = value[0] if isinstance(value, (list, tuple)) and is_number(value[:1] and value[0]) else value
        if isinstance(value, Symbol):
            found[key] = write(value.poly)
        elif value is None and key == "head_dim":
            found[key] = "(hidden_size//num_attention_heads)"
    return found


def is_automatic(kind: type, key: str) -> bool:
    """Return whether a class computes a number from others where a file says "auto" or nothing."""
    field = kind.__dataclass_fields__.get(key)
    return field is not None and field.default == "auto"


def raw_defaults(kind: type) -> dict[str, int]:
    """Return the numbers that a configuration class declares, before it computes others from them."""
    found = {key: one.default for key, one in kind.__dataclass_fields__.items()}
    return {key: value for key, value in found.items() if is_number(value)}


def list_rule(kind: type, config: PreTrainedConfig, key: str) -> Any:
    """Return the rule by which a class fills in a list of words: {"cycle": ..., "first": ..., "last": ...}."""
    seen = []
    *path, name = key.split(".")
    for count in (None, 9, 14, 23):
        try:
            found = config
            if count is not None:
                inner: Any = {"num_hidden_layers": count}
                for step in reversed(path):
                    inner = {step: inner}
                found = kind(**inner)
            for step in path:
                found = getattr(found, step)
            value = getattr(found, name, None)
        except Exception:
            continue
        if isinstance(value, (list, tuple)):
            seen.append(list(value))
    if not seen:
        return None
    lists = seen
    if len({len(one) for one in lists}) == 1:
        return {"list": lists[0]} if len(lists[0]) < 128 else None
    longest = max(lists, key=len)
    for size in range(1, 13):
        for first in range(0, 4):
            for last in range(0, 2):
                start, end = longest[:first], longest[len(longest) - last :]
                cycle = longest[first : first + size]
                if all(expand(start, cycle, end, len(one)) == one for one in lists):
                    rule = {"cycle": cycle, "first": start, "last": end}
                    return {name: value for name, value in rule.items() if value}
    return {"list": lists[0]}


def expand(first: list[Any], cycle: list[Any], last: list[Any], count: int) -> list[Any]:
    """Return the list of `count` entries that a rule describes."""
    middle = count - len(first) - len(last)
    return [*first, *(cycle[index % len(cycle)] for index in range(middle)), *last] if middle >= 0 and cycle else []


def generates(name: str) -> bool:
    """Return whether transformers has a class of a model type that generates text or reads it."""
    try:
        config = CONFIG_MAPPING[name]()
    except Exception:
        return False
    return head_class(config) is not None or mapped("MODEL_FOR_MASKED_LM_MAPPING", config) is not None


def save(types: Mapping[str, Any]) -> None:
    """Write the file, a line for each type."""
    about = {"made by": f"tests/goldens/{Path(__file__).name}", "transformers": transformers.__version__}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types))
    PATH.write_text(f'{{"_about": {json.dumps(about)},\n"types": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main() -> None:
    """Write the formulas of the types named, or of all, and which keys they do not follow."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    found = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    types = found.get("types", {})
    torch.nn.Linear.reset_parameters = torch.nn.Embedding.reset_parameters = lambda self: None
    torch.nn.modules.conv._ConvNd.reset_parameters = lambda self: None
    waiting = sys.argv[1:] or [name for name in sorted(CONFIG_MAPPING) if generates(name)]
    later = []
    for index, name in enumerate(waiting):
        try:
            entry, doubts = entry_of(name)
        except Exception as error:
            entry, doubts = {}, [f"{type(error).__name__}: {str(error)[:150]}"]
        for doubt in doubts:
            print(f"{name}: doubt: {doubt[:150]}", flush=True)
        if generates(name):
            add_memory_defaults(name, entry)
        if entry:
            types[name] = formulas()[name] = {**entry, **WRITTEN.get(name, {})}  # type: ignore[index]
        waiting += [part for part, *_ in entry.get("parts", {}).values() if part not in waiting]
        if "parts" in entry:
            later.append(name)
        else:
            note_unfollowed(name, types)
        if index % 10 == 9:
            save(types)
    # Types that contain others after these.
    for name in later:
        note_unfollowed(name, types)
    save(types)
    print(len(types), "types")


def note_unfollowed(name: str, types: dict[str, Any]) -> None:
    """Note in the entry of a type which keys its formula does not follow."""
    if {"body", "all"} & types.get(name, {}).keys():
        unfollowed = find_unfollowed(name, types[name])
        if unfollowed:
            types[name]["unfollowed"] = unfollowed
            print(f"{name}: not followed: {unfollowed}", flush=True)


if __name__ == "__main__":
    main()
