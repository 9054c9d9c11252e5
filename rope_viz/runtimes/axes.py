"""What each runtime does with several axes: which pair listens to what, where text goes on, and YaRN.

For language models that read images and films (M-RoPE). Allocations and positions are those of `configs.axes`, each
checked against the runtime's own code; llama.cpp's modes by architecture were read in its `llama-model.cpp`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import MIXED, STILL, AxesSpec
from rope_viz.models.architecture import find_architecture
from rope_viz.models.config_reader import read_model_type
from rope_viz.models.model_config import ModelConfig
from rope_viz.multi_axis.mrope_runtimes import allocation, llama_cpp
from rope_viz.multi_axis.prompt_positions import MODELS, OMNI, lay_out
from rope_viz.multi_axis.prompt_positions import SECONDED as SECONDED_TYPES
from rope_viz.multi_axis.text import TEXTS, keys, text_layers

VERSIONS = {
    "transformers": "5.23.0",
    "transformers-4.57": "4.57.6",
    "vllm": "0.33.0",
    "sglang": "0.5.23",
    "mlx-vlm": "0.7.10",
    "llama.cpp": "0c1e57098",
}
CALLED = {"transformers-4.57": "transformers", "vllm": "vLLM", "sglang": "SGLang"}
# Model types whose prompts each of them numbers itself; HunYuan-VL runs in vLLM through transformers' own class.
QWENS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen3_omni_moe")
OTHERS = ("glm4v", "glm4v_moe", "glm_ocr", "ernie4_5_vl_moe", "paddleocr_vl", "cohere_compass")
HAS: dict[str, tuple[str, ...]] = {
    "vllm": (
        *(*QWENS, *OTHERS, "qwen2_5_omni", "qwen4_exp", "bailing_moe_v3_vl", "isaac", "openpangu_vl", "hunyuan_vl"),
        *(
            "keye",
            "keye_vl1_5",
            "keye_vl_1_5",
            "KeyeVL1_5",
            "cosmos3_edge",
            "cosmos3_omni",
            "minicpmv4_6",
            "minicpmv4_7",
        ),
    ),
    "sglang": (*QWENS, *OTHERS[:-1], "qwen4_exp", "cosmos3_edge", "cosmos3_omni", "bailing_moe_v3_vl"),
    "mlx-vlm": (*QWENS, *OTHERS, "qwen4_exp", "hunyuan_vl", "minicpmv4_6", "minicpmv4_7"),
}
SECTIONED = ("qwen2_vl", "qwen2_5_vl", "paddleocr_vl", "glm4v", "glm4v_moe", "glm_ocr", "hunyuan_vl")
INTERLEAVED = ("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")
# Three words, a film of six grids of 2 × 2 tokens, and the word behind it.
SAMPLE = {"layout": [["text", 3], ["video", [6, 4, 4]], ["text", 1]], "spatial_merge_size": 2}
FILM = {"layout": [["video", [4, 4, 4]]], "spatial_merge_size": 2}
SECONDED = (*SECONDED_TYPES, *OMNI)


@dataclass(frozen=True)
class AxesAnswer:
    """One runtime's way with an M-RoPE model.

    `spec` is None where it refuses or is not known to have the model, and `reason` says so. `moved` are the pairs that
    listen to another axis than in transformers, `still` those that listen to none. `behind` is the position of the word
    after a film of six grids of 2 × 2 tokens that began at 3, `times` the positions in time of four such grids, 1.5 s
    apart at 2 positions a second where the model counts seconds; both are None
    where the model's prompts are not known. `extension` says what it does with YaRN.
    """

    runtime: str
    version: str
    spec: AxesSpec | None
    reason: str = ""
    moved: tuple[int, ...] = ()
    still: tuple[int, ...] = ()
    behind: float | None = None
    times: tuple[float, ...] | None = None
    extension: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def sections(self) -> str:
        """The pairs of each axis, and whether they lie in blocks: "t 16, h 24, w 24 in blocks"."""
        if self.spec is None:
            return self.reason
        if not self.spec.rotation:
            return "the two members of a pair listen to different axes"
        listed = ", ".join(f"{axis} {count}" for axis, count in self.counts.items())
        return f"{listed} {'in blocks' if in_blocks(self.spec) else 'interleaved'}"

    @property
    def against(self) -> str:
        """How the pairs differ from transformers' own; "-" where there is no answer."""
        if self.spec is None:
            return "-"
        parts = [] if self.spec.rotation else ["shears image tokens"]
        if self.moved:
            parts.append(f"{len(self.moved)} pairs listen to another axis")
        if self.still:
            parts.append(f"pairs {', '.join(map(str, self.still))} stand still")
        return ", ".join(parts) or "agrees"

    @property
    def name(self) -> str:
        """The runtime and its version."""
        return f"{CALLED.get(self.runtime, self.runtime)} {self.version}"


def axes_answers(config: Mapping[str, Any]) -> tuple[AxesAnswer, ...]:
    """Every runtime's answer, transformers' first; () where the language model has one axis.

    Raises `ValueError` where the config cannot be read and names no sections.
    """
    kind = model_kind(config)
    if not several(kind, config):
        return ()
    reference: AxesSpec | None = None
    answers = []
    for runtime in VERSIONS:
        spec, reason = asked(runtime, kind, config)
        reference = spec if reference is None else reference
        answers.append(answer(runtime, kind, config, spec, reason, reference))
    return tuple(answers)


def several(kind: str, config: Mapping[str, Any]) -> bool:
    """Whether this language model has positions on several axes: by its type, or by the sections its config names."""
    found = keys(config, "")
    return kind in TEXTS or "mrope_section" in found or "xdrope_section" in found


def model_kind(config: Mapping[str, Any]) -> str:
    """The model type that decides: the wrapper's where it is one of ours, else its text's."""
    outer = read_model_type(config)
    if outer in TEXTS:
        return outer
    inner = ModelConfig.read(config).part.kind.removesuffix("_text")
    return inner if inner in TEXTS else outer.removesuffix("_text")


def is_newer_than_4_57(kind: str) -> bool:
    """Whether transformers 4.57 does not have this model type yet."""
    record = find_architecture(kind)
    return record is not None and record.since == "5.23.0"


def asked(runtime: str, kind: str, config: Mapping[str, Any]) -> tuple[AxesSpec | None, str]:
    """The allocation in a runtime, or why there is none."""
    listed = kind in TEXTS
    if runtime == "transformers-4.57" and is_newer_than_4_57(kind):
        return None, "has no such model"
    if runtime in HAS and listed and kind not in HAS[runtime]:
        return None, "is not known to have this model"
    try:
        return READ[runtime](kind, config)
    except ValueError as error:
        return None, f"refuses: {error}"


def by_class(kind: str, config: Mapping[str, Any]) -> tuple[AxesSpec | None, str]:
    """transformers: by the class of the model type."""
    layers = text_layers(kind, config)
    return layers.get("full_attention", next(iter(layers.values()))), ""


def by_server(runtime: str) -> Callable[[str, Mapping[str, Any]], tuple[AxesSpec | None, str]]:
    """vLLM, SGLang, mlx-vlm: by the keys of the config."""

    def read(kind: str, config: Mapping[str, Any]) -> tuple[AxesSpec | None, str]:
        if runtime == "vllm" and kind == "hunyuan_vl":
            return by_class(kind, config)
        return allocation(runtime, {**config, "model_type": kind} if kind else config), ""

    return read


def by_ggml(kind: str, config: Mapping[str, Any]) -> tuple[AxesSpec | None, str]:
    """llama.cpp: sections or interleaved by the architecture, on halves, over four positions."""
    if kind not in (*SECTIONED, *INTERLEAVED):
        return None, "is not known to convert this model"
    own, _ = by_class(kind, config)
    assert own is not None
    found = keys(config, "")
    counts = list(found.get("mrope_section", found.get("xdrope_section")) or TEXTS[kind].sections)[:4]
    mode = "IMROPE" if kind in INTERLEAVED else "MROPE"
    given = {"mode": mode, "head_dim": own.head_dim, "n_dims": 2 * own.pairs, "sections": counts}
    laid = llama_cpp({**given, "freq_base": 10_000.0})
    # The speeds are the model's own; only which axis turns a pair is llama.cpp's.
    speeds = np.abs(own.weights).sum(axis=1)
    weights = np.where(laid.weights != 0.0, speeds[:, None], 0.0)
    return AxesSpec(weights, laid.dims, own.factor, laid.axes, head_dim=own.head_dim), ""


READ: dict[str, Callable[[str, Mapping[str, Any]], tuple[AxesSpec | None, str]]] = {
    "transformers": by_class,
    "transformers-4.57": by_class,
    "vllm": by_server("vllm"),
    "sglang": by_server("sglang"),
    "mlx-vlm": by_server("mlx-vlm"),
    "llama.cpp": by_ggml,
}


def answer(
    runtime: str,
    kind: str,
    config: Mapping[str, Any],
    spec: AxesSpec | None,
    reason: str,
    reference: AxesSpec | None,
) -> AxesAnswer:
    """One runtime's answer beside transformers'."""
    moved: tuple[int, ...] = ()
    still: tuple[int, ...] = ()
    counts: dict[str, int] = {}
    if spec is not None:
        owner = heard(runtime, spec)
        counts = {axis: int(np.sum(owner == k)) for k, axis in enumerate(spec.axes) if np.any(owner == k)}
        still = tuple(np.flatnonzero(owner == STILL).tolist())
        if reference is not None and len(reference.weights) == len(owner):
            other = (owner != reference.owner) & (owner != STILL)
            moved = tuple(np.flatnonzero(other).tolist())
    behind, times = numbered(runtime, kind) if spec is not None else (None, None)
    extension = extends(runtime, kind) if spec is not None else ""
    return AxesAnswer(runtime, VERSIONS[runtime], spec, reason, moved, still, behind, times, extension, counts)


def heard(runtime: str, spec: AxesSpec) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The axis of every pair; in llama.cpp the fourth position is 0, so what listens to it stands still."""
    owner = spec.owner
    if runtime != "llama.cpp" or set(spec.axes) != set("thwe"):
        return owner
    claimed = np.bincount(owner[owner >= 0], minlength=4)[3]
    # HunYuan's four sections are four axes; a fourth that nobody asked for is what was left over.
    return owner if claimed >= spec.pairs // 8 else np.where(owner == 3, STILL, owner)


def numbered(runtime: str, kind: str) -> tuple[float | None, tuple[float, ...] | None]:
    """Where text goes on behind the sample film, and the times of four grids 1.5 s apart."""
    if kind not in MODELS or kind in ("neomme", "glm_image", "hunyuan_vl"):
        return None, None
    rate = {"tokens_per_second": 2, "second_per_grid_ts": [1.5]} if kind in SECONDED else {}
    behind = lay_out(kind, {**SAMPLE, **rate}, runtime).values[-1, 0]
    film = lay_out(kind, {**FILM, **rate}, runtime)
    tokens = np.concatenate([np.arange(part.start, part.stop) for part in film.segments if part.kind == "video"])
    return float(behind), tuple((film.values[tokens[::4], 0] - film.values[tokens[0], 0]).tolist())


def extends(runtime: str, kind: str) -> str:
    """What the runtime does with YaRN on sections."""
    if kind.startswith("ernie4_5") and runtime.startswith("transformers"):
        return "refuses any scaling of this model"
    return "over the pair index, whatever the axis"


def in_blocks(spec: AxesSpec) -> bool:
    """Whether the pairs of each axis lie together."""
    owner = [k for k in spec.owner.tolist() if k not in (STILL, MIXED)]
    changes: int = sum(first != second for first, second in itertools.pairwise(owner))
    return changes < len(set(owner))


OTHER_NAMES = {"transformers-4": "transformers-4.57", "mlx-lm": "mlx-vlm"}


def in_words(config: Mapping[str, Any], runtime: str) -> str:
    """What a runtime does with the axes of this model, in sentences; empty for a model with one axis.

    `runtime` is named as Extend names it; mlx-lm reads text alone, and its sibling mlx-vlm answers for it.
    """
    found = {answer.runtime: answer for answer in axes_answers(config)}
    name = OTHER_NAMES.get(runtime, runtime)
    if name not in found:
        return ""
    one, own = found[name], found["transformers"]
    said = one.name
    begin = "mlx-lm reads text alone. " if runtime == "mlx-lm" else ""
    if one.spec is None:
        return f"{begin}Images and films: {said} {one.reason.rstrip('.')}."
    parts = [f"{begin}Images and films in {said}: {one.sections}"]
    if one.moved:
        parts.append(f", {len(one.moved)} pairs by another axis than in transformers")
    if one.still:
        parts.append(f"; pairs {', '.join(map(str, one.still))} stand still")
    parts.append(f". YaRN: {one.extension}.")
    if one.behind is not None:
        same = own.behind is None or one.behind == own.behind
        beside = "" if same else f" ({own.name}: at {own.behind:g})"
        parts.append(
            f" Behind a film of six grids of 2 × 2 tokens that begins at 3, text goes on at {one.behind:g}{beside}."
        )
    return "".join(parts)
