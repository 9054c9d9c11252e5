"""The conformance kit: configs with exact frequencies, angles and rotated vectors, and a checker that names mistakes.

The values are those of transformers 5.23.0's formulas in float64; what each typical mistake would give stands next to
them, so that the checker (`check_rope.py`) needs no formulas of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.embedding import scaling as methods
from rope_viz.embedding.exact_angles import exact_angles
from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec, Scaling
from rope_viz.kernels.reference import rotate
from rope_viz.models.architecture import RotatedVectors
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from rope_viz.runtimes.releases import REFERENCE

POSITIONS = (0, 1, 2, 17, 1000, 4095, 8192, 32767, 131071, 1 << 24, (1 << 24) + 1)
LAST = 131072
CHECKER = Path(__file__).with_name("check_rope.py")
SIZES = {"hidden_size": 4096, "num_attention_heads": 32}
YARN = {"rope_type": "yarn"}


def list_configs() -> dict[str, dict[str, Any]]:
    """Return {id: config.json} of every case."""
    configs = {name: build_config(*parts) for name, *parts in (*plain_cases(), *scaled_cases(), *other_cases())}
    return configs | {f"deepseek-v4-{layer}": build_deepseek_v4(ratio) for layer, ratio in COMPRESS_RATIOS.items()}


def build_config(kind: str, head: int, base: float, rope: Mapping[str, Any], limit: int = 4096) -> dict[str, Any]:
    """Return a config of these sizes: `limit` in tokens, `rope` the other keys of rope_parameters."""
    parameters = {"rope_type": "default", "rope_theta": base, **rope}
    sizes = {**SIZES, "head_dim": head} if kind != "deepseek_v3" else {**SIZES, **DEEPSEEK, "qk_rope_head_dim": head}
    return {"model_type": kind, **sizes, "max_position_embeddings": limit, "rope_parameters": parameters}


COMPRESS_RATIOS = {"main": 0, "compress": 4}
"""Of DeepSeek V4: {layer type: compress ratio of such a layer}."""


def build_deepseek_v4(ratio: int) -> dict[str, Any]:
    """Return the config of a DeepSeek V4 of one layer with this compress ratio."""
    sizes: dict[str, Any] = {"head_dim": 128, "qk_rope_head_dim": 64, "num_key_value_heads": 1, "q_lora_rank": 64}
    sizes |= {"num_hidden_layers": 1, "compress_ratios": [ratio], "compress_rope_theta": 160000.0}
    rope = {**YARN, "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 65536}
    limit = {"max_position_embeddings": 1048576}
    return {"model_type": "deepseek_v4", **SIZES, **sizes, **limit, "rope_parameters": rope}


DEEPSEEK = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "v_head_dim": 128}


def plain_cases() -> Iterator[tuple[Any, ...]]:
    """Yield cases without scaling: bases, head sizes, pairings and rotated shares."""
    for head in (32, 64, 80, 96, 128, 192, 256):
        yield f"plain-{head}", "llama", head, 10000.0, {}
    for base in (500000.0, 1e6, 5e6):
        yield f"plain-base-{base:g}", "llama", 128, base, {}
    yield "adjacent-128", "cohere", 128, 8e6, {}
    yield "adjacent-64", "deepseek_v3", 64, 10000.0, {}
    for share in (0.25, 0.5):
        yield f"partial-{share}", "glm4_moe", 128, 10000.0, {"partial_rotary_factor": share}
    yield "adjacent-partial-0.5", "glm4", 128, 10000.0, {"partial_rotary_factor": 0.5}


def scaled_cases() -> Iterator[tuple[Any, ...]]:
    """Yield cases of linear, Llama 3 and YaRN scaling."""
    for factor in (2.0, 2.5, 8.0):
        yield f"linear-{factor:g}", "llama", 128, 10000.0, {"rope_type": "linear", "factor": factor}
    for head, factor, original, bands in (
        (128, 8.0, 8192, (1.0, 4.0)),
        (64, 32.0, 8192, (1.0, 4.0)),
        (128, 8.0, 4096, (1.0, 4.0)),
        (128, 16.0, 8192, (1.0, 8.0)),
    ):
        rope = {"rope_type": "llama3", "factor": factor, "low_freq_factor": bands[0], "high_freq_factor": bands[1]}
        rope |= {"original_max_position_embeddings": original}
        yield f"llama3-{head}-{factor:g}-{original}-{bands[1]:g}", "llama", head, 500000.0, rope, LAST
    yarns: tuple[tuple[str, int, float, float, int, dict[str, Any]], ...] = (
        ("yarn-4", 128, 1e6, 4.0, 32768, {}),
        ("yarn-16", 128, 10000.0, 16.0, 4096, {}),
        ("yarn-32", 128, 10000.0, 32.0, 4096, {}),
        ("yarn-2-64", 64, 500000.0, 2.0, 8192, {}),
        ("yarn-not-rounded", 64, 150000.0, 32.0, 4096, {"truncate": False}),
        ("yarn-own-factor", 128, 1e6, 4.0, 32768, {"attention_factor": 1.0}),
        ("yarn-odd-factor", 128, 1e6, 8.0, 8192, {"attention_factor": 1.5}),
        ("yarn-betas", 128, 1e6, 4.0, 32768, {"beta_fast": 16.0, "beta_slow": 2.0}),
        ("yarn-mscales", 128, 10000.0, 40.0, 4096, {"mscale": 1.0, "mscale_all_dim": 0.5}),
        ("yarn-equal-mscales", 128, 10000.0, 40.0, 4096, {"mscale": 1.0, "mscale_all_dim": 1.0}),
    )
    for name, head, base, factor, original, more in yarns:
        rope = {**YARN, "factor": factor, "original_max_position_embeddings": original, **more}
        yield name, "llama", head, base, rope, int(factor * original)
    rope = {**YARN, "factor": 4.0, "original_max_position_embeddings": 8192, "partial_rotary_factor": 0.5}
    yield "yarn-partial", "glm4_moe", 128, 10000.0, rope, 32768


def other_cases() -> Iterator[tuple[Any, ...]]:
    """Yield cases of DeepSeek's attention, LongRoPE, dynamic NTK and p-RoPE."""
    for scale, weight in ((40.0, 1.0), (40.0, 0.707), (32.0, 1.0)):
        rope = {**YARN, "factor": scale, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
        rope |= {"mscale": weight, "mscale_all_dim": weight}
        yield f"mla-{scale:g}-{weight:g}", "deepseek_v3", 64, 10000.0, rope, int(scale * 4096)
    lists = {"short_factor": [1.0] * 48, "long_factor": [1.0 + 0.6 * pair for pair in range(48)]}
    rope = {"rope_type": "longrope", **lists, "original_max_position_embeddings": 4096}
    yield "longrope-long", "llama", 96, 10000.0, rope, LAST
    yield "dynamic-2", "llama", 128, 10000.0, {"rope_type": "dynamic", "factor": 2.0}, 4096
    for share in (0.25, 0.5):
        rope = {"rope_type": "proportional", "partial_rotary_factor": share}
        yield f"proportional-{share}", "llama", 128, 1e6, rope, LAST


def build_case(name: str, config: dict[str, Any], layer: str = "") -> dict[str, Any]:
    """Return one case: config, values at `POSITIONS`, rotated vectors, and what mistakes give.

    `layer` is a layer type, "" for the main one, or that of a config with one layer. Raises `ValueError` for a config
    that transformers refuses.
    """
    model = ModelConfig.read(config)
    alone = [kind for kind, ratio in COMPRESS_RATIOS.items() if config.get("compress_ratios") == [ratio]]
    layer = layer or "".join(alone) or model.main_layer
    spec = model.specs[layer]
    is_growing = spec.scaling.depends_on_length
    positions = [one for one in POSITIONS if one < LAST] if is_growing else list(POSITIONS)
    length = LAST if is_growing else None
    known = emulate(config, "transformers", length=length, layer_type=layer or None)
    if known.inv_freq is None or known.attention_factor is None:
        raise ValueError(known.reason)
    q, k = make_vectors(spec.head_dim)
    factor = known.attention_factor
    facts = model.architecture.vectors or RotatedVectors()
    start = spec.head_dim - spec.rotary_dim if facts.part == "last" else 0
    turned = functools.partial(turn_tail, start, positions, known.inv_freq, spec.pairing, factor)
    scales = list_scales(config, spec, known.softmax_multiplier or 1.0)
    return {
        "id": name,
        "config": config,
        "length": length,
        "head_dim": spec.head_dim,
        "rotary_dim": spec.rotary_dim,
        "rotary_start": start,
        "pairing": spec.pairing,
        "inv_freq": known.inv_freq.tolist(),
        "attention_factor": factor,
        "softmax_scale_multiplier": known.softmax_multiplier,
        "softmax_scale": scales["right"],
        "positions": positions,
        "angles": exact_angles(known.inv_freq, positions).tolist(),
        "q": q.tolist(),
        "k": k.tolist(),
        "rotated_q": turned(q).tolist(),
        "rotated_k": turned(k).tolist(),
        **(turn_back(functools.partial(turned, inverse=True), spec.head_dim) if facts.turns_back else {}),
        "mistakes": [[key, values.tolist()] for key, values in find_mistakes(model.specs, layer, known.inv_freq)],
        "factor_mistakes": find_factor_mistakes(spec, factor),
        "scale_mistakes": {name: value for name, value in scales.items() if abs(value / scales["right"] - 1.0) > 1e-5},
    }


def turn_tail(
    start: int,
    positions: list[int],
    inv_freq: FloatArray,
    pairing: Pairing,
    factor: float,
    vector: FloatArray,
    *,
    inverse: bool = False,
) -> FloatArray:
    """Return a vector rotated at each position, shape (positions, head_dim); numbers before `start` stay."""
    rows = np.tile(vector, (len(positions), 1))
    tail = rows[:, None, start:]
    options = {"pairing": pairing, "attention_factor": factor, "inverse": inverse}
    rows[:, start:] = rotate(tail, positions, inv_freq, **options)[:, 0]  # type: ignore[arg-type]
    return rows


def turn_back(turned: Callable[[FloatArray], FloatArray], size: int) -> dict[str, Any]:
    """Return an output of attention, and the same turned back at each position.

    DeepSeek V4 has one vector for key and value, so that its output carries rotations of the keys.
    """
    output = np.cos(0.5 + np.arange(size) * 0.9)
    return {"output": output.tolist(), "turned_back": turned(output).tolist()}


def list_scales(config: Mapping[str, Any], spec: RopeSpec, multiplier: float) -> dict[str, float]:
    """Return the factor on q·k, "right", and those that typical mistakes give. These classes divide by √(size of q)."""
    size = spec.head_dim + int(config.get("qk_nope_head_dim", 0))
    yarn = methods.mscale(spec.scaling.factor_for(spec)) if isinstance(spec.scaling, methods.Yarn) else 1.0
    return {
        "right": multiplier / math.sqrt(size),
        "softmax multiplier ignored": 1.0 / math.sqrt(size),
        "softmax multiplier not squared": math.sqrt(multiplier / size),
        "softmax multiplier squared": multiplier**2 / math.sqrt(size),
        "rotary size for the size of q": multiplier / math.sqrt(spec.rotary_dim),
        "softmax multiplier of DeepSeek-V3": multiplier * yarn**2 / math.sqrt(size),
    }


def make_vectors(size: int) -> tuple[FloatArray, FloatArray]:
    """Return q and k of this many numbers, all different and at most 1, so that a swapped dimension shows."""
    steps = np.arange(size)
    return np.cos(1.0 + steps * 0.7), np.sin(2.0 + steps * 1.1)


def find_mistakes(specs: Mapping[str, RopeSpec], layer: str, right: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield (mistake, frequencies) of every typical mistake that changes the frequencies of a layer type."""
    others = [other for name, other in specs.items() if name != layer]
    for name, wrong in (*list_layer_mistakes(specs[layer], others), *list_mistakes(specs[layer], right)):
        if wrong.shape != right.shape or not np.allclose(wrong, right, rtol=1e-5, atol=0):
            yield name, wrong


def list_mistakes(spec: RopeSpec, right: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield every typical mistake, also where it changes nothing."""
    plain, scaling = spec.plain_inv_freq, spec.scaling
    yield "scaling ignored", plain
    if spec.rotary_dim < spec.head_dim:
        whole = dataclasses.replace(spec, rotary_dim=spec.head_dim).inv_freq()
        yield "head size for rotary size", whole
        yield "head size for rotary size", whole[: spec.pairs]
    if spec.base != 10_000.0:
        yield "base lost", dataclasses.replace(spec, base=10_000.0).inv_freq(LAST)
        yield "base lost", dataclasses.replace(spec.plain(), base=10_000.0).inv_freq()
    factor = scaling.factor_for(spec)
    if type(scaling) is not Scaling and factor != 1.0:
        yield "factor on the wrong side", plain**2 / np.where(right == 0, 1.0, right)
        yield "factor squared", right / factor
        if isinstance(scaling, (methods.Yarn, methods.Llama3)):
            squared = dataclasses.replace(scaling, factor=factor**2)
            yield "factor squared", dataclasses.replace(spec, scaling=squared).inv_freq()
            yield "linear instead of its own method", plain / factor
            exchanged = dataclasses.replace(spec, context=spec.target, target=spec.context)
            yield "original and maximum length exchanged", exchanged.inv_freq()
            yield "ramp inverted", methods.blend(spec, factor, 1.0 - scaling.kept_share(spec))
    if isinstance(scaling, methods.Yarn):
        fast, slow = scaling.beta_fast, scaling.beta_slow
        swapped = dataclasses.replace(scaling, beta_fast=slow, beta_slow=fast)
        yield "betas swapped", dataclasses.replace(spec, scaling=swapped).inv_freq()
        yield "ramp by turns", methods.blend(spec, factor, methods.paper_ramp(spec, slow, fast))
        other = dataclasses.replace(scaling, truncate=not scaling.truncate)
        name = "range not rounded" if scaling.truncate else "range rounded"
        yield name, dataclasses.replace(spec, scaling=other).inv_freq()
    if isinstance(scaling, methods.LongRope):
        yield "short list instead of long", spec.inv_freq()


def list_layer_mistakes(spec: RopeSpec, others: Iterable[RopeSpec]) -> Iterator[tuple[str, FloatArray]]:
    """Yield the mistakes of code that confuses a layer type with another."""
    for other in others:
        yield "frequencies of the other layers", other.inv_freq()
        yield "scaling of the other layers", dataclasses.replace(other, base=spec.base).inv_freq()
        yield "base of the other layers", dataclasses.replace(spec, base=other.base).inv_freq()


def find_factor_mistakes(spec: RopeSpec, factor: float) -> dict[str, float]:
    """Return {mistake: factor on cos and sin} of every mistake that changes it."""
    default = methods.mscale(spec.scaling.factor_for(spec))
    wrong = {
        "attention factor squared": factor**2,
        "attention factor on the wrong side": 1.0 / factor,
        "attention factor ignored": 1.0,
        "default attention factor": default,
    }
    return {name: value for name, value in wrong.items() if abs(value - factor) > 1e-5}


def make_kit() -> dict[str, bytes]:
    """Return {file name: content} of the kit."""
    cases = [build_case(name, config) for name, config in list_configs().items()]
    about = f"Rotary embeddings of {len(cases)} configs: the formulas of {REFERENCE} in float64. See check_rope.py."
    values, index = pack_values(cases)
    return {
        "cases.json": as_json({"about": about, "cases": cases}),
        "check_rope.py": CHECKER.read_bytes(),
        "values.bin": values,
        "values.json": as_json(index),
    }


WRONG_FACTORS = ("factor_mistakes", "scale_mistakes")
PACKED = ("inv_freq", "angles", "q", "k", "rotated_q", "rotated_k", "output", "turned_back")


def pack_values(cases: list[dict[str, Any]]) -> tuple[bytes, dict[str, Any]]:
    """Return the values of all cases as little-endian float64, and where each begins (bytes) with its shape."""
    parts: list[bytes] = []
    index: dict[str, Any] = {}
    offset = 0
    for case in cases:
        entry = {key: value for key, value in case.items() if key not in (*PACKED, "id", "mistakes", *WRONG_FACTORS)}
        for key in (key for key in PACKED if key in case):
            values = np.asarray(case[key], "<f8")
            parts.append(values.tobytes())
            entry[key] = {"offset": offset, "shape": list(values.shape)}
            offset += values.nbytes
        index[case["id"]] = entry
    return b"".join(parts), {"dtype": "float64, little-endian, row by row", "cases": index}


def as_json(data: Any) -> bytes:
    """Return data as UTF-8 text of JSON."""
    return json.dumps(data, indent=1).encode()
