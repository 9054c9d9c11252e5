"""Language models that read images, video and audio: shared frequencies, and an axis for every pair (M-RoPE).

transformers 5.23.0 decides by the class how sections are laid out and does not read `mrope_interleaved`; vLLM 0.33.0
and SGLang 0.5.23 decide by that key, and use blocks where it is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import (
    AxesSpec,
    alternate_axes,
    alternate_then,
    check_counts,
    interleave_sections,
    one_axis,
    place_frequencies,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.spec import FloatArray, RopeSpec, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Axes, all_architectures, find_architecture
from rope_viz.models.config_reader import SECTION_KEYS
from rope_viz.models.model_config import ModelConfig, as_model_config, from_config
from rope_viz.models.several_axes.learned_directions import find_known_name, plain_name
from rope_viz.models.text_config import TEXT_KEYS
from rope_viz.texts.texts import join_items

XDROPE_AXES = ("position", "width", "height", "image")
CLASS_ENDINGS = ("thinkertextrotaryembedding", "textrotaryembedding", "rotaryembedding", "text", "model")

# Model types with remote code. They have no record, because records are for types whose code was read.
KEYE = Axes("sections", (16, 24, 24), runtimes=("vllm",), prompt=("largest",), like="qwen3")
BAILING = Axes("t behind h w", (12, 10, 10), runtimes=("vllm", "sglang"), prompt=("stamped",))
PANGU = Axes("scheduled", (22, 21, 21), runtimes=("vllm",), prompt=("gap",), like="qwen2")
UNRECORDED = {
    **dict.fromkeys(("keye", "keye_vl_1_5", "KeyeVL1_5", "keye_vl1_5"), KEYE),
    "ernie4_5_moe_vl": Axes("h w then t", (22, 22, 20), prompt=("side", "merged time"), like="ernie4_5_vl_moe_text"),
    "bailing_moe_v3_vl": replace(BAILING, release_names=("bailingv3vl",)),
    "openpangu_vl": replace(PANGU, release_names=("openpangu",)),
    "isaac": Axes("sections", runtimes=("vllm",), prompt=("from zero", "still"), like="qwen3"),
}


def find_axes(kind: str) -> Axes | None:
    """Return the axes of a model type; None if it has one axis or is unknown."""
    records = (find_architecture(name) for name in (kind, f"{kind}_text"))
    return next((record.axes for record in records if record is not None and record.axes), UNRECORDED.get(kind))


@functools.cache
def all_axes() -> Mapping[str, Axes]:
    """Return {model type: axes} of all language models with several axes."""
    recorded = {name: record.axes for name, record in all_architectures().items() if record.axes is not None}
    return recorded | UNRECORDED


@functools.cache
def known_names() -> Mapping[str, str]:
    """Return {plain name: model type}, including the names of releases."""
    released = {name: kind for kind, axes in all_axes().items() for name in axes.release_names}
    return {plain_name(kind): kind for kind in all_axes()} | released


def text_name(kind: str) -> str:
    """Return the model type for any spelling of its name; unknown names unchanged.

    >>> text_name("Qwen3VLTextRotaryEmbedding"), text_name("glm-4.5v"), text_name("llama")
    ('qwen3_vl', 'glm4v_moe', 'llama')
    """
    if find_axes(kind.removesuffix("_text")) is not None:
        return kind
    return find_known_name(kind, known_names(), CLASS_ENDINGS) or kind


def read_text(kind: str, config: Mapping[str, Any]) -> AxesSpec:
    """Return the text rotation of a model type, for the config's `layer_type` if layers differ.

    Frequencies are rounded to float32 as in the class; `text_layers` returns those of the formula.
    """
    layers = text_layers(kind, config)
    layer_type = config.get("layer_type")
    if layer_type is not None and (not isinstance(layer_type, str) or layer_type not in layers):
        raise ValueError(
            TEXTS("value.one_of", name="layer_type", options=join_items([*layers]), got=short_repr(layer_type))
        )
    layer = next((name for name in (layer_type, "", "full_attention") if name in layers), next(iter(layers)))
    return round_to_float32(layers[layer])


def round_to_float32(spec: AxesSpec) -> AxesSpec:
    """Return the spec with the frequencies of a float32 class: base^(2i/d) rounded, and its inverse rounded again."""
    second = None if spec.second is None else round_inverse(spec.second)
    return replace(spec, weights=round_inverse(spec.weights), second=second)


def round_inverse(weights: FloatArray) -> FloatArray:
    """Return 1/(1/w) with both quotients in float32, as float64; 0 stays 0."""
    narrow = np.float32
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(narrow(1.0) / (1.0 / weights).astype(narrow), dtype=np.float64)


def text_layers(kind: str, config: Mapping[str, Any]) -> dict[str, AxesSpec]:
    """Return {layer type: rotation}, with the key "" if all layers share one."""
    name = kind.removesuffix("_text")
    axes, full_config = find_axes(name), with_model_type(name, config)
    return {
        layer: allocate_pairs(axes, spec, section_keys(full_config, layer))
        for layer, spec in from_config(full_config).items()
    }


def with_model_type(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with its model type and with what `from_config` needs."""
    full_config = dict(config)
    axes, record = UNRECORDED.get(name), find_architecture(name)
    like = "" if axes is None else axes.like
    if any(isinstance(config.get(key), Mapping) for key in TEXT_KEYS) and not like:
        full_config.setdefault("model_type", name)
    else:
        full_config["model_type"] = like or (name if record is None or record.text is None else record.text.type)
    if find_architecture(full_config["model_type"]) is None:
        # An architecture without class defaults: lengths do not matter to plain RoPE.
        full_config.setdefault("max_position_embeddings", 32_768)
        full_config.setdefault("rope_interleave", axes is not None and axes.pattern == "t behind h w")
    return full_config


def section_keys(config: Mapping[str, Any] | ModelConfig, layer: str = "") -> dict[str, Any]:
    """Return the section keys, from the language model, its layer type or the top level."""
    found: dict[str, Any] = {}
    model = as_model_config(config)
    for place in (config.mapping if isinstance(config, ModelConfig) else config, model.part.config):
        for source in (place, place.get("rope_parameters"), place.get("rope_scaling")):
            part = source.get(layer) if layer and isinstance(source, Mapping) and layer in source else source
            if isinstance(part, Mapping):
                found.update({key: part[key] for key in SECTION_KEYS if part.get(key) is not None})
    return found


def allocate_pairs(axes: Axes | None, spec: RopeSpec, found: Mapping[str, Any]) -> AxesSpec:
    """Assign the pairs of a language model to axes, as its class does."""
    counts = found.get("mrope_section", found.get("xdrope_section"))
    if axes is None and counts is None:
        return one_axis(spec)
    if axes is None or (axes.pattern == "sections" and not axes.sections):
        # An unknown type follows the key, as the servers do. Isaac always gives half of the pairs to time.
        side = spec.pairs // 4
        counts = counts if axes is None else (spec.pairs - 2 * side, side, side)
        axes = Axes("interleaved" if found.get("mrope_interleaved") else "sections")
    if axes.pattern == "even and odd":
        return shared_ladder(spec, alternate_axes(spec.pairs), axes.names)
    sizes = check_counts(axes.sections if counts is None else counts)
    if axes.pattern == "doubled":
        return double_sections(spec, sizes)
    return shared_ladder(spec, axis_per_pair(axes.pattern, sizes, spec.pairs), axes.names)


def axis_per_pair(pattern: str, counts: tuple[int, ...], pairs: int) -> list[int]:
    """Return the axis of every pair, (pairs,). Raises `ValueError` if sections must add up to the pairs and do not."""
    if pattern != "interleaved" and sum(counts) != pairs:
        raise ValueError(TEXTS("sections.sum", pairs=pairs, counts=short_repr(list(counts)), sum=sum(counts)))
    if pattern == "scheduled":
        return schedule_pairs(counts)
    if pattern == "sections":
        # Sections beyond the third start again with the first axis, as in transformers.
        return [section % 3 for section, count in enumerate(counts) for _ in range(count)]
    if len(counts) != 3:
        raise ValueError(TEXTS("sections.three", counts=short_repr(list(counts))))
    if pattern == "interleaved":
        return interleave_sections(counts, pairs)
    # ERNIE names its sections h, w, t; Bailing t, h, w. The layout of the pairs is the same.
    rows, columns, time = counts if pattern == "h w then t" else (*counts[1:], counts[0])
    if rows != columns:
        raise ValueError(TEXTS("sections.same", value=[rows, columns, time]))
    return alternate_then(pairs, time)


def schedule_pairs(counts: Sequence[int]) -> list[int]:
    """Return the axes as in openPangu: each pair goes to the axis with the smallest assigned part of its share.

    No axis gets two pairs in a row while another has pairs left. With three sections the last pair goes to the first
    axis.

    >>> schedule_pairs([2, 1, 1])
    [0, 1, 2, 0]
    """
    if len(counts) not in (2, 3):
        raise ValueError(TEXTS("sections.two_or_three", counts=short_repr(list(counts))))
    last = [0] if len(counts) == 3 else []
    targets = [counts[0] - len(last), *counts[1:]]
    assigned, order = [0] * len(targets), list[int]()
    for _ in range(sum(targets)):
        free = [k for k in range(len(targets)) if assigned[k] < targets[k]]
        best = min([k for k in free if k not in order[-1:]] or free, key=lambda k: (assigned[k] / targets[k], k))
        order.append(best)
        assigned[best] += 1
    return order + last


def double_sections(spec: RopeSpec, counts: Sequence[int]) -> AxesSpec:
    """Return HunYuan-VL's table as in transformers 5.23.0: blocks of twice the section over the doubled head.

    Dimension i and its partner i + pairs fall into different blocks, so this is not a rotation.
    """
    if sum(counts) != spec.pairs:
        raise ValueError(TEXTS("sections.half", pairs=spec.pairs, counts=short_repr(list(counts))))
    axis = [k for k, count in enumerate(counts) for _ in range(2 * count)]
    first = shared_ladder(spec, axis[: spec.pairs], xdrope_axes(counts))
    return without_rotation(first, place_frequencies(np.asarray(spec.inv_freq()), axis[spec.pairs :], len(counts)))


def xdrope_axes(counts: Sequence[int]) -> tuple[str, ...]:
    """Return the names of this many axes; width, height and image come last."""
    if len(counts) < 3:
        raise ValueError(TEXTS("sections.least_three", counts=short_repr(list(counts))))
    more = len(counts) - len(XDROPE_AXES)
    return (*(f"axis {k}" for k in range(more)), *XDROPE_AXES) if more > 0 else XDROPE_AXES[-len(counts) :]
