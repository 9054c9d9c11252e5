"""How the weights of a config are stored: the type it names, and the bits that a quantization gives each matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rope_viz.advice.memory import TEXTS
from rope_viz.advice.memory.kv_cache import NAMES
from rope_viz.advice.memory.quantized_names import Names
from rope_viz.advice.memory.weight_matrices import Matrix
from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats.side_files import read_side_values
from rope_viz.models.parameter_formulas import read_whole

# {quantisation method: bytes per weight}; the others name their bits.
QUANTIZED: Mapping[str, float] = NAMES["quantized"]

# {data type: bytes per number}.
WEIGHT_TYPES: Mapping[str, float] = NAMES["weight_types"]


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
    """Return the bits of the first group of weights (compressed-tensors, modelopt), None where none names them.

    Weights that share a scale take a part of its bits, too: a byte where the group says so, else a number of 16 bits.
    """
    groups = quantized.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if isinstance(weights, Mapping) and isinstance(bits, (int, float)):
            shared = read_whole(weights.get("group_size"), 0)
            scale = 8 if re.search("8", str(weights.get("scale_dtype"))) else 16
            return bits + (scale / shared if shared and "scale_dtype" in weights else 0)
    return None


def is_expert_format(quantized: Any) -> bool:
    """Return whether a quantization stores experts alone in few bits: MXFP4, as of gpt-oss and Kimi-K3."""
    if not isinstance(quantized, Mapping):
        return False
    return "mxfp4" in (str(quantized.get("quant_method")), str(quantized.get("format")).removesuffix("-pack-quantized"))


def list_quantizations(*places: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return every quantization of a config, each with the gaps filled by the file that lies next to the config."""
    side = next((found for part in places if (found := read_side_values(part, "quantization"))), {})
    given = (part.get("quantization_config") or part.get("compression_config") for part in places)
    return [{**side, **found} for found in given if isinstance(found, Mapping)] or ([side] if side else [])


def find_quantization(*places: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first quantization that says how many bits weights have, None where there is none."""
    for found in list_quantizations(*places):
        mixed = bool(found.get("quantized_layers")) or found.get("quant_algo") == "MIXED_PRECISION"
        if mixed or find_bytes_per_weight(found) is not None:
            return found
    return None


def find_unread_method(*places: Mapping[str, Any]) -> str:
    """Return the method of a quantization whose bits are not read; "" where all are read or it leaves weights alone."""
    if find_quantization(*places) is None:
        for found in list_quantizations(*places):
            # modelopt writes an empty algorithm where it quantizes the cache alone.
            name = found["quant_algo"] if "quant_algo" in found else found.get("quant_method")
            if name:
                return str(name)
    return ""


def find_cache_type(*places: Mapping[str, Any]) -> str | None:
    """Return the type in which a quantization stores the KV cache, None where none says so; "fp8" for 8-bit floats."""
    for found in list_quantizations(*places):
        for key in ("kv_cache_scheme", "kv_cache_quant_algo"):
            scheme = found.get(key)
            if isinstance(scheme, Mapping) and scheme.get("num_bits") is not None:
                bits, kind = scheme["num_bits"], scheme.get("type")
                return (
                    "fp8"
                    if (bits, kind) == (8, "float")
                    else TEXTS("stored.cache_bits", kind=kind, bits=short_repr(bits))
                )
            if isinstance(scheme, str) and scheme:
                return "fp8" if scheme.upper() == "FP8" else short_repr(scheme)
    return None


def find_plain_bytes(*places: Mapping[str, Any]) -> float:
    """Return the bytes of a weight that is not quantized: of the type that a config names, else of bfloat16."""
    names = (part.get(key) for part in places for key in ("dtype", "torch_dtype"))
    name = next((name.removeprefix("torch.") for name in names if isinstance(name, str) and name != "auto"), "")
    return max(WEIGHT_TYPES.get(name, 2.0), 2.0)


def find_weight_storage(*places: Mapping[str, Any]) -> tuple[float, str, bool]:
    """Return (bytes per weight, what the storage is called, whether a file says so) of the first place that says it."""
    quantized = find_quantization(*places)
    if quantized is not None:
        name = quantized.get("quant_method") or quantized.get("quant_algo") or "quantized"
        if quantized.get("quantized_layers") or quantized.get("quant_algo") == "MIXED_PRECISION":
            return 0.0, TEXTS("stored.mixed", name=name), True
        each = find_bytes_per_weight(quantized) or 0.0
        return each, TEXTS("stored.bits", name=name, bits=8 * each), True
    if unread := find_unread_method(*places):
        return 0.0, unread, True
    names = (part.get(key) for part in places for key in ("dtype", "torch_dtype"))
    name = next((name.removeprefix("torch.") for name in names if isinstance(name, str) and name != "auto"), None)
    if name is None:
        return 2.0, "bfloat16", False
    return WEIGHT_TYPES.get(name, 2.0), name, name in WEIGHT_TYPES


@dataclass(frozen=True)
class Scheme:
    """What a quantization stores of one matrix.

    `group` inputs (0: all) of `rows` outputs share `scale` bits of scale and zero point; `order` are the bits that
    GPTQ adds for each input.
    """

    bits: float
    scale: float = 0
    group: int = 0
    rows: int = 1
    order: int = 0

    def count_bytes(self, matrix: Matrix) -> float:
        """Return the bytes of a matrix."""
        groups = -(-matrix.inputs // (self.group or matrix.inputs)) * -(-matrix.outputs // self.rows)
        added = matrix.copies * (groups * self.scale + matrix.inputs * self.order)
        return (matrix.count * self.bits + added) / 8

    @property
    def usual_bits(self) -> float:
        """Bits per weight in a large matrix, scales included."""
        return self.bits + (self.scale / (self.group * self.rows) if self.group else 0)


NOTHING = Names.from_patterns([])


@dataclass(frozen=True)
class Quantization:
    """The scheme of each matrix: that of the first names that match, else none if excluded, else the usual one.

    `head` tells whether the usual scheme reaches the head, `embeddings` whether it reaches embeddings as well.
    """

    usual: Scheme | None
    named: tuple[tuple[Names, Scheme | None], ...] = ()
    excluded: Names = NOTHING
    head: bool = False
    embeddings: bool = False
    assumed: Mapping[str, str] = field(default_factory=dict)

    def find_scheme(self, name: str) -> Scheme | None:
        """Return the scheme of a matrix, None where it is not quantized."""
        for names, scheme in self.named:
            if names.match(name):
                return scheme
        reached = {"lm_head": self.head or self.embeddings, "embed_tokens": self.embeddings}.get(name, True)
        return None if not reached or self.excluded.match(name) else self.usual


# {algorithm of modelopt: scheme}; the file's group_size goes before the group here.
ALGORITHMS = {
    "FP8": Scheme(8),
    "FP8_PER_CHANNEL_PER_TOKEN": Scheme(8, 32),
    "FP8_PB_WO": Scheme(8, 32, 128, 128),
    "NVFP4": Scheme(4, 8, 16),
    "NVFP4_AWQ": Scheme(4, 8, 16),
    "W4A16_NVFP4": Scheme(4, 8, 16),
    "W4A8_NVFP4_FP8": Scheme(4, 8, 16),
    "MXFP4": Scheme(4, 8, 32),
    "W4A8_MXFP4_FP8": Scheme(4, 8, 32),
    "MXFP8": Scheme(8, 8, 32),
    "W4A16_AWQ": Scheme(4, 16, 128),
    "W4A8_AWQ": Scheme(4, 16, 128),
    "W8A16": Scheme(8, 16),
    "W8A8_SQ_PER_CHANNEL": Scheme(8, 32),
}
EXCLUDED = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "exclude")
DEFAULT_GROUP = 128
"""The group of AwqConfig and GPTQConfig of transformers."""


def read_quantization(quantized: Mapping[str, Any]) -> Quantization | None:
    """Return the scheme of every matrix, None for a method that is not read. Raises `ValueError` for unread names."""
    method = str(quantized.get("quant_method", "")).lower()
    excluded = Names.from_patterns(name for key in EXCLUDED for name in list_texts(quantized.get(key)))
    bits = find_bytes_per_weight(quantized)
    group, assumed = read_group(quantized), dict[str, str]()
    if method in ("awq", "gptq", "auto-round", "auto_round", "intel/auto-round") and bits is not None:
        if group is None:
            group, assumed = DEFAULT_GROUP, {"group_size": TEXTS("assumed.class_default", value=DEFAULT_GROUP)}
        bits *= 8
        zeros = 0 if method == "awq" and quantized.get("zero_point") is False else bits
        usual = Scheme(bits, 16 + zeros, group, order=32 if method == "gptq" else 0)
        named = read_overrides(quantized.get("extra_config"), usual)
        dynamic = quantized.get("dynamic")
        modules = [str(key) for key in dynamic] if isinstance(dynamic, Mapping) else []
        dropped = Names.from_patterns(key for key in modules if key.startswith("-:"))
        if any(not key.startswith("-:") for key in modules):
            raise ValueError(TEXTS("reason.gptq"))
        named = ((dropped, None), *named)
        return Quantization(usual, named, excluded, quantized.get("lm_head") is True, assumed=assumed)
    if method == "bitsandbytes" and bits is not None:
        # nf4: a scale for 64 weights in 32 bits, or in 8 with one of 32 bits for 256 of them; int8: one per output.
        double = quantized.get("bnb_4bit_use_double_quant") is True
        small = Scheme(4, 8.125 if double else 32, 64)
        return Quantization(small if bits == 0.5 else Scheme(8, 32), (), excluded)
    if isinstance(quantized.get("quantized_layers"), Mapping) or quantized.get("quant_algo") == "MIXED_PRECISION":
        return read_mixed(quantized, excluded)
    if isinstance(quantized.get("config_groups"), Mapping):
        return read_groups(quantized, excluded)
    if method in ("fp8", "fbgemm_fp8", "finegrained_fp8"):
        block = quantized.get("weight_block_size")
        sides = [read_whole(side, 0) for side in block] if isinstance(block, (list, tuple)) else []
        blocks = Scheme(8, 32, sides[1], sides[0]) if len(sides) == 2 and all(side > 0 for side in sides) else None
        return Quantization(blocks or Scheme(8, 32 if method == "fbgemm_fp8" else 0), (), excluded)
    if quantized.get("quant_algo"):
        scheme = find_algorithm(quantized)
        return None if scheme is None else Quantization(scheme, (), excluded)
    if not method and bits is not None and group:
        # MLX: a scale and a bias of 16 bits for each group, embeddings and head as well.
        usual = Scheme(8 * bits, 32, group)
        return Quantization(usual, read_overrides(quantized, usual), excluded, head=True, embeddings=True)
    return None


def list_texts(found: Any) -> list[str]:
    """Return the texts of a list, [] for anything else."""
    return [each for each in found if isinstance(each, str)] if isinstance(found, (list, tuple)) else []


def read_group(quantized: Mapping[str, Any]) -> int | None:
    """Return how many weights share a scale, 0 for all inputs of an output, None where the file does not say."""
    found = next((quantized[key] for key in ("group_size", "q_group_size") if quantized.get(key) is not None), None)
    return max(read_whole(found, 0), 0) if found is not None else None


def read_overrides(found: Any, usual: Scheme) -> tuple[tuple[Names, Scheme | None], ...]:
    """Return the schemes of modules that have their own bits, by name; false or 16 bits: not quantized."""
    named: list[tuple[Names, Scheme | None]] = []
    for name, value in found.items() if isinstance(found, Mapping) else ():
        if value is False:
            named.append((Names.from_patterns([name]), None))
        elif isinstance(value, Mapping) and ("bits" in value or "group_size" in value):
            bits, group = read_whole(value.get("bits"), int(usual.bits)), read_group(value)
            own = Scheme(bits, usual.scale, usual.group if group is None else group, order=usual.order)
            named.append((Names.from_patterns([name]), None if bits >= 16 else own))
    return tuple(named)


def find_algorithm(part: Mapping[str, Any]) -> Scheme | None:
    """Return the scheme of an algorithm of modelopt with the group of the file, None for an unknown one."""
    scheme = ALGORITHMS.get(str(part.get("quant_algo")).upper())
    group = read_group(part)
    return replace(scheme, group=group) if scheme and group and scheme.group and scheme.rows == 1 else scheme


def read_mixed(quantized: Mapping[str, Any], excluded: Names) -> Quantization:
    """Return the schemes of modelopt's quantized_layers; a layer that is not listed is not quantized."""
    layers = quantized.get("quantized_layers")
    if not isinstance(layers, Mapping) or not layers:
        if isinstance(quantized.get("config_groups"), Mapping):
            return read_groups(quantized, excluded)
        raise ValueError(TEXTS("reason.mixed"))
    listed: dict[Scheme, list[str]] = {}
    for name, part in layers.items():
        scheme = find_algorithm(part) if isinstance(part, Mapping) else None
        if scheme is None:
            raise ValueError(TEXTS("reason.quantization", name=short_repr(name)))
        listed.setdefault(scheme, []).append(str(name))
    usual = read_quantization({"quant_method": "fp8", **pick(quantized, "weight_block_size")})
    base = usual.usual if usual and quantized.get("quant_method") == "fp8" else None
    named = tuple((Names.from_patterns(names), scheme) for scheme, names in listed.items())
    return Quantization(base, named, NOTHING if base else excluded)


def pick(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return these keys of an object where it has them."""
    return {name: found[name] for name in names if name in found}


def read_groups(quantized: Mapping[str, Any], excluded: Names) -> Quantization:
    """Return the schemes of groups of compressed-tensors, each with the modules that it targets."""
    usual: Scheme | None = None
    named: list[tuple[Names, Scheme | None]] = []
    for group in quantized["config_groups"].values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        scheme = read_group_scheme(weights, str(group.get("format") or quantized.get("format")))
        targets = group.get("targets", ["Linear"])
        if not list_texts(targets):
            raise ValueError(TEXTS("reason.groups"))
        if "Linear" in targets:
            usual = usual or scheme
        else:
            named.append((Names.from_patterns(targets), scheme))
    # modelopt never quantizes the head unless told to; compressed-tensors takes every linear layer.
    takes_head = quantized.get("quant_method") == "compressed-tensors"
    return Quantization(usual, ((excluded, None), *named), head=takes_head)


def read_group_scheme(weights: Mapping[str, Any], format: str) -> Scheme:
    """Return the scheme of the weights of one group."""
    bits, strategy = weights.get("num_bits"), str(weights.get("strategy"))
    if isinstance(bits, bool) or not isinstance(bits, (int, float)) or not 0 < bits <= 16:
        raise ValueError(TEXTS("reason.num_bits", bits=short_repr(bits)))
    group = read_group(weights) or 0
    blocks = weights.get("block_structure")
    if strategy == "block" and isinstance(blocks, (list, tuple)) and len(blocks) == 2:
        rows, columns = (max(read_whole(side, 1), 1) for side in blocks)
        return Scheme(bits, 16, columns, rows)
    if strategy == "tensor" or (strategy == "None" and not group):
        return Scheme(bits)
    small = re.search("8", str(weights.get("scale_dtype"))) or (weights.get("type") == "float" and bits == 4 and group)
    zeros = bits if weights.get("symmetric") is False else 0
    return Scheme(bits, (8 if small else 16) + zeros, group)
