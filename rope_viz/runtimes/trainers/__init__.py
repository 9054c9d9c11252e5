"""What each trainer computes from a config and its own options: frequencies, factor, where it is applied, and why.

Values were measured by executing the trainers' code (tests/goldens/training.json says how). The rules that reproduce
them are in one module per trainer, over the same engine as the servers' rules.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rope_viz.embedding.scaling import as_divisors
from rope_viz.embedding.spec import FloatArray, RopeSpec, short_repr
from rope_viz.models.model_config import Source, normalise_errors
from rope_viz.runtimes import read_case
from rope_viz.runtimes.releases import match_name
from rope_viz.runtimes.rule_engine import Case, Refused, Rule, apply, build_spec, compute_frequencies
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers import (
    automodel,
    axolotl,
    bridge,
    gpt_neox,
    levanter,
    litgpt,
    llama_factory,
    maxtext,
    megatron,
    ms_swift,
    nanotron,
    olmo_core,
    torchtitan,
    torchtune,
    unsloth,
)
from rope_viz.runtimes.trainers.arguments import Evidence, Trainer, short_version
from rope_viz.texts.texts import join_items

Place: TypeAlias = Literal["none", "cos_sin", "q_k", "softmax"]

TRAINERS: dict[str, Trainer] = {
    one.name: one
    for one in (
        megatron.CORE,
        megatron.LM,
        bridge.MEGATRON_BRIDGE,
        torchtitan.TORCHTITAN,
        automodel.AUTOMODEL,
        unsloth.UNSLOTH,
        llama_factory.LLAMA_FACTORY,
        axolotl.AXOLOTL,
        ms_swift.MS_SWIFT,
        ms_swift.MS_SWIFT_MEGATRON,
        bridge.MBRIDGE_TRAINER,
        bridge.VERL,
        maxtext.MAXTEXT,
        litgpt.LITGPT,
        torchtune.TORCHTUNE,
        olmo_core.OLMO_CORE,
        gpt_neox.GPT_NEOX,
        nanotron.NANOTRON,
        levanter.LEVANTER,
    )
}
"""Every trainer by its name on the command line."""


@dataclass(frozen=True, eq=False)
class Training:
    """What one trainer computes from one layer type of a config.

    `inv_freq` is in radians per position, float64, shape (pairs,); None where the trainer refuses, and then `reason`
    says why. `attention_factor` multiplies cos and sin, or q and k; `softmax_multiplier` the softmax scale.
    `factor_place` is where the factor that is not 1 is applied. `case` is what the trainer made of the
    config. `rules` are those that changed something, in order, `arguments` the options that were given or assumed.
    """

    trainer: Trainer
    version: str
    supported: bool
    inv_freq: FloatArray | None = None
    attention_factor: float | None = None
    softmax_multiplier: float | None = None
    factor_place: Place | None = None
    pairing: str = ""
    case: Case | None = None
    rules: tuple[Rule, ...] = ()
    reason: str = ""
    evidence: Evidence = "executed"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def spec(self) -> RopeSpec | None:
        """The same embedding with its factor, for exports."""
        if self.case is None or self.attention_factor is None:
            return None
        return write_factor(build_spec(self.case), self.case, self.attention_factor)

    @property
    def name(self) -> str:
        """Name and version as people write them: "torchtitan 0.3.0"."""
        return f"{self.trainer.label} {self.version}"


def find_trainer(name: str, version: str | None = None) -> tuple[Trainer, str]:
    """Return a trainer and its full release, the newest for None. Raise `ValueError` that lists what is known."""
    key = match_name(name, TRAINERS)
    if key not in TRAINERS:
        raise ValueError(TEXTS("options.trainer", trainers=join_items([*TRAINERS]), name=short_repr(name)))
    trainer = TRAINERS[key]
    if version is None:
        return trainer, trainer.releases[0]
    found = next((one for one in trainer.releases if version in (one, short_version(one))), None)
    if found is None:
        known = ", ".join(map(short_version, trainer.releases))
        raise ValueError(TEXTS("options.version", key=key, known=known, version=short_repr(version)))
    return trainer, found


def train(
    config: Source,
    name: str,
    *,
    version: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    length: int | None = None,
    layer_type: str | None = None,
) -> Training:
    """Return what a trainer computes for a config.json with these options of its own; `length` in tokens.

    Sizes and base that the options leave out come from the config. Without options the config's own scaling is what the
    trainer is asked for. Raise `ValueError` for an unknown trainer, version, layer type or value, and for a config that
    describes no rotary embedding.
    """
    trainer, release = find_trainer(name, version)
    return train_case(trainer, release, read_case(config, length=length, layer_type=layer_type), arguments)


def train_case(trainer: Trainer, release: str, case: Case, arguments: Mapping[str, Any] | None = None) -> Training:
    """Return what one release of a trainer makes of a case. Raise `ValueError` as `train` does."""
    short = short_version(release)
    options = {name.lstrip("-").replace("-", "_"): value for name, value in (arguments or {}).items()}
    try:
        with normalise_errors():
            case, applied = apply(build_rules(trainer.name, release), case.replace(arguments=options))
            spec = build_spec(case)
            attention = spec.attention_factor(case.length) if case.attention is None else case.attention
            inv_freq = compute_frequencies(case, spec)
    except Refused as refusal:
        return Training(trainer, short, False, reason=str(refusal), arguments=options)
    softmax = 1.0 if case.softmax is None else case.softmax
    return Training(
        trainer,
        short,
        True,
        inv_freq,
        attention,
        softmax,
        find_place(case, attention, softmax),
        case.pairing or spec.pairing,
        case,
        applied,
        evidence=trainer.evidence(applied),
        arguments=case.arguments,
    )


def write_factor(spec: RopeSpec, case: Case, attention: float) -> RopeSpec:
    """Return the spec with divisors and factor on cos and sin of a case in its scaling."""
    if not case.divisors and attention == spec.attention_factor(case.length):
        return spec
    if case.kind == "yarn" and not case.divisors:
        stated: dict[str, Any] = {"attention": attention}
        return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **stated))
    return as_divisors(spec, compute_frequencies(case, spec), attention)


@functools.cache
def build_rules(name: str, release: str) -> tuple[Rule, ...]:
    """Return the rules of one release of a trainer."""
    rules = TRAINERS[name].rules
    return rules(release) if callable(rules) else rules


def find_place(case: Case, attention: float, softmax: float) -> Place:
    """Return where the factor that is not 1 is applied; on q and k before the softmax scale."""
    if not math.isclose(attention, 1.0, rel_tol=1e-9):
        return "q_k" if case.factor_place == "q_k" else "cos_sin"
    return "none" if math.isclose(softmax, 1.0, rel_tol=1e-9) else "softmax"
