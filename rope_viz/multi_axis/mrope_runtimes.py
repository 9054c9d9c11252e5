"""M-RoPE in vLLM, SGLang, mlx-vlm and llama.cpp: the same sections, each with its own layout and scaling.

vLLM 0.33.0 `MRotaryEmbedding`, SGLang 0.5.23 `mrope`, mlx-vlm 0.7.10 by class, `ggml_rope_multi` of llama.cpp
0c1e57098.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import (
    THW,
    AxesSpec,
    check_counts,
    interleave_sections,
    pair_dimensions,
    place_frequencies,
    shared_ladder,
)
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, RopeSpec, Scaling, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.model_config import from_config
from rope_viz.models.several_axes.text import (
    axis_per_pair,
    find_axes,
    section_keys,
    text_layers,
    with_model_type,
    xdrope_axes,
)

LLAMA_AXES = ("t", "h", "w", "e")
LLAMA_MODES = ("MROPE", "IMROPE", "VISION", "NEOX", "NORMAL")


def rotate_as_ggml(config: Mapping[str, Any]) -> AxesSpec:
    """Return ggml's rotation over four positions: blocks (MROPE), interleaved (IMROPE) or per section (VISION).

    Pairs beyond all sections begin again with the first. In IMROPE an unclaimed pair takes the fourth position, where
    llama.cpp passes 0, so it does not rotate. All these modes pair halves, NORMAL pairs adjacent dimensions.
    """
    settings = ConfigReader(config)
    mode = settings.choice("mode", options=LLAMA_MODES)
    dims = settings.size("n_dims", "n_rot", most=MAX_HEAD_DIM) or settings.required("head_dim", most=MAX_HEAD_DIM)
    size = settings.size("head_dim", default=dims, most=MAX_HEAD_DIM)
    pairs = dims if mode == "VISION" else dims // 2
    inv_freq, factor = ggml_frequencies(settings, dims, pairs)
    if mode in ("NEOX", "NORMAL"):
        dims_of_pairs = pair_dimensions(pairs, "half" if mode == "NEOX" else "interleaved")
        return AxesSpec(inv_freq[:, None], dims_of_pairs, factor, ("position",), head_dim=size)
    counts = check_counts(settings.sizes("sections", "mrope_section", least=0))
    axis, rung = assign_sectors(mode, (*counts, 0, 0, 0, 0)[:4], pairs)
    # A vision tower gets rows and columns twice.
    axes = ("a", "b", "c", "d") if mode == "VISION" else LLAMA_AXES
    return AxesSpec(
        place_frequencies(inv_freq[rung], axis, 4), pair_dimensions(pairs, "half"), factor, axes, head_dim=size
    )


def assign_sectors(mode: str, counts: Sequence[int], pairs: int) -> tuple[list[int], list[int]]:
    """Return (axis, index of the frequency) of every pair."""
    total = sum(counts)
    if not total:
        raise ValueError(TEXTS("sections.zero", counts=list(counts)))
    sector, starts = np.arange(pairs) % total, np.cumsum([0, *counts])
    if mode == "IMROPE":
        axis = np.where(sector < 3 * np.array(counts)[sector % 3], sector % 3, 3)
    else:
        axis = np.searchsorted(starts[1:], sector, side="right")
    # In VISION the frequencies restart with every section.
    rung = sector - starts[axis] if mode == "VISION" else np.arange(pairs)
    return axis.tolist(), rung.tolist()


def ggml_frequencies(settings: ConfigReader, dims: int, pairs: int) -> tuple[FloatArray, FloatArray | float]:
    """Return frequencies (pairs,) and the factor on cos and sin, with ggml's YaRN if `ext_factor` is not 0."""
    scale, extend = settings.number("freq_scale", default=1.0, above=0.0), settings.number("ext_factor", default=0.0)
    factor, base = settings.number("attn_factor", default=1.0), settings.base(10_000.0)
    plain = base ** (-2.0 * np.arange(pairs) / dims)
    if settings.value("freq_factors") is not None:
        plain = plain / np.asarray(settings.numbers("freq_factors", count=pairs))
    if extend == 0.0:
        return np.asarray(plain * scale, dtype=np.float64), factor
    trained = settings.size("n_ctx_orig", "original_max_position_embeddings", default=32768)
    ends = [
        dims * math.log(trained / (settings.number(name, default=usual) * 2.0 * math.pi)) / (2.0 * math.log(base))
        for name, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    ]
    low, high = max(0.0, math.floor(ends[0])), min(dims - 1.0, math.ceil(ends[1]))
    ramp = (1.0 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0.0, 1.0)) * extend
    return plain * (scale * (1.0 - ramp) + ramp), factor * (1.0 + 0.1 * math.log(1.0 / scale))


def allocate_for_runtime(runtime: str, config: Mapping[str, Any]) -> AxesSpec:
    """Return the rotation in vLLM, SGLang or mlx-vlm, with the frequencies of the formula.

    The config is a model's (with `model_type`), or has the arguments of the class.
    """
    kind = str(config.get("model_type") or "").removesuffix("_text")
    axes = find_axes(kind)
    pattern = "" if axes is None else axes.pattern
    if runtime == "mlx-vlm" and pattern not in ("", "doubled"):
        return next(iter(text_layers(kind, config).values()))
    spec, found = read_arguments(kind, config)
    counts = found.get("mrope_section", found.get("xdrope_section", axes.sections or None if axes else None))
    if counts is None:
        return shared_ladder(spec, [0] * spec.pairs, ("position",))
    sizes = check_counts(counts)
    # Tencent's code, mlx-vlm and llama.cpp repeat HunYuan-VL's sections for both halves of the head.
    repeats = pattern == "doubled"
    if sum(sizes) != spec.pairs and not repeats:
        if runtime != "sglang":
            raise ValueError(TEXTS("sections.add_up", pairs=spec.pairs, counts=list(sizes)))
        sizes = rescale_sections(sizes, spec.pairs)
    if pattern in ("h w then t", "t behind h w", "scheduled"):
        return shared_ladder(spec, axis_per_pair(pattern, sizes, spec.pairs))
    if found.get("mrope_interleaved") and not repeats:
        return shared_ladder(spec, interleave_sections(sizes[:3], spec.pairs))
    names = xdrope_axes(sizes) if repeats else THW if len(sizes) <= 3 else LLAMA_AXES
    return shared_ladder(spec, [k for k, count in enumerate(sizes) for _ in range(count)], names)


def read_arguments(kind: str, config: Mapping[str, Any]) -> tuple[RopeSpec, Mapping[str, Any]]:
    """Return the embedding and the section keys, from a model's config or the arguments of a class."""
    settings = ConfigReader(config)
    if settings.value("head_size", "rotary_dim", "base", "is_neox_style") is None:
        full_config = with_model_type(kind, config) if kind else {"model_type": "qwen2_vl_text", **config}
        return next(iter(from_config(full_config).values())), section_keys(full_config)
    size = settings.size("head_size", "head_dim", "rotary_dim", default=128)
    factor, scaling = settings.number("scaling_factor", above=0.0), Scaling()
    if factor is not None:
        fast, slow = settings.number("beta_fast", default=32.0), settings.number("beta_slow", default=1.0)
        scaling = Yarn(factor=factor, beta_fast=fast, beta_slow=slow)
    spec = RopeSpec(
        head_dim=size,
        rotary_dim=settings.size("rotary_dim", default=size),
        base=settings.base(10_000.0),
        context=settings.size("max_position_embeddings", "original_max_position_embeddings", default=4096),
        pairing="half" if settings.flag("is_neox_style", default=True) else "interleaved",
        scaling=scaling,
    )
    return spec, section_keys(config)


def rescale_sections(counts: Sequence[int], pairs: int) -> tuple[int, ...]:
    """Return sections scaled as in SGLang if they do not add up to the pairs; the last one gets the remainder.

    >>> rescale_sections((16, 24, 24), 32)
    (8, 12, 12)
    """
    total = sum(counts)
    if not total:
        each, rest = divmod(pairs, len(counts))
        return tuple(each + (k < rest) for k in range(len(counts)))
    sizes = [max(1, int(count * pairs / total)) for count in counts]
    sizes[-1] += pairs - sum(sizes)
    if sizes[-1] < 0:
        raise ValueError(TEXTS("sections.no_fit", pairs=pairs, counts=short_repr(list(counts))))
    return tuple(sizes)
