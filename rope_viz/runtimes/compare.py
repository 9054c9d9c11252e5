"""Compare runtimes on one config: which agree with a reference, and where and by how much the others differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import find_peak
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.query_temperature import find_temperature
from rope_viz.runtimes import RUNTIMES, Emulation, emulate_case, read_case, resolve_release
from rope_viz.runtimes.provenance import How
from rope_viz.runtimes.releases import RELEASES, match_name
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts.texts import join_items, join_list

TOLERANCE = 2e-6
"""Differences up to here come from the runtimes' own float32 arithmetic."""


class Effect(NamedTuple):
    """By how much a frequency is off: the largest ratio, above 1, and the pair where it is."""

    ratio: float
    pair: int


@dataclass(frozen=True)
class Comparison:
    """One runtime against the reference.

    `agrees` is about frequencies, the factor on cos and sin and the softmax multiplier; it is False where either side
    is not known, and where the runtime has no code of its own for the model. `effect` is None where the frequencies
    agree or cannot be compared, `pairs_differ` where another number of pairs rotates. The ratios are over the
    reference.
    """

    emulation: Emulation
    agrees: bool
    effect: Effect | None
    pairs_differ: bool
    attention_ratio: float | None
    softmax_ratio: float | None

    @property
    def how(self) -> How:
        """How this runtime's answer is known; `emulation.known` has the source."""
        return self.emulation.known.how

    @property
    def differs(self) -> bool:
        """Whether the runtime is known to compute something other than the reference."""
        computes = self.emulation.supported and not self.emulation.remote
        return computes and not self.agrees and self.how != "not known"

    def verdict(self, ratio: Callable[[float], str] = "×{:.4g}".format) -> str:
        """Return "agrees", "refuses", "not known" or by how much it differs; "by rule" where it was not executed."""
        if self.how == "not known":
            return TEXTS("verdict.not_known")
        words = self.words(ratio)
        return words if self.how == "executed" else TEXTS("verdict.by_rule", words=words)

    @property
    def brief(self) -> str:
        """The first part of the verdict, as short as a cell needs it: "×47.8" of "×47.8 at pair 47"."""
        if self.emulation.remote:
            return TEXTS("verdict.refuses")
        ratio = "×{:.3g}".format
        return ratio(self.effect.ratio) if self.effect and not self.agrees else self.list_words(ratio)[0]

    def words(self, ratio: Callable[[float], str]) -> str:
        """Return the verdict without how it is known."""
        return join_items(self.list_words(ratio))

    def list_words(self, ratio: Callable[[float], str]) -> list[str]:
        """Return the parts of the verdict, the frequencies first."""
        if self.emulation.remote:
            return [TEXTS("verdict.remote")]
        if not self.emulation.supported or self.agrees:
            return [TEXTS("verdict.agrees" if self.emulation.supported else "verdict.refuses")]
        effect, parts = self.effect, list[str]()
        parts += [TEXTS("verdict.pair", ratio=ratio(effect.ratio), pair=effect.pair)] if effect else []
        parts += [TEXTS("verdict.pairs")] if self.pairs_differ else []
        for name, value in (("attention", self.attention_ratio), ("softmax", self.softmax_ratio)):
            if value is not None and not math.isclose(value, 1.0, rel_tol=TOLERANCE):
                parts.append(TEXTS(f"verdict.{name}", ratio=ratio(value)))
        return parts or [TEXTS("verdict.nothing")]


def compare(
    config: Source,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    reference: tuple[str, str | None] = ("transformers", None),
    releases: Mapping[str, str] | None = None,
) -> list[Comparison]:
    """Compare every runtime with the reference, in the order of `RUNTIMES`. Raises `ValueError` as `emulate` does.

    `releases` names older ones to put in the place of today's: {"vllm": "0.8.5"}.
    """
    case = read_case(config, length=length, layer_type=layer_type)
    base = emulate_case(*resolve_release(*reference), case)
    return [compare_with(base, emulate_case(*other, case)) for other in resolve_releases(releases or {})]


def list_releases() -> dict[str, tuple[str, ...]]:
    """Return {runtime: its releases, today's first} of those of which older ones are known too."""
    return {name: runtime.releases for name, runtime in RELEASES.items() if runtime.older}


def resolve_releases(releases: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the runtimes, with these releases in the place of today's. Raises `ValueError` for what is not known."""
    releases = {match_name(name, RELEASES): version for name, version in releases.items()}
    for name in releases:
        if name not in list_releases():
            raise ValueError(TEXTS("older_releases", known=join_list([*list_releases()]), name=name))
    found = [
        resolve_release(name, releases.get(name, version) if version == RELEASES[name].today[0] else version)
        for name, version in RUNTIMES
    ]
    return list(dict.fromkeys(found))


def compare_with(base: Emulation, other: Emulation) -> Comparison:
    """Compare one result with the reference."""
    if "not known" in (base.known.how, other.known.how):
        return Comparison(other, False, None, False, None, None)
    if base.inv_freq is None or other.inv_freq is None:
        return Comparison(other, base.supported == other.supported, None, False, None, None)
    effect = find_max_ratio(base.inv_freq, other.inv_freq)
    effect = effect if effect is not None and effect.ratio > 1.0 + TOLERANCE else None
    differ = not np.array_equal(base.inv_freq.shape, other.inv_freq.shape) or not np.array_equal(
        base.inv_freq > 0, other.inv_freq > 0
    )
    ratios = [
        None if ours is None or theirs is None else divide(theirs, ours)
        for ours, theirs in (
            (base.attention_factor, other.attention_factor),
            (base.softmax_multiplier, other.softmax_multiplier),
        )
    ]
    same = all(ratio is None or math.isclose(ratio, 1.0, rel_tol=TOLERANCE) for ratio in ratios)
    agrees = effect is None and not differ and same and not other.remote
    return Comparison(other, agrees, effect, differ, ratios[0], ratios[1])


def divide(theirs: float, ours: float) -> float:
    """Return one factor over another; a config may ask for a factor of 0."""
    if ours == 0:
        return 1.0 if theirs == 0 else math.inf
    return theirs / ours


def log_distance(ratio: float) -> float:
    """Return how far a ratio is from 1, in logarithms; a change of sign is infinitely far."""
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf


def find_max_ratio(ours: FloatArray, theirs: FloatArray) -> Effect | None:
    """Return the largest ratio over the pairs that both have and that turn in both; None where all are equal."""
    pairs = min(len(ours), len(theirs))
    ours, theirs = ours[:pairs], theirs[:pairs]
    turning = (ours > 0) & (theirs > 0)
    if not turning.any():
        return None
    apart = np.zeros(pairs)
    apart[turning] = np.abs(np.log(ours[turning]) - np.log(theirs[turning]))
    pair = find_peak(apart)
    return Effect(float(np.exp(apart[pair])), pair) if apart[pair] > 1e-9 else None


# Temperatures: executed were the classes of transformers 5.23.0 (tests/goldens/make_query_temperature.py), and the
# formulas of Llama 4 and Ministral 3 in vLLM 0.33.0 and SGLang 0.5.23 (make_query_temperature_servers.py). When a
# server uses them was read.
def describe_temperature(config: ModelConfig, runtime: str, version: str) -> str:
    """Return the kind of answer: "reference", "learned", "own_code", "paper", "not_known" or what the record has.

    "backend" where the code of transformers runs the model; "" for a model without attention temperature, or whose
    numbers cannot be read.
    """
    try:
        found = find_temperature(config)
        if found is None:
            return ""
    except ValueError:
        return ""
    if runtime == "paper":
        return "paper"
    if version != RELEASES[runtime].today[0]:
        return "not_known"
    if runtime == "transformers":
        own = "learned" if found.is_learned else "reference"
        return "own_code" if config.architecture.remote_code else own
    facts = config.architecture.runtime(runtime)
    return str(facts.get("temperature", "backend" if facts.get("file") == "transformers" else "not_known"))
