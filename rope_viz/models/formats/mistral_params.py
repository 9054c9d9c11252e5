"""Mistral's params.json as a config.json: the file of its own format, which vLLM and SGLang read.

The keys are brought together as by `adapt_config_dict` of vLLM (vllm/transformers_utils/configs/mistral.py at 01da88c,
read) and by transformers' conversion of Ministral 3 (models/ministral3/convert_ministral3_weights_to_hf.py, read).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.formats import FILE, NAMES, make_source
from rope_viz.models.formats.meta_params import META, config_from_meta

SIZES: Mapping[str, str] = NAMES["mistral"]["sizes"]
"""{key of transformers: key of params.json}."""
MLA = ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
SAME = ("head_dim", "vocab_size", "rope_theta", *MLA)
"""Keys with the same name in both files."""
MOE: Mapping[str, str] = NAMES["mistral"]["moe"]
YARN = {"factor": "factor", "original_max_position_embeddings": "original_max_position_embeddings"} | {
    "beta_fast": "beta",
    "beta_slow": "alpha",
}
"""{key of rope_parameters: key of params.json's yarn}."""
OTHER = frozenset(
    ("sliding_window", "max_seq_len", "max_position_embeddings", "tied_embeddings", "moe", "yarn", "llama_4_scaling")
) | {"model_type", "activation", "dtype", "use_biases", "causal", "max_batch_size", "quantization", "lora"}
FORMAT = "Mistral's params.json"
LENGTH = 128_000
"""The length that vLLM assumes where the file has none."""


def is_mistral_params(found: Mapping[str, Any]) -> bool:
    """True for an object with the sizes of a model under Mistral's names, and no model type of transformers."""
    own = found.get("model_type", "transformer") == "transformer" and "architectures" not in found
    return own and "_class_name" not in found and all(name in found for name in ("dim", "n_layers", "n_heads"))


def config_from_mistral(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means what a params.json says, Mistral's or Meta's. Raises `ValueError`."""
    if any(name in params for name in META):
        return config_from_meta(params)
    remarks = ["neighbours"]
    config: dict[str, Any] = {"model_type": find_type(params)}
    config |= {name: params[own] for name, own in SIZES.items() if params.get(own) is not None}
    config |= {name: params[name] for name in SAME if params.get(name) is not None}
    if params.get("qk_nope_head_dim"):
        # The class would rotate head_dim dimensions; with MLA only qk_rope_head_dim of them rotate.
        config.pop("head_dim", None)
    config |= {"tie_word_embeddings": bool(params.get("tied_embeddings", False))}
    config |= read_experts(params, config["model_type"])
    config |= read_windows(params)
    length = params.get("max_position_embeddings") or params.get("max_seq_len")
    if length is None:
        remarks.append(f"mistral.no_length {LENGTH:,}")
    config["max_position_embeddings"] = length or LENGTH
    if params.get("rope_theta") is None:
        # What transformers' conversion of Ministral 3 takes, and else the default of the class.
        config["rope_theta"] = 1e6 if config["model_type"] == "ministral3" else 10_000.0
        remarks.append(f"mistral.no_base {config['rope_theta']:,.0f}")
    config |= read_rope(params, config)
    if "rope_parameters" in config:
        config.pop("rope_theta", None)
    unread = [name for name in params if name not in {*SIZES.values(), *SAME, *OTHER}]
    return config | {FILE: make_source(FORMAT, remarks, unread)}


def find_type(params: Mapping[str, Any]) -> str:
    """Return the model type of transformers that has these weights."""
    experts = read_part(params, "moe")
    if params.get("qk_nope_head_dim") or experts.get("num_shared_experts"):
        return "deepseek_v3"
    if experts:
        return "mixtral"
    return "ministral3" if read_part(params, "yarn") and read_part(params, "llama_4_scaling") else "mistral"


def read_part(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object under a name, {} where there is none. Raises `ValueError` for anything else."""
    found = params.get(name) or {}
    if not isinstance(found, Mapping):
        raise ValueError(TEXTS("params_file.object", name=name, found=short_repr(found)))
    return found


def read_experts(params: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the numbers of experts under the names of the model type."""
    moe = read_part(params, "moe")
    if kind == "mixtral":
        found = {"num_local_experts": moe.get("num_experts"), "num_experts_per_tok": moe.get("num_experts_per_tok")}
    else:
        found = {name: moe.get(own) for name, own in MOE.items()}
    return {name: value for name, value in found.items() if value is not None}


def read_windows(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the window, and the layer types where the file lists a window for every layer of a period."""
    windows = params.get("sliding_window")
    if not isinstance(windows, list) or not windows:
        # Without the key transformers' class would take its own default, a window.
        return {"sliding_window": windows or None}
    layers = params["n_layers"]
    require_number(layers, "n_layers", least=1, most=10_000, integer=True)
    kinds = ["full_attention" if window is None else "sliding_attention" for window in windows]
    sizes = [window for window in windows if window is not None]
    kept = {"layer_types": (kinds * (int(layers) // len(kinds) + 1))[: int(layers)]}
    return {"sliding_window": sizes[0] if sizes else None, **kept}


def read_rope(params: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return rope_parameters, {} for an unscaled model. Raises `ValueError` for a key of yarn that is not known."""
    yarn, temperature = read_part(params, "yarn"), read_part(params, "llama_4_scaling")
    if not yarn:
        return {"llama_4_scaling": dict(temperature)} if temperature else {}
    unknown = sorted(set(yarn) - {*YARN.values(), "apply_scale"})
    if unknown:
        raise ValueError(TEXTS("params_file.yarn_key", unknown=short_repr(unknown[0])))
    rope: dict[str, Any] = {"rope_type": "yarn"}
    if config.get("rope_theta") is not None:
        rope["rope_theta"] = config["rope_theta"]
    for name, own in YARN.items():
        if own not in yarn:
            raise ValueError(TEXTS("params_file.yarn_without", own=own))
        require_number(yarn[own], f"yarn.{own}", above=0.0)
        rope[name] = int(yarn[own]) if name.startswith("original") else float(yarn[own])
    # Without apply_scale nothing corrects the magnitude. Dividing equal weights by each other gives the factor 1.
    if yarn.get("apply_scale", True):
        rope["mscale_all_dim"] = 1.0
    elif config["model_type"] == "ministral3":
        rope |= {"mscale": 1.0, "mscale_all_dim": 1.0}
    else:
        rope["attention_factor"] = 1.0
    if config["model_type"] == "ministral3":
        return {"rope_parameters": rope | {"llama_4_scaling_beta": temperature.get("beta")}}
    return {"rope_parameters": rope} | ({"llama_4_scaling": dict(temperature)} if temperature else {})
