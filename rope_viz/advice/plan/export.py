"""A rotary embedding as the config or the command line of each runtime, checked by emulating the runtime with it.

Flags and keys as of transformers 5.23.0 and 4.57.6, vLLM 0.33.0 (--rope-scaling went in 0.11.1), SGLang 0.5.23,
llama.cpp 0c1e57098 and mlx-lm 0.32.2.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rope_viz.advice.plan import TEXTS
from rope_viz.embedding.scaling import list_config_forms
from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models.edit_config import Change, write_new_keys, write_old_keys
from rope_viz.models.length_keys import own_lengths
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import NOT_KNOWN, Emulation, emulate
from rope_viz.runtimes.compare import Effect, divide, find_max_ratio, log_distance
from rope_viz.runtimes.llamacpp import write_flags, write_lost_flags
from rope_viz.runtimes.longest_length import explain_refused_length
from rope_viz.runtimes.provenance import Known
from rope_viz.runtimes.releases import find_version, match_name
from rope_viz.texts.sentences import continue_sentence, describe_error
from rope_viz.texts.texts import join_clauses, join_items, join_list

Config: TypeAlias = dict[str, Any]

TOLERANCE = 1e-6
LLAMA = {"num_hidden_layers": 32, "intermediate_size": 11_008, "vocab_size": 32_000}
"""Defaults of transformers' Llama class, for a spec without a config."""


@dataclass(frozen=True)
class Export:
    """What to give one runtime, and what it will compute from that.

    `text` is to be copied: a fragment of config.json, or a command's options. `fragment` is the former as data, null
    for a key that has to go, and {} where options say all. `config` is the config.json that the runtime then works with
    (for llama.cpp: the one to convert) and `flags` the overrides of llama.cpp. `faithful` says whether emulation gives
    back the intended frequencies and factor on cos and sin, and keeps the layers of other types. If not, `effect` and
    `attention_ratio` say by how much it is off and `reason` why. `changed` and `kept` are the layer types that get
    another embedding and those that keep theirs. `known` says how the runtime's answer for this model is known; if it
    is not, it is that of its general rules, and `faithful` proves nothing. `remote` is why the runtime alone refuses a
    model whose own code was emulated.
    """

    runtime: str
    version: str
    text: str
    config: Config
    flags: str
    faithful: bool
    effect: Effect | None
    attention_ratio: float
    reason: str
    fragment: Config = dataclasses.field(default_factory=dict)
    changed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    known: Known = NOT_KNOWN
    remote: str = ""


@dataclass(frozen=True)
class Draft:
    """One way to write an embedding, before it is checked; the fields are those of `Export`."""

    text: str
    config: Config
    flags: str = ""
    fragment: Config = dataclasses.field(default_factory=dict)


Drafts: TypeAlias = Callable[[RopeSpec, ModelConfig, str | None], Iterator[Draft]]


def export(
    spec: RopeSpec,
    *,
    to: str,
    config: Source | None = None,
    layer_type: str | None = None,
    served: int | None = None,
) -> Export:
    """Return this embedding as one of `TARGETS` takes it.

    `config` is the model's own config.json, whose other keys stay; without it the model is a Llama of these sizes.
    `layer_type` is the layer type that the embedding is for, `served` the longest length that matters. Of several ways
    to write it the first faithful one is taken that the model's class accepts, else the first faithful one, else the
    closest. Raises `ValueError` for an unknown target, and for a config that cannot be read.
    """
    to = require_target(to)
    runtime, version, drafts = TARGETS[to]
    model = config_to_change(config, spec)
    found: list[Export] = []
    layer = layer_type or model.main_layer
    for draft in drafts(spec, model, layer_type):
        written = ModelConfig.read(draft.config, wrapper=model.wrapper)
        result = check_draft(spec, draft, written, runtime, version, layer_type, served)
        if "" not in model.specs:
            result = check_other_layers(result, model, written, layer)
        if result.faithful and not is_newly_refused(model, written, layer_type):
            return result
        found.append(result)
    assert found, "every target has a draft"
    return min(found, key=lambda one: (not one.faithful, 0.0 if one.faithful else measure_distance(one)))


def is_newly_refused(before: ModelConfig, after: ModelConfig, layer: str | None) -> bool:
    """Return whether the model's class in transformers, which servers load too, refuses a config only after a change.

    Phi-3's class takes no other type than longrope.
    """
    one, other = (emulate_or_none(model, runtime="transformers", layer_type=layer) for model in (before, after))
    return one is not None and one.supported and (other is None or not other.supported)


def find_target(name: str) -> str:
    """Return the target that this name means in any spelling, such as vLLM; an unknown name unchanged."""
    return match_name(name, TARGETS)


def require_target(name: str) -> str:
    """Return the target that this name means in any spelling. Raises `ValueError` that lists the targets."""
    found = find_target(name)
    if found not in TARGETS:
        raise ValueError(TEXTS("export.runtime", runtimes=join_items([*TARGETS]), got=short_repr(name)))
    return found


def config_to_change(config: Source | None, spec: RopeSpec) -> ModelConfig:
    """Return a config without the catalog's remarks; where there is none, a Llama's of these sizes."""
    return ModelConfig.read(llama_config(spec)) if config is None else without_about(config)


def without_about(config: Source) -> ModelConfig:
    """Return a config without the catalog's remarks."""
    model = ModelConfig.read(config)
    if "_about" not in model.mapping:
        return model
    mapping = {key: value for key, value in model.mapping.items() if key != "_about"}
    return ModelConfig.read(mapping, known=model.known, numbers_only=model.numbers_only, wrapper=model.wrapper)


def llama_config(spec: RopeSpec) -> Config:
    """Return the config of a model of these sizes whose architecture every runtime knows."""
    kind = "llama" if spec.rotary_dim == spec.head_dim else "glm4"
    heads = {"hidden_size": 32 * spec.head_dim, "num_attention_heads": 32, "head_dim": spec.head_dim}
    return {"model_type": kind, **heads, "max_position_embeddings": spec.target}


@functools.lru_cache(256)
def numbers_config(spec: RopeSpec) -> ModelConfig:
    """Return a config with the numbers of an embedding that has none: that of a Llama of usual sizes."""
    return ModelConfig.read({**write_old_keys(llama_config(spec), spec).whole, **LLAMA}, numbers_only=True)


def check_draft(
    spec: RopeSpec,
    draft: Draft,
    written: ModelConfig,
    runtime: str,
    version: str,
    layer_type: str | None,
    served: int | None = None,
) -> Export:
    """Return the draft as its runtime computes it, compared with the spec at every length that makes a difference.

    Lengths above `served` make none.
    """
    effect, attention, reason, known, remote = None, 1.0, "", NOT_KNOWN, ""
    asked: dict[str, Any] = {"runtime": runtime, "version": version, "layer_type": layer_type}
    lengths = spec.scaling.lengths_to_compare(spec)
    if served is not None:
        lengths = tuple(dict.fromkeys(length and min(length, served) for length in lengths))
    for length in lengths:
        try:
            result = emulate(written, length=length, flags=draft.flags or None, **asked)
        except ValueError as error:
            reason = describe_error(error)
            break
        known, remote = result.known, result.remote
        different = describe_difference(spec, result, length)
        if different and result.supported and spec.is_scaled and not written.architecture.rope.reads_scaling:
            different = TEXTS("export.fixed_base", kind=written.model_type, method=spec.scaling.name)
        reason = reason or different
        if result.inv_freq is None or result.attention_factor is None:
            break
        found = find_max_ratio(spec.inv_freq(length), result.inv_freq)
        if found is not None and found.ratio > 1.0 + TOLERANCE and (effect is None or found.ratio > effect.ratio):
            effect = found
        ratio = divide(result.attention_factor, spec.attention_factor(length))
        attention = ratio if log_distance(ratio) > log_distance(attention) else attention
    reason = reason or explain_refused_length(written, runtime, spec.target)
    made = (runtime, version.split(" ")[0], draft.text, draft.config, draft.flags)
    return Export(*made, not reason, effect, attention, reason, draft.fragment, known=known, remote=remote)


def check_other_layers(result: Export, model: ModelConfig, written: ModelConfig, layer: str) -> Export:
    """Return the export with whether the layers of other types keep their embeddings."""
    strayed = find_changed_layers(model, written, layer, result.runtime, result.version, result.flags)
    kept = [name for name in model.specs if name != layer and name not in strayed]
    result = dataclasses.replace(result, changed=(layer, *strayed), kept=tuple(kept))
    if not strayed or not result.faithful:
        return result
    reason = TEXTS("export.other_layers", layers=join_list(strayed, more="end"))
    return dataclasses.replace(result, faithful=False, reason=reason)


def find_changed_layers(
    model: ModelConfig, written: ModelConfig, layer: str, runtime: str, version: str, flags: str = ""
) -> list[str]:
    """Return the layer types other than `layer` for which a runtime computes something else after the change."""
    strayed: list[str] = []
    for name in model.specs:
        if name == layer:
            continue
        after = emulate_or_none(written, runtime=runtime, version=version, layer_type=name, flags=flags or None)
        if after is not None and not describe_difference(model.specs[name], after, None):
            continue
        if not is_same(emulate_or_none(model, runtime=runtime, version=version, layer_type=name), after):
            strayed.append(name)
    return strayed


def emulate_or_none(config: ModelConfig, **asked: Any) -> Emulation | None:
    """Return what a runtime computes, None where it cannot be asked."""
    try:
        return emulate(config, **asked)
    except ValueError:
        return None


def is_same(before: Emulation | None, after: Emulation | None) -> bool:
    """Return whether both compute the same, or both nothing."""
    if before is None or after is None or before.inv_freq is None or after.inv_freq is None:
        return not any(one is not None and one.supported for one in (before, after))
    same = before.inv_freq.shape == after.inv_freq.shape and np.allclose(before.inv_freq, after.inv_freq, TOLERANCE, 0)
    return bool(same) and before.attention_factor == after.attention_factor


def describe_difference(spec: RopeSpec, result: Emulation, length: int | None) -> str:
    """Return why a runtime does not compute this embedding; empty where it does."""
    if result.inv_freq is None or result.attention_factor is None:
        return result.reason
    intended, because = spec.inv_freq(length), join_rules(result)
    method = spec.scaling.name
    because = because or (TEXTS("export.no_key", method=method) if spec.is_scaled else TEXTS("export.no_key_for_this"))
    if len(intended) != len(result.inv_freq):
        return TEXTS("export.pairs", rotate=len(result.inv_freq), intended=len(intended), because=because)
    if not np.allclose(intended, result.inv_freq, rtol=TOLERANCE, atol=0.0):
        key = "export.frequencies" if length is None else "export.frequencies_at"
        return TEXTS(key, length=length, because=because)
    if not math.isclose(result.attention_factor, spec.attention_factor(length), rel_tol=TOLERANCE):
        return TEXTS("export.attention", factor=result.attention_factor, because=because)
    return ""


def join_rules(result: Emulation) -> str:
    """Return the rules of a runtime as parts of one sentence: small letters where no name begins them."""
    return join_clauses([continue_sentence(rule.text) for rule in result.rules])


def measure_distance(result: Export) -> float:
    """Return how far a result is off, for choosing the closest."""
    if result.effect is None and math.isclose(result.attention_ratio, 1.0, rel_tol=TOLERANCE):
        return math.inf
    return math.log(result.effect.ratio if result.effect else 1.0) + log_distance(result.attention_ratio)


def as_json(changed: Config) -> str:
    """Return a fragment of config.json as text."""
    return json.dumps(changed, indent=2)


def format_option(name: str, changed: Config, *more: str) -> str:
    """Return a command-line option with JSON, quoted for a shell."""
    return " ".join((name, shlex.quote(json.dumps(changed)), *more))


def file_drafts(write: Callable[..., Change], **options: Any) -> Drafts:
    """Return the drafts for a runtime that reads config.json as this function writes it."""

    def drafts(spec: RopeSpec, model: ModelConfig, layer_type: str | None) -> Iterator[Draft]:
        for one in list_config_forms(spec):
            change = write(model, one, layer_type, **options)
            yield Draft(as_json(change.fragment), change.whole, fragment=change.fragment)

    return drafts


def vllm(spec: RopeSpec, model: ModelConfig, layer_type: str | None) -> Iterator[Draft]:
    """--hf-overrides and --max-model-len. Into a wrapper's part the override is merged, dict by dict."""
    for one in list_config_forms(spec):
        change = with_own_lengths(write_new_keys(model, one, layer_type), model, "vllm", spec.target)
        text = format_option("--hf-overrides", change.override, "--max-model-len", str(spec.target))
        yield Draft(text, change.merged if change.part.loaded else change.whole)


def sglang(spec: RopeSpec, model: ModelConfig, layer_type: str | None) -> Iterator[Draft]:
    """--json-model-override-args and --context-length.

    The override goes one level deep: there it replaces a rope dict whole, and at the top it is merged into one. Deeper
    keys have to be written into config.json.
    """
    for one in list_config_forms(spec):
        change = with_own_lengths(write_new_keys(model, one, layer_type), model, "sglang", spec.target)
        yield Draft(sglang_text(change, spec), change.whole if change.part.loaded else change.merged)
        if layer_type is not None:
            # Its own OLMo 3 takes flat keys only.
            change = with_own_lengths(write_old_keys(model, one, layer_type), model, "sglang", spec.target)
            yield Draft(sglang_text(change, spec), change.whole)


def with_own_lengths(change: Change, model: ModelConfig, runtime: str, length: int) -> Change:
    """Return the change with the length keys whose default only this runtime's own class has, and too small."""
    own = own_lengths(model.fields, runtime)
    lower = {key: length for key in own if own[key] < length and model.part.config.get(key) is None}
    return dataclasses.replace(change, keys={**lower, **change.keys})


def sglang_text(change: Change, spec: RopeSpec) -> str:
    """Return the options, or what to write into the file where they do not reach."""
    length = f"--context-length {spec.target}"
    if len(change.part.loaded) <= 1:
        return format_option("--json-model-override-args", change.override, length)
    comment = f"# the override cannot change nested keys: write this into config.json, then: {length}"
    return f"{comment}\n{as_json(change.fragment)}"


def llamacpp(spec: RopeSpec, model: ModelConfig, layer_type: str | None) -> Iterator[Draft]:
    """Flags on the model as it is, then a config to convert, with what conversion loses as flags."""
    flags = write_flags(spec)
    if flags is not None:
        yield Draft(f"{flags} -c {spec.target}", dict(model.mapping), flags)
    for one in list_config_forms(spec):
        change, lost = write_new_keys(model, one, layer_type), write_lost_flags(one)
        text = f"# convert with this in config.json, then: {lost} -c {spec.target}\n{as_json(change.fragment)}"
        yield Draft(text, change.whole, lost, change.fragment)


def mlx(spec: RopeSpec, model: ModelConfig, layer_type: str | None) -> Iterator[Draft]:
    """rope_theta and rope_scaling in config.json, with both names of the type; rope_parameters where they are read."""
    new = model.architecture.runtime("mlx-lm").get("new_keys")
    drafts = file_drafts(write_new_keys) if new else file_drafts(write_old_keys, both_types=True)
    return drafts(spec, model, layer_type)


TARGETS: dict[str, tuple[str, str, Drafts]] = {
    "transformers": ("transformers", find_version("transformers"), file_drafts(write_new_keys)),
    "transformers-4": ("transformers", find_version("transformers", 1), file_drafts(write_old_keys)),
    "vllm": ("vllm", find_version("vllm"), vllm),
    "sglang": ("sglang", find_version("sglang"), sglang),
    "llama.cpp": ("llama.cpp", find_version("llama.cpp"), llamacpp),
    "mlx-lm": ("mlx-lm", find_version("mlx-lm"), mlx),
}
"""{target: (runtime, version, the ways to write it)}."""
