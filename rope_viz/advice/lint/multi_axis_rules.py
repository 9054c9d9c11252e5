"""The rules of the check about positions on several axes: sections, interleaving, tables that are no rotation.

A rule takes a `View`, or, for a diffusion transformer or an encoder alone, is asked through `check_axes`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rope_viz.advice.lint.lint_context import Config, Finding, View
from rope_viz.embedding.spec import shorten
from rope_viz.models.architecture import find_architecture
from rope_viz.models.config_reader import read_model_type
from rope_viz.models.model_config import ModelConfig, from_config

if TYPE_CHECKING:
    from rope_viz.embedding.axes_spec import AxesSpec

Rule: TypeAlias = Callable[[View], Iterator[Finding]]

# The rooms about several axes are half of what a check would load, and these types have one.
ONE_AXIS = frozenset(
    (
        *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next", "gemma", "gemma2"),
        *("gemma3_text", "gemma4_text", "phi", "phi3", "phimoe", "gpt_neox", "gpt_oss", "deepseek_v2", "deepseek_v3"),
        *("kimi_k2", "minimax_m2", "olmo2", "olmo3", "glm", "glm4", "glm4_moe", "cohere", "cohere2", "granite"),
        *("falcon", "starcoder2", "stablelm", "smollm3", "internlm2", "internlm3", "chatglm", "baichuan", "mimo"),
        *("hunyuan_v1_dense", "hunyuan_v1_moe", "seed_oss", "exaone4", "nemotron", "minicpm", "modernbert", "gptj"),
    )
)
SIDE = 32  # tokens of an image's side, for a size to name


def surely_one_axis(config: Mapping[str, Any]) -> bool:
    """Whether a config is surely of a language model with one position per token, without a word of sections."""
    named = config.get("model_type")
    places = (config, config.get("rope_parameters"), config.get("rope_scaling"))
    if not isinstance(named, str) or named not in ONE_AXIS or "_class_name" in config:
        return False
    return not any(
        "section" in str(key) or "mrope" in str(key) for part in places if isinstance(part, Mapping) for key in part
    )


def of_several(rule: Rule) -> Rule:
    """A rule that is asked only where a config may have several axes."""

    @functools.wraps(rule)
    def asked(view: View) -> Iterator[Finding]:
        return iter(()) if surely_one_axis(view.config) else rule(view)

    return asked


@of_several
def sections_do_not_add_up(view: View) -> Iterator[Finding]:
    """The sections of M-RoPE do not add up to the pairs that rotate, and every runtime makes something else of it.

    Source: transformers 5.23.0 (torch.split raises; interleaved classes never look), vLLM 0.33.0 `MRotaryEmbedding`
    (asserts), SGLang 0.5.23 `mrope.py` (rescales with a print).
    """
    from rope_viz.multi_axis.text import SECTION_KEYS, TEXTS, keys
    from rope_viz.runtimes.axes import model_kind

    kind, found = model_kind(view.config), keys(view.config, "")
    name = next((key for key in SECTION_KEYS[:2] if key in found), None)
    if name is None:
        return
    counts = found[name]
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        text = f"{name} must be a list of whole numbers, got {shorten(counts)}."
        yield Finding("", "error", where(view.config, name), text)
        return
    pairs = next(iter(from_config(view.config).values())).pairs
    if sum(counts) == pairs:
        return
    rule = TEXTS.get(kind)
    silent = rule is not None and rule.pattern == "interleaved"
    usual = list(rule.sections) if rule is not None and sum(rule.sections) == pairs else None
    repaired = None if usual is None else with_key(view.config, name, usual)
    ours = "transformers lays them out and says nothing" if silent else "transformers raises"
    ours = ours if rule is not None else f"transformers reads no sections for {kind or 'this model'}"
    message = (
        f"{name} {counts} adds up to {sum(counts)}, and {pairs} pairs rotate: {ours}, vLLM refuses, SGLang rescales "
        f"them to {rescaled(view.config)} with a print."
    )
    yield Finding("", "error" if rule is not None else "warning", where(view.config, name), message, None, repaired)


def rescaled(config: Mapping[str, Any]) -> str:
    """The sections that SGLang makes of a config's."""
    from rope_viz.runtimes.axes import axes_answers

    answer = next(one for one in axes_answers(config) if one.runtime == "sglang")
    return str(list(answer.counts.values())) if answer.spec is not None else "nothing it can use"


@of_several
def interleaving_by_another_key(view: View) -> Iterator[Finding]:
    """Servers decide by `mrope_interleaved` what transformers decides by the class.

    Source: transformers 5.23.0 reads no such key; vLLM 0.33.0 `get_rope` and SGLang 0.5.23 take sections where it is
    missing.
    """
    from rope_viz.multi_axis.text import TEXTS, keys
    from rope_viz.runtimes.axes import axes_answers, model_kind

    kind = model_kind(view.config)
    rule, found = TEXTS.get(kind), keys(view.config, "")
    if rule is None or rule.pattern not in ("sections", "interleaved") or "mrope_section" not in found:
        return
    wanted = rule.pattern == "interleaved"
    if bool(found.get("mrope_interleaved", False)) == wanted:
        return
    answers = {one.runtime: one for one in axes_answers(view.config)}
    moved = len(answers["vllm"].moved)
    if not moved or answers["transformers"].spec is None:
        return
    pairs = answers["transformers"].spec.pairs
    said = "is missing" if "mrope_interleaved" not in found else f"is {str(found['mrope_interleaved']).lower()}"
    theirs = "blocks" if wanted else "interleaved pairs"
    message = (
        f"mrope_interleaved {said}: vLLM and SGLang take {theirs}, and {moved} of {pairs} pairs then listen to another "
        "axis than in transformers, which decides by the class."
    )
    repaired = with_key(view.config, "mrope_interleaved", wanted)
    yield Finding("", "error", where(view.config, "mrope_section"), message, None, repaired)


@of_several
def pairs_that_stand_still(view: View) -> Iterator[Finding]:
    """llama.cpp gives pairs that no section claims the fourth position, which is 0.

    Source: `ggml_mrope_cache_init` of llama.cpp 0c1e57098, executed (tests/goldens/axes.json).
    """
    from rope_viz.runtimes.axes import axes_answers

    answer = next((one for one in axes_answers(view.config) if one.runtime == "llama.cpp"), None)
    if answer is None or answer.spec is None or not answer.still:
        return
    listed = " and ".join(str(pair) for pair in answer.still)
    slowest = float(np.abs(answer_speeds(view.config)[list(answer.still)]).max())
    message = (
        f"pairs {listed} stand still in llama.cpp and turn with time elsewhere: no section claims them. They turn once "
        f"in {2.0 * np.pi / slowest:,.0f} positions at the fastest."
    )
    yield Finding("", "note", where(view.config, "mrope_section"), message)


def answer_speeds(config: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The speeds of all pairs in transformers, (pairs,)."""
    from rope_viz.multi_axis.text import text_layers
    from rope_viz.runtimes.axes import model_kind

    return np.asarray(next(iter(text_layers(model_kind(config), config).values())).weights.sum(axis=1))


@of_several
def no_rotation(view: View) -> Iterator[Finding]:
    """The table turns the two members of a pair by different angles, so it is no rotation.

    Source: transformers 5.23.0 `HunYuanVLRotaryEmbedding`, which cuts the doubled head into blocks of twice the
    section; Tencent's code, mlx-vlm and llama.cpp repeat the list of sections and do rotate. Executed.
    """
    from rope_viz.multi_axis.text import TEXTS, text_layers
    from rope_viz.runtimes.axes import model_kind

    kind = model_kind(view.config)
    if kind not in TEXTS:
        return
    for spec in text_layers(kind, view.config).values():
        if not spec.rotation:
            yield Finding(
                "", "warning", where(view.config, "mrope_section"), sheared(spec, "image tokens", "transformers")
            )


def sheared(spec: AxesSpec, whose: str, runtime: str) -> str:
    """How far a table is from a rotation over an image of 32 × 32, in words."""
    side = np.arange(SIDE, dtype=np.float64)
    rows, columns = (grid.ravel() for grid in np.meshgrid(side, side, indexing="ij"))
    places = np.zeros((SIDE * SIDE, len(spec.axes)))
    names = [next((k for k, axis in enumerate(spec.axes) if axis in options), None) for options in SIDES]
    for k, values in zip(names, (rows, columns), strict=True):
        if k is not None:
            places[:, k] = values
    low, high = spec.stretch(places)
    return (
        f"{whose} are not rotated but sheared in {runtime}: over {SIDE} × {SIDE} places a pair's length changes by "
        f"{low.min():.2f} to {high.max():.2f}, and a score depends on more than the displacement."
    )


SIDES = (("h", "row", "height"), ("w", "column", "width"))


def check_axes(config: Mapping[str, Any]) -> list[Finding] | None:
    """The check of a config without a language model, a diffusion transformer's or an encoder's; None for others."""
    if surely_one_axis(config):
        return None
    from rope_viz.multi_axis.model_axes import from_model, is_encoder

    kind = read_model_type(config)
    # A wrapper that is called after its tower, such as aya_vision, has a language model at its defaults.
    record = find_architecture(kind)
    wraps = record is not None and record.text is not None
    if not isinstance(config.get("_class_name"), str) and (wraps or not is_encoder(kind, config)):
        return None
    try:
        parts = from_model(config)
    except ValueError as error:
        return [Finding("not-computable", "error", "", str(error), source="rope_viz.multi_axis")]
    found = []
    for part, spec in parts.items():
        if not spec.rotation:
            message = sheared(spec, f"tokens of the {part}", "the published code")
            source = "V-JEPA 2 and ERNIE-Image as they were trained: kept for the weights' sake"
            found.append(Finding("no-rotation", "note", "", f"{message} It was trained so.", source=source))
    return found


def with_key(config: Mapping[str, Any], name: str, value: Any) -> Config:
    """The config with this key where its sections stand."""
    changed: Config = copy.deepcopy(dict(config))
    place: Any = changed
    for key in path_of(config):
        place = place[key]
    place[name] = value
    return changed


def path_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the sections stand."""
    from rope_viz.multi_axis.text import SECTION_KEYS

    part = ModelConfig.read(config).part
    roots = (part.path, ()) if part.path else ((),)
    for root in roots:
        place: Any = config
        for key in root:
            place = place.get(key) or {}
        for key in ("rope_parameters", "rope_scaling"):
            inner = place.get(key)
            if isinstance(inner, Mapping) and any(name in inner for name in SECTION_KEYS):
                return (*root, key)
        if any(name in place for name in SECTION_KEYS):
            return root
    return ()


def where(config: Mapping[str, Any], name: str) -> str:
    """The place of a key as text."""
    return ".".join((*path_of(config), name))
