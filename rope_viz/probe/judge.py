"""Decide which hypothesis explains the log-probabilities that an engine gave for a probe's prompts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.probe.answers import Answers, Targets, list_targets
from rope_viz.probe.hypotheses import INTENDED, Hypothesis, ProbedPrompt, find_intended, is_same, list_hypotheses
from rope_viz.probe.prompts import LONGEST, list_prompts
from rope_viz.probe.reference import Reference, open_reference
from rope_viz.probe.shrink_config import shrink_config
from rope_viz.runtimes.asked_engines import AS_INTENDED

LEAST_NOISE = 3e-5
"""What float32 arithmetic leaves, as a mean difference of log-probabilities."""
FIT, LEAST_FIT = 6.0, 2e-3
"""A hypothesis explains answers up to this many times the noise, as attention adds to what two tokens show: with
bfloat16 throughout it is 2.6 times at 8,192 tokens. The second is for engines in float32."""
EQUAL = 3.0
"""Hypotheses cannot be told apart where they differ by less than this many times what the best one leaves."""
SAME = 1e-3
"""Answers that differ by less on average are the same for every engine."""
STRANGE = 0.5
"""Noise from here on means that the engine serves other weights than the probe's."""
INTENDED_CODE, OTHER_CODE, UNKNOWN_CODE = 0, 1, 4


@dataclass(frozen=True)
class ProbeVerdict:
    """What an engine computes: "as intended", "something else", "none of these" or "cannot tell", and why.

    `names` are the hypotheses that explain the answers, `distance` the mean difference that the best one leaves, and
    `next_name` with `next_distance` the nearest that does not. `noise` is that of the engine, as two tokens show it.
    `first` is the position from which the answers differ from what the config means, None where they do not, and
    `next_first` that from which the next hypothesis differs from the best one. `asked` is the longest prompt that was
    answered, in tokens.
    """

    verdict: str
    code: int
    noise: float
    names: tuple[str, ...] = ()
    distance: float = math.nan
    next_name: str = ""
    next_distance: float = math.nan
    first: int | None = None
    next_first: int | None = None
    asked: int = 0
    sentence: str = ""
    distances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ComparedPrompt:
    """One prompt: the rows compared, the engine's answers there, and the reference's by hypothesis."""

    rows: NDArray[np.intp]
    given: FloatArray
    known: Mapping[str, FloatArray]

    def measure(self, name: str) -> float:
        """Return how far the answers are from those of a hypothesis."""
        return measure(self.given, self.known[name])


def judge(
    config: Source,
    answers: Sequence[Answers],
    *,
    runtime: str = "",
    version: str = "",
    served: int | None = None,
    longest: int = LONGEST,
    folder: str | Path | None = None,
) -> dict[str, Any]:
    """Return what answers say of an engine, as JSON data.

    `answers` has, for every prompt of `list_prompts`, the log-probability of each token but the first, or those of
    several tokens that may be in its place; None where it is not known, also for a whole prompt. `served` is the
    longest length that the engine was started with, `folder` that of the probe, if it is here. Raises `ValueError`
    where there is no reference.
    """
    small = shrink_config(ModelConfig.read(config))
    model = ModelConfig.read(small)
    with open_reference(small, find_intended(ProbedPrompt(model, 2, model.limit)), folder) as reference:
        asked = functools.partial(ProbedPrompt, model, served=served or model.limit, runtime=runtime, version=version)
        return as_dict(judge_prompts(model, list_prompts(model, longest), answers, reference, asked))


def judge_prompts(
    model: ModelConfig,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Answers],
    reference: Reference,
    ask_about: Callable[..., ProbedPrompt],
) -> ProbeVerdict:
    """Return the verdict on the answers to prompts."""
    noise = measure_noise(model, prompts, answers, reference)
    if noise > STRANGE:
        why = (
            f"answers to two tokens are off by {noise:.2g}: the engine serves other weights than this probe's, "
            "or adds a token at the start of each prompt"
        )
        return ProbeVerdict("cannot tell", UNKNOWN_CODE, noise, sentence=why)
    bound = find_fit(noise)
    compared: list[ComparedPrompt] = []
    left: list[str] = []
    for prompt, given in zip(prompts, answers, strict=True):
        targets, values = list_targets(prompt, given)
        if len(prompt) == 2 or not values.size:
            continue
        hypotheses = list_hypotheses(ask_about(length=len(prompt)))
        # A hypothesis that shorter prompts rule out explains nothing. The nearest one is kept, to be named.
        one = ComparedPrompt(targets[:, 0], values, compute(reference, prompt, targets, pick(hypotheses, left)))
        asked = [name for name in left or one.known if name in one.known]
        left = [name for name in asked if one.measure(name) <= bound] or [min(asked or one.known, key=one.measure)]
        compared.append(one)
    if not compared:
        why = "no prompt was answered with log-probabilities"
        return ProbeVerdict("cannot tell", UNKNOWN_CODE, noise, sentence=why)
    return decide(compared, noise)


def pick(hypotheses: Mapping[str, Hypothesis], names: Sequence[str]) -> dict[str, Hypothesis]:
    """Return these hypotheses and the intended one; all of them where no name is given."""
    return {name: one for name, one in hypotheses.items() if not names or name in names or name == INTENDED}


def compute(
    reference: Reference, prompt: Sequence[int], targets: Targets, hypotheses: Mapping[str, Hypothesis]
) -> dict[str, FloatArray]:
    """Return the reference's answers, computed once for hypotheses with the same numbers."""
    same: dict[str, str] = {}
    for name, one in hypotheses.items():
        same[name] = next((first for first in {*same.values()} if is_same(hypotheses[first], one)), name)
    found = reference(prompt, targets, {name: hypotheses[name] for name in {*same.values()}})
    return {name: found[first] for name, first in same.items() if first in found}


def measure_noise(
    model: ModelConfig, prompts: Sequence[Sequence[int]], answers: Sequence[Answers], reference: Reference
) -> float:
    """Return the mean difference of the answers to prompts of two tokens, which depend on no rotation."""
    right = {INTENDED: find_intended(ProbedPrompt(model, 2, model.limit))}
    found = []
    for prompt, given in zip(prompts, answers, strict=True):
        targets, values = list_targets(prompt, given)
        if len(prompt) == 2 and values.size:
            found.append(measure(values, reference(prompt, targets, right)[INTENDED]))
    return max(float(np.mean(found)), LEAST_NOISE) if found else LEAST_NOISE


def find_fit(noise: float) -> float:
    """Return up to which mean difference a hypothesis explains answers."""
    return max(FIT * noise, LEAST_FIT)


def decide(compared: Sequence[ComparedPrompt], noise: float) -> ProbeVerdict:
    """Return the verdict on the prompts that were answered."""
    names = {name: None for one in compared for name in one.known}
    off = {name: max(one.measure(name) for one in compared if name in one.known) for name in names}
    # Those that every prompt was compared with are those that the shorter ones leave.
    whole = [name for name in names if all(name in one.known for one in compared)]
    best = min(whole, key=lambda name: off[name])
    bound = max(EQUAL * off[best], EQUAL * noise, SAME)
    apart = {name: max(measure(one.known[best], one.known[name]) for one in compared) for name in whole}
    equal = tuple(sorted((name for name in whole if apart[name] <= bound), key=lambda name: name != INTENDED))
    # One that fits the shorter prompts and has no meaning for the longer ones is no neighbour.
    ruled_out = (name for name, value in off.items() if name in whole or value > find_fit(noise))
    others = {name: off[name] for name in ruled_out if name not in equal}
    next_name = min(others, key=lambda name: others[name]) if others else ""
    verdict = functools.partial(
        ProbeVerdict,
        noise=noise,
        names=equal,
        distance=off[best],
        next_name=next_name,
        next_distance=others.get(next_name, math.nan),
        first=find_first([(one.rows, one.given, one.known[INTENDED]) for one in compared], find_fit(noise)),
        next_first=find_first(
            [(one.rows, one.known[best], one.known[next_name]) for one in compared if next_name in one.known], SAME
        ),
        asked=max(int(one.rows.max()) for one in compared) + 2,
        distances=off,
    )
    if off[best] > find_fit(noise):
        return verdict("none of these", OTHER_CODE, names=(), sentence=f"the nearest is {best}, off by {off[best]:.2g}")
    unsure = [name for name in equal if apart[name] > SAME and name != INTENDED]
    if INTENDED in equal and unsure:
        why = f"the engine's noise of {noise:.2g} hides the difference from {', '.join(unsure)}"
        return verdict("cannot tell", UNKNOWN_CODE, sentence=why)
    return verdict(AS_INTENDED, INTENDED_CODE) if INTENDED in equal else verdict("something else", OTHER_CODE)


def measure(one: FloatArray, other: FloatArray) -> float:
    """Return the mean difference of log-probabilities; infinite where some are no numbers."""
    found = float(np.mean(np.abs(one - other)))
    return found if np.isfinite(found) else math.inf


def find_first(pairs: Sequence[tuple[NDArray[np.intp], FloatArray, FloatArray]], bound: float) -> int | None:
    """Return the first of the rows from which two lists of log-probabilities differ, None where they do not."""
    places = []
    for rows, one, other in pairs:
        wrong = np.abs(one - other) > bound
        # Two in a row: a single one may be noise.
        found = np.flatnonzero(wrong[:-1] & wrong[1:])
        if found.size and measure(one, other) > bound:
            places.append(int(rows[found[0]]))
    return min(places, default=None)


def as_dict(verdict: ProbeVerdict) -> dict[str, Any]:
    """Return a verdict as JSON data, with null for what is not known."""
    values = {**vars(verdict), "names": list(verdict.names), "distances": dict(verdict.distances)}
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}
