"""A config put to every runtime, and the answers side by side in words: the verdict, why, and what repairs it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice import extend
from rope_viz.advice.export import TARGETS, Export, export
from rope_viz.advice.extend import Option
from rope_viz.embedding.scaling import DynamicNtk, LongRope
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.runtimes import Emulation
from rope_viz.runtimes.compare import Comparison, compare, histories
from rope_viz.runtimes.releases import format_name, format_version

FORMS = ("transformers-4", "transformers")
# Runtimes that an export can be made for, by name and version, but for the reference.
EXPORTED = {(name, version): target for target, (name, version, _) in TARGETS.items() if target != "transformers"}


@dataclass(frozen=True)
class Asked:
    """A config.json, the layer type in question, the embedding that is meant, and which config it is, in words.

    `problem` is why no config can say what is meant; the config is then the closest one.
    """

    config: Mapping[str, Any]
    layer: str
    spec: RopeSpec
    whose: str
    problem: str = ""

    @property
    def clean(self) -> dict[str, Any]:
        """The config without the list's own remarks."""
        return {key: value for key, value in self.config.items() if key != "_about"}


@dataclass(frozen=True)
class Row:
    """One runtime's answer. `repair` is what to give it so that it computes what is meant, empty if nothing."""

    name: str
    comparison: Comparison
    verdict: str
    why: str
    repair: str

    @property
    def differs(self) -> bool:
        """Whether it computes something, and something else."""
        return self.comparison.differs

    @property
    def runtime(self) -> bool:
        """Whether it is a runtime, and not a formula on paper."""
        return self.comparison.emulation.runtime != "paper"


@dataclass(frozen=True)
class Board:
    """All answers; the first row is the reference. `problem` says why there are none."""

    rows: tuple[Row, ...]
    problem: str = ""

    @property
    def differing(self) -> list[Row]:
        """The rows that differ."""
        return [row for row in self.rows if row.differs]


def ask(
    spec: RopeSpec,
    *,
    start: RopeSpec | None = None,
    config: Mapping[str, Any] | None = None,
    layer: str = "",
    name: str,
) -> Asked:
    """The config to ask about: the model's own where `spec` is what it `start`s from, else that with the changes in it.

    A reader's config stays his own whatever the knobs say: what none of its keys can say is named in `problem`, and the
    config is then the closest. Only where there is no config at all is it one of a Llama.
    """
    if config is not None and spec == start:
        return Asked(config, layer, spec, f"The config of {name}, as it stands")
    whose = f"The config of {name} with your changes"
    if config is None:
        whose, layer = "The config of a Llama with these numbers", ""
    asked = [
        Asked(made.config, layer, spec, whose, problem(made, spec, layer))
        for made in (export(spec, to=form, config=config, layer_type=layer or None) for form in forms(config))
    ]
    return next((one for one in asked if not one.problem), asked[0])


def problem(made: Export, spec: RopeSpec, layer: str) -> str:
    """Why an exported config does not say the embedding; empty where it does."""
    missing = unsaid(made.config, spec, layer)
    return missing and (made.reason or f"no key of this architecture says {missing}")


def forms(config: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The forms to say it in, that of the config itself first: older releases do not know rope_parameters."""
    new = config is not None and "rope_parameters" in ModelConfig.read(config).part.config
    return FORMS[::-1] if new else FORMS


def unsaid(config: Mapping[str, Any], spec: RopeSpec, layer: str) -> str:
    """What of an embedding transformers 5.23.0 does not read out of the config; empty where it reads all of it."""
    try:
        found = from_config(config)[layer]
    except (ValueError, KeyError):
        return "the layer"
    if found.pairs != spec.pairs or found.head_dim != spec.head_dim:
        return "the size of the head"
    if found.pairing != spec.pairing:
        return "the pairing"
    same = all(
        np.allclose(found.inv_freq(length), spec.inv_freq(length), rtol=1e-6, atol=0.0)
        and math.isclose(found.attention_factor(length), spec.attention_factor(length), rel_tol=1e-6)
        for length in (None, spec.target)
    )
    return "" if same else "the frequencies"


def says(config: Mapping[str, Any], spec: RopeSpec, layer: str) -> bool:
    """Whether transformers 5.23.0 reads this embedding out of the config."""
    return not unsaid(config, spec, layer)


def board(asked: Asked, length: int | None = None, releases: Mapping[str, str] | None = None) -> Board:
    """Every runtime's answer, compared with transformers 5.23.0, or with the first that answers where it refuses.

    `releases` names older ones to put in the place of today's.
    """
    layer = asked.layer or None
    try:
        found = compare(asked.config, length=length, layer_type=layer, releases=releases)
        if not found[0].emulation.supported:
            able = next((one.emulation for one in found if one.emulation.supported), None)
            if able is not None:
                reference = (able.runtime, able.version)
                found = compare(asked.config, length=length, layer_type=layer, reference=reference, releases=releases)
                found.sort(key=lambda one: (one.emulation.runtime, one.emulation.version) != reference)
    except ValueError as error:
        return Board((), str(error))
    return Board(tuple(row(one, found[0].emulation, asked) for one in found))


def since(asked: Asked, length: int | None = None) -> list[str]:
    """Of which runtimes the releases make different things of this config, and since when."""
    try:
        found = histories(asked.config, length=length, layer_type=asked.layer or None)
    except ValueError:
        return []
    return [history.sentence(format_name(history.runtime)) for history in found]


def row(one: Comparison, base: Emulation, asked: Asked) -> Row:
    """One answer in words."""
    return Row(
        one.emulation.name,
        one,
        verdict(one),
        why(one, base),
        repair(one, asked),
    )


def verdict(one: Comparison) -> str:
    """Agrees, refuses, or by how much it differs; and that it is known by rule only, or not."""
    return one.verdict("×{:.3g}".format)


def why(one: Comparison, base: Emulation) -> str:
    """The reason of a refusal, the rules that this runtime has and the reference has not, or why it is not known."""
    if one.how == "not known":
        return f"{one.emulation.known.source}."
    if one.emulation.remote:
        return f"{one.emulation.remote}. The others are put beside what that code computes."
    if not one.emulation.supported:
        return one.emulation.reason
    if one.agrees:
        return ""
    known = {rule.key for rule in base.rules}
    own = [rule.text for rule in one.emulation.rules if rule.key not in known]
    missing = {rule.key for rule in one.emulation.rules}
    theirs = [rule.text for rule in base.rules if rule.key not in missing]
    return " ".join(own) or (f"It leaves out what the reference does: {' '.join(theirs)}" if theirs else "")


def repair(one: Comparison, asked: Asked) -> str:
    """What makes a differing runtime compute what is meant: its flags, or where they are; why nothing does."""
    emulation = one.emulation
    target = EXPORTED.get((emulation.runtime, format_version(emulation.version)))
    if not one.differs or target is None or one.effect is None:
        return ""
    try:
        made = exported(asked, target)
    except ValueError:
        return "nothing: a config of this architecture cannot say this"
    if not made.faithful:
        return "nothing: no key or flag of it says this"
    return made.flags or "the config that Extend writes"


def exported(asked: Asked, target: str) -> Export:
    """The embedding that is meant, for one target."""
    return export(asked.spec, to=target, config=asked.config, layer_type=asked.layer or None)


def by_length(spec: RopeSpec) -> bool:
    """Whether the frequencies depend on the length of the sequence."""
    return isinstance(spec.scaling, (DynamicNtk, LongRope))


@functools.cache
def models() -> tuple[tuple[str, Board], ...]:
    """Every model of the list, name and answers, those that differ most first."""
    found = []
    for model in catalog().values():
        specs = model_specs(model.id)
        layer = main_layer(model, specs)
        found.append((model.name, board(Asked(model.config, layer, specs[layer], model.name))))
    return tuple(sorted(found, key=lambda item: -worst(item[1].rows)))


def worst(rows: Sequence[Row]) -> float:
    """How far the runtimes of a board are apart, for sorting."""
    ratios = [1.0]
    for one in (row.comparison for row in rows if row.runtime):
        ratios += [one.effect.ratio] if one.effect else []
        ratios += [max(r, 1 / r) for r in (one.attention_ratio, one.softmax_ratio) if r]
    return max(ratios)


@functools.lru_cache(maxsize=64)
def options(spec: RopeSpec, target: int) -> tuple[Option, ...]:
    """What each method would do at the target length, kept: the mean cosine takes a second at a million tokens."""
    return extend.options(spec, target)


def extended(asked: Asked, method: str, target: int) -> Asked:
    """The same model with another method, reaching for the target."""
    return dataclasses.replace(asked, spec=extend.extend(asked.spec, method, target))
