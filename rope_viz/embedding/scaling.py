"""Scaling methods: their knobs and formulas, in float64.

Position interpolation: Chen et al., https://arxiv.org/abs/2306.15595
NTK-aware, NTK-by-parts, YaRN: Peng et al., https://arxiv.org/abs/2309.00071 (equation numbers below)
YaRN as released: https://github.com/jquesnelle/yarn at 995db5b, and transformers 5.23.0 `modeling_rope_utils`
Llama 3: https://github.com/meta-llama/llama-models at a9c89c4, `models/llama3/model.py`
LongRoPE: Ding et al., https://arxiv.org/abs/2402.13753
Critical dimension: Liu et al., https://arxiv.org/abs/2310.05209 (the formula equals YaRN's correction range at 1 turn)
p-RoPE: Barbero et al., https://arxiv.org/abs/2410.06205
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rope_viz.embedding.spec import (
    MAX_HEAD_DIM,
    FloatArray,
    RopeSpec,
    Scaling,
    freeze,
    knob,
    require_number,
    short_repr,
)
from rope_viz.embedding.spectrum import wavelength

# Bounds of a factor or divisor; within them no formula here overflows.
LEAST_FACTOR, LARGEST_FACTOR = 1e-9, 1e9
FACTOR_HELP = "By how much the slow pairs are divided: usually target length over trained length."


def factor_knob(default: float = 4.0) -> Any:
    """Return the knob for the factor s, which most methods have."""
    return knob(default, "Factor s", 1.0, 128.0, FACTOR_HELP, log=True)


def optional_knob(label: str, low: float, high: float, help: str) -> Any:
    """Return a knob whose default None means that the method computes the value."""
    return knob(None, label, low, high, help)


WEIGHT_HELP = "The attention factor is this · ln s + 1, without mscale. TeleChat3 has 0.07. Empty: 0.1."
ATTENTION_HELP = "Multiplies cos and sin, so logits are multiplied by its square. Empty: what the method computes."


@dataclass(frozen=True)
class Linear(Scaling):
    """Position interpolation: every frequency is divided by the factor."""

    name: str = field(default="linear", init=False)
    factor: float = factor_knob()

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq / self.factor)


@dataclass(frozen=True)
class NtkAware(Scaling):
    """A larger base: the first pair keeps its frequency and the last is divided by exactly the factor (eq. 16)."""

    name: str = field(default="ntk", init=False)
    factor: float = factor_knob()

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_two_pairs(spec, self.name)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return with_base(spec, spec.base * self.factor ** (spec.rotary_dim / (spec.rotary_dim - 2)))


@dataclass(frozen=True)
class DynamicNtk(Scaling):
    """NTK-aware with a base that grows with the current length, as transformers computes it.

    For length l > context L the base is base·(s·l/L − (s − 1))^(d/(d−2)). Up to L it is unchanged.
    """

    name: str = field(default="dynamic", init=False)
    divides_from_length: ClassVar[bool] = True
    factor: float = factor_knob(2.0)

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_two_pairs(spec, self.name)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return with_base(spec, spec.base * self.growth(spec, length) ** (spec.rotary_dim / (spec.rotary_dim - 2)))

    def growth(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the effective factor at this length: s·l/L − (s − 1), at least 1."""
        longest = max(length or spec.context, spec.context)
        return self.factor * longest / spec.context - (self.factor - 1.0)


@dataclass(frozen=True)
class NtkByParts(Scaling):
    """The paper's ramp (eq. 17 to 20): linear in a pair's turns r over the trained context, from alpha to beta."""

    name: str = field(default="ntk-by-parts", init=False)
    divides_from_length: ClassVar[bool] = True
    factor: float = factor_knob()
    alpha: float = knob(
        1.0, "α", 0.1, 64.0, "Pairs with fewer turns than this in training are fully divided.", log=True
    )
    beta: float = knob(
        32.0, "β", 0.1, 128.0, "Pairs with more turns than this in training keep their frequency.", log=True
    )

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_turns(self.alpha, "alpha")
        require_turns(self.beta, "beta")

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the ramp γ, shape (pairs,): 1 keeps the plain frequency, 0 divides it by the factor."""
        return paper_ramp(spec, self.alpha, self.beta)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return blend(spec, self.factor, self.kept_share(spec))


@dataclass(frozen=True)
class PaperYarn(NtkByParts):
    """YaRN as in the paper: NTK-by-parts and the attention factor √(1/t) = 0.1 ln s + 1 (eq. 22)."""

    name: str = field(default="yarn-paper", init=False)

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        return mscale(self.factor)


@dataclass(frozen=True)
class Yarn(Scaling):
    """YaRN as every implementation released it: the ramp is linear in the pair index, not in the turns.

    Without rounding the ramp is clamp(ln(r/beta_slow) / ln(beta_fast/beta_slow), 0, 1): logarithmic in the turns r.
    """

    name: str = field(default="yarn", init=False)
    divides_from_length: ClassVar[bool] = True
    factor: float = factor_knob()
    beta_fast: float = knob(
        32.0, "β fast", 0.1, 128.0, "Pairs with more turns than this in training keep their frequency.", log=True
    )
    beta_slow: float = knob(
        1.0, "β slow", 0.1, 64.0, "Pairs with fewer turns than this in training are fully divided.", log=True
    )
    truncate: bool = True
    attention: float | None = optional_knob("Attention factor", 0.1, 4.0, ATTENTION_HELP)
    mscale: float | None = optional_knob(
        "mscale", 0.0, 4.0, "With mscale_all_dim: the attention factor is the ratio of the two. Empty: not used."
    )
    mscale_all_dim: float | None = optional_knob(
        "mscale_all_dim", 0.0, 4.0, "With mscale: the attention factor is the ratio of the two. Empty: not used."
    )
    attention_weight: float | None = optional_knob("Attention weight", 0.0, 1.0, WEIGHT_HELP)

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_turns(self.beta_fast, "beta_fast")
        require_turns(self.beta_slow, "beta_slow")
        if not isinstance(self.truncate, bool):
            raise ValueError(f"truncate must be true or false, got {short_repr(self.truncate)}")
        for name in ("attention", "mscale", "mscale_all_dim", "attention_weight"):
            if getattr(self, name) is not None:
                require_number(getattr(self, name), "attention_factor" if name == "attention" else name)
        if spec.rotary_dim % 2:
            raise ValueError(f"YaRN needs an even rotary_dim, got {spec.rotary_dim}")
        computed = self.attention is None and self.mscale
        if computed and self.mscale_all_dim and not mscale(self.factor, self.mscale_all_dim):
            raise ValueError(f"mscale_all_dim = {self.mscale_all_dim:g} makes the attention factor a division by zero")

    def correction_range(self, spec: RopeSpec) -> tuple[float, float]:
        """Return the pair indices between which the ramp falls from 1 to 0: rounded outwards if `truncate`, clamped."""
        low = correction_dim(spec, self.beta_fast)
        high = correction_dim(spec, self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        # The clamp is rotary_dim - 1, not the last pair rotary_dim/2 - 1, in every released implementation.
        return max(low, 0), min(high, spec.rotary_dim - 1)

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the ramp, shape (pairs,): 1 keeps the plain frequency, 0 divides it by the factor."""
        low, high = self.correction_range(spec)
        if low == high:
            high += 0.001
        divided_share: FloatArray = np.clip((np.arange(spec.pairs) - low) / (high - low), 0.0, 1.0)
        return 1.0 - divided_share

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return blend(spec, self.factor, self.kept_share(spec))

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        if self.attention is not None:
            return self.attention
        if self.mscale and self.mscale_all_dim:
            return mscale(self.factor, self.mscale) / mscale(self.factor, self.mscale_all_dim)
        return mscale(self.factor, 1.0 if self.attention_weight is None else 10.0 * self.attention_weight)


@dataclass(frozen=True)
class Llama3(Scaling):
    """Llama 3.1 scaling: the paper's ramp from low_freq_factor to high_freq_factor turns, no attention factor."""

    name: str = field(default="llama3", init=False)
    divides_from_length: ClassVar[bool] = True
    factor: float = factor_knob(8.0)
    low_freq_factor: float = knob(
        1.0, "Low freq. factor", 0.1, 64.0, "Pairs with fewer turns than this are fully divided.", log=True
    )
    high_freq_factor: float = knob(
        4.0, "High freq. factor", 0.1, 128.0, "Pairs with more turns than this keep their frequency.", log=True
    )

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_turns(self.low_freq_factor, "low_freq_factor")
        require_turns(self.high_freq_factor, "high_freq_factor")

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the ramp, shape (pairs,): 1 keeps the plain frequency, 0 divides it by the factor."""
        return paper_ramp(spec, self.low_freq_factor, self.high_freq_factor)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return blend(spec, self.factor, self.kept_share(spec))


@dataclass(frozen=True)
class LongRope(Scaling):
    """One divisor per pair: the short list up to the trained length, the long list beyond it.

    An empty list is replaced by NTK-aware divisors (from 1 to the factor), so that the method works for a model that
    publishes none. `factor` None means target / context.
    """

    name: str = field(default="longrope", init=False)
    divides_from_length: ClassVar[bool] = True
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    factor: float | None = optional_knob(
        "Factor s", 1.0, 128.0, "Only sets the attention factor. Empty: target ÷ trained."
    )
    attention: float | None = optional_knob("Attention factor", 0.1, 4.0, ATTENTION_HELP)

    def __post_init__(self) -> None:
        for name in ("short_factor", "long_factor"):
            values = getattr(self, name)
            if not isinstance(values, Iterable):
                raise ValueError(f"{name} must be a list of numbers, got {short_repr(values)}")
            object.__setattr__(self, name, tuple(values))  # configs hold lists, but a method must be hashable

    def validate(self, spec: RopeSpec) -> None:
        for name, values in (("short_factor", self.short_factor), ("long_factor", self.long_factor)):
            if values and len(values) != spec.pairs:
                raise ValueError(f"{name} must have one number per pair, {spec.pairs} of them, got {len(values)}")
            for value in values:
                require_factor(value, f"{name} entries")
        if self.factor is not None:
            require_factor(self.factor, "factor")
        if self.attention is not None:
            require_number(self.attention, "attention_factor")

    def divisors(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        """Return the divisors used at this length, shape (pairs,)."""
        is_long = length is not None and length > spec.context
        factors = self.long_factor if is_long else self.short_factor
        if factors:
            return np.asarray(factors, dtype=np.float64)
        factor = max(self.factor_for(spec), 1.0) if is_long else 1.0
        return np.asarray(factor ** (np.arange(spec.pairs) / max(spec.pairs - 1, 1)))

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq / self.divisors(spec, length))

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        if self.attention is not None:
            return self.attention
        factor = self.factor_for(spec)
        if factor <= 1.0 or spec.context <= 1:
            return 1.0
        return math.sqrt(1.0 + math.log(factor) / math.log(spec.context))


@dataclass(frozen=True)
class Proportional(Scaling):
    """p-RoPE: the highest frequencies, a share p of the pairs, rotate; the rest have frequency exactly 0.

    The exponents run over the whole rotary_dim, not over the rotated part.
    """

    name: str = field(default="proportional", init=False)
    share: float = knob(0.25, "Rotated share p", 0.0, 1.0, "1 is RoPE, 0 is no position at all.", step=0.01)
    factor: float = factor_knob(1.0)

    def validate(self, spec: RopeSpec) -> None:
        require_number(self.share, "share", least=0.0, most=1.0)
        require_factor(self.factor, "factor")

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        rotated = int(self.share * spec.rotary_dim // 2)
        return freeze(np.where(np.arange(spec.pairs) < rotated, spec.plain_inv_freq / self.factor, 0.0))


@dataclass(frozen=True)
class ClippedRope(Scaling):
    """CoPE: the lowest frequencies fall to 0 by half a cosine; the first of them keeps its frequency."""

    name: str = field(default="cope", init=False)
    clipped: int | None = knob(
        None, "Faded pairs", 0, 256, "Empty: the pairs with a wavelength above the trained length.", integer=True
    )

    def validate(self, spec: RopeSpec) -> None:
        if self.clipped is not None:
            require_number(self.clipped, "clipped", least=0, most=MAX_HEAD_DIM, integer=True)

    def count_clipped(self, spec: RopeSpec) -> int:
        """Return how many pairs fade out, at most all of them."""
        if self.clipped is not None:
            return min(int(self.clipped), spec.pairs)
        return int(np.count_nonzero(wavelength(spec.plain_inv_freq) > spec.context))

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the mask, shape (pairs,): 1 keeps the plain frequency, 0 is zero frequency."""
        count = self.count_clipped(spec)
        mask = np.ones(spec.pairs)
        mask[spec.pairs - count :] = 0.5 * (1.0 + np.cos(np.linspace(0.0, np.pi, count)))
        return mask

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq * self.kept_share(spec))


METHODS: dict[str, type[Scaling]] = {
    "none": Scaling,
    "linear": Linear,
    "ntk": NtkAware,
    "dynamic": DynamicNtk,
    "ntk-by-parts": NtkByParts,
    "yarn-paper": PaperYarn,
    "yarn": Yarn,
    "llama3": Llama3,
    "longrope": LongRope,
    "proportional": Proportional,
    "cope": ClippedRope,
}

LABELS: dict[str, str] = {
    "none": "None (plain RoPE)",
    "linear": "Linear (position interpolation)",
    "ntk": "NTK-aware",
    "dynamic": "Dynamic NTK",
    "ntk-by-parts": "NTK-by-parts (paper's ramp)",
    "yarn-paper": "YaRN (paper's ramp)",
    "yarn": "YaRN (as released)",
    "llama3": "Llama 3",
    "longrope": "LongRoPE",
    "proportional": "Proportional (p-RoPE)",
    "cope": "CoPE (clipped RoPE)",
}


def mscale(factor: float, weight: float = 1.0) -> float:
    """Return YaRN's attention factor 0.1·weight·ln(factor) + 1 (eq. 22); 1 for factors up to 1."""
    return 1.0 if factor <= 1.0 else 0.1 * weight * math.log(factor) + 1.0


def turns(spec: RopeSpec) -> FloatArray:
    """Return r, the turns of each unscaled pair in the trained context, shape (pairs,)."""
    return spec.context * spec.plain_inv_freq / (2.0 * math.pi)


def paper_ramp(spec: RopeSpec, alpha: float, beta: float) -> FloatArray:
    """Return γ(r), shape (pairs,): 0 below alpha turns, 1 above beta, linear in between (eq. 18)."""
    r = turns(spec)
    width = beta - alpha
    between = (r - alpha) / width if width > 0 else np.ones_like(r)
    return np.where(r < alpha, 0.0, np.where(r > beta, 1.0, between)) if width >= 0 else np.where(r < alpha, 0.0, 1.0)


def correction_dim(spec: RopeSpec, rotations: float) -> float:
    """Return the fractional pair index that makes `rotations` turns in the trained context."""
    return spec.rotary_dim * math.log(spec.context / (rotations * 2.0 * math.pi)) / (2.0 * math.log(spec.base))


def critical_dimension(spec: RopeSpec) -> int:
    """Return 2·⌈(d/2)·log_b(L/2π)⌉: dimensions from here on never complete a turn in the trained context."""
    return max(0, min(spec.rotary_dim, 2 * math.ceil(correction_dim(spec, 1.0))))


def blend(spec: RopeSpec, factor: float, kept_share: FloatArray) -> FloatArray:
    """Return θ/s·(1 − kept_share) + θ·kept_share: the weighted mean of the divided and the plain frequency (eq. 17)."""
    return freeze(spec.plain_inv_freq * ((1.0 - kept_share) / factor + kept_share))


def with_base(spec: RopeSpec, base: float) -> FloatArray:
    """Return the plain frequencies for another base, radians per position, shape (pairs,)."""
    return freeze(base ** (-2.0 * np.arange(spec.pairs) / spec.rotary_dim))


def require_factor(value: Any, name: str) -> None:
    """Raise `ValueError` unless the factor or divisor is within the bounds."""
    require_number(value, name, least=LEAST_FACTOR, most=LARGEST_FACTOR)


def require_turns(value: Any, name: str) -> None:
    """Raise `ValueError` unless the turns are positive and near enough to 1 for finite logarithms and quotients."""
    require_number(value, name, above=0.0)
    require_number(value, name, least=1e-100, most=1e100)


def require_two_pairs(spec: RopeSpec, method: str) -> None:
    """Raise `ValueError` for a single pair: NTK's exponent d/(d−2) is undefined there."""
    if spec.rotary_dim <= 2:
        raise ValueError(f"{method} scaling needs rotary_dim of at least 4, got {spec.rotary_dim}")


def parse_factors(text: str | Sequence[float]) -> tuple[float, ...]:
    """Parse LongRoPE divisors from a list, or text with commas or spaces. Raises `ValueError` that names the entry."""
    words = text.replace(",", " ").strip("[] \n").split() if isinstance(text, str) else list(text)
    found = []
    for word in words:
        try:
            found.append(float(word))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"LongRoPE factors must be numbers, got {short_repr(word)}") from None
    return tuple(found)
