"""Language models that read images, video and sound: one ladder, and an axis for every pair (M-RoPE).

transformers 5.23.0 decides by the class how sections are laid out and does not read `mrope_interleaved`; vLLM 0.33.0
and SGLang 0.5.23 decide by that key, and take sections where it is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import (
    THW,
    AxesSpec,
    alternating,
    checked_counts,
    interleaved,
    one_axis,
    placed,
    sections_then,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.spec import FloatArray, RopeSpec, shorten
from rope_viz.models.architecture import find_architecture
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.text_config import TEXT_KEYS
from rope_viz.multi_axis.config_reader import plainly

Pattern: TypeAlias = Literal[
    "sections", "interleaved", "h w then t", "t behind h w", "even and odd", "doubled", "scheduled"
]
Allocate: TypeAlias = Callable[[RopeSpec, Sequence[int], Sequence[str]], AxesSpec]


@dataclass(frozen=True)
class Text:
    """How a class lays its sections over the pairs, the sections it takes where the config names none, and the axes."""

    pattern: Pattern
    sections: tuple[int, ...] = ()
    axes: tuple[str, ...] = THW


QWEN2 = Text("sections", (16, 24, 24))
QWEN3 = Text("interleaved", (24, 20, 20))
QWEN3_5 = Text("interleaved", (11, 11, 10))
GLM4V = Text("sections", (8, 12, 12))
XDROPE_AXES = ("position", "width", "height", "image")

# By the model type that wraps vision and text; "_text" behind it is the same.
TEXTS: dict[str, Text] = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "qwen2_5_omni_talker", "paddleocr_vl"), QWEN2),
    **dict.fromkeys(("qwen2_5_omni_thinker", "keye", "keye_vl1_5", "keye_vl_1_5", "KeyeVL1_5"), QWEN2),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "qwen3_omni_moe_talker"), QWEN3),
    **dict.fromkeys(("qwen3_omni_moe_thinker", "cosmos3_edge", "cosmos3_omni", "cohere_compass"), QWEN3),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen4_exp", "minicpmv4_6", "minicpmv4_7"), QWEN3_5),
    **dict.fromkeys(("glm4v", "glm4v_moe", "glm46v", "glm_image", "glm_ocr"), GLM4V),
    "ernie4_5_vl_moe": Text("h w then t", (22, 22, 20)),
    "ernie4_5_moe_vl": Text("h w then t", (22, 22, 20)),
    "bailing_moe_v3_vl": Text("t behind h w", (12, 10, 10)),
    "neomme": Text("even and odd", (), ("row", "column")),
    "hunyuan_vl": Text("doubled", (16, 16, 16, 16), XDROPE_AXES),
    "openpangu_vl": Text("scheduled", (22, 21, 21)),
    "isaac": Text("sections", ()),
}

# Model types that are not in the table of architectures, and whose text they are like.
LIKE = {
    **{"keye": "qwen3", "keye_vl1_5": "qwen3", "keye_vl_1_5": "qwen3", "KeyeVL1_5": "qwen3", "isaac": "qwen3"},
    **{"openpangu_vl": "qwen2", "ernie4_5_moe_vl": "ernie4_5_vl_moe_text"},
}


# Names of releases, where the model type is another.
RELEASES = {
    **{"qwen25omni": "qwen2_5_omni", "qwen3omni": "qwen3_omni_moe", "glm41v": "glm4v", "glm45v": "glm4v_moe"},
    **{"ernie45vl": "ernie4_5_vl_moe", "hunyuanocr": "hunyuan_vl", "keyevl15": "keye_vl1_5", "cosmos3": "cosmos3_omni"},
    **{
        "paddleocr": "paddleocr_vl",
        "qwen4": "qwen4_exp",
        "openpangu": "openpangu_vl",
        "bailingv3vl": "bailing_moe_v3_vl",
    },
}
CLASS_ENDINGS = ("thinkertextrotaryembedding", "textrotaryembedding", "rotaryembedding", "text", "model")


def text_name(kind: str) -> str:
    """The model type for a name as people or classes write it; what is known by no such name stays as it is.

    >>> text_name("Qwen3VLTextRotaryEmbedding"), text_name("glm-4.5v"), text_name("llama")
    ('qwen3_vl', 'glm4v_moe', 'llama')
    """
    if kind.removesuffix("_text") in TEXTS:
        return kind
    known = {plainly(name): name for name in TEXTS} | RELEASES
    plain = plainly(kind)
    for candidate in (plain, *(plain.removesuffix(ending) for ending in CLASS_ENDINGS if plain.endswith(ending))):
        if candidate in known:
            return known[candidate]
    return kind


def read_text(kind: str, config: Mapping[str, Any], *, length: int | None = None) -> AxesSpec:
    """The text rotation of a model type, of the layer type under `layer_type` where layers differ.

    The speeds are those that the class holds, in float32: at position 12,000 they are off by 1e-3 radians from the
    formula's, which `text_layers` gives.
    """
    layers = text_layers(kind, config, length=length)
    wanted = config.get("layer_type")
    if wanted is not None and (not isinstance(wanted, str) or wanted not in layers):
        raise ValueError(f"layer_type must be one of {', '.join(layers)}, got {shorten(wanted)}")
    for layer in (wanted, "", "full_attention"):
        if layer in layers:
            return as_held(layers[layer])
    return as_held(next(iter(layers.values())))


def as_held(spec: AxesSpec) -> AxesSpec:
    """The spec with the speeds of a float32 class: base^(2i/d) rounded, and its inverse rounded once more."""
    second = None if spec.second is None else twice_rounded(spec.second)
    return dataclasses.replace(spec, weights=twice_rounded(spec.weights), second=second)


def twice_rounded(weights: FloatArray) -> FloatArray:
    """1/(1/w) with both quotients in float32, as float64; 0 stays 0."""
    narrow = np.float32
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(narrow(1.0) / (1.0 / weights).astype(narrow), dtype=np.float64)


def text_layers(kind: str, config: Mapping[str, Any], *, length: int | None = None) -> dict[str, AxesSpec]:
    """{layer type: rotation}; "" where all layers share one. Only one axis where the model's text has no others."""
    name = kind.removesuffix("_text")
    rule = TEXTS.get(name)
    whole = renamed(name, config)
    specs = from_config(whole)
    return {layer: allocated(name, rule, spec, keys(whole, layer), length) for layer, spec in specs.items()}


def renamed(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The config as `from_config` takes it: with its model type, and today's names for XD-RoPE."""
    whole = dict(config)
    nested = any(isinstance(config.get(key), Mapping) for key in TEXT_KEYS)
    if nested and name not in LIKE:
        whole.setdefault("model_type", name)
    else:
        record = find_architecture(name)
        whole["model_type"] = LIKE.get(name, name if record is None or record.text is None else record.text.type)
    if find_architecture(whole["model_type"]) is None:
        # An architecture without a table of class defaults: lengths do not matter to plain RoPE.
        whole.setdefault("max_position_embeddings", 32_768)
        whole.setdefault("rope_interleave", name == "bailing_moe_v3_vl")
    return whole


def keys(config: Mapping[str, Any], layer: str) -> dict[str, Any]:
    """The RoPE parameters that name sections: of the language model, of its layer type, or beside it at the top."""
    found: dict[str, Any] = {}
    for place in (config, ModelConfig.read(config).part.config):
        for source in (place, place.get("rope_parameters"), place.get("rope_scaling")):
            part = source.get(layer) if layer and isinstance(source, Mapping) and layer in source else source
            if isinstance(part, Mapping):
                found.update({key: part[key] for key in SECTION_KEYS if part.get(key) is not None})
    return found


SECTION_KEYS = ("mrope_section", "xdrope_section", "mrope_interleaved")


def allocated(name: str, rule: Text | None, spec: RopeSpec, found: Mapping[str, Any], length: int | None) -> AxesSpec:
    """The pairs of one ladder on their axes, as the class of this model type lays them out."""
    counts = found.get("mrope_section", found.get("xdrope_section"))
    if rule is None:
        if counts is None:
            return one_axis(spec, length=length)
        # A type we do not know: by the key, as the servers decide.
        rule = Text("interleaved" if found.get("mrope_interleaved") else "sections")
    if name == "isaac":
        half = spec.pairs // 2
        counts = (spec.pairs - 2 * (half // 2), half // 2, half // 2)
        rule = Text("interleaved" if found.get("mrope_interleaved") else "sections")
    sizes = checked_counts(rule.sections if counts is None else counts) if rule.pattern != "even and odd" else ()
    if rule.pattern == "doubled":
        return doubled(spec, sizes, length)
    return shared_ladder(spec, laid(rule.pattern, sizes, spec.pairs), rule.axes, length=length)


def laid(pattern: Pattern, counts: tuple[int, ...], pairs: int) -> list[int]:
    """The axis of every pair, (pairs,). Raises `ValueError` where sections have to add up and do not."""
    if pattern == "even and odd":
        return alternating(pairs)
    if pattern == "interleaved":
        require_three(counts)
        return interleaved(counts, pairs)
    if sum(counts) != pairs:
        raise ValueError(
            f"mrope_section must add up to the {pairs} pairs that rotate, {shorten(list(counts))} is {sum(counts)}"
        )
    if pattern == "scheduled":
        return scheduled(counts)
    if pattern in ("h w then t", "t behind h w"):
        require_three(counts)
        # ERNIE names its sections h, w, t; Bailing t, h, w. The pairs lie alike.
        counts = counts if pattern == "h w then t" else (*counts[1:], counts[0])
        if counts[0] != counts[1]:
            raise ValueError(
                f"mrope_section must give rows and columns as many pairs each, got {shorten(list(counts))}"
            )
        return sections_then(pairs, counts[2])
    # Sections beyond the third go round again, as transformers cuts them.
    return [section % 3 for section, count in enumerate(counts) for _ in range(count)]


def require_three(counts: Sequence[int]) -> None:
    """Raise `ValueError` unless there are three sections."""
    if len(counts) != 3:
        raise ValueError(f"mrope_section must have three numbers, got {shorten(list(counts))}")


def scheduled(counts: Sequence[int]) -> list[int]:
    """openPangu: the next pair to the axis served least of its share, never twice running; the last is the first's.

    >>> scheduled([2, 1, 1])
    [0, 1, 2, 0]
    """
    if len(counts) not in (2, 3):
        raise ValueError(f"mrope_section must have two or three numbers, got {shorten(list(counts))}")
    wanted = list(counts)
    last = len(counts) == 3
    wanted[0] -= last
    given, order = [0] * len(wanted), list[int]()
    for _ in range(sum(wanted)):
        free = [k for k in range(len(wanted)) if given[k] < wanted[k]]
        others = [k for k in free if not order or k != order[-1]] or free
        best = min(others, key=lambda k: (given[k] / wanted[k], k))
        order.append(best)
        given[best] += 1
    return [*order, 0] if last else order


def doubled(spec: RopeSpec, counts: Sequence[int], length: int | None = None) -> AxesSpec:
    """HunYuan-VL in transformers 5.23.0: blocks of twice the section over the doubled head.

    Dimension i and its partner i + pairs fall into different blocks, so this is no rotation; see `repeated`.
    """
    if sum(counts) != spec.pairs:
        raise ValueError(f"mrope_section must add up to {spec.pairs}, half of the head, got {shorten(list(counts))}")
    axis = [k for k, count in enumerate(counts) for _ in range(2 * count)]
    first = shared_ladder(spec, axis[: spec.pairs], xdrope_axes(counts), length=length)
    return without_rotation(first, placed(np.asarray(spec.inv_freq(length)), axis[spec.pairs :], len(counts)))


def repeated(spec: RopeSpec, counts: Sequence[int], length: int | None = None) -> AxesSpec:
    """HunYuan-VL as Tencent's code, mlx-vlm and llama.cpp turn it: the list of sections for both halves."""
    axis = [k for k, count in enumerate(counts) for _ in range(count)]
    return shared_ladder(spec, axis, xdrope_axes(counts), length=length)


def xdrope_axes(counts: Sequence[int]) -> tuple[str, ...]:
    """The names of as many axes: width, height and image last."""
    if len(counts) < 3:
        raise ValueError(f"mrope_section must have at least three numbers, got {shorten(list(counts))}")
    more = len(counts) - 4
    return (*(f"axis {k}" for k in range(more)), *XDROPE_AXES) if more > 0 else XDROPE_AXES[-len(counts) :]
