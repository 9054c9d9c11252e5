"""A config given to every runtime, and the answers in words: the verdict, the reason, and what repairs it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice.plan import TEXTS, extend
from rope_viz.advice.plan.export import TARGETS, Export, export, without_about
from rope_viz.advice.plan.extend import Option
from rope_viz.embedding.spec import FloatArray, RopeSpec, is_equal_except
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.spec_url import Subject
from rope_viz.runtimes import Emulation
from rope_viz.runtimes.compare import Comparison, compare
from rope_viz.runtimes.history import histories
from rope_viz.runtimes.releases import format_name, format_version
from rope_viz.texts import cache_by_language, join
from rope_viz.texts.sentences import describe_error, end_sentence

FORMS = ("transformers-4", "transformers")
# Releases that a repair can be exported for, by name and version.
EXPORTED = {(name, version): target for target, (name, version, _) in TARGETS.items() if target != "transformers"}


@dataclass(frozen=True)
class RuntimeCase:
    """A config.json to ask the runtimes about, the layer type, the intended embedding, and a sentence on whose it is.

    `problem` is why no config can say what is intended; the config is then the closest one.
    """

    config: ModelConfig
    layer: str
    spec: RopeSpec
    whose: str
    problem: str = ""

    @property
    def clean(self) -> dict[str, Any]:
        """The config without the catalog's remarks."""
        return dict(without_about(self.config).mapping)


@dataclass(frozen=True)
class RuntimeAnswer:
    """One runtime's answer. `repair` is what to give it so that it computes what is intended, empty if nothing."""

    name: str
    comparison: Comparison
    verdict: str
    why: str
    repair: str

    @property
    def differs(self) -> bool:
        return self.comparison.differs

    @property
    def runtime(self) -> bool:
        return self.comparison.emulation.runtime != "paper"


@dataclass(frozen=True)
class RuntimeMatrix:
    """All answers; the first row is the reference. `problem` says why there are none."""

    rows: tuple[RuntimeAnswer, ...]
    problem: str = ""

    @property
    def differing(self) -> list[RuntimeAnswer]:
        return [row for row in self.rows if row.differs]


def config_for(subject: Subject) -> RuntimeCase:
    """Return the config to ask about: the model's own if the embedding is unchanged, else that with changes.

    What none of the model's own keys can express is named in `problem`. Without a config it is that of a Llama.
    """
    spec, layer, name = subject.spec, subject.layer, subject.name
    model = None
    if subject.own is not None:
        model = subject.own.model_config
    elif subject.config is not None:
        model = ModelConfig.read(subject.config)
    if model is not None and is_unchanged(spec, subject.start):
        return RuntimeCase(model, layer, spec, TEXTS("whose.unchanged", name=name))
    whose = TEXTS("whose.changed", name=name)
    if model is None:
        whose, layer = TEXTS("whose.llama"), ""
    # The form of the config itself comes first: older releases do not know rope_parameters.
    forms = FORMS[::-1] if model is not None and "rope_parameters" in model.part.config else FORMS
    asked = []
    for form in forms:
        made = export(spec, to=form, config=model, layer_type=layer or None)
        written = ModelConfig.read(made.config)
        missing = unexpressible_part(written, spec, layer)
        problem = missing and (made.reason or TEXTS(f"unexpressible.{missing}"))
        asked.append(RuntimeCase(written, layer, spec, whose, problem))
        if not problem:
            return asked[-1]
    return asked[0]


def is_unchanged(spec: RopeSpec, start: RopeSpec) -> bool:
    """Return whether an embedding is the model's own. A needed length alone changes no config: it is a question."""
    return is_equal_except(spec, start, "target")


def unexpressible_part(config: Source, spec: RopeSpec, layer: str) -> str:
    """Return the part of an embedding that transformers 5.23.0 does not read from the config; "" where it reads all."""
    try:
        found = ModelConfig.read(config).specs[layer]
    except (ValueError, KeyError):
        return "layer"
    if found.pairs != spec.pairs or found.head_dim != spec.head_dim:
        return "head"
    if found.pairing != spec.pairing:
        return "pairing"
    same = all(
        np.allclose(found.inv_freq(length), spec.inv_freq(length), rtol=1e-6, atol=0.0)
        and math.isclose(found.attention_factor(length), spec.attention_factor(length), rel_tol=1e-6)
        for length in (None, spec.target)
    )
    return "" if same else "frequencies"


def compare_runtimes(
    asked: RuntimeCase, length: int | None = None, releases: Mapping[str, str] | None = None
) -> RuntimeMatrix:
    """Return every runtime's answer, compared with transformers 5.24.0, or with the first that does not refuse.

    `releases` names older ones to ask in the place of today's.
    """
    question: dict[str, Any] = {"length": length, "layer_type": asked.layer or None, "releases": releases}
    try:
        found = compare(asked.config, **question)
        able = next((one.emulation for one in found if one.emulation.supported), None)
        if able is not None and able is not found[0].emulation:
            reference = (able.runtime, able.version)
            found = compare(asked.config, reference=reference, **question)
            found.sort(key=lambda one: (one.emulation.runtime, one.emulation.version) != reference)
    except ValueError as error:
        return RuntimeMatrix((), describe_error(error))
    base = found[0].emulation
    return RuntimeMatrix(
        tuple(
            RuntimeAnswer(
                one.emulation.name, one, one.verdict("×{:.3g}".format), explain(one, base), find_repair(one, asked)
            )
            for one in found
        )
    )


def release_history(asked: RuntimeCase, length: int | None = None) -> list[str]:
    """Return which runtimes' releases disagree about this config, and since which release, in sentences."""
    try:
        found = histories(asked.config, length=length, layer_type=asked.layer or None)
    except ValueError:
        return []
    return [history.sentence(format_name(history.runtime)) for history in found]


def explain(one: Comparison, base: Emulation) -> str:
    """Return why a runtime refuses, which rules it has and the reference has not, or why its answer is not known."""
    if one.how == "not known":
        return end_sentence(one.emulation.known.source)
    if one.emulation.remote:
        return join(end_sentence(one.emulation.remote), TEXTS("matrix.others"))
    if not one.emulation.supported:
        return one.emulation.reason
    if one.agrees:
        return ""
    ours, theirs = ({rule.key: rule.text for rule in rules} for rules in (one.emulation.rules, base.rules))
    own = join(*(text for key, text in ours.items() if key not in theirs))
    missing = join(*(text for key, text in theirs.items() if key not in ours))
    return own or (TEXTS("matrix.omits", rules=missing) if missing else "")


def find_repair(one: Comparison, asked: RuntimeCase) -> str:
    """Return what makes a differing runtime compute what is intended, or why nothing does."""
    target = EXPORTED.get((one.emulation.runtime, format_version(one.emulation.version)))
    if not one.differs or target is None or one.effect is None:
        return ""
    try:
        made = export_intended(asked, target)
    except ValueError:
        return TEXTS("matrix.nothing", why=TEXTS("matrix.cannot"))
    if not made.faithful:
        return TEXTS("matrix.nothing", why=TEXTS("matrix.no_key"))
    return made.flags or TEXTS("matrix.config")


def export_intended(asked: RuntimeCase, target: str) -> Export:
    """Return the intended embedding for one target."""
    return export(asked.spec, to=target, config=asked.config, layer_type=asked.layer or None)


@cache_by_language()
def compare_catalog() -> tuple[tuple[str, RuntimeMatrix], ...]:
    """Return every model of the catalog, name and answers, those that differ most first."""
    found = []
    for model in catalog().values():
        specs = model_specs(model.id)
        layer = main_layer(model, specs)
        found.append(
            (model.name, compare_runtimes(RuntimeCase(ModelConfig.read(model.config), layer, specs[layer], model.name)))
        )
    return tuple(sorted(found, key=lambda item: -find_largest_ratio(item[1].rows)))


def find_largest_ratio(rows: Sequence[RuntimeAnswer]) -> float:
    """Return how far the runtimes of a board are apart, for sorting."""
    ratios = [1.0]
    for one in (row.comparison for row in rows if row.runtime):
        ratios += [one.effect.ratio] if one.effect else []
        ratios += [max(r, 1 / r) for r in (one.attention_ratio, one.softmax_ratio) if r]
    return max(ratios)


def group_differing(board: RuntimeMatrix) -> list[tuple[list[RuntimeAnswer], FloatArray]]:
    """Group rows that differ from the reference by equal frequencies; return each group with its ratio per pair."""
    groups: list[tuple[list[RuntimeAnswer], FloatArray]] = []
    for row in board.differing:
        values = divide_frequencies(row, board.rows[0])
        if row.comparison.effect is None or values is None:
            continue
        for rows, shared in groups:
            if len(shared) == len(values) and np.allclose(shared, values, rtol=1e-6, equal_nan=True):
                rows.append(row)
                break
        else:
            groups.append(([row], values))
    return groups


def divide_frequencies(row: RuntimeAnswer, reference: RuntimeAnswer) -> FloatArray | None:
    """Return a row's frequencies over the reference's; NaN where either is zero, None if one is unknown."""
    values, base = row.comparison.emulation.inv_freq, reference.comparison.emulation.inv_freq
    if values is None or base is None:
        return None
    pairs = min(len(values), len(base))
    both = (values[:pairs] > 0) & (base[:pairs] > 0)
    out = np.full(pairs, np.nan)
    out[both] = values[:pairs][both] / base[:pairs][both]
    return out


@functools.lru_cache(maxsize=64)
def measure_methods(spec: RopeSpec, target: int) -> tuple[Option, ...]:
    """Return `extend.measure_methods`, cached: the mean cosine takes a second at a million tokens."""
    return extend.measure_methods(spec, target)
