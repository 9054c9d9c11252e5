"""What servers and llama.cpp make of several axes: the same sections, laid out and scaled in their own ways.

vLLM 0.33.0 `MRotaryEmbedding`, SGLang 0.5.23 `mrope`, mlx-vlm 0.7.10 by class, `ggml_rope_multi` of llama.cpp
0c1e57098.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import (
    STILL,
    THW,
    AxesSpec,
    checked_counts,
    interleaved,
    paired,
    placed,
    shared_ladder,
)
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, Pairing, RopeSpec, Scaling, shorten
from rope_viz.models.model_config import from_config
from rope_viz.multi_axis.config_reader import Given
from rope_viz.multi_axis.text import TEXTS, as_held, keys, laid, renamed, repeated, scheduled, text_layers

LLAMA_AXES = ("t", "h", "w", "e")
LLAMA_MODES = ("MROPE", "IMROPE", "VISION", "NEOX", "NORMAL")


def llama_cpp(config: Mapping[str, Any]) -> AxesSpec:
    """ggml's rotation over four positions: sections (MROPE), interleaved (IMROPE), a ladder per section (VISION).

    Pairs beyond all sections begin again with the first. In IMROPE a pair that no section claims takes the fourth
    position, where llama.cpp passes 0: it stands still. All modes here pair halves, NORMAL adjacent dimensions.
    """
    given = Given(config)
    mode = given.choice("mode", options=LLAMA_MODES, default="MROPE")
    named = None if given.raw("head_dim") is None else given.whole("head_dim")
    dims = given.whole("n_dims", "n_rot", default=named, most=MAX_HEAD_DIM)
    size, base = given.whole("head_dim", default=dims, most=MAX_HEAD_DIM), given.base(10_000.0)
    pairs = dims if mode == "VISION" else dims // 2
    speeds, factor = ggml_speeds(given, dims, pairs, base)
    if mode in ("NEOX", "NORMAL"):
        pairing: Pairing = "half" if mode == "NEOX" else "interleaved"
        return AxesSpec(speeds[:, None], paired(pairs, pairing), factor, ("position",), head_dim=size)
    counts = checked_counts(given.wholes("sections", "mrope_section", least=0))
    counts = (*counts, *[0] * (4 - len(counts)))[:4]
    axis, rung = sectors(mode, counts, pairs)
    # A vision tower is given rows and columns, twice over.
    axes = ("a", "b", "c", "d") if mode == "VISION" else LLAMA_AXES
    return AxesSpec(placed(speeds[rung], axis, 4), paired(pairs, "half"), factor, axes, head_dim=size)


def sectors(mode: str, counts: Sequence[int], pairs: int) -> tuple[list[int], list[int]]:
    """(axis, rung) of every pair."""
    total = sum(counts)
    if not total:
        raise ValueError(f"sections must not all be 0, got {list(counts)}")
    starts = np.concatenate([[0], np.cumsum(counts)])
    axis, rung = [], []
    for pair in range(pairs):
        sector = pair % total
        if mode == "IMROPE":
            k = sector % 3
            axis.append(k if sector < 3 * counts[k] else 3)
        else:
            axis.append(int(np.searchsorted(starts[1:], sector, side="right")))
        # In VISION the ladder starts anew with every section.
        rung.append(sector - int(starts[axis[-1]]) if mode == "VISION" else pair)
    return axis, rung


def ggml_speeds(given: Given, dims: int, pairs: int, base: float) -> tuple[FloatArray, FloatArray | float]:
    """Speeds (pairs,) and the factor on cos and sin, with ggml's YaRN where `ext_factor` is not 0."""
    scale, extend = given.number("freq_scale", default=1.0, above=0.0), given.number("ext_factor", default=0.0)
    factor = given.number("attn_factor", default=1.0)
    plain = base ** (-2.0 * np.arange(pairs) / dims)
    divisors = given.raw("freq_factors")
    if divisors is not None:
        plain = plain / np.asarray(given.numbers("freq_factors", count=pairs))
    if extend == 0.0:
        return np.asarray(plain * scale, dtype=np.float64), factor
    trained = given.whole("n_ctx_orig", "original_max_position_embeddings", default=32768)
    ends = [
        dims * math.log(trained / (given.number(name, default=usual) * 2.0 * math.pi)) / (2.0 * math.log(base))
        for name, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    ]
    low, high = max(0.0, math.floor(ends[0])), min(dims - 1.0, math.ceil(ends[1]))
    ramp = (1.0 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0.0, 1.0)) * extend
    return plain * (scale * (1.0 - ramp) + ramp), factor * (1.0 + 0.1 * math.log(1.0 / scale))


def server(runtime: str, config: Mapping[str, Any]) -> AxesSpec:
    """vLLM, SGLang or mlx-vlm: from a model's config (with `model_type`), or from the arguments of the class.

    The speeds are those of float32, as the servers hold them.
    """
    return as_held(allocation(runtime, config))


def allocation(runtime: str, config: Mapping[str, Any]) -> AxesSpec:
    """Which pair listens to which axis in a server, and how fast by the formula."""
    kind = str(config.get("model_type") or "").removesuffix("_text")
    if runtime == "mlx-vlm" and kind in TEXTS and kind != "hunyuan_vl":
        return next(iter(text_layers(kind, config).values()))
    spec, found, name = described(kind, config)
    counts = found.get("mrope_section", found.get("xdrope_section"))
    if counts is None and kind in TEXTS:
        counts = TEXTS[kind].sections or None
    if counts is None:
        return shared_ladder(spec, [0] * spec.pairs, ("position",))
    sizes = checked_counts(counts)
    if name == "hunyuan_vl":
        return repeated(spec, sizes)
    if sum(sizes) != spec.pairs:
        if runtime != "sglang":
            raise ValueError(f"mrope_section must add up to the {spec.pairs} pairs that rotate, got {list(sizes)}")
        sizes = rescaled(sizes, spec.pairs)
    if name in ("ernie4_5_vl_moe", "ernie4_5_moe_vl"):
        return shared_ladder(spec, laid("h w then t", sizes, spec.pairs))
    if name == "bailing_moe_v3_vl":
        return shared_ladder(spec, laid("t behind h w", sizes, spec.pairs))
    if name == "openpangu_vl":
        return shared_ladder(spec, scheduled(sizes))
    if found.get("mrope_interleaved"):
        return shared_ladder(spec, interleaved(sizes[:3], spec.pairs))
    axes = THW if len(sizes) <= 3 else LLAMA_AXES
    return shared_ladder(spec, [k for k, count in enumerate(sizes) for _ in range(count)], axes)


def described(kind: str, config: Mapping[str, Any]) -> tuple[RopeSpec, Mapping[str, Any], str]:
    """The ladder, the keys that name sections, and the model type, from a config or from a class' arguments."""
    given = Given(config)
    if given.raw("head_size", "rotary_dim", "base", "is_neox_style") is None:
        whole = renamed(kind, config) if kind else {"model_type": "qwen2_vl_text", **config}
        return next(iter(from_config(whole).values())), keys(whole, ""), kind
    size = given.whole("head_size", "head_dim", default=given.whole("rotary_dim", default=128))
    scaling: Scaling = Scaling()
    if given.raw("scaling_factor") is not None:
        scaling = Yarn(
            factor=given.number("scaling_factor", above=0.0),
            beta_fast=given.number("beta_fast", default=32.0),
            beta_slow=given.number("beta_slow", default=1.0),
        )
    spec = RopeSpec(
        head_dim=size,
        rotary_dim=given.whole("rotary_dim", default=size),
        base=given.base(10_000.0),
        context=given.whole("max_position_embeddings", "original_max_position_embeddings", default=4096),
        pairing="half" if given.flag("is_neox_style", default=True) else "interleaved",
        scaling=scaling,
    )
    return spec, keys(config, ""), kind


def rescaled(counts: Sequence[int], pairs: int) -> tuple[int, ...]:
    """SGLang: sections that do not add up, scaled to the pairs and the rest given to the last.

    >>> rescaled((16, 24, 24), 32)
    (8, 12, 12)
    """
    total = sum(counts)
    if not total:
        each, rest = divmod(pairs, len(counts))
        return tuple(each + (k < rest) for k in range(len(counts)))
    sizes = [max(1, int(count * pairs / total)) for count in counts]
    sizes[-1] += pairs - sum(sizes)
    if sizes[-1] < 0:
        raise ValueError(f"mrope_section cannot be fitted to {pairs} pairs, got {shorten(list(counts))}")
    return tuple(sizes)


def standing(config: Mapping[str, Any]) -> list[int]:
    """The pairs of an M-RoPE model that stand still in llama.cpp, where the fourth position is 0."""
    spec = llama_cpp(config)
    return np.flatnonzero((spec.owner == 3) | (spec.owner == STILL)).tolist()
