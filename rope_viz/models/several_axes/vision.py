"""Vision encoders: a ladder per axis, by the classes of transformers 5.23.0 and timm 1.0.31.

`rope_type: "axial"` means just that in transformers, and old files carry no rope key at all: the base is in the code.
An axis is a column of the positions the class takes, named for what it is fed with: several classes call a column
"freq_h" that carries x (Gemma 4, SAM 2, SAM 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import (
    THW,
    AxesSpec,
    Order,
    alternate_axes,
    interleave_sections,
    join_specs,
    ladder_per_axis,
    mix_axes,
    pair_dimensions,
    place_frequencies,
    shared_ladder,
)
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, Pairing, RopeSpec, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.learned_directions import HW, WH, find_known_name, lightglue, plain_name, rope_mixed
from rope_viz.storage.decode_json import read_own

Specs: TypeAlias = AxesSpec | list[AxesSpec]


@dataclass(frozen=True)
class Tower:
    """A tower whose axes share the head evenly: the columns of its positions and how their ladders are joined.

    `listens` is the column each ladder is fed with; `width` is the key of all heads together, `defaults` are the class'
    own sizes. `derived` is a class that does not read `head_dim`.
    """

    axes: tuple[str, ...] = HW
    listens: tuple[int, ...] = (0, 1)
    order: Order = "blocks"
    pairing: Pairing = "half"
    base: float = 10_000.0
    width: str = "hidden_size"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    derived: bool = False


def default_sizes(width: int, heads: int, **more: Any) -> dict[str, Any]:
    """Return the class defaults of a tower."""
    return {"hidden_size": width, "num_attention_heads": heads, **more}


QWEN3 = Tower(defaults=default_sizes(1152, 16))
ROTATED = Tower(axes=WH, pairing="interleaved", defaults=default_sizes(1024, 16))
MEMORY = Tower(axes=WH, pairing="interleaved")
MOON = Tower(listens=(1, 0), order="pair by pair", defaults=default_sizes(1152, 16))

TOWERS: dict[str, Tower] = {
    "qwen2_vl": Tower(width="embed_dim", defaults={"embed_dim": 1280, "num_heads": 16}),
    **dict.fromkeys(("qwen2_5_vl", "qwen2_5_omni", "exaone4_5"), Tower(defaults=default_sizes(3584, 16))),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "qwen3_omni_moe"), QWEN3),
    **dict.fromkeys(("cohere_compass", "paddleocr_vl", "keye", "keye_vl1_5"), QWEN3),
    **dict.fromkeys(("glm4v", "glm4v_moe", "glm46v"), Tower(defaults=default_sizes(1536, 12))),
    **dict.fromkeys(("glm_ocr", "glm5_next"), Tower(defaults=default_sizes(1024, 16))),
    **dict.fromkeys(("muse_spark", "muse_glimmer"), Tower(axes=WH, defaults=default_sizes(1536, 16))),
    **dict.fromkeys(("kimi_k25", "kimi_vl", "moonvit"), MOON),
    **dict.fromkeys(("sam2_video", "sam3_tracker_video", "edgetam_video"), MEMORY),
    **dict.fromkeys(("sam3", "perception_encoder"), ROTATED),
    "llama4": replace(ROTATED, defaults=default_sizes(768, 16), derived=True),
    "ernie4_5_vl_moe": Tower(defaults=default_sizes(1280, 16)),
    "dots3_note": Tower(defaults=default_sizes(1536, 24)),
    "lfm3_vl": Tower(base=1_000_000.0, defaults=default_sizes(1024, 16)),
    "video_llama_3": Tower(defaults=default_sizes(768, 12)),
    "mlcd": Tower(defaults=default_sizes(1664, 16)),
    "step3p7": Tower(listens=(1, 0), defaults=default_sizes(1536, 16)),
    "inkling2": Tower(listens=(1, 0), pairing="interleaved", defaults=default_sizes(1024, 16)),
}


def read_vision(kind: str, config: Mapping[str, Any]) -> Specs:
    """Return the rotation of a vision tower by its model type, from the vision part of a config or a full config."""
    inner = config.get("vision_config")
    config = inner if isinstance(inner, Mapping) else config
    name = tower_name(kind)
    if name in SPECIAL:
        rule, defaults = SPECIAL[name]
        return rule(ConfigReader(config, defaults))
    if name not in TOWERS:
        known = ", ".join(sorted({*TOWERS, *SPECIAL}))
        raise ValueError(TEXTS("vision.unknown", kind=short_repr(kind), known=known))
    tower = TOWERS[name]
    settings = ConfigReader(config, tower.defaults)
    size = (
        read_memory_head(settings) if tower is MEMORY else settings.head_size(width=tower.width, derived=tower.derived)
    )
    require_quarters(size)
    ladders = [ladder(size // 2, settings.base(tower.base))] * 2
    more = {"order": tower.order, "pairing": tower.pairing, "listens": tower.listens}
    return ladder_per_axis(ladders, tower.axes, head_dim=size, **more)  # type: ignore[arg-type]


def tower_name(kind: str) -> str:
    """Return the key of a tower for a model type or class name; unknown names unchanged.

    >>> tower_name("Qwen2VLVisionRotaryEmbedding"), tower_name("step-3.7"), tower_name("clip")
    ('qwen2_vl', 'step3p7', 'clip')
    """
    return find_tower(kind) or kind


def find_tower(kind: str) -> str | None:
    """Return the key of a tower for a model type or class name; None if it is unknown."""
    return kind if kind in TOWERS or kind in SPECIAL else find_known_name(kind, PLAIN_NAMES, CLASS_ENDINGS)


def require_quarters(size: int) -> None:
    """Raise `ValueError` unless two axes can share a head in pairs."""
    if size % 4:
        raise ValueError(TEXTS("vision.quarters", size=size))


def ladder(dim: int, base: float) -> RopeSpec:
    """Return base^(−2i/dim) for i = 0 … ⌈dim/2⌉ − 1 as a RopeSpec; an odd `dim` has one more pair."""
    require_number(dim, TEXTS("name.axis_dimensions"), least=1)
    return RopeSpec(head_dim=dim + dim % 2, rotary_dim=max(dim, 2), base=base)


def join_parts(size: int, base: float, axes: Sequence[str]) -> AxesSpec:
    """Return equal parts of a head, one per axis, each with its own half pairing."""
    one = ladder(size // len(axes), base)
    parts = [place_frequencies(one.plain_inv_freq, [axis] * one.pairs, len(axes)) for axis in range(len(axes))]
    return join_specs([AxesSpec(part, axes=tuple(axes), head_dim=size // len(axes)) for part in parts])


def read_memory_head(settings: ConfigReader) -> int:
    """Return the head size of SAM 2's memory attention."""
    width = settings.size("memory_attention_hidden_size")
    if width is None and settings.value("hidden_size", "head_dim") is not None:
        return settings.head_size()
    heads = settings.size("memory_attention_num_attention_heads", default=1)
    rate = settings.size("memory_attention_downsample_rate", default=1)
    return (width or 256) // (rate * heads)


def grid_axes(settings: ConfigReader, default: str = "ij") -> tuple[str, str]:
    """Return the axes in the order of `grid_indexing`."""
    return WH if settings.choice("grid_indexing", options=("ij", "xy"), default=default) == "xy" else HW


def read_pairing(settings: ConfigReader, default: bool = False) -> Pairing:
    """Return the pairing by `rotate_half`."""
    return "half" if settings.flag("rotate_half", default=default) else "interleaved"


def pixtral(settings: ConfigReader) -> AxesSpec:
    """One ladder over the whole head: its even pairs to rows, its odd ones to columns."""
    own_width = settings.config.get("head_dim") is None and settings.config.get("hidden_size") is not None
    size = (
        settings.required("hidden_size") // settings.required("num_attention_heads")
        if own_width
        else settings.head_size()
    )
    rungs = ladder(size, settings.base(10_000.0)).plain_inv_freq
    return ladder_per_axis([rungs[0::2], rungs[1::2]], HW, head_dim=size)


def gemma4(settings: ConfigReader) -> AxesSpec:
    """x in the first half of the head, y in the second, each with its own half pairing."""
    size = settings.head_size()
    require_quarters(size)
    return join_parts(size, settings.base(100.0), WH)


def minimax_m3(settings: ConfigReader) -> AxesSpec:
    """Three ladders of 2·⌊d/6⌋ dimensions; the rest does not rotate."""
    size = settings.head_size()
    require_number(size, TEXTS("name.head_size"), least=6)
    return ladder_per_axis([ladder(2 * (size // 6), settings.base(10_000.0))] * 3, THW, head_dim=size)


def dinov3(settings: ConfigReader) -> AxesSpec:
    """2π·base^(−i/(d/4)) of coordinates in −1 … 1: the angle is per image, not per patch. Periods may be named."""
    size = settings.size("dim", least=4, most=MAX_HEAD_DIM)
    if settings.config.get("hidden_size") is not None:
        size = settings.head_size(derived=True)
    size = size or settings.head_size()
    rungs = math.ceil(size / 4)
    low, high = settings.number("min_period", above=0.0), settings.number("max_period", above=0.0)
    if low is not None and high is not None:
        periods = low * (high / low) ** (np.arange(rungs) / max(rungs - 1, 1))
    else:
        base = settings.number("rope_theta", "temperature", default=100.0, above=1.0)
        base = settings.part("rope_parameters").number("rope_theta", default=base, above=1.0)
        periods = base ** (4.0 * np.arange(rungs) / size)
    pairing = read_pairing(settings, default=True)
    return ladder_per_axis([2.0 * math.pi / periods] * 2, grid_axes(settings), pairing=pairing, head_dim=size)


def vjepa2(settings: ConfigReader) -> AxesSpec:
    """V-JEPA 2: tiled angles over adjacent dimensions, so the members of a pair differ in frequency. No rotation.

    Its authors know and keep it for the weights: the first member of pair p has frequency 2p mod n, the second 2p + 1.
    """
    size = settings.head_size(derived=True)
    if settings.choice("part", options=("encoder", "predictor")) == "predictor":
        heads = settings.size("pred_num_attention_heads", default=12)
        size = settings.size("pred_hidden_size", default=384) // heads
    n = size // 6
    require_number(n, TEXTS("name.axis_pairs"), least=1)
    rungs = 10_000.0 ** (-np.arange(n) / n)
    member = np.arange(2 * n).reshape(n, 2) % n
    axis = np.repeat(np.arange(3), n).tolist()
    first, second = (place_frequencies(np.tile(rungs[member[:, k]], 3), axis, 3) for k in (0, 1))
    return AxesSpec(first, pair_dimensions(3 * n, "interleaved"), axes=THW, second=second, head_dim=size)


def efficientloftr(settings: ConfigReader) -> list[AxesSpec]:
    """h w h w … over all heads together: the first head has the fastest pairs, the last the slowest. One per head."""
    width, heads = settings.required("hidden_size"), settings.required("num_attention_heads")
    share = partial_factor(settings, 4.0)
    one = ladder(int(settings.head_size() * share), settings.base(10_000.0))
    if 4 * one.pairs != width or width % (2 * heads):
        raise ValueError(TEXTS("vision.ladder", pairs=one.pairs, width=width))
    doubled = np.repeat(one.plain_inv_freq, 2)
    return split_heads(doubled, alternate_axes(len(doubled)), HW, heads)


def partial_factor(settings: ConfigReader, default: float) -> float:
    """Return the part of the width that rotates, from the RoPE parameters or the config itself."""
    own = settings.number("partial_rotary_factor", default=default)
    return settings.part("rope_parameters").number("partial_rotary_factor", default=own)


def split_heads(inv_freq: FloatArray, axis: Sequence[int], axes: Sequence[str], heads: int) -> list[AxesSpec]:
    """Return one allocation over the width of all heads, cut into heads, adjacent dimensions paired."""
    parts = np.split(place_frequencies(inv_freq, axis, len(axes)), heads)
    return [mix_axes(part, axes, head_dim=2 * len(part)) for part in parts]


def timm_axial(settings: ConfigReader) -> AxesSpec:
    """timm's RotaryEmbeddingCat: bands by temperature, or in pixels; "xy" puts columns first."""
    size = settings.required("dim", "head_dim", least=4, most=MAX_HEAD_DIM)
    count = size // 4
    bands = settings.number("temperature", default=10_000.0, above=0.0) ** (-np.arange(count) / count)
    if settings.flag("in_pixels"):
        most = settings.number("max_res", default=224.0, above=0.0)
        steps = np.arange(count) / max(count - 1, 1)
        linear = settings.flag("linear_bands")
        bands = math.pi * (1.0 + (most / 2.0 - 1.0) * steps if linear else 2.0 ** ((math.log2(most) - 1.0) * steps))
    return ladder_per_axis([bands] * 2, grid_axes(settings), pairing=read_pairing(settings), head_dim=size)


def timm_mrope(settings: ConfigReader) -> AxesSpec:
    """timm's RotaryEmbeddingMRope: one ladder, t h w t h w … with time at 0."""
    size = settings.required("dim", "head_dim", least=4, most=MAX_HEAD_DIM)
    counts = settings.sizes("mrope_section", default=(8, 12, 12), count=3, least=0)
    spec = RopeSpec(head_dim=size, base=settings.number("temperature", "rope_theta", default=10_000.0, above=1.0))
    return shared_ladder(spec, interleave_sections(counts, spec.pairs))


SPECIAL: dict[str, tuple[Callable[[ConfigReader], Specs], dict[str, Any]]] = {
    "pixtral": (pixtral, default_sizes(1024, 16, head_dim=64)),
    "gemma4": (gemma4, default_sizes(768, 12, head_dim=64)),
    "minimax_m3_vl": (minimax_m3, default_sizes(1280, 16)),
    "dinov3_vit": (dinov3, default_sizes(384, 6)),
    "vjepa2": (vjepa2, default_sizes(1024, 16)),
    "efficientloftr": (efficientloftr, default_sizes(256, 8)),
    "timm-axial": (timm_axial, {}),
    "timm-mrope": (timm_mrope, {}),
    "rope-mixed": (rope_mixed, {}),
    "lightglue": (lightglue, {}),
}
# Other names of a tower, besides spellings and class endings.
NAMES = read_own(__file__, "tower_names.json")
OTHER_NAMES: Mapping[str, str] = NAMES["names"]
PLAIN_NAMES = {plain_name(name): OTHER_NAMES.get(name, name) for name in (*TOWERS, *SPECIAL, *OTHER_NAMES)}
CLASS_ENDINGS: Sequence[str] = NAMES["endings"]
