"""Vision encoders: a ladder per axis, by the classes of transformers 5.23.0 and timm 1.0.31.

`rope_type: "axial"` means just that in transformers, and old files carry no rope key at all: the base is in the code.
An axis is a column of the positions the class takes, named for what it is fed with: several classes call a column
"freq_h" that carries x (Gemma 4, SAM 2, SAM 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import (
    THW,
    AxesSpec,
    Order,
    alternating,
    directions,
    joined,
    ladder_per_axis,
    paired,
    placed,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, Pairing, RopeSpec, frozen, require_number, shorten
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.learned_directions import HW, WH, lightglue, rope_mixed
from rope_viz.multi_axis.names import find_known_name, plain_name

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


def sizes(width: int, heads: int, **more: Any) -> dict[str, Any]:
    """Class defaults of a tower."""
    return {"hidden_size": width, "num_attention_heads": heads, **more}


GLM = Tower(defaults=sizes(1536, 12))
QWEN3 = Tower(defaults=sizes(1152, 16))
MUSE = Tower(axes=WH, defaults=sizes(1536, 16))
MEMORY = Tower(axes=WH, pairing="interleaved")
MOON = Tower(listens=(1, 0), order="pair by pair", defaults=sizes(1152, 16))

TOWERS: dict[str, Tower] = {
    "qwen2_vl": Tower(width="embed_dim", defaults={"embed_dim": 1280, "num_heads": 16}),
    **dict.fromkeys(("qwen2_5_vl", "qwen2_5_omni"), Tower(defaults=sizes(3584, 16))),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "qwen3_omni_moe"), QWEN3),
    **dict.fromkeys(("cohere_compass", "paddleocr_vl", "keye", "keye_vl1_5"), QWEN3),
    **dict.fromkeys(("glm4v", "glm4v_moe", "glm46v"), GLM),
    **dict.fromkeys(("glm_ocr", "glm5_next"), Tower(defaults=sizes(1024, 16))),
    "ernie4_5_vl_moe": Tower(defaults=sizes(1280, 16)),
    "exaone4_5": Tower(defaults=sizes(3584, 16)),
    "dots3_note": Tower(defaults=sizes(1536, 24)),
    "lfm3_vl": Tower(base=1_000_000.0, defaults=sizes(1024, 16)),
    "video_llama_3": Tower(defaults=sizes(768, 12)),
    "mlcd": Tower(defaults=sizes(1664, 16)),
    "step3p7": Tower(listens=(1, 0), defaults=sizes(1536, 16)),
    **dict.fromkeys(("muse_spark", "muse_glimmer"), MUSE),
    "inkling2": Tower(listens=(1, 0), pairing="interleaved", defaults=sizes(1024, 16)),
    **dict.fromkeys(("kimi_k25", "kimi_vl", "moonvit"), MOON),
    "llama4": Tower(axes=WH, pairing="interleaved", defaults=sizes(768, 16), derived=True),
    "sam3": Tower(axes=WH, pairing="interleaved", defaults=sizes(1024, 16)),
    **dict.fromkeys(("sam2_video", "sam3_tracker_video", "edgetam_video"), MEMORY),
    "perception_encoder": Tower(axes=WH, pairing="interleaved", defaults=sizes(1024, 16)),
}


def read_vision(kind: str, config: Mapping[str, Any]) -> Specs:
    """The rotation of a vision tower by its model type, from the vision part of a config or a whole one."""
    inner = config.get("vision_config")
    config = inner if isinstance(inner, Mapping) else config
    name = tower_name(kind)
    if name in SPECIAL:
        return SPECIAL[name](config)  # type: ignore[no-any-return, operator]
    if name not in TOWERS:
        known = ", ".join(sorted({*TOWERS, *SPECIAL}))
        raise ValueError(f"there is no vision tower {shorten(kind)} with positions here; there are {known}")
    return tower(name, ConfigReader(config, TOWERS[name].defaults))


def tower_name(kind: str) -> str:
    """The key of a tower for a model type or the name of its class; what is known by no such name stays as it is.

    >>> tower_name("Qwen2VLVisionRotaryEmbedding"), tower_name("step-3.7"), tower_name("clip")
    ('qwen2_vl', 'step3p7', 'clip')
    """
    if kind in TOWERS or kind in SPECIAL:
        return kind
    return find_known_name(kind, PLAIN_NAMES, CLASS_ENDINGS) or kind


def tower(name: str, given: ConfigReader) -> AxesSpec:
    """A ladder per axis over an even share of the head."""
    rule = TOWERS[name]
    size = memory_head(given) if rule is MEMORY else given.head_size(width=rule.width, derived=rule.derived)
    require_quarters(size)
    base = given.base(rule.base)
    return ladder_per_axis(
        [ladder(size // 2, base)] * 2,
        rule.axes,
        order=rule.order,
        pairing=rule.pairing,
        listens=rule.listens,
        head_dim=size,
    )


def require_quarters(size: int) -> None:
    """Raise `ValueError` unless a head can be shared by two axes in pairs."""
    if size % 4:
        raise ValueError(f"a head must divide by 4 to be shared by rows and columns in pairs, got {size}")


def ladder(dim: int, base: float) -> RopeSpec:
    """base^(−2i/dim) for i = 0 … ⌈dim/2⌉ − 1 as a RopeSpec; an odd `dim` has one more rung, as the classes have it."""
    require_number(dim, "the dimensions of an axis", least=1)
    return RopeSpec(head_dim=dim + dim % 2, rotary_dim=max(dim, 2), base=base)


def memory_head(given: ConfigReader) -> int:
    """The head of SAM 2's memory attention."""
    if given.value("memory_attention_hidden_size") is None and given.value("hidden_size", "head_dim") is not None:
        return given.head_size()
    heads = given.size("memory_attention_num_attention_heads", default=1)
    rate = given.size("memory_attention_downsample_rate", default=1)
    return given.size("memory_attention_hidden_size", default=256) // (rate * heads)


def pixtral(config: Mapping[str, Any]) -> AxesSpec:
    """One ladder over the whole head: its even rungs to rows, its odd ones to columns."""
    given = ConfigReader(config, sizes(1024, 16, head_dim=64))
    size = own_head(given)
    rungs = ladder(size, given.base(10_000.0)).plain_inv_freq
    return ladder_per_axis([rungs[0::2], rungs[1::2]], HW, pairing="half", head_dim=size)


def own_head(given: ConfigReader) -> int:
    """A head size that the config derives from its own width although the class names one."""
    if given.config.get("head_dim") is None and given.config.get("hidden_size") is not None:
        return given.required("hidden_size") // given.required("num_attention_heads")
    return given.head_size()


def gemma4(config: Mapping[str, Any]) -> AxesSpec:
    """x in the first half of the head, y in the second, each a rotate-half of its own."""
    given = ConfigReader(config, sizes(768, 12, head_dim=64))
    size = given.head_size()
    one = ladder(size // 2, given.base(100.0))
    pairs, half = one.pairs, size // 2
    require_quarters(size)
    parts = [AxesSpec(placed(one.plain_inv_freq, [axis] * pairs, 2), axes=WH, head_dim=half) for axis in (0, 1)]
    return joined(parts)


def minimax_m3(config: Mapping[str, Any]) -> AxesSpec:
    """Three ladders of 2·⌊d/6⌋ dimensions; what is left over stands still."""
    given = ConfigReader(config, sizes(1280, 16))
    size = given.head_size()
    require_number(size, "the size of a head", least=6)
    one = ladder(2 * (size // 3 // 2), given.base(10_000.0))
    return ladder_per_axis([one] * 3, THW, pairing="half", head_dim=size)


def dinov3(config: Mapping[str, Any]) -> AxesSpec:
    """2π·base^(−i/(d/4)) of coordinates in −1 … 1: the angle is per image, not per patch. Periods may be named."""
    given = ConfigReader(config, sizes(384, 6))
    size = own_dim(given)
    rungs = math.ceil(size / 4)
    low, high = given.number("min_period", above=0.0), given.number("max_period", above=0.0)
    if low is not None and high is not None:
        periods = low * (high / low) ** (np.arange(rungs) / max(rungs - 1, 1))
    else:
        periods = dino_base(given) ** (4.0 * np.arange(rungs) / size)
    pairing: Pairing = "half" if given.flag("rotate_half", default=True) else "interleaved"
    axes = WH if given.choice("grid_indexing", options=("ij", "xy"), default="ij") == "xy" else HW
    return ladder_per_axis([2.0 * math.pi / periods] * 2, axes, pairing=pairing, head_dim=size)


def dino_base(given: ConfigReader) -> float:
    """The base under its names; `temperature` is timm's."""
    inner = given.part("rope_parameters")
    source = inner if inner.value("rope_theta") is not None else given
    return source.number("rope_theta", "temperature", default=100.0, above=1.0)


def own_dim(given: ConfigReader) -> int:
    """timm's `dim`, which is the head, else the head of a config."""
    if given.value("num_heads", "num_attention_heads") and given.config.get("hidden_size") is not None:
        return given.head_size(derived=True)
    return (
        given.required("dim", least=4, most=MAX_HEAD_DIM) if given.config.get("dim") is not None else given.head_size()
    )


def vjepa2(config: Mapping[str, Any]) -> AxesSpec:
    """V-JEPA 2: tiled angles over adjacent dimensions, so the members of a pair differ in speed. No rotation.

    Known to its authors and kept for the weights: the first member of pair p has rung 2p mod n, the second 2p + 1.
    """
    given = ConfigReader(config, sizes(1024, 16))
    if given.choice("part", options=("encoder", "predictor"), default="encoder") == "predictor":
        width = given.size("pred_hidden_size", default=384)
        size = width // given.size("pred_num_attention_heads", default=12)
    else:
        size = given.head_size(derived=True)
    dims = 2 * (size // 3 // 2)
    n = dims // 2
    require_number(n, "the pairs of an axis", least=1)
    rungs = 10_000.0 ** (-np.arange(n) / (dims / 2.0))
    first, second = rungs[2 * np.arange(n) % n], rungs[(2 * np.arange(n) + 1) % n]
    axis = np.repeat(np.arange(3), n).tolist()
    weights = placed(np.tile(first, 3), axis, 3)
    spec = AxesSpec(weights, paired(3 * n, "interleaved"), axes=THW, head_dim=size)
    return without_rotation(spec, placed(np.tile(second, 3), axis, 3))


def efficientloftr(config: Mapping[str, Any]) -> list[AxesSpec]:
    """h w h w … over all heads together: the first head has the fastest pairs, the last the slowest. One per head."""
    given = ConfigReader(config, sizes(256, 8))
    width, heads = given.required("hidden_size"), given.required("num_attention_heads")
    inner = given.part("rope_parameters")
    share = inner.number("partial_rotary_factor", default=given.number("partial_rotary_factor", default=4.0))
    one = ladder(int(given.head_size() * share), given.base(10_000.0))
    if 4 * one.pairs != width or width % (2 * heads):
        raise ValueError(f"the ladder must reach over all heads: {one.pairs} rungs for {width} dimensions")
    whole = np.repeat(one.plain_inv_freq, 2)
    return split_heads(whole, alternating(len(whole)), HW, heads)


def split_heads(inv_freq: FloatArray, axis: Sequence[int], axes: Sequence[str], heads: int) -> list[AxesSpec]:
    """One allocation over the width of all heads, cut into them, adjacent dimensions paired."""
    weights = placed(inv_freq, axis, len(axes))
    each = len(weights) // heads
    return [directions(weights[k * each : (k + 1) * each], axes, head_dim=2 * each) for k in range(heads)]


def timm_axial(config: Mapping[str, Any]) -> AxesSpec:
    """timm's RotaryEmbeddingCat: bands by temperature, or in pixels; "xy" puts columns first."""
    given = ConfigReader(config)
    size = given.required("dim", "head_dim", least=4, most=MAX_HEAD_DIM)
    count = size // 4
    if given.flag("in_pixels", default=False):
        most = given.number("max_res", default=224.0, above=0.0)
        steps = np.arange(count) / max(count - 1, 1)
        linear = given.flag("linear_bands", default=False)
        bands = 1.0 + (most / 2.0 - 1.0) * steps if linear else 2.0 ** ((math.log2(most) - 1.0) * steps)
        rungs = frozen(bands * math.pi)
    else:
        rungs = frozen(given.number("temperature", default=10_000.0, above=0.0) ** (-np.arange(count) / count))
    axes = WH if given.choice("grid_indexing", options=("ij", "xy"), default="ij") == "xy" else HW
    pairing: Pairing = "half" if given.flag("rotate_half") else "interleaved"
    return ladder_per_axis([rungs] * 2, axes, pairing=pairing, head_dim=size)


def timm_mrope(config: Mapping[str, Any]) -> AxesSpec:
    """timm's RotaryEmbeddingMRope: one ladder, t h w t h w … with time at 0."""
    given = ConfigReader(config)
    size = given.required("dim", "head_dim", least=4, most=MAX_HEAD_DIM)
    counts = given.sizes("mrope_section", default=(8, 12, 12), count=3, least=0)
    spec = RopeSpec(head_dim=size, base=given.number("temperature", "rope_theta", default=10_000.0, above=1.0))
    axis = [i % 3 if i % 3 and i < 3 * counts[i % 3] else 0 for i in range(spec.pairs)]
    return shared_ladder(spec, axis)


SPECIAL: dict[str, Any] = {
    "pixtral": pixtral,
    "gemma4": gemma4,
    "minimax_m3_vl": minimax_m3,
    "dinov3_vit": dinov3,
    "vjepa2": vjepa2,
    "efficientloftr": efficientloftr,
    "timm-axial": timm_axial,
    "timm-mrope": timm_mrope,
    "rope-mixed": rope_mixed,
    "lightglue": lightglue,
}
VISION_NAMES = {
    **dict.fromkeys(("dinov3", "sapiens2", "eomt_dinov3", "timm-dinov3"), "dinov3_vit"),
    **dict.fromkeys(("mistral", "mistral3", "mistral4", "pixtral_vision"), "pixtral"),
    **dict.fromkeys(("minimax_m3", "minimax-m3"), "minimax_m3_vl"),
    **dict.fromkeys(("sam2", "sam2_memory"), "sam2_video"),
    **{"sam3_tracker": "sam3_tracker_video", "edgetam": "edgetam_video", "sam3_vit_model": "sam3"},
    **{"muse": "muse_spark", "inkling": "inkling2", "kimi_k2_5": "kimi_k25", "gemma4_unified": "gemma4"},
    **{"timm-mixed": "rope-mixed", "rope_mixed": "rope-mixed", "timm_axial": "timm-axial", "vjepa": "vjepa2"},
    **{"llama4_vision_model": "llama4", "vit-axial": "timm-axial", "lfm3": "lfm3_vl", "step3p5": "step3p7"},
    **dict.fromkeys(("RotaryEmbeddingCat", "eva", "eva02", "rope-vit-axial", "rope-axial", "axial"), "timm-axial"),
    **dict.fromkeys(("RotaryEmbeddingMixed", "rope-vit-mixed", "mixed"), "rope-mixed"),
    **{"RotaryEmbeddingDinoV3": "dinov3_vit", "RotaryEmbeddingMRope": "timm-mrope", "step37": "step3p7"},
    **{"qwen2_5_omni_thinker": "qwen2_5_omni", "qwen3_omni": "qwen3_omni_moe", "ernie4_5_vl": "ernie4_5_vl_moe"},
    **{
        "glm4_1v": "glm4v",
        "glm4_5v": "glm4v_moe",
        "glm4_6v": "glm46v",
        "dots3": "dots3_note",
        "muse_vision": "muse_spark",
    },
    **{"videollama3": "video_llama_3", "exaone45": "exaone4_5"},
    **{"paddleocr": "paddleocr_vl", "loftr": "efficientloftr", "sam3_video": "sam3"},
}
PLAIN_NAMES = {plain_name(name): VISION_NAMES.get(name, name) for name in (*TOWERS, *SPECIAL, *VISION_NAMES)}
CLASS_ENDINGS = (
    *("visionrotaryembedding", "vitrotaryembedding", "vitropepositionembedding", "ropepositionembedding"),
    *("rotaryembedding", "positionalencoder", "ropeattention", "visionmodel", "vision", "vitmodel", "model"),
)
