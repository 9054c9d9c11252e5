"""The config.json to write: in which keys, which runtimes read it as intended, and what the check finds in it.

The file is written in the keys from before transformers 5 wherever they can say it: releases 4 and 5 read them alike,
and so do the servers. Only otherwise is it `rope_parameters`, which no release before 5 reads.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice.lint import Finding, check
from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.export import (
    TARGETS,
    config_to_change,
    describe_difference,
    export,
    find_changed_layers,
    require_target,
    with_own_lengths,
)
from rope_viz.embedding.scaling import list_config_forms
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import write_new_keys, write_old_keys
from rope_viz.models.formats import without_source
from rope_viz.models.length_keys import LENGTH_KEYS, find_lower_lengths
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import RUNTIMES, emulate_case, read_case
from rope_viz.runtimes.longest_length import explain_refused_length
from rope_viz.runtimes.releases import format_name
from rope_viz.texts import Sentence, join
from rope_viz.texts.sentences import describe_error, remove_period
from rope_viz.texts.texts import join_clauses, join_list

IN_VAIN = ("scaled-window", "scaled-sliding")
"""Rules about scaling that extends nothing: their findings count, whatever their severity."""

TOLERANCE = 1e-6


def find_new_findings(before: ModelConfig, after: ModelConfig, *, without: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return errors, warnings and scaling in vain that the check finds in a changed config and not in the one before.

    Differences between runtimes are left out: every requested runtime is emulated on its own. The changed config is of
    the same model, even if its new numbers resemble another one of the list.
    """
    slow = ("runtimes-differ", *without)
    after = dataclasses.replace(after, changed_from=before.identity)
    known = {finding.rule for finding in check(before, without=slow)}
    return tuple(
        finding
        for finding in check(after, without=slow)
        if finding.rule not in known and (finding.severity in ("error", "warning") or is_grave(finding))
    )


def is_grave(finding: Finding) -> bool:
    """Return whether a new finding forbids a file. A warning is told, but a worse method would not mend it.

    What the model was trained with is compared by its numbers, when the ways are ranked.
    """
    return finding.severity == "error" or finding.rule in IN_VAIN


def find_strayed_layers(before: ModelConfig, after: ModelConfig, layer: str) -> tuple[str, ...]:
    """Return the layer types other than `layer` whose embedding has changed, or which are no longer there."""
    found = after.specs
    return tuple(
        name
        for name, spec in before.specs.items()
        if name != layer and (name not in found or not has_same_angles(spec, found[name]))
    )


def has_same_angles(one: RopeSpec, other: RopeSpec) -> bool:
    """Return whether two embeddings have the same frequencies and factor on cos and sin, below and beyond training."""
    return all(
        one.inv_freq(length).shape == other.inv_freq(length).shape
        and np.allclose(one.inv_freq(length), other.inv_freq(length), rtol=TOLERANCE, atol=0.0)
        and abs(one.attention_factor(length) - other.attention_factor(length)) < TOLERANCE
        for length in (1, one.target)
    )


@dataclass(frozen=True)
class ConfigFile:
    """The whole config.json to write.

    `fragment` are its keys that are new or changed (null: the key has to go; {}: nothing changes). `generation` says
    which keys it is written in. `runtimes` are those that compute the intended frequencies from it, `others` those that
    do not, each with the reason. `unverified` are those that do by their general rules, while it is
    not known how they read this model. `findings` are those of the check, by the rules that may find an error.
    `layers` are the layer types that were computed, () where all share one embedding, `parts` the other parts of the
    model that were written and read back.
    `is_safe`: the check finds nothing grave in it that it does not find in the config before, and other layers are
    unchanged. `new` is everything that it finds in it and not in the config before.
    """

    config: Mapping[str, Any]
    fragment: Mapping[str, Any]
    generation: str
    runtimes: tuple[str, ...]
    others: tuple[str, ...]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...] = ()
    is_safe: bool = True
    layers: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    new: tuple[Finding, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether the check finds no error in it, so that it may be offered."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def proof(self) -> tuple[str, ...]:
        """Which runtimes read it as it is meant, which do not, and for which that is not known, in sentences."""
        layers, parts = join_list(self.layers), join_list(self.parts)
        computed = [TEXTS("file.layers", layers=layers)] if layers else []
        computed += [TEXTS("file.parts", parts=parts)] if parts else []
        able: tuple[str, ...] = ()
        if self.runtimes:
            names = join_list([spell_release(one) for one in self.runtimes])
            where = TEXTS("file.where", parts=join_clauses(computed)) if computed else ""
            able = (TEXTS("file.able", count=len(self.runtimes), runtimes=names, where=where),)
        unable = tuple(TEXTS("file.unable", runtime=spell_runtime(other)) for other in self.others)
        if not self.unverified:
            return able + unable
        names = join_list([spell_release(one) for one in self.unverified])
        general = TEXTS("file.general_too" if able else "file.general", count=len(self.unverified), runtimes=names)
        return (*able, *unable, join(general, TEXTS("compare_running")))


@dataclass(frozen=True)
class RuntimeSupport:
    """Which runtimes compute the embedding from a file, which do not, and which do by general rules only."""

    able: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How good a file is: the newest transformers must read it, then as many runtimes as can."""
        return any(name.startswith("transformers 5") for name in self.able), len(self.able), len(self.unverified)

    def count_readers(self, targets: Sequence[str]) -> int:
        """Return how many of these targets of `export` compute the embedding from the file."""
        return sum(is_reader(target, (*self.able, *self.unverified)) for target in targets)

    def reads_all(self, targets: Sequence[str]) -> bool:
        """Return whether each of these targets computes the embedding from the file."""
        return self.count_readers(targets) == len(targets)


def is_reader(target: str, names: Sequence[str]) -> bool:
    """Return whether a target of `export` is one of the runtimes with these names and versions."""
    runtime, version, _ = TARGETS[target]
    return f"{runtime} {version.split(' ')[0]}" in names


@dataclass(frozen=True)
class Candidate:
    """One way to write the file: in old keys or not, the file, its changes, who reads it, and whether it is safe."""

    old: bool
    file: ModelConfig
    fragment: Mapping[str, Any]
    support: RuntimeSupport
    is_safe: bool
    new: tuple[Finding, ...]


def write_config_file(
    spec: RopeSpec, config: Source | None, layer: str | None = None, runtimes: Sequence[str] = ()
) -> ConfigFile:
    """Return the config.json to write, the same for every runtime that reads one.

    `runtimes` are targets of `export` that should read it, if there is such a file.
    """
    model = drop_source(config_to_change(config, spec))
    unchanged = model.specs.get(layer if layer in model.specs else model.main_layer) == spec
    if unchanged and not find_lower_lengths(model.part.config, spec.target):
        return check_config_file(model, {}, TEXTS("file.unchanged"), find_support(model, spec, layer))
    wanted = [require_target(name) for name in runtimes]
    written: list[Candidate] = []
    for old in (True, False):
        try:
            change = (write_old_keys if old else write_new_keys)(model, spec, layer)
        except ValueError:
            continue
        for runtime in LENGTH_KEYS:
            change = with_own_lengths(change, model, runtime, spec.target)
        written.append(judge_file(model, spec, layer, old, change.whole, change.fragment))
        if written[-1].is_safe and not written[-1].new and not written[-1].support.unable:
            break  # every runtime reads it, and the old keys are preferred
    # A runtime may read only what is written for it alone, such as both names of the type.
    for name in wanted if not any(one.is_safe and one.support.reads_all(wanted) for one in written) else ():
        made = export(spec, to=name, config=model, layer_type=layer)
        if made.fragment:
            old = "rope_parameters" not in made.fragment
            written.append(judge_file(model, spec, layer, old, made.config, made.fragment))
    if not written:
        made = export(spec, to="transformers", config=model, layer_type=layer)
        written.append(judge_file(model, spec, layer, False, made.config, made.fragment))
    best = max(
        written,
        key=lambda one: (one.is_safe, one.support.count_readers(wanted), not one.new, one.support.rank, one.old),
    )
    # A value that is equal stays as it is written: 4 does not become 4.0.
    mapping = best.file.mapping
    same = {key: value for key, value in model.mapping.items() if key in mapping and mapping[key] == value}
    whole = {key: same.get(key, value) for key, value in mapping.items()}
    others = extend_other_parts(model, spec)
    whole, fragment = {**whole, **others.whole}, {**best.fragment, **others.fragment}
    fragment = {key: value for key, value in fragment.items() if model.mapping.get(key, best) != value}
    generation = " ".join((describe_generation(best.old, best.support, model), *others.notes))
    file = check_config_file(ModelConfig.read(whole), fragment, generation, best.support, best.is_safe)
    return dataclasses.replace(file, parts=tuple(others.whole), new=best.new)


def drop_source(model: ModelConfig) -> ModelConfig:
    """Return a config without what is known of the GGUF file that it was read from: another file is written."""
    own = without_source(model.mapping)
    return model if len(own) == len(model.mapping) else ModelConfig.read(own, known=model.known)


def judge_file(
    model: ModelConfig,
    spec: RopeSpec,
    layer: str | None,
    old: bool,
    whole: Mapping[str, Any],
    fragment: Mapping[str, Any],
) -> Candidate:
    """Return a file with the runtimes that read it as intended and whether the check finds nothing new in it."""
    file, main = ModelConfig.read(whole), layer if layer in model.specs else model.main_layer
    new = find_new_findings(model, file)
    safe = not file.problems and not find_strayed_layers(model, file, main) and not any(map(is_grave, new))
    return Candidate(old, file, fragment, find_support(file, spec, layer, before=model), safe, new)


def check_config_file(
    model: ModelConfig, fragment: Mapping[str, Any], generation: str, found: RuntimeSupport, is_safe: bool = True
) -> ConfigFile:
    """Return a file with what the check finds in it, without slow rules that find no errors."""
    slow = ("runtimes-differ", "trained-length", "not-as-shipped", "base-too-small")
    findings = tuple(check(model, without=slow))
    layers = () if model.problems else tuple(name for name in model.specs if name)
    return ConfigFile(
        model.mapping,
        fragment,
        generation,
        found.able,
        found.unable,
        findings,
        found.unverified,
        is_safe,
        layers,
    )


def keep_config_file(model: ModelConfig) -> ConfigFile:
    """Return the config as it is, for a plan that writes nothing."""
    return check_config_file(model, {}, TEXTS("file.nothing"), RuntimeSupport())


def describe_generation(old: bool, found: RuntimeSupport, model: ModelConfig) -> str:
    """Return which keys a file is written in, who reads those, and what transformers_version has to do with it."""
    four = any(name.startswith("transformers 4") for name in found.able)
    if not found.able and found.unverified:
        text = TEXTS("written.old_unknown" if old else "written.new_unknown")
    elif old:
        text = TEXTS("written.old" if four else "written.old_five")
    else:
        text = TEXTS("written.new")
    version = model.mapping.get("transformers_version") or model.part.config.get("transformers_version")
    if isinstance(version, str):
        text = join(text, TEXTS("written.version", version=version[:20]))
    return text


def spell_release(text: str) -> str:
    """Return a text that begins with a runtime's id with its name as its makers write it."""
    runtime, space, rest = text.partition(" ")
    return f"{format_name(runtime)}{space}{rest}"


def spell_runtime(text: str) -> str:
    """Return why a runtime cannot do something, with its name as its makers write it."""
    if not isinstance(text, Sentence) or "runtime" not in text.values:
        return text
    return TEXTS(text.entries[0], **{**text.values, "runtime": spell_release(text.values["runtime"])})


def find_support(
    model: ModelConfig, spec: RopeSpec, layer: str | None, *, before: ModelConfig | None = None
) -> RuntimeSupport:
    """Return which runtimes compute the embedding from the file as it is, and accept its target length.

    With `before`, the config before the change, its layers of other types must keep their embeddings.
    """
    able: list[str] = []
    unable: list[str] = []
    unverified: list[str] = []
    length = spec.target if spec.scaling.depends_on_length else None
    try:
        case = read_case(model, length=length, layer_type=layer)
    except ValueError as error:
        return RuntimeSupport(unable=(TEXTS("support_any", problem=describe_error(error)),))
    for runtime, version in RUNTIMES:
        if runtime in ("paper", "tensorrt-llm"):
            continue
        name, key = f"{runtime} {version.split(' ')[0]}", ""
        values: dict[str, Any] = {"runtime": name}
        try:
            found = emulate_case(runtime, version, case)
        except ValueError as error:
            unable.append(TEXTS("unable.not_emulated", problem=describe_error(error), **values))
            continue
        unknown = found.known.how == "not known"
        if found.remote:
            key, values["reason"] = "remote", remove_period(found.remote)
        elif not found.supported:
            key, values["reason"] = "refuses", remove_period(found.reason)
        elif describe_difference(spec, found, length):
            applied = join_clauses([remove_period(rule.text) for rule in found.rules])
            key, values["reason"] = "rules", applied or TEXTS("unable.other_keys")
        elif refused := explain_refused_length(model, runtime, spec.target):
            key, values["reason"] = "length", remove_period(refused)
        elif before is not None and len(before.specs) > 1:
            strayed = find_changed_layers(before, model, layer or before.main_layer, runtime, version)
            key, values["layers"] = "layers" if strayed else "", join_list(strayed)
        if key:
            unable.append(TEXTS(f"unable.{key}", general=TEXTS("unable.general") if unknown else "", **values))
        else:
            (unverified if unknown else able).append(name)
    return RuntimeSupport(tuple(able), tuple(unable), tuple(unverified))


PARTS = re.compile("encoder|decoder|expert|dit_config")
"""Names of parts that read the same positions as the language model, such as the action expert of pi0."""


@dataclass(frozen=True)
class OtherParts:
    """`whole` and `fragment` of each other part that is extended too, and `notes` on those that are not."""

    whole: Mapping[str, Mapping[str, Any]]
    fragment: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]


def extend_other_parts(model: ModelConfig, spec: RopeSpec) -> OtherParts:
    """Return the other parts of a wrapper with the same embedding, where they had the same before.

    Source: transformers 5.23.0; the action expert of pi0 continues the positions of its language model, and the
    cross-attention layers of Mllama do not rotate.
    """
    whole: dict[str, Mapping[str, Any]] = {}
    fragment: dict[str, Mapping[str, Any]] = {}
    notes: list[str] = []
    name = model.path[0] if model.path else None
    crossing = model.part.config.get("cross_attention_layers")
    if isinstance(crossing, list) and crossing:
        notes.append(TEXTS("parts.crossing", layers=len(crossing)))
    for key, given in model.mapping.items() if name is not None else ():
        if key == name or not PARTS.search(str(key)) or not isinstance(given, Mapping):
            continue
        part = ModelConfig.read({"model_type": model.model_type, **given})
        if part.problems:
            continue
        layer = part.main_layer
        before, ours = part.specs[layer], model.specs[model.main_layer]
        if before.context != ours.context or not has_same_angles(before, ours):
            notes.append(TEXTS("parts.own_positions", part=key, limit=part.limit))
            continue
        write = write_new_keys if "rope_parameters" in given else write_old_keys
        change = write(part, next(list_config_forms(spec)), layer or None)
        written = ModelConfig.read(change.whole)
        if written.problems or not has_same_angles(spec, written.specs[layer]):
            notes.append(TEXTS("parts.own_class", part=key))
            continue
        whole[key] = {inner: value for inner, value in change.whole.items() if inner != "model_type" or inner in given}
        fragment[key] = change.fragment
        notes.append(TEXTS("parts.extended", part=key))
    return OtherParts(whole, fragment, tuple(notes))
