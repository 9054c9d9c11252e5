"""The rules of the check about positions on several axes: sections, interleaving, tables that are no rotation.

The modules about several axes are imported inside the functions, because a check of a plain
language model does not need them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rope_viz.advice.lint.lint_context import TEXTS, Config, Finding
from rope_viz.embedding.spec import short_repr
from rope_viz.models.architecture import find_architecture
from rope_viz.models.config_reader import SECTION_KEYS, has_one_axis, is_pipeline_part, read_model_type
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.texts import Sentence
from rope_viz.texts.sentences import describe_error
from rope_viz.texts.texts import join_list

if TYPE_CHECKING:
    from rope_viz.embedding.axes_spec import AxesSpec
    from rope_viz.runtimes.axes import AxesAnswer

Rule: TypeAlias = Callable[[ModelConfig], Iterator[Finding]]

SIDE = 32  # tokens of the side of a sample image
ROWS, COLUMNS = ("h", "row", "height"), ("w", "column", "width")


def for_several_axes(rule: Rule) -> Rule:
    """Return the rule without findings for models that surely have one axis."""

    @functools.wraps(rule)
    def applied(model: ModelConfig) -> Iterator[Finding]:
        return iter(()) if has_one_axis(model.mapping) else rule(model)

    return applied


def answers_by_runtime(model: ModelConfig) -> dict[str, AxesAnswer]:
    """Return {runtime: its answer}."""
    from rope_viz.runtimes.axes import axes_answers

    return {answer.runtime: answer for answer in axes_answers(model)}


@for_several_axes
def sections_do_not_add_up(model: ModelConfig) -> Iterator[Finding]:
    """The sections of M-RoPE do not add up to the number of rotated pairs, and every runtime handles that differently.

    Source: transformers 5.23.0 (torch.split raises; interleaved classes do not check), vLLM 0.33.0 `MRotaryEmbedding`
    (asserts), SGLang 0.5.23 `mrope.py` (rescales and prints a line).
    """
    from rope_viz.models.several_axes.text import section_keys
    from rope_viz.runtimes.axes import find_model_axes

    (kind, axes), found = find_model_axes(model), section_keys(model)
    name = next((key for key in ("mrope_section", "xdrope_section") if key in found), None)
    if name is None:
        return
    counts, place = found[name], dotted_path(model.mapping, name)
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        yield Finding("", "error", place, TEXTS("sections-do-not-add-up.type", name=name, counts=short_repr(counts)))
        return
    pairs = next(iter(from_config(model.mapping).values())).pairs
    if sum(counts) == pairs:
        return
    if axes is None:
        form = "unread" if kind else "unread_unnamed"
    else:
        form = "silent" if axes.pattern == "interleaved" else "raises"
    default = axes is not None and sum(axes.sections) == pairs
    repaired = with_key(model.mapping, name, list(axes.sections)) if axes is not None and default else None
    sglang = answers_by_runtime(model)["sglang"]
    rescaled = list(sglang.counts.values()) if sglang.spec is not None else TEXTS("sections-do-not-add-up.unusable")
    values = {"name": name, "counts": counts, "sum": sum(counts), "pairs": pairs, "kind": kind, "rescaled": rescaled}
    message = TEXTS(f"sections-do-not-add-up.{form}", **values)
    yield Finding("", "warning" if axes is None else "error", place, message, None, repaired)


@for_several_axes
def interleaving_by_another_key(model: ModelConfig) -> Iterator[Finding]:
    """Servers decide by `mrope_interleaved` whether pairs are interleaved; transformers decides by the class.

    Source: transformers 5.23.0 reads no such key; vLLM 0.33.0 `get_rope` and SGLang 0.5.23 use sections if it is
    missing.
    """
    from rope_viz.models.several_axes.text import section_keys
    from rope_viz.runtimes.axes import find_model_axes

    (_, axes), found = find_model_axes(model), section_keys(model)
    if axes is None or axes.pattern not in ("sections", "interleaved") or "mrope_section" not in found:
        return
    wanted = axes.pattern == "interleaved"
    if bool(found.get("mrope_interleaved", False)) == wanted:
        return
    answers = answers_by_runtime(model)
    moved, spec = len(answers["vllm"].moved), answers["transformers"].spec
    if not moved or spec is None:
        return
    form = f"{'missing' if 'mrope_interleaved' not in found else 'given'}_{'blocks' if wanted else 'interleaved'}"
    given = str(found.get("mrope_interleaved")).lower()
    message = TEXTS(f"interleaving-by-another-key.{form}", given=given, moved=moved, pairs=spec.pairs)
    repaired = with_key(model.mapping, "mrope_interleaved", wanted)
    yield Finding("", "error", dotted_path(model.mapping, "mrope_section"), message, None, repaired)


@for_several_axes
def pairs_that_stand_still(model: ModelConfig) -> Iterator[Finding]:
    """llama.cpp rotates pairs outside all sections by the fourth position, which is 0.

    Source: `ggml_mrope_cache_init` of llama.cpp 0c1e57098, executed (tests/goldens/axes.json).
    """
    answers = answers_by_runtime(model)
    own = answers["transformers"].spec if answers else None
    if own is None or not answers["llama.cpp"].still:
        return
    still = answers["llama.cpp"].still
    fastest = float(np.abs(own.weights.sum(axis=1)[list(still)]).max())
    pairs = join_list([*map(str, still)], more="end")
    message = TEXTS("pairs-that-stand-still.message", pairs=pairs, positions=2.0 * np.pi / fastest)
    yield Finding("", "note", dotted_path(model.mapping, "mrope_section"), message)


@for_several_axes
def no_rotation(model: ModelConfig) -> Iterator[Finding]:
    """The table rotates the two members of a pair by different angles, so it is not a rotation.

    Source: transformers 5.23.0 `HunYuanVLRotaryEmbedding`, which cuts the doubled head into blocks of twice the
    section; Tencent's code, mlx-vlm and llama.cpp repeat the list of sections and rotate. Executed.
    """
    from rope_viz.models.several_axes.text import text_layers
    from rope_viz.runtimes.axes import find_model_axes

    kind, axes = find_model_axes(model)
    if axes is None:
        return
    for spec in text_layers(kind, model.mapping).values():
        if not spec.is_rotation:
            message = describe_shear("no-rotation.class", spec)
            yield Finding("", "warning", dotted_path(model.mapping, "mrope_section"), message)


def describe_shear(key: str, spec: AxesSpec, **more: str) -> Sentence:
    """Return a sentence about how far a table is from a rotation over an image of 32 × 32 tokens."""
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    values = [rows if axis in ROWS else columns if axis in COLUMNS else 0 * rows for axis in spec.axes]
    low, high = spec.stretch(np.stack(values, axis=1))
    return TEXTS(key, side=SIDE, low=low.min(), high=high.max(), **more)


def check_axes(config: Mapping[str, Any]) -> list[Finding] | None:
    """Return the findings about a diffusion transformer's or an encoder's config; None for other configs."""
    if has_one_axis(config):
        return None
    from rope_viz.models.several_axes.model_axes import from_model, is_encoder

    kind = read_model_type(config)
    # A wrapper whose name ends like a tower's, such as aya_vision, has a language model with default sizes.
    record = find_architecture(kind)
    wraps = record is not None and record.text is not None
    if not is_pipeline_part(config) and (wraps or not is_encoder(kind, config)):
        return None
    try:
        parts = from_model(config)
    except ValueError as error:
        return [Finding("not-computable", "error", "", describe_error(error), source="rope_viz.multi_axis")]
    found = []
    source = "the published code of V-JEPA 2 and ERNIE-Image, with which they were trained"
    for part, spec in parts.items():
        if not spec.is_rotation:
            message = describe_shear("no-rotation.published", spec, part=part)
            found.append(Finding("no-rotation", "note", "", message, source=source))
    return found


def with_key(config: Mapping[str, Any], name: str, value: Any) -> Config:
    """Return the config with this key where it has its sections."""
    changed: Config = copy.deepcopy(dict(config))
    place: Any = changed
    for key in find_section_path(config):
        place = place[key]
    place[name] = value
    return changed


def find_section_path(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path to the object that holds the sections."""
    for root in dict.fromkeys((ModelConfig.read(config).part.path, ())):
        place: Any = config
        for key in root:
            place = place.get(key) or {}
        for path in (("rope_parameters",), ("rope_scaling",), ()):
            inner = place.get(path[0]) if path else place
            if isinstance(inner, Mapping) and any(name in inner for name in SECTION_KEYS):
                return (*root, *path)
    return ()


def dotted_path(config: Mapping[str, Any], name: str) -> str:
    """Return the path of a key next to the sections, with dots."""
    return ".".join((*find_section_path(config), name))
