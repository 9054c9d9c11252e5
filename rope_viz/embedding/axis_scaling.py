"""Scaling methods that extend one axis of an image or a video beyond its trained grid: RIFLEx, and YaRN per axis.

The RopeSpec describes one axis: its dimensions, its trained extent (`context`, in latent frames or patches) and the
wanted extent (`target`). Interpolation and NTK are `Linear` and `NtkAware` of `scaling`.

RIFLEx: Zhao et al., https://arxiv.org/abs/2502.15894, and github.com/thu-ml/RIFLEx, `riflex_utils.py`
DyPE: Issachar et al., https://arxiv.org/abs/2510.20766, and github.com/guyyariv/DyPE, `flux/transformer_flux.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rope_viz.embedding.scaling import correction_dim, mscale, require_two_pairs, with_base
from rope_viz.embedding.spec import FloatArray, RopeSpec, Scaling, freeze, knob, require_number

TURN_SHARE = 0.9  # the share of a turn that the extended video may use
# Turns in the trained extent between which linear changes to NTK, and NTK to plain.
LINEAR_TO_NTK = (1.25, 0.75)
NTK_TO_PLAIN = (16.0, 2.0)


@dataclass(frozen=True)
class Riflex(Scaling):
    """RIFLEx: one pair, the one whose period repeats visibly, is slowed so that the video spans 0.9 of its turn.

    `pair` counts from 1, like the paper's k. 0 selects the pair whose period is nearest to `repeats`, the first latent
    frame at which videos visibly repeat (0: the trained extent).
    """

    name: str = field(default="riflex", init=False)
    pair: int = knob(
        0, "Pair k", 0, 64, "The pair that is slowed, counted from 1. 0: found from its period.", integer=True
    )
    repeats: int = knob(
        0, "Repeats at", 0, 1024, "The frame at which films begin again. 0: the trained extent.", integer=True
    )

    def validate(self, spec: RopeSpec) -> None:
        require_number(self.pair, "pair", least=0, most=spec.pairs, integer=True)
        require_number(self.repeats, "repeats", least=0, integer=True)

    def slowed_pair(self, spec: RopeSpec) -> int:
        """Return the slowed pair, counted from 1: the first whose period, in whole frames, is nearest."""
        if self.pair:
            return int(self.pair)
        periods = np.rint(2.0 * math.pi / spec.plain_inv_freq)
        return int(np.argmin(np.abs(periods - (self.repeats or spec.context)))) + 1

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        frequencies = np.array(spec.plain_inv_freq)
        frequencies[self.slowed_pair(spec) - 1] = TURN_SHARE * 2.0 * math.pi / (length or spec.target)
        return freeze(frequencies)


@dataclass(frozen=True)
class ImageYarn(Scaling):
    """YaRN for one side of an image: divided, then NTK, then plain, by the turns in the trained side.

    `noise` is the noise level of a denoising step, 1 at its start. Its square multiplies the thresholds, so that the
    last steps keep the trained frequencies (DyPE). None is YaRN without it.
    """

    name: str = field(default="image-yarn", init=False)
    noise: float | None = None

    def validate(self, spec: RopeSpec) -> None:
        require_two_pairs(spec, self.name)
        if self.noise is not None:
            require_number(self.noise, "noise", least=0.0, most=1.0)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        factor = self.growth(spec, length)
        weight = 1.0 if self.noise is None else self.noise**2
        if factor <= 1.0 or weight == 0.0:
            return spec.plain_inv_freq
        divided = spec.plain_inv_freq / factor
        ntk = with_base(spec, spec.base * factor ** (spec.rotary_dim / (spec.rotary_dim - 2)))
        mixed = blend_by_turns(spec, divided, ntk, LINEAR_TO_NTK, weight)
        return freeze(blend_by_turns(spec, mixed, spec.plain_inv_freq, NTK_TO_PLAIN, weight))

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        return mscale(self.growth(spec, length))

    def growth(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the wanted extent over the trained extent, at least 1."""
        return max((length or spec.target) / spec.context, 1.0)

    def factor_for(self, spec: RopeSpec) -> float:
        return self.growth(spec)


@dataclass(frozen=True)
class ImageNtk(Scaling):
    """NTK for one side of an image, at a noise level: the base times s^(d/(d−2)), to the power 2·noise² (DyPE)."""

    name: str = field(default="image-ntk", init=False)
    noise: float | None = None

    def validate(self, spec: RopeSpec) -> None:
        require_two_pairs(spec, self.name)
        if self.noise is not None:
            require_number(self.noise, "noise", least=0.0, most=1.0)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        factor = max((length or spec.target) / spec.context, 1.0) ** (spec.rotary_dim / (spec.rotary_dim - 2))
        power = 1.0 if self.noise is None else 2.0 * self.noise**2
        return with_base(spec, spec.base * factor**power)


def blend_by_turns(
    spec: RopeSpec, slow: FloatArray, fast: FloatArray, turns: tuple[float, float], weight: float
) -> FloatArray:
    """Blend: `fast` above turns[0]·weight turns in the trained extent, `slow` below turns[1]·weight.

    Linear in the pair index in between, with the ends rounded outwards and clamped as published.
    """
    low = max(float(math.floor(correction_dim(spec, turns[0] * weight))), 0.0)
    high = min(float(math.ceil(correction_dim(spec, turns[1] * weight))), spec.rotary_dim - 1.0, spec.rotary_dim // 2)
    if low == high:
        high += 0.001
    slow_share = np.clip((np.arange(spec.pairs) - low) / (high - low), 0.0, 1.0)
    return np.asarray(slow * slow_share + fast * (1.0 - slow_share))
