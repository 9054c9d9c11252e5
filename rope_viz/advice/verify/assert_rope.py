"""Compare the rotary embeddings of a PyTorch model in memory with its config, on every rank.

    rope_viz.assert_rope(model, config)

Frequencies are looked at, and a few rows of tables of cos and sin; no weight is read or copied. Typical faults are
those of a model that was built on the meta device, and of one whose buffers were converted with its weights.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rope_viz.advice.verify import check_rope
from rope_viz.advice.verify.conformance import find_factor_mistakes, find_mistakes
from rope_viz.advice.verify.identify_rotation import find_method
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.models.identity.named_config import AnySource, read_source
from rope_viz.models.model_config import ModelConfig

Tensor: TypeAlias = Any

FREQUENCIES = re.compile(r"(?:(?P<layer>.+?)_)??(?:original_)?inv_freq")
OTHER_LENGTHS = ("long_inv_freq", "short_inv_freq")
"""Lists from which a module takes its frequencies; not those that it uses now."""
TABLES = ("cos_cached", "cos_sin_cache", "freqs_cis", "embed_positions")
SINE_FIRST = ("embed_positions", "weight")
"""Tables of GPT-J, CodeGen and RoFormer: in each row the sines, then the cosines."""
OTHER_PARTS = re.compile(r"vision|visual|image|audio|video|speech|talker")
LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)(?:\.|$)")
POSITIONS = (0, 1, 2, 17, 1000, 4095)
"""Rows of a table that are compared, together with its last one."""
MOST_TYPES = 16
"""Layer types that are compared between ranks."""
SAME = 1e-5
"""Difference of the mean log2 of frequencies up to which two ranks hold the same."""

REBUILD = (
    "Build the rotary modules again after the weights are loaded, on the device where they run: "
    "module.__init__(config, device=device)."
)
KEEP_FLOAT32 = "Keep them in float32: convert the weights only, or build the rotary modules again afterwards."
SAME_CONFIG = "Build the model from this config; `rope-viz compare` shows how two configs differ."
LONGER_TABLE = "Build the table for that many positions, or give the longest sequence as length=."
SAME_ON_RANKS = "Give every rank the same config and the same releases, and build the rotary modules alike."


@dataclass(frozen=True, eq=False)
class RotaryTensor:
    """A tensor of frequencies, or a table of cos and sin: the module that has it, its path in the model, and its name.

    `layer` is the layer type in the name, such as full_attention in full_attention_inv_freq.
    """

    path: str
    name: str
    values: Tensor
    module: Any
    layer: str = ""
    is_table: bool = False

    @property
    def label(self) -> str:
        return f"{self.path}.{self.name}".lstrip(".")

    @property
    def dtype(self) -> str:
        return str(self.values.dtype).removeprefix("torch.")

    def attribute(self, name: str) -> Any:
        """Return an attribute of the module that goes with this tensor, None where it has none."""
        return getattr(self.module, f"{self.layer}_{name}" if self.layer else name, None)


@dataclass(frozen=True)
class Fault:
    """What is wrong with a tensor, with the expected and the found value, and what to do."""

    what: str
    remedy: str


@dataclass(eq=False)
class Found:
    """What was found in a model: {fault: places}, and the numbers of each layer type that is right."""

    faults: dict[Fault, list[str]] = field(default_factory=dict)
    digests: dict[str, tuple[float, float]] = field(default_factory=dict)

    def describe(self) -> list[str]:
        """Return a sentence for every fault."""
        lines = []
        for fault, places in self.faults.items():
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            lines.append(f"- {places[0]}{more}: {fault.what}. {fault.remedy}")
        return lines


def assert_rope(model: Any, config: AnySource, *, length: int | None = None) -> None:
    """Raise `AssertionError` if the rotary embeddings of a PyTorch model are not those that a config means.

    `length` is how many positions tables of cos and sin must hold (None: the limit of the config). Where
    torch.distributed is initialised, call it on every rank: all of them raise if one is wrong, or if one holds other
    values than the rest. `config` is what `rope_viz.check` takes. Raises `ValueError` for a config without RoPE.
    """
    read = read_source(config)
    found = check_tensors(choose_own(list(find_rotary_tensors(model)), read.model_type), read, length)
    problems = [*found.describe(), *compare_ranks(found, list(read.specs))]
    if problems:
        head = f"The model does not hold the rotary embedding that its config ({read.model_type}) means:"
        raise AssertionError("\n".join([head, *problems]))


def find_rotary_tensors(model: Any) -> Iterator[RotaryTensor]:
    """Yield every tensor of frequencies and every table of cos and sin, without those of vision and audio."""
    for path, module in model.named_modules():
        if OTHER_PARTS.search(path):
            continue
        # A module may hold them as buffers, as parameters or as plain attributes.
        held = {**vars(module), **module._buffers, **module._parameters}
        for name, values in held.items():
            if not hasattr(values, "device") or not hasattr(values, "dtype"):
                continue
            match = FREQUENCIES.fullmatch(name)
            if match and not name.endswith(OTHER_LENGTHS):
                yield RotaryTensor(path, name, values, module, match["layer"] or "")
            elif name in TABLES or (name == "weight" and "SinusoidalPositional" in type(module).__name__):
                yield RotaryTensor(path, name, values, module, is_table=True)


def choose_own(tensors: list[RotaryTensor], model_type: str) -> list[RotaryTensor]:
    """Return the tensors of the language model, without those of other models inside it, such as a codec."""

    def find_type(tensor: RotaryTensor) -> str | None:
        return getattr(getattr(tensor.module, "config", None), "model_type", None)

    if not any(find_type(tensor) == model_type for tensor in tensors):
        return tensors
    return [tensor for tensor in tensors if find_type(tensor) in (None, model_type)]


def check_tensors(tensors: Sequence[RotaryTensor], config: ModelConfig, length: int | None) -> Found:
    """Compare tensors with the layer types of a config that they may belong to."""
    found, specs = Found(), config.specs
    if not tensors:
        what = "the model has no tensor of frequencies or of cos and sin that is known here"
        found.faults[Fault(what, "Compare what it computes: `rope-viz conformance` writes a check.")] = [
            config.model_type
        ]
    known: dict[Any, tuple[str, list[Fault]]] = {}
    is_by_layer = False
    for tensor in tensors:
        layers, place = find_layers(tensor, config)
        is_by_layer |= bool(LAYER.search(tensor.path))
        values = read_rows(tensor) if tensor.is_table else read_numbers(tensor)
        # Every layer has the same numbers in most models.
        held = [tensor.attribute(name) for name in ("attention_scaling", "max_seq_len_cached")]
        size = (tensor.name, tensor.dtype, tuple(tensor.values.shape), *map(str, held))
        key = (tuple(layers), size, values is None or values.tobytes())
        if key not in known:
            answers = {layer: judge(tensor, values, specs[layer], length or find_limit(config)) for layer in layers}
            right = next((layer for layer, faults in answers.items() if not faults), layers[0])
            known[key] = (right, answers[right])
        layer, faults = known[key]
        for fault in faults:
            found.faults.setdefault(fault, []).append(f"{tensor.label} ({place})" if place else tensor.label)
        if not faults and values is not None and layer not in found.digests:
            found.digests[layer] = summarise(values, tensor.attribute("attention_scaling"))
    missing = [layer for layer in specs if layer not in found.digests]
    has_names = any(tensor.layer for tensor in tensors)
    if missing and not (found.faults or is_by_layer or has_names):
        what = f"no tensor has the values of the layer type {missing[0]}"
        found.faults[Fault(what, SAME_CONFIG)] = [tensors[0].label]
    return found


def find_layers(tensor: RotaryTensor, config: ModelConfig) -> tuple[list[str], str]:
    """Return the layer types that a tensor may belong to, and words for where it is."""
    layers = list(config.specs)
    if tensor.layer and tensor.layer in layers:
        return [tensor.layer], ""
    number = LAYER.search(tensor.path)
    if len(layers) == 1 or number is None:
        return layers, "" if number is None else f"layer {number[1]}"
    types = config.layer_types or []
    own = types[int(number[1])] if int(number[1]) < len(types) else ""
    place = f"layer {number[1]}"
    return ([own], f"{place}, {own}") if own in layers else (layers, place)


def find_limit(config: ModelConfig) -> int:
    """Return the positions that a table must hold: the limit of a config, 1 for one that has none."""
    try:
        return config.limit
    except ValueError:
        return 1


def read_numbers(tensor: RotaryTensor) -> FloatArray | None:
    """Return frequencies as float64; None for those on the meta device."""
    values = tensor.values.detach()
    return None if values.device.type == "meta" else np.asarray(values.float().cpu().numpy(), np.float64).ravel()


def read_rows(tensor: RotaryTensor) -> Any:
    """Return some rows of a table as complex numbers cos + i sin, shape (rows, values); None on the meta device."""
    table = tensor.values.detach()
    if table.device.type == "meta":
        return None
    rows = table.reshape(-1, table.shape[-1])
    chosen = [*positions_of(tensor)]
    if table.is_complex():
        return np.asarray(rows[chosen].cpu().numpy(), np.complex128)
    if tensor.name == "cos_cached":
        sin = tensor.module.sin_cached.detach()
        parts = [rows[chosen], sin.reshape(-1, sin.shape[-1])[chosen]]
    else:
        parts = list(rows[chosen].chunk(2, dim=-1))
    cos, sin = (np.asarray(part.float().cpu().numpy(), np.float64) for part in parts)
    return sin + 1j * cos if tensor.name in SINE_FIRST else cos + 1j * sin


def count_rows(tensor: RotaryTensor) -> int:
    """Return the number of positions of a table."""
    return int(tensor.values.numel() // tensor.values.shape[-1])


def positions_of(tensor: RotaryTensor) -> list[int]:
    """Return the positions of a table that are compared."""
    rows = count_rows(tensor)
    return sorted({*(one for one in POSITIONS if one < rows), rows - 1})


def judge(tensor: RotaryTensor, values: Any, spec: RopeSpec, needed: int) -> list[Fault]:
    """Return what is wrong with a tensor of one layer type."""
    if values is None:
        return [Fault("it is on the meta device, without values", REBUILD)]
    bad = int(values.size - np.isfinite(values).sum())
    if bad:
        return [Fault(f"{bad:,} of {values.size:,} values are not finite numbers (NaN or infinity)", REBUILD)]
    if not values.any():
        return [Fault(f"all values are 0, not {spec.inv_freq()[0]:.6g} for pair 0 and so on", REBUILD)]
    return judge_table(tensor, values, spec, needed) if tensor.is_table else judge_frequencies(tensor, values, spec)


def list_lengths(tensor: RotaryTensor, spec: RopeSpec) -> list[int | None]:
    """Return the lengths for which frequencies may be now: those of dynamic methods change with the sequence."""
    if not spec.scaling.depends_on_length:
        return [None]
    cached = tensor.attribute("max_seq_len_cached")
    return [None, *([int(cached)] if cached else []), spec.target]


def judge_frequencies(tensor: RotaryTensor, values: FloatArray, spec: RopeSpec) -> list[Fault]:
    """Return what is wrong with frequencies and with the attention factor of their module."""
    lengths = list_lengths(tensor, spec)
    cases = [make_case(spec, length) for length in lengths]
    case = next((one for one in cases if not [*check_rope.compare_frequencies(one, values)]), None)
    if case is None:
        return [name_fault(make_case(spec, lengths[0], with_mistakes=True), values)]
    factor = tensor.attribute("attention_scaling")
    if factor is None:
        return []
    case["factor_mistakes"] = find_factor_mistakes(spec, case["attention_factor"])
    wrong = check_rope.check_inv_freq(case, (values, float(factor)))
    return [Fault(f"{one.mistake or 'another attention factor'} ({one.detail})", REBUILD) for one in wrong]


def make_case(spec: RopeSpec, length: int | None, *, with_mistakes: bool = False) -> dict[str, Any]:
    """Return the case of a layer type in the form of the conformance kit."""
    right = spec.inv_freq(length)
    return {
        "id": "",
        "inv_freq": right,
        "attention_factor": spec.attention_factor(length),
        "head_dim": spec.head_dim,
        "mistakes": list(find_mistakes({"": spec}, "", right)) if with_mistakes else [],
        "factor_mistakes": {},
    }


def name_fault(case: Mapping[str, Any], values: FloatArray) -> Fault:
    """Return the fault of frequencies that differ, by the mistake that gives them."""
    (difference,) = check_rope.compare_frequencies(case, values)
    rounded = name_rounding(np.asarray(case["inv_freq"]), values)
    if rounded:
        return Fault(f"frequencies rounded to {rounded} ({difference.detail})", KEEP_FLOAT32)
    method = find_method(values) if (values >= 0).all() else None
    if difference.mistake and difference.mistake not in (check_rope.ROUNDED, "base lost"):
        return Fault(f"{difference.mistake} ({difference.detail})", SAME_CONFIG)
    if method is not None and method.name:
        scaled = "" if method.name == "plain" else f" with {method.name} scaling by {method.factor:.4g}"
        return Fault(f"frequencies of base {method.base:,.6g}{scaled} ({difference.detail})", SAME_CONFIG)
    if difference.mistake:
        return Fault(f"{difference.mistake} ({difference.detail})", KEEP_FLOAT32)
    return Fault(f"no known mistake gives these values ({difference.detail})", REBUILD)


def name_rounding(right: FloatArray, values: FloatArray) -> str:
    """Return the type to which the right frequencies were rounded, "" if that does not give these values."""
    if right.shape != values.shape:
        return ""
    torch = importlib.import_module("torch")
    exact = torch.tensor(right, dtype=torch.float32)
    for name in ("bfloat16", "float16"):
        rounded = exact.to(getattr(torch, name)).double().numpy()
        # The formulas of float32 may differ in their last digit, which may round the other way.
        if np.mean(rounded == values) > 0.9:
            return name
    return ""


def judge_table(tensor: RotaryTensor, values: Any, spec: RopeSpec, needed: int) -> list[Fault]:
    """Return what is wrong with a table of cos and sin."""
    positions, rows = positions_of(tensor), count_rows(tensor)
    if rows < needed:
        return [Fault(f"the table has {rows:,} positions, not {needed:,}", LONGER_TABLE)]
    for length in list_lengths(tensor, spec):
        case = {**make_case(spec, length, with_mistakes=True), "positions": positions}
        case["factor_mistakes"] = find_factor_mistakes(spec, case["attention_factor"])
        wrong = check_rope.check_cos_sin(case, values.real, values.imag)
        if not wrong or is_rounded_table(tensor, values, case):
            return []
    return [Fault(f"{one.mistake or 'no known mistake gives this table'} ({one.detail})", REBUILD) for one in wrong]


def is_rounded_table(tensor: RotaryTensor, values: Any, case: Mapping[str, Any]) -> bool:
    """Return whether a table in a 16-bit type holds the right cos and sin, which engines round on purpose."""
    if tensor.dtype not in ("bfloat16", "float16"):
        return False
    right = check_rope.turns(case, np.asarray(case["inv_freq"]), case["attention_factor"])
    shown = values[:, : right.shape[1]]
    room = 2.0**-8 * max(1.0, abs(case["attention_factor"]))
    return bool(shown.shape == right.shape and (np.abs(shown - right) <= 1.5 * room).all())


def summarise(values: Any, factor: Any) -> tuple[float, float]:
    """Return two numbers by which ranks compare what they hold: of the frequencies or rows, and of the factor."""
    numbers = np.concatenate([values.real.ravel(), values.imag.ravel()])
    logs = np.log2(np.where(numbers > 0, numbers, 1.0))
    weights = 1.0 + np.modf(np.arange(logs.size) * 0.6180339887498949)[0]
    return float(weights @ logs / weights.sum()), 1.0 if factor is None else float(factor)


def compare_ranks(found: Found, layers: Sequence[str]) -> list[str]:
    """Return a sentence for every difference between ranks; [] where there is one process.

    All ranks call it, also those that found a fault, so that none waits for another. With parallel pipelines, a rank
    may hold some layer types only.
    """
    torch = importlib.import_module("torch")
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return []
    device = torch.device("cuda", torch.cuda.current_device()) if "nccl" in distributed.get_backend() else "cpu"
    own = torch.zeros(1 + MOST_TYPES, 3, dtype=torch.float64)
    own[0, 0] = float(bool(found.faults))
    for row, layer in enumerate(layers[:MOST_TYPES], 1):
        if layer in found.digests:
            own[row] = torch.tensor([1.0, *found.digests[layer]], dtype=torch.float64)
    gathered = [torch.empty_like(own, device=device) for _ in range(distributed.get_world_size())]
    distributed.all_gather(gathered, own.to(device))
    ranks = [one.cpu().numpy() for one in gathered]
    wrong = [rank for rank, one in enumerate(ranks) if one[0, 0] and rank != distributed.get_rank()]
    lines = [f"- rank {rank}: it found a fault; see its own message." for rank in wrong]
    for row, layer in enumerate(layers[:MOST_TYPES], 1):
        having = [rank for rank, one in enumerate(ranks) if one[row, 0]]
        values = np.array([ranks[rank][row, 1:] for rank in having]).reshape(-1, 2)
        usual = np.median(values, axis=0) if len(values) > 2 else values[:1].reshape(-1)
        for rank, value in zip(having, values, strict=True):
            if (np.abs(value - usual) > SAME).any():
                name = f" of the layer type {layer}" if layer else ""
                what = f"mean log2 {value[0]:.6g} and factor {value[1]:.6g}, not {usual[0]:.6g} and {usual[1]:.6g}"
                lines.append(f"- rank {rank} holds other values{name} than the other ranks ({what}). {SAME_ON_RANKS}")
    return lines
