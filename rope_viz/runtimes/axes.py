"""What each runtime does with several axes: which axis each pair follows, where text continues, and YaRN.

For language models that read images and video (M-RoPE). Allocations and positions are those of `rope_viz.multi_axis`,
each checked against the runtime's own code; llama.cpp's modes by architecture were read in its `llama-model.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import MIXED, STILL, AxesSpec
from rope_viz.models.architecture import Axes, find_architecture
from rope_viz.models.config_reader import read_model_type
from rope_viz.models.model_config import ModelConfig, as_model_config
from rope_viz.models.several_axes.text import find_axes, section_keys, text_layers
from rope_viz.multi_axis.mrope_runtimes import allocate_for_runtime, rotate_as_ggml
from rope_viz.multi_axis.prompt_positions import lay_out, prompt_traits
from rope_viz.runtimes.releases import MLX_VLM, find_version, format_name
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts import join
from rope_viz.texts.sentences import describe_error, remove_period
from rope_viz.texts.texts import join_items

VERSIONS = {
    "transformers": find_version("transformers"),
    "transformers-4.57": find_version("transformers", 1),
    "vllm": find_version("vllm"),
    "sglang": find_version("sglang"),
    "mlx-vlm": MLX_VLM,
    "llama.cpp": find_version("llama.cpp"),
}
# Three tokens of text, a video of six grids of 2 × 2 tokens, and the token after it.
SAMPLE = {"layout": [["text", 3], ["video", [6, 4, 4]], ["text", 1]], "spatial_merge_size": 2}
VIDEO = {"layout": [["video", [4, 4, 4]]], "spatial_merge_size": 2}


@dataclass(frozen=True)
class AxesAnswer:
    """What one runtime does with an M-RoPE model.

    `spec` is None where it refuses or does not have the model, for a `reason`. `moved` are the pairs that follow
    another axis than in transformers, `still` those that follow none. `behind` is the position of the token after
    SAMPLE, `times` the positions of VIDEO's grids, 1.5 s apart at 2 positions a second where the model counts seconds;
    both are None where its prompts are not known. `extension` is what it does with YaRN, `counts` the pairs per axis.
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
        """The pairs of each axis, and whether they form blocks: "t 16, h 24, w 24 in blocks"."""
        if self.spec is None:
            return self.reason
        if not self.spec.is_rotation:
            return TEXTS("axes.members")
        listed = join_items([f"{axis} {count}" for axis, count in self.counts.items()])
        return TEXTS("axes.in_blocks" if in_blocks(self.spec) else "axes.interleaved", sections=listed)

    @property
    def differs(self) -> bool:
        """Whether the pairs differ from transformers' own, as `against` says in words."""
        return self.spec is not None and bool(not self.spec.is_rotation or self.moved or self.still)

    @property
    def against(self) -> str:
        """How the pairs differ from transformers' own; "-" where there is no answer."""
        if self.spec is None:
            return "-"
        parts = [] if self.spec.is_rotation else [TEXTS("axes.shears")]
        if self.moved:
            parts.append(TEXTS("axes.moved", pairs=len(self.moved)))
        if self.still:
            parts.append(TEXTS("axes.still", pairs=join_items([*map(str, self.still)])))
        return join_items(parts) or TEXTS("verdict.agrees")

    @property
    def name(self) -> str:
        return f"{format_name(self.runtime.removesuffix('-4.57'))} {self.version}"


def axes_answers(config: Mapping[str, Any] | ModelConfig) -> tuple[AxesAnswer, ...]:
    """Return every runtime's answer, transformers' first; () where the language model has one axis.

    Raises `ValueError` where the config cannot be read and names no sections.
    """
    kind, axes = find_model_axes(config)
    if axes is None and not section_keys(config).keys() & {"mrope_section", "xdrope_section"}:
        return ()
    mapping = config.mapping if isinstance(config, ModelConfig) else config
    found = {runtime: allocate_in(runtime, kind, axes, mapping) for runtime in VERSIONS}
    reference = next((spec for spec, _ in found.values() if spec is not None), None)
    return tuple(compare_with(reference, runtime, kind, *each) for runtime, each in found.items())


def find_model_axes(config: Mapping[str, Any] | ModelConfig) -> tuple[str, Axes | None]:
    """Return the model type that decides about axes, the wrapper's before that of its text, and its axes."""
    outer = read_model_type(config.mapping if isinstance(config, ModelConfig) else config)
    axes = find_axes(outer)
    if axes is not None:
        return outer, axes
    inner = as_model_config(config).part.kind.removesuffix("_text")
    axes = find_axes(inner)
    return (outer.removesuffix("_text") if axes is None else inner), axes


def allocate_in(runtime: str, kind: str, axes: Axes | None, config: Mapping[str, Any]) -> tuple[AxesSpec | None, str]:
    """Return the allocation in a runtime, or None and why there is none."""
    record = find_architecture(kind)
    if runtime == "transformers-4.57" and record is not None and record.since.startswith("5."):
        return None, TEXTS("axes.absent")
    own = runtime.startswith("transformers") or (axes is None and runtime != "llama.cpp")
    if not own and (axes is None or runtime not in axes.runtimes):
        return None, TEXTS("axes.not_converted" if runtime == "llama.cpp" else "axes.not_supported")
    has_sections = section_keys(config).get("mrope_section") is not None
    if runtime in ("vllm", "sglang") and axes is not None and axes.pattern == "interleaved" and not has_sections:
        return None, TEXTS("axes.no_sections")
    try:
        # vLLM runs HunYuan-VL through the class of transformers.
        if runtime.startswith("transformers") or (runtime == "vllm" and kind == "hunyuan_vl"):
            return allocate_by_class(kind, config), ""
        if runtime == "llama.cpp" and axes is not None:
            return allocate_by_ggml(allocate_by_class(kind, config), axes, config), ""
        return allocate_for_runtime(runtime, {**config, "model_type": kind} if kind else config), ""
    except ValueError as error:
        return None, TEXTS("axes.refuses", reason=describe_error(error))


def allocate_by_class(kind: str, config: Mapping[str, Any]) -> AxesSpec:
    """Return the allocation by the class of the model type in transformers."""
    layers = text_layers(kind, config)
    return layers.get("full_attention", next(iter(layers.values())))


def allocate_by_ggml(own: AxesSpec, axes: Axes, config: Mapping[str, Any]) -> AxesSpec:
    """Return the allocation of llama.cpp, which pairs halves over four positions, with the model's own frequencies."""
    found = section_keys(config)
    counts = list(found.get("mrope_section", found.get("xdrope_section")) or axes.sections)[:4]
    mode = "IMROPE" if axes.pattern == "interleaved" else "MROPE"
    laid = rotate_as_ggml({"mode": mode, "head_dim": own.head_dim, "n_dims": 2 * own.pairs, "sections": counts})
    weights = np.where(laid.weights != 0.0, np.abs(own.weights).sum(axis=1)[:, None], 0.0)
    return AxesSpec(weights, laid.dims, own.factor, laid.axes, head_dim=own.head_dim)


def compare_with(reference: AxesSpec | None, runtime: str, kind: str, spec: AxesSpec | None, reason: str) -> AxesAnswer:
    """Return one runtime's answer, compared with the allocation in transformers."""
    if spec is None:
        return AxesAnswer(runtime, VERSIONS[runtime], None, reason)
    owner = owner_in(runtime, spec)
    moved: tuple[int, ...] = ()
    if reference is not None and len(reference.weights) == len(owner):
        moved = tuple(np.flatnonzero((owner != reference.owner) & (owner != STILL)).tolist())
    still = tuple(np.flatnonzero(owner == STILL).tolist())
    counts = {axis: int(np.sum(owner == k)) for k, axis in enumerate(spec.axes) if np.any(owner == k)}
    refuses = kind.startswith("ernie4_5") and runtime.startswith("transformers")
    yarn = TEXTS("axes.yarn_refused" if refuses else "axes.yarn")
    # Read in mlx-vlm 0.7.10: MRoPERotaryEmbedding of rope_utils.py, and the classes of Ernie, GLM-V and HunYuan-VL.
    yarn = TEXTS("axes.yarn_ignored") if runtime == "mlx-vlm" else yarn
    behind, times = sample_positions(runtime, kind)
    return AxesAnswer(runtime, VERSIONS[runtime], spec, "", moved, still, behind, times, yarn, counts)


def owner_in(runtime: str, spec: AxesSpec) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the axis of every pair. In llama.cpp the fourth position is 0: pairs that follow it do not rotate."""
    owner = spec.owner
    # HunYuan's four sections are four axes; a fourth that no section claims is what was left over.
    if runtime != "llama.cpp" or set(spec.axes) != set("thwe") or np.sum(owner == 3) >= spec.pairs // 8:
        return owner
    return np.where(owner == 3, STILL, owner)


def sample_positions(runtime: str, kind: str) -> tuple[float | None, tuple[float, ...] | None]:
    """Return where text continues after the sample video, and the times of four grids 1.5 s apart."""
    traits = prompt_traits(kind)
    if not traits or "own" in traits or kind == "glm_image":
        return None, None
    timed = "seconds" in traits or "audio" in traits
    rate = {"tokens_per_second": 2, "second_per_grid_ts": [1.5]} if timed else {}
    behind = lay_out(kind, {**SAMPLE, **rate}, runtime).values[-1, 0]
    video = lay_out(kind, {**VIDEO, **rate}, runtime)
    tokens = np.concatenate([np.arange(part.start, part.stop) for part in video.segments if part.kind == "video"])
    times = video.values[tokens[::4], 0] - video.values[tokens[0], 0]
    return float(behind), tuple(times.tolist())


def in_blocks(spec: AxesSpec) -> bool:
    """Return whether the pairs of each axis are next to each other."""
    owner = [k for k in spec.owner.tolist() if k not in (STILL, MIXED)]
    return bool(np.count_nonzero(np.diff(owner)) < len(set(owner)))


def in_words(config: Mapping[str, Any], runtime: str) -> str:
    """Return sentences about what a runtime does with the axes of this model, "" for a model with one axis.

    `runtime` is named as Extend names it; mlx-lm reads only text, so mlx-vlm answers for it.
    """
    found = {answer.runtime: answer for answer in axes_answers(config)}
    answer = found.get({"transformers-4": "transformers-4.57", "mlx-lm": "mlx-vlm"}.get(runtime, runtime))
    if answer is None:
        return ""
    begin = TEXTS("axes.text_only") if runtime == "mlx-lm" else ""
    if answer.spec is None:
        return join(begin, TEXTS("axes.none", name=answer.name, reason=remove_period(answer.reason)))
    sections = answer.sections
    if answer.moved:
        sections = TEXTS("axes.moved_sections", sections=sections, pairs=len(answer.moved))
    if answer.still:
        sections = TEXTS("axes.still_sections", sections=sections, pairs=join_items([*map(str, answer.still)]))
    texts = [begin, TEXTS("axes.sections", name=answer.name, sections=sections)]
    texts += [TEXTS("axes.extension", extension=answer.extension)]
    if answer.behind is not None:
        own = found["transformers"]
        differs = own.behind is not None and answer.behind != own.behind
        key = "axes.behind_differs" if differs else "axes.behind"
        texts += [TEXTS(key, behind=answer.behind, name=own.name, own=own.behind)]
    return join(*texts)
