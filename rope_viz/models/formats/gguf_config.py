"""A GGUF file as a config.json: its keys under the names of transformers, and what llama.cpp computes from them.

What its loader reads is in `gguf_loader.json`, and what its converter wrote for every architecture in
tests/goldens/converted.json and gguf_headers.json. `FILE` holds what no key of a config.json can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import Llama3
from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, RopeSpec, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Architecture, find_architecture, listed_types
from rope_viz.models.config_reader import Params
from rope_viz.models.formats import FILE, NAMES, is_texts
from rope_viz.models.formats.gguf_keys import LOADER, MOST_LAYERS, RELEASE, HeaderKeys, quote_keys
from rope_viz.models.formats.gguf_layers import (
    OTHER_CACHES,
    LayerFacts,
    find_window_rules,
    read_layers,
    read_recurrence,
)
from rope_viz.storage.limits import NAME_CHARACTERS
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_items

# {llama.cpp's architecture: model type}, where the two are not spelled with the same letters.
MODEL_TYPES: Mapping[str, str] = NAMES["gguf"]["model_types"]

# Their classes read the base from keys of their own, and not from the usual ones.
OWN_KEYS = ("baichuan", "chatglm", "qwen")

# {key of a config: keys of the GGUF after the architecture's name, the first that is there counts}
SIZES: Mapping[str, Sequence[str]] = NAMES["gguf"]["sizes"]
NEEDED = ("hidden_size", "max_position_embeddings")
LISTED = ("intermediate_size", "num_attention_heads", "moe_intermediate_size", "num_experts_per_tok")
"""Sizes that a GGUF may list for every layer."""
ROPE_KEYS = tuple(
    """
    context_length rope.freq_base rope.freq_base_swa rope.dimension_count rope.dimension_count_swa rope.scaling.type
    rope.scaling.factor rope.scale_linear rope.scaling.original_context_length rope.scaling.attn_factor
    rope.scaling.yarn_log_multiplier rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow
    attention.compress_rope_freq_base
    """.split()
)
"""What llama.cpp computes the rotation from."""
TENTHS = ("deepseek2", "deepseek32", "mistral4")
"""Architectures whose converter writes a tenth of the YaRN multiplier, which their loader multiplies again."""
UNROTATED = ("granite", "granitemoe", "graniteswitch")
"""Architectures that do not rotate where rope.scaling.finetuned is false."""
SHARED_FROM = 20
"""Layers of Gemma 3n with a cache of their own where the file does not say it (src/models/gemma3n.cpp)."""
ATTENTION = ("full_attention", "indexed_attention", "sliding_attention", "chunked_attention")
UNREAD_PARTS = ("rope", "attention")
"""Parts of a GGUF file with keys that change an answer."""
MOST_NAMED = 100
"""Keys that are named of one file."""
FAR = 1e20
"""A divisor from which on a pair counts as not rotating; the converter writes 1e30."""
LLAMA3 = tuple((factor, 1.0, 4.0, 8192) for factor in (8.0, 32.0, 16.0))
"""(factor, low and high bound, original length) of released models, whose files hold the divisors alone."""


def is_whole_source(found: Mapping[str, Any]) -> bool:
    """True if an entry under `FILE` has what llama.cpp's rules need; a config of unknown origin may hold anything."""
    keys, divisors, rotary = found.get("keys"), found.get("divisors"), found.get("rotary_dim")
    if (
        not isinstance(keys, Mapping)
        or not isinstance(divisors, Mapping)
        or not isinstance(found.get("architecture"), str)
        or not all(is_texts(found.get(name, [])) for name in ("unread", "ignored"))
    ):
        return False
    kept = found.get("kept", [])
    try:
        require_number(rotary, "rotary_dim", least=2, most=MAX_HEAD_DIM, integer=True)
        for name, value in keys.items():
            if name != "rope.scaling.type":
                require_number(value, name)
        require_number(keys.get("context_length"), "context_length", least=1, most=MAX_LENGTH, integer=True)
        lists = [read_divisors(name, values) for name, values in divisors.items()]
        for value in kept if isinstance(kept, list) and len(kept) <= MOST_LAYERS else [kept]:
            require_number(value, "kept", least=0, most=1 << 40, integer=True)
    except ValueError:
        return False
    return found.get("format") == "GGUF" and all(len(values) == int(rotary) // 2 for values in lists)  # type: ignore[arg-type]


def is_gguf_summary(found: Any) -> bool:
    """True for an object with the header of a GGUF file, as `summarise` and the browser's script make it."""
    return isinstance(found, Mapping) and set(found) == {"gguf"} and isinstance(found["gguf"], Mapping)


def config_from_gguf(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means what a GGUF header says.

    `summary` has `keys` (short values by name), `divisors` (lists by tensor), and where known `tensor_bytes`,
    `vocabulary` and `tied`; `unreadable` where the browser could not read it. Raises `ValueError` then, and where the
    architecture or a size is missing.
    """
    if summary.get("unreadable"):
        raise ValueError(TEXTS("gguf_file.header"))
    given, divisors = (read_object(summary, name) for name in ("keys", "divisors"))
    name = given.get("general.architecture")
    if not isinstance(name, str) or not name:
        raise ValueError(TEXTS("gguf_file.no_architecture"))
    prefix = f"{name}."
    own = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    renamed = {new: own[old] for old, new in LOADER["renamed"].items() if old in own and new not in own}
    as_meant = {key: value for key, value in own.items() if LOADER["renamed"].get(key) not in renamed} | renamed
    keys = HeaderKeys(name[:NAME_CHARACTERS], as_meant)  # in sentences, too
    config: dict[str, Any] = {"model_type": find_model_type(name, has_window=bool(own.get("attention.sliding_window")))}
    for key in ("general.name", "general.basename"):
        if isinstance(given.get(key), str) and "_name_or_path" not in config:
            config["_name_or_path"] = given[key]
    config |= read_sizes(keys)
    for key, value in (("vocab_size", summary.get("vocabulary")), ("tie_word_embeddings", summary.get("tied"))):
        if value is not None:
            config[key] = value
    record = find_architecture(config["model_type"])
    if keys.get("attention.causal", True) is False:
        config["use_bidirectional_attention"] = True
    elif record is not None and record.memory.cache == "none":
        # No class of an encoder keeps a cache.
        keys.refuse("attention.causal")
    config |= read_recurrence(keys)
    if keys.kind == "granitehybrid":
        # The loader rotates unless the file says that no layer does.
        config["position_embedding_type"] = "rope" if keys.get("rope.scaling.finetuned", True) else "nope"
    held: dict[str, Any] = {"format": "GGUF", "architecture": keys.name}
    head = read_head(keys, config)
    layers = read_layers(keys, config["model_type"], head.key, head.value)
    if layers is not None:
        config |= write_layers(keys, layers, head)
        held |= {"kept": layers.kept} if layers.kept is not None else {}
    rotary = head.rotary or 2
    lists = {
        key: read_divisors(key, values)[: rotary // 2 if keys.kind == "step35" else None]
        for key, values in divisors.items()
    }
    if head.rotary:
        config |= write_rope(config, read_rope(keys, config, head, layers, lists))
    unread, ignored = keys.list_unread()
    if keys.kind in UNROTATED and keys.peek("rope.scaling.finetuned") is False:
        unread.append(f"{keys.name}.rope.scaling.finetuned")
    if layers is not None and layers.lacks_pattern:
        unread.append(f"{keys.name}.attention.sliding_window_pattern")
    rope = {key: own[key] for key in ROPE_KEYS if own.get(key) is not None}
    held |= {
        "keys": rope,
        "rotary_dim": rotary,
        "divisors": lists,
        "unread": unread[:MOST_NAMED],
        "ignored": ignored[:MOST_NAMED],
    }
    size = summary.get("tensor_bytes")
    return config | {FILE: held | ({"tensor_bytes": size} if isinstance(size, int) and size > 0 else {})}


def describe_gguf(source: Mapping[str, Any]) -> Sentence:
    """Return sentences on the GGUF file that a config was made from, with the keys that were not read."""
    texts = [TEXTS("gguf.read", architecture=source.get("architecture"))]
    if source.get("ignored"):
        texts.append(describe_ignored(source["ignored"]))
    unread = {part: list_unread(source, part) for part in UNREAD_PARTS}
    return join(*texts, *(describe_unread(part, names) for part, names in unread.items() if names))


def describe_ignored(names: Iterable[str]) -> Sentence:
    """Return the sentence on keys of a GGUF file that llama.cpp does not use."""
    return TEXTS("gguf.ignored", release=RELEASE, names=quote_keys(names))


def describe_unread(part: str, names: Iterable[str]) -> Sentence:
    """Return the sentence on keys under "rope" or "attention" that are not read, and what is not known then."""
    return TEXTS(f"gguf.unread.{part}", names=quote_keys(names))


def list_unread(source: Mapping[str, Any], part: str) -> list[str]:
    """Return the keys under "rope" or "attention" that a GGUF file has and that were not read."""
    prefix = f"{source.get('architecture')}.{part}."
    return [name for name in source.get("unread", ()) if str(name).startswith(prefix)]


def read_object(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object under a name, {} where there is none. Raises `ValueError` for anything else."""
    found = part.get(name) or {}
    if not isinstance(found, Mapping):
        raise ValueError(TEXTS("gguf_file.header_object", name=name, found=short_repr(found)))
    return found


def find_model_type(kind: str, *, has_window: bool = False) -> str:
    """Return the model type of one of llama.cpp's architectures; the name itself where none is known."""
    kind = LOADER["aliases"].get(kind, kind)
    if kind == "olmo2" and has_window:
        return "olmo3"
    if kind in MODEL_TYPES:
        return MODEL_TYPES[kind]
    if kind in OWN_KEYS:
        return f"{kind} (GGUF)"
    letters = "".join(letter for letter in kind if letter.isalnum())
    for wanted in (letters, f"{letters}text"):
        for name in sorted(listed_types()):
            record = find_architecture(name)
            is_text = record is not None and record.text is None and not record.not_text
            if is_text and name.replace("_", "").replace("-", "") == wanted:
                return name
    return kind


def read_sizes(keys: HeaderKeys) -> dict[str, Any]:
    """Return the sizes of the model; of a size by layer the largest. Raises `ValueError` for a missing or wrong one."""
    found: dict[str, Any] = {}
    for name, places in SIZES.items():
        key = next((key for key in places if keys.has(key)), None)
        if key is None:
            if name in NEEDED:
                raise ValueError(TEXTS("gguf_file.no_key", name=keys.name, key=places[0]))
            continue
        value = keys.get(key)
        values = value if isinstance(value, list) and value and name in LISTED else [value]
        for each in values:
            require_number(each, f"{keys.name}.{key}", least=0, most=1 << 40, integer=True)
        found[name] = int(max(values))
    for name, most in (("max_position_embeddings", MAX_LENGTH), ("hidden_size", 1 << 40)):
        require_number(found[name], f"{keys.name}.{SIZES[name][0]}", least=1, most=most)
    return {name: value for name, value in found.items() if value != 0}


@dataclass(frozen=True)
class Head:
    """Sizes of a head of layers without a window: its key, its value, and how many dimensions rotate.

    All are 0 where no layer has attention.
    """

    key: int
    value: int
    rotary: int


def read_head(keys: HeaderKeys, config: dict[str, Any]) -> Head:
    """Add the sizes of a head to the config, and return them."""
    heads = config.get("num_attention_heads")
    if not heads and keys.has("attention.head_count"):
        return Head(0, 0, 0)
    if keys.size("attention.key_length") is None and heads is None:
        raise ValueError(TEXTS("gguf_file.no_heads", name=keys.name))
    stored = keys.size("attention.key_length") or config["hidden_size"] // heads
    size = keys.size("attention.key_length_mla") or stored
    require_number(size, f"{keys.name}.attention.key_length", least=1, most=MAX_HEAD_DIM * 8, integer=True)
    rotary = read_rotated(keys, "rope.dimension_count", size)
    if keys.kind == "step35":
        # Half of them rotate in the layers without a window (src/models/step35.cpp).
        rotary = read_rotated(keys, "rope.dimension_count", size, parts=4) // 2
    record = find_architecture(config["model_type"])
    value = int(size) if heads is None else config["hidden_size"] // heads
    # With MLA the cache has no values of its own: they are a part of the keys.
    if not keys.has("attention.key_length_mla") or keys.peek("attention.value_length") == config.get("kv_lora_rank"):
        value = keys.size("attention.value_length") or value
    if keys.kind in OTHER_CACHES and value != size:
        keys.refuse("attention.value_length")
    if "kv_lora_rank" in config or (record is not None and "qk_rope_head_dim" in record.head_size):
        config |= {"qk_rope_head_dim": rotary}
        # Without the keys of MLA the length of a key may be that of the compressed cache.
        if keys.has("attention.key_length_mla") or stored != config.get("kv_lora_rank", 0) + rotary:
            config |= {"qk_nope_head_dim": int(size - rotary)}
        latent_value = "attention.value_length" + ("_mla" if keys.has("attention.key_length_mla") else "")
        if keys.has(latent_value):
            config |= {"v_head_dim": keys.size(latent_value)}
    else:
        config |= {"head_dim": int(max(size, rotary))}
        if value != size:
            config |= {"v_head_dim": value}
    return Head(int(stored), int(value), rotary)


def read_rotated(keys: HeaderKeys, key: str, default: int, parts: int = 2) -> int:
    """Return how many dimensions of a head rotate, a multiple of `parts`."""
    value = keys.get(key, default)
    require_number(value, f"{keys.name}.{key}", least=2, most=MAX_HEAD_DIM, integer=True)
    if value % parts:
        raise ValueError(TEXTS("gguf_file.multiple", name=keys.name, key=key, parts=parts, value=int(value)))
    return int(value)


def write_layers(keys: HeaderKeys, layers: LayerFacts, head: Head) -> dict[str, Any]:
    """Return the keys of a config that say how many layers there are, of which type, and what they keep."""
    found: dict[str, Any] = {"num_hidden_layers": layers.count}
    if any(layers.heads):
        found["num_key_value_heads"] = max(layers.heads)
    if layers.types is not None:
        found["layer_types"] = layers.types
    chunked = "chunked_attention" in (layers.types or ())
    if layers.window:
        found["attention_chunk_size" if chunked else "sliding_window"] = layers.window
    rules = find_window_rules(keys.kind)
    if rules is None and isinstance(keys.peek("attention.sliding_window"), int):
        # llama.cpp does not read it, but the class of transformers may.
        found["sliding_window"] = keys.peek("attention.sliding_window")
    if keys.kind == "gemma4":
        found |= {
            "head_dim": keys.size("attention.key_length_swa") or head.key,
            "global_head_dim": head.key,
            "attention_k_eq_v": True,
        }
        places = {"num_key_value_heads": "sliding_attention", "num_global_key_value_heads": "full_attention"}
        found |= {name: heads for name, type in places.items() if (heads := layers.heads_of(type)) is not None}
    if keys.kind in ("gemma4", "gemma3n"):
        own = max(layers.count - SHARED_FROM, 0) if keys.kind == "gemma3n" else 0
        shared = keys.size("attention.shared_kv_layers")
        found["num_kv_shared_layers"] = own if shared is None else shared
    modes = keys.layers("attention.indexer.types", layers.count) if keys.has("attention.indexer.types") else None
    if modes is not None and keys.kind != "dots3note":
        found["indexer_types"] = ["full" if mode else "shared" for mode in modes]
    if keys.kind == "deepseek4":
        found |= {"compress_ratios": keys.layers("attention.compress_ratios", layers.count, at_least=True)}
        found |= {"head_dim": head.key}
        if set(layers.heads) - {1}:
            keys.refuse("attention.head_count_kv")
        found.pop("layer_types", None)
    if keys.kind == "minimax-m3":
        first = keys.size("leading_dense_block_count") or 0
        flags = [int(index >= first) for index in range(layers.count)]
        sizes = {
            name: keys.size(f"attention.indexer.{key}")
            for name, key in (("index_dim", "key_length"), ("num_index_heads", "head_count"), ("topk_blocks", "top_k"))
        }
        known = {f"sparse_{name}": size for name, size in sizes.items() if size}
        found["sparse_attention_config"] = {"sparse_attention_freq": flags, **known}
        found["rotary_dim"] = head.rotary
    return found


def read_divisors(name: str, values: Any) -> list[float]:
    """Return the divisors of one tensor. Raises `ValueError` for anything but numbers above 0."""
    if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MAX_HEAD_DIM:
        raise ValueError(TEXTS("gguf_file.divisors", name=name))
    label = TEXTS("value.entries", name=name)
    for value in values:
        require_number(value, label, above=0.0)
    return [float(value) for value in values]


def read_rope(
    keys: HeaderKeys,
    config: Mapping[str, Any],
    head: Head,
    layers: LayerFacts | None,
    divisors: Mapping[str, Sequence[float]],
) -> Params:
    """Return rope_parameters: flat, or by layer type where the model type has them so."""
    record, rules = find_architecture(config["model_type"]), find_window_rules(keys.kind)
    main = read_layer(keys, config, head, divisors)
    if rules is None:
        return main
    base = keys.peek("rope.freq_base_swa")
    if base is not None:
        require_number(base, f"{keys.name}.rope.freq_base_swa", above=1.0, most=1e30)
        keys.get("rope.freq_base_swa")
    default = main["rope_theta"] if rules.base else 10_000.0
    if record is not None and (not record.rope.layer_types or keys.kind == "deepseek4"):
        # One embedding for all layers: that of the layers that rotate.
        if record.layers.rotating.startswith("sliding"):
            main = main | {"rope_theta": default if base is None else float(base)}
        for key, value in (("freq_base", main["rope_theta"]), ("dimension_count", head.rotary)):
            if keys.has(f"rope.{key}_swa") and keys.get(f"rope.{key}_swa") != value:
                keys.refuse(f"rope.{key}_swa")
        return main
    local: Params = dict(main) if rules.scaled else {"rope_type": "default"}
    local["rope_theta"] = default if base is None else float(base)
    local.pop("partial_rotary_factor", None)
    size = config.get("head_dim", head.key)
    rotary = read_rotated(keys, "rope.dimension_count_swa", head.rotary * (2 if keys.kind == "step35" else 1))
    if rotary != size or (record is not None and record.partial_rotary):
        local["partial_rotary_factor"] = rotary / size
    types = [type for type in (layers.types or () if layers else ()) if type in ATTENTION]
    if record is None and (local == main or "sliding_attention" not in types):
        return main
    names = dict.fromkeys([*(record.rope.layer_types if record else ()), *types])
    return {type: local if type == "sliding_attention" else main for type in names}


def write_rope(config: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """Return the parameters under the keys that transformers 4 and 5 both read, where the class reads them as usual."""
    record = find_architecture(config["model_type"])
    if record is not None and record.rope.rule == "deepseek_v4":
        compress = params.pop("compress_rope_theta", None)
        scaling = {key: value for key, value in params.items() if key not in ("rope_theta", "partial_rotary_factor")}
        found = {"rope_theta": params["rope_theta"], **({} if compress is None else {"compress_rope_theta": compress})}
        return found | ({} if scaling["rope_type"] == "default" else {"rope_scaling": scaling})
    scaled = record is not None and record.defaults.get("rope_parameters")
    if "rope_theta" not in params:
        return {"rope_parameters": params}
    if record is not None and (record.rope.rule or record.rope.layer_types or scaled):
        return {"rope_parameters": params}
    places = ("rope_theta", "partial_rotary_factor")
    top, scaling = ({key: params[key] for key in params if (key in places) is here} for here in (True, False))
    return top | ({} if scaling["rope_type"] == "default" else {"rope_scaling": scaling})


def read_layer(
    keys: HeaderKeys, config: Mapping[str, Any], head: Head, divisors: Mapping[str, Sequence[float]]
) -> Params:
    """Return the parameters of the layers without a window."""
    base = keys.number("rope.freq_base", 10_000.0, above=1.0, most=1e30)
    scaling = keys.get("rope.scaling.type", "yarn" if keys.name in LOADER["yarn_without_type"] else "linear")
    place = "rope.scaling.factor" if keys.has("rope.scaling.factor") else "rope.scale_linear"
    factor = 1.0 if scaling == "none" else keys.get(place) or 1.0
    require_number(factor, f"{keys.name}.{place}", above=0.0, most=1e9)
    params: Params = {"rope_theta": base}
    size = head.key if keys.kind == "gemma4" else config.get("head_dim", head.rotary)
    if size != head.rotary:
        params["partial_rotary_factor"] = head.rotary / size
    if keys.has("attention.compress_rope_freq_base") and keys.kind == "deepseek4":
        params["compress_rope_theta"] = keys.number("attention.compress_rope_freq_base", base, above=1.0, most=1e30)
    record = find_architecture(config["model_type"])
    if keys.has("rope.dimension_sections"):
        sections = keys.get("rope.dimension_sections")
        if isinstance(sections, list) and all(isinstance(each, int) for each in sections):
            params["mrope_section"] = [each for each in sections if each]
    if divisors:
        return params | read_lists(keys, base, head.rotary, divisors, config["max_position_embeddings"])
    if scaling == "yarn":
        return params | read_yarn(keys, float(factor), record, config["max_position_embeddings"])
    alpha = keys.get("rope.scaling.alpha") if keys.kind in ("hunyuan_vl", "hunyuan-dense") else None
    if alpha:
        require_number(alpha, f"{keys.name}.rope.scaling.alpha", above=0.0, most=1e9)
        params["rope_theta"] = base * float(alpha) ** (head.rotary / (head.rotary - 2))
    if keys.peek("rope.scaling.attn_factor") == 1.0:
        keys.get("rope.scaling.attn_factor")
    if scaling == "none" or factor == 1.0:
        return params | {"rope_type": "default"}
    return params | {"rope_type": "linear", "factor": float(factor)}


def read_yarn(keys: HeaderKeys, factor: float, record: Architecture | None, limit: int) -> Params:
    """Return the parameters of YaRN as its file means them, whether or not llama.cpp reads each."""
    original = keys.get("rope.scaling.original_context_length", limit)
    require_number(
        original, f"{keys.name}.rope.scaling.original_context_length", least=1, most=MAX_LENGTH, integer=True
    )
    found: Params = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": int(original)}
    for name in ("beta_fast", "beta_slow"):
        if keys.has(f"rope.scaling.yarn_{name}"):
            found[name] = keys.number(f"rope.scaling.yarn_{name}", 1.0)
    # No key of a GGUF says whether the range is rounded.
    if record is not None and (record.defaults.get("rope_parameters") or {}).get("truncate") is False:
        found["truncate"] = False
    if keys.peek("rope.scaling.yarn_ext_factor") == 1.0:
        keys.get("rope.scaling.yarn_ext_factor")
    if keys.has("rope.scaling.yarn_log_multiplier"):
        value = keys.number("rope.scaling.yarn_log_multiplier", 0.0) * (10.0 if keys.kind in TENTHS else 1.0)
        return found | {"mscale": round(value, 6), "mscale_all_dim": round(value, 6)}
    for key in ("rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"):
        if keys.has(key):
            return found | {"attention_factor": keys.number(key, 1.0)}
    return found


def read_lists(
    keys: HeaderKeys, base: float, rotary: int, divisors: Mapping[str, Sequence[float]], limit: int
) -> Params:
    """Return the scaling that has these divisors: Llama 3's or Gemma 4's by their shape, else LongRoPE's lists."""
    one = divisors.get("rope_freqs.weight")
    short = one or divisors.get("rope_factors_short.weight")
    long = one or divisors.get("rope_factors_long.weight")
    if short is None or long is None:
        raise ValueError(TEXTS("gguf_file.one_list", divisors=join_items(divisors)))
    for values in (short, long):
        if len(values) != rotary // 2:
            raise ValueError(
                TEXTS("gguf_file.divisor_count", divisors=len(values), pairs=rotary // 2, architecture=keys.name)
            )
    turning = sum(value < FAR for value in short)
    if one and turning < len(one) and all(value == 1.0 for value in one[:turning]):
        return {"rope_type": "proportional", "partial_rotary_factor": turning / len(one)}
    if one:
        found = recognise_llama3(one, base)
        if found:
            return found
    original = keys.get("rope.scaling.original_context_length", limit)
    require_number(
        original, f"{keys.name}.rope.scaling.original_context_length", least=1, most=MAX_LENGTH, integer=True
    )
    factor = keys.number("rope.scaling.attn_factor", 1.0)
    lists = {"short_factor": list(short), "long_factor": list(long), "attention_factor": factor}
    return {"rope_type": "longrope", "original_max_position_embeddings": int(original), **lists}


def recognise_llama3(divisors: Sequence[float], base: float) -> Params | None:
    """Return the parameters of method `llama3` whose divisors these are, None where no released model has them."""
    for factor, low, high, original in LLAMA3:
        scaling = Llama3(factor=factor, low_freq_factor=low, high_freq_factor=high)
        spec = RopeSpec(head_dim=2 * len(divisors), base=base, context=original, scaling=scaling)
        if np.allclose(divisors, spec.plain_inv_freq / spec.inv_freq(), rtol=1e-4):
            bounds = {"low_freq_factor": low, "high_freq_factor": high}
            return {"rope_type": "llama3", "factor": factor, **bounds, "original_max_position_embeddings": original}
    return None
