"""Meta's params.json (ExecuTorch reads it, too) as a config.json of transformers' Llama class.

The file names no length, and of a scaling only that there is one. What `models/llama3/model.py` of
meta-llama/llama-models has as constants is taken and named: factor 8, bands 1 and 4, original length 8,192.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import require_number
from rope_viz.models.formats import FILE, NAMES, make_source

SIZES: Mapping[str, str] = NAMES["mistral"]["sizes"]
"""{key of transformers: key of the file}; Mistral's file has the same names."""
META = ("use_scaled_rope", "multiple_of", "ffn_dim_multiplier")
"""Keys of Meta's file that Mistral's file of the same name lacks."""
READ = frozenset((*SIZES.values(), *META, "vocab_size", "rope_theta", "rope_scaling_factor", "max_seq_len"))
FORMAT = "Meta's params.json"
FACTOR, ORIGINAL, SCALED = 8.0, 8192, 131_072
LLAMA_2 = 4096


def config_from_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means what a params.json says. Raises `ValueError` where a size is no number."""
    remarks = ["Its weights pair neighbours (2i, 2i + 1); those of a converted model pair halves."]
    config: dict[str, Any] = {"model_type": "llama"}
    config |= {name: params[own] for name, own in SIZES.items() if params.get(own) is not None}
    vocabulary = params.get("vocab_size")
    if isinstance(vocabulary, int) and vocabulary > 0:  # Llama 2's files say -1
        config["vocab_size"] = vocabulary
    config.setdefault("intermediate_size", find_width(params))
    config["rope_theta"] = params.get("rope_theta") or 10_000.0
    if not params.get("rope_theta"):
        remarks.append("It names no rope_theta: 10,000 is assumed, as Meta's code does.")
    length = params.get("max_seq_len")
    if params.get("use_scaled_rope"):
        factor = params.get("rope_scaling_factor")
        if factor is not None:
            require_number(factor, "rope_scaling_factor", least=1.0, most=1e6)
        else:
            remarks.append("It names no factor: Llama 3.1's 8 over 8,192 tokens is assumed; Llama 3.2 has 32.")
        rope = {"rope_type": "llama3", "factor": float(factor or FACTOR), "original_max_position_embeddings": ORIGINAL}
        config["rope_scaling"] = {**rope, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if length is None:
        length = SCALED if "rope_scaling" in config else ORIGINAL if params.get("rope_theta") else LLAMA_2
        remarks.append(f"It names no length: {length:,} tokens are assumed, those of the Llama with these keys.")
    config["max_position_embeddings"] = length
    return config | {FILE: make_source(FORMAT, remarks, [name for name in params if name not in READ])}


def find_width(params: Mapping[str, Any]) -> int:
    """Return the width of the feed-forward layers, as Meta's code derives it from `dim`."""
    values = {name: params.get(name) or default for name, default in (("dim", 0), ("multiple_of", 256))}
    for name, value in values.items():
        require_number(value, name, least=1, most=1 << 20, integer=True)
    scale = params.get("ffn_dim_multiplier") or 1.0
    require_number(scale, "ffn_dim_multiplier", above=0.0, most=100.0)
    wanted, step = int(scale * int(8 * values["dim"] / 3)), int(values["multiple_of"])
    return -(-wanted // step) * step
