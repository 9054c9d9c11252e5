"""How many bits a config stores a weight in: its quantization_config, else its data type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rope_viz.models.formats.other_files import source_file

# {quantisation method: bytes per weight}; the others name their bits.
QUANTIZED = {
    **{"fp8": 1.0, "fbgemm_fp8": 1.0, "finegrained_fp8": 1.0, "mxfp4": 17 / 32},
    **{"awq": 0.5, "gptq": 0.5, "modelopt_fp4": 0.5},
}
# {data type: bytes per number}.
WEIGHT_TYPES = {
    **{"float64": 8.0, "float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0},
    **{"float8_e4m3fn": 1.0, "float8_e5m2": 1.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "mxfp4": 17 / 32, "nvfp4": 0.5},
}


def find_bytes_per_weight(quantized: Mapping[str, Any]) -> float | None:
    """Return the bytes that a quantization_config gives one weight, None where it names neither bits nor a method."""
    method = str(quantized.get("quant_method", ""))
    if quantized.get("load_in_4bit") or quantized.get("_load_in_4bit"):
        return 0.5
    if quantized.get("load_in_8bit") or quantized.get("_load_in_8bit"):
        return 1.0
    if method == "mxfp4":
        return QUANTIZED[method]
    bits = next((quantized[key] for key in ("bits", "w_bit", "weight_bits", "num_bits") if quantized.get(key)), None)
    if bits is None:
        bits = find_group_bits(quantized)
    if isinstance(bits, (int, float)) and not isinstance(bits, bool) and 0 < bits <= 16:
        return bits / 8
    algorithm = str(quantized.get("quant_algo") or quantized.get("weight_dtype") or "").lower()
    named = re.search(r"w(\d+)a|fp(\d+)|int(\d+)|float(\d+)", algorithm)
    if named:
        return int(next(part for part in named.groups() if part)) / 8
    return QUANTIZED.get(method)


def find_group_bits(quantized: Mapping[str, Any]) -> float | None:
    """Return the bits of the first group of weights (compressed-tensors, modelopt), None where none names them."""
    groups = quantized.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if isinstance(bits, (int, float)):
            return bits
    return None


def find_file_bytes(config: Mapping[str, Any]) -> int | None:
    """Return the bytes of the tensors in the GGUF file that a config was read from, None where it was from no such."""
    found = source_file(config).get("tensor_bytes")
    return found if isinstance(found, int) else None


def find_weight_storage(*places: Mapping[str, Any]) -> tuple[float, str, bool]:
    """Return (bytes per weight, what the storage is called, whether a file says so) of the first place that says it."""
    for part in places:
        quantized = part.get("quantization_config") or part.get("compression_config")
        if isinstance(quantized, Mapping):
            each = find_bytes_per_weight(quantized)
            if each is not None:
                name = quantized.get("quant_method") or quantized.get("quant_algo") or "quantized"
                return each, f"{name}, {8 * each:g} bits", True
    names = (part.get(key) for part in places for key in ("dtype", "torch_dtype"))
    name = next((name.removeprefix("torch.") for name in names if isinstance(name, str) and name != "auto"), None)
    if name is None:
        return 2.0, "bfloat16", False
    return WEIGHT_TYPES.get(name, 2.0), name, name in WEIGHT_TYPES
