"""Arguments of Megatron-LM, megatron-core, NeMo or Megatron-Bridge as a config.json.

The rules are those of `rope_viz.runtimes.trainers.megatron`, which were compared with executed trainers
(tests/goldens/training.json); tests/models/test_megatron_config.py compares this file with the same rows. NeMo's and
Megatron-Bridge's files hold the arguments of megatron-core under `model`; they were read, not executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.embedding.scaling import mscale
from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.formats import FILE, NAMES, make_source
from rope_viz.texts.texts import join_list

FORMAT = "Megatron arguments"
"""What a config made from them says of its file."""
ORIGINAL = "original_max_position_embeddings"
RENAMED: Mapping[str, str] = NAMES["megatron"]["renamed"]
"""{name on the command line or in NeMo: name of the constructor's argument}."""
YARN = (
    "scaling_factor",
    ORIGINAL,
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "correction_range_round_to_int",
)
"""Arguments that build `YarnRotaryEmbedding`."""
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: 8192}
"""The constants of megatron-core's Llama 3 scaling."""
LLAMA3_FACTOR = 8.0
"""Its default, and what Megatron-LM always computes: --rope-scaling-factor does not reach the model."""
CORE_MLA_FACTOR = 40.0
"""The YaRN factor of megatron-core's MLA where none is given; Megatron-LM's command line gives 1."""
GPT_OSS = {"scaling_factor": 32.0, ORIGINAL: 131072, "correction_range_round_to_int": False}
"""What Megatron-LM's --enable-gpt-oss sets."""

SIZES: Mapping[str, Sequence[str]] = NAMES["megatron"]["sizes"]
MLA: Mapping[str, tuple[str, int | None]] = NAMES["megatron"]["mla"]
"""{key of transformers: (argument, default of megatron-core)}."""
PLACES = ("model", "model_config", "config", "args")
"""Where files of NeMo, Megatron-Bridge and checkpoints keep the arguments."""
ROPE_MARKS = set(
    """
    position_embedding_type rotary_base rotary_percent rotary_percentage rotary_interleaved
    use_rotary_position_embeddings multi_latent_attention use_rope_scaling apply_rope_fusion
    """.split()
)
MARKS = set(
    """
    num_layers ffn_hidden_size kv_channels num_query_groups group_query_attention seq_length encoder_seq_length
    untie_embeddings_and_output_weights share_embeddings_and_output_weights normalization swiglu
    """.split()
)
"""Arguments by which Megatron's files are known: one of the first and two of the second."""
ROTATING = ("rope", "yarn")
CONCERNS_ROPE = ("rope", "rotary", "yarn", "position", "window", "mscale")


def find_arguments(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return Megatron's arguments in an object or one of its parts, under the names of Python; None without any."""
    for part in (found, *(found.get(place) for place in PLACES)):
        if not isinstance(part, Mapping):
            continue
        named = {str(name).lstrip("-").replace("-", "_"): value for name, value in part.items()}
        named = {name: value for name, value in named.items() if not is_reference(value)}
        foreign = "architectures" in named or "_class_name" in named
        kind = named.get("model_type")
        if foreign or (isinstance(kind, str) and not kind.startswith("ModelType")):
            continue
        if ROPE_MARKS & set(named) and len(MARKS & set(named)) >= 2 and "num_attention_heads" in named:
            return named
    return None


def is_reference(value: Any) -> bool:
    """True for a reference of OmegaConf such as ${.seq_length}: it repeats another value of the file."""
    return isinstance(value, str) and value.startswith("${")


def rename(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of the command line and of YAML files under the names of the constructor's arguments."""
    options = {name.removeprefix("no_"): not name.startswith("no_") and value for name, value in arguments.items()}
    names = {name: name.removeprefix("yarn_") for name in options}
    return {RENAMED.get(short, short): options[name] for name, short in names.items()}


def concentrate(factor: float, weight: float | None, over: float | None) -> float:
    """Return the factor on cos and sin: m(weight)/m(over), or 0.1·ln s + 1 where one of them is None."""
    return mscale(factor) if weight is None or over is None else mscale(factor, weight) / mscale(factor, over)


def config_from_megatron(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means the same. Raises `ValueError` for arguments without rotary embedding."""
    options = rename(arguments)
    kind = options.get("position_embedding_type")
    is_mla = bool(options.get("multi_latent_attention"))
    if options.get("use_rotary_position_embeddings"):
        kind = "rope"
    if kind is not None and kind not in ROTATING and not is_mla:
        raise ValueError(TEXTS("megatron_config.position_type", kind=short_repr(kind)))
    remarks: list[str] = []
    if kind is None and not is_mla:
        remarks.append("megatron.rope")
    config = read_sizes(options, is_mla)
    config |= read_rope(options, arguments, is_mla, kind, remarks)
    config["model_type"] = choose_type(options, config, is_mla)
    kind = config["model_type"]
    remarks.insert(0, f"megatron.type {kind}")
    read = {*(name for names in SIZES.values() for name in names), *(name for name, _ in MLA.values())}
    read |= {*ROPE_MARKS, *YARN, *RENAMED.values(), "kv_channels", "rope_scaling_factor", "rope_type", "enable_gpt_oss"}
    unread = [name for name in options if name not in read and any(word in name for word in CONCERNS_ROPE)]
    unread = [name for name in unread if options[name] not in (None, False)]
    return config | {FILE: make_source(FORMAT, remarks, unread)}


def choose_type(options: Mapping[str, Any], config: dict[str, Any], is_mla: bool) -> str:
    """Return the model type whose class rotates as these arguments do, and name the pairing if no class does."""
    if is_mla:
        return "deepseek_v3"
    if options.get("rotary_interleaved"):
        config["rope_interleave"] = True
        return "megatron"
    return "megatron" if "partial_rotary_factor" in config["rope_parameters"] else "llama"


def read_sizes(options: Mapping[str, Any], is_mla: bool) -> dict[str, Any]:
    """Return the sizes of the model. Raises `ValueError` where one is no number or the length is missing."""
    found: dict[str, Any] = {}
    for name, own in SIZES.items():
        value = next((options[each] for each in own if options.get(each) is not None), None)
        if value is not None:
            require_number(value, next(each for each in own if options.get(each) is not None), least=1, integer=True)
            found[name] = value
    for name in ("hidden_size", "max_position_embeddings"):
        if name not in found:
            raise ValueError(TEXTS("megatron_config.no_size", names=join_list(SIZES[name], "or", "or")))
    if options.get("group_query_attention") is False:
        found.pop("num_key_value_heads", None)
    tied = options.get("share_embeddings_and_output_weights", not options.get("untie_embeddings_and_output_weights"))
    found["tie_word_embeddings"] = bool(tied)
    if is_mla:
        found |= {name: options.get(own, default) for name, (own, default) in MLA.items()}
        return {name: value for name, value in found.items() if value is not None}
    found["head_dim"] = options.get("kv_channels") or found["hidden_size"] // options["num_attention_heads"]
    return found


def read_number(options: Mapping[str, Any], name: str, default: float) -> float:
    """Return an option as a number, the default where it is missing or null. Raises `ValueError` for other values."""
    value = options.get(name)
    value = default if value is None else value
    require_number(value, name, least=0.0)
    return float(value)


def read_rope(
    options: dict[str, Any], arguments: Mapping[str, Any], is_mla: bool, kind: Any, remarks: list[str]
) -> dict[str, Any]:
    """Return rope_parameters, and add to `remarks` what was assumed."""
    base = read_number(options, "rotary_base", 10_000.0)
    if options.get("enable_gpt_oss"):
        options |= GPT_OSS
    wants_yarn = options.get("rope_type", "yarn") == "yarn" if is_mla else kind == "yarn"
    if wants_yarn or (kind is None and not is_mla and any(name in options for name in YARN)):
        return {"rope_parameters": {"rope_theta": base, **read_yarn(options, is_mla, remarks)}}
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": base}
    share = read_number(options, "rotary_percent", 1.0)
    if share != 1.0:
        rope["partial_rotary_factor"] = share
    linear = read_number(options, "seq_len_interpolation_factor", 1.0)
    if options.get("rope_scaling"):
        factor = read_number(options, "rope_scaling_factor", LLAMA3_FACTOR)
        if "use_rope_scaling" in arguments and factor != LLAMA3_FACTOR:
            remarks.append(f"megatron.factor {factor:g}")
            factor = LLAMA3_FACTOR
        if linear != 1.0:
            raise ValueError(TEXTS("megatron_config.two_scalings"))
        return {"rope_parameters": rope | {"rope_type": "llama3", "factor": factor, **LLAMA3}}
    if linear != 1.0:
        rope |= {"rope_type": "linear", "factor": linear}
    return {"rope_parameters": rope}


def read_yarn(options: Mapping[str, Any], is_mla: bool, remarks: list[str]) -> dict[str, Any]:
    """Return the parameters of YaRN with megatron-core's defaults."""
    factor = read_number(options, "scaling_factor", 1.0)
    if is_mla and options.get("scaling_factor") is None:
        remarks.append(f"megatron.no_factor {CORE_MLA_FACTOR:g}")
    if factor == 1.0:
        return {"rope_type": "default"}
    rope = {
        "rope_type": "yarn",
        "factor": factor,
        ORIGINAL: int(read_number(options, ORIGINAL, 4096)),
        "beta_fast": read_number(options, "beta_fast", 32.0),
        "beta_slow": read_number(options, "beta_slow", 1.0),
        "truncate": bool(options.get("correction_range_round_to_int", True)),
    }
    weights = [options.get(name, default) for name, default in (("mscale", 1.0), ("mscale_all_dim", 0.0))]
    for name, weight in zip(("mscale", "mscale_all_dim"), weights, strict=True):
        if weight is not None:
            require_number(weight, name)
    if all(weights) and is_mla:
        return rope | {"mscale": float(weights[0]), "mscale_all_dim": float(weights[1])}
    rope["attention_factor"] = concentrate(factor, *weights)
    return rope | ({"mscale_all_dim": float(weights[1])} if is_mla and weights[1] else {})
