"""Meta's params.json as a config.json of the class of transformers that has its weights.

The file names no length, and of a scaling only that there is one. What `models/llama3/model.py` of
meta-llama/llama-models has as constants is taken and named: factor 8, bands 1 and 4, original length 8,192.
ExecuTorch has more keys (examples/models/llama/model_args.py at 00f1607, read).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import require_number
from rope_viz.models import TEXTS
from rope_viz.models.formats import FILE, NAMES, make_source

SIZES: Mapping[str, str] = NAMES["mistral"]["sizes"]
"""{key of transformers: key of the file}; Mistral's file has the same names."""
META = ("use_scaled_rope", "multiple_of", "ffn_dim_multiplier")
"""Keys of Meta's file that Mistral's file of the same name lacks."""
NO_CHANGE: Mapping[str, tuple[Any, ...]] = {
    **{"no_rope_layer_interval": (None,), "layer_types": (None,), "moe": (False, None)},
    "attention_type": ("mha", None),
}
"""{key of ExecuTorch that changes the layers: the values with which all of them are alike}."""
FACTORS, HIGH = ("rope_scaling_factor", "rope_scale_factor"), ("rope_high_freq_factor", "high_freq_factor")
"""The numbers of the scaling: names of Meta and of ExecuTorch."""
BASES = ("rope_theta", "rope_freq_base")
READ = frozenset(
    (*SIZES.values(), *META, *NO_CHANGE, *FACTORS, *HIGH, *BASES, "vocab_size", "max_seq_len", "head_dim")
) | {"partial_rotary_factor", "use_hf_rope", "use_qk_norm", "attention_qkv_bias"}
FORMAT = "Meta's params.json"
FACTOR, ORIGINAL, SCALED = 8.0, 8192, 131_072
LLAMA_2 = 4096


def config_from_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means what a params.json says.

    Raises `ValueError` where a size is no number, and for layers that differ.
    """
    for name, values in NO_CHANGE.items():
        if params.get(name) not in values:
            raise ValueError(TEXTS("params_file.not_read", name=name))
    remarks = ["neighbours"]
    if params.get("use_hf_rope"):
        remarks = ["meta.halves"]
    config: dict[str, Any] = {"model_type": find_type(params)}
    config |= {name: params[own] for name, own in SIZES.items() if params.get(own) is not None}
    config |= {name: params[name] for name in ("head_dim", "partial_rotary_factor") if params.get(name) is not None}
    vocabulary = params.get("vocab_size")
    if isinstance(vocabulary, int) and vocabulary > 0:  # Llama 2's files say -1
        config["vocab_size"] = vocabulary
    config.setdefault("intermediate_size", find_width(params))
    base = next((params[name] for name in BASES if params.get(name)), None)
    config["rope_theta"] = base or 10_000.0
    if not base:
        remarks.append("meta.no_base")
    length = params.get("max_seq_len")
    if params.get("use_scaled_rope"):
        factor, high = read_number(params, FACTORS, FACTOR), read_number(params, HIGH, 4.0)
        if not any(params.get(name) is not None for name in FACTORS):
            remarks.append("meta.no_factor")
        rope = {"rope_type": "llama3", "factor": factor, "original_max_position_embeddings": ORIGINAL}
        config["rope_scaling"] = {**rope, "low_freq_factor": 1.0, "high_freq_factor": high}
    if length is None:
        length = SCALED if "rope_scaling" in config else ORIGINAL if base else LLAMA_2
        remarks.append(f"meta.no_length {length:,}")
    config["max_position_embeddings"] = length
    return config | {FILE: make_source(FORMAT, remarks, [name for name in params if name not in READ])}


def find_type(params: Mapping[str, Any]) -> str:
    """Return the model type of transformers that has these weights."""
    if params.get("partial_rotary_factor") not in (None, 1.0):
        return "phi3"
    return "qwen3" if params.get("use_qk_norm") else "qwen2" if params.get("attention_qkv_bias") else "llama"


def read_number(params: Mapping[str, Any], names: tuple[str, ...], default: float) -> float:
    """Return the number of the scaling under one of these names, else the default. Raises `ValueError`."""
    for name in names:
        if params.get(name) is not None:
            require_number(params[name], name, least=1.0, most=1e6)
            return float(params[name])
    return default


def find_width(params: Mapping[str, Any]) -> int:
    """Return the width of the feed-forward layers, as Meta's code derives it from `dim`."""
    values = {name: params.get(name) or default for name, default in (("dim", 0), ("multiple_of", 256))}
    for name, value in values.items():
        require_number(value, name, least=1, most=1 << 20, integer=True)
    scale = params.get("ffn_dim_multiplier") or 1.0
    require_number(scale, "ffn_dim_multiplier", above=0.0, most=100.0)
    wanted, step = int(scale * int(8 * values["dim"] / 3)), int(values["multiple_of"])
    return -(-wanted // step) * step
