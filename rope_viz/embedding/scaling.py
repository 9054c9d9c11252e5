"""Scaling methods: their knobs and formulas, in float64.

Position interpolation: Chen et al., https://arxiv.org/abs/2306.15595
NTK-aware, NTK-by-parts, YaRN: Peng et al., https://arxiv.org/abs/2309.00071 (equation numbers below)
YaRN as released: https://github.com/jquesnelle/yarn at 995db5b, and transformers 5.23.0 `modeling_rope_utils`
Llama 3: https://github.com/meta-llama/llama-models at a9c89c4, `models/llama3/model.py`
LongRoPE: Ding et al., https://arxiv.org/abs/2402.13753
Critical dimension: Liu et al., https://arxiv.org/abs/2310.05209 (the formula equals YaRN's correction range at 1 turn)
p-RoPE: Barbero et al., https://arxiv.org/abs/2410.06205
Resonance RoPE: Wang et al., https://arxiv.org/abs/2403.00071
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from rope_viz.embedding import TEXTS
from rope_viz.embedding.spec import (
    LARGEST_FACTOR,
    LEAST_FACTOR,
    MAX_BASE,
    MAX_HEAD_DIM,
    FloatArray,
    RopeSpec,
    Scaling,
    freeze,
    knob,
    require_number,
    short_repr,
)
from rope_viz.embedding.spectrum import TAU, wavelength

FAST, SLOW = 32.0, 1.0
"""Turns within a length from which LongRoPE's pairs keep their divisor beyond it, and below which it grows in full.

Source: YaRN, https://arxiv.org/abs/2309.00071, section 3.2.
"""


def factor_knob(default: float = 4.0) -> Any:
    """Return the knob for the factor s, which most methods have."""
    return knob(default, TEXTS("knobs.factor"), 1.0, 128.0, TEXTS("knobs.factor_help"), log=True)


def optional_knob(label: str, low: float, high: float, help: str) -> Any:
    """Return a knob whose default None means that the method computes the value."""
    return knob(None, label, low, high, help)


@dataclass(frozen=True)
class Linear(Scaling):
    """Position interpolation: every frequency is divided by the factor."""

    name: str = field(default="linear", init=False)
    rope_type: ClassVar[str] = "linear"
    line_rank: ClassVar[int] = 2
    plan_texts: ClassVar[tuple[str, ...]] = ("all_divided",)
    ends_at_factor: ClassVar[bool] = True
    factor: float = factor_knob()

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq / self.factor)


@dataclass(frozen=True)
class NtkAware(Scaling):
    """A larger base: the first pair keeps its frequency and the last is divided by exactly the factor (eq. 16)."""

    name: str = field(default="ntk", init=False)
    line_rank: ClassVar[int] = 1
    plan_texts: ClassVar[tuple[str, ...]] = ("highest_kept",)
    factor: float = factor_knob()

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        require_two_pairs(spec, self.name)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return with_base(spec, self.base(spec, length))

    def base(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the base of plain RoPE with the same frequencies at this length."""
        return float(spec.base * self.growth(spec, length) ** (spec.rotary_dim / (spec.rotary_dim - 2)))

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        base = self.base(spec)
        return (replace(spec, base=base, scaling=Scaling()),) if 1.0 < base <= MAX_BASE else ()


@dataclass(frozen=True)
class DynamicNtk(NtkAware):
    """NTK-aware with a base that grows with the current length, as transformers computes it.

    For length l > context L the base is base·(s·l/L − (s − 1))^(d/(d−2)). Up to L it is unchanged.
    """

    name: str = field(default="dynamic", init=False)
    rope_type: ClassVar[str] = "dynamic"
    line_rank: ClassVar[int] = 5
    plan_texts: ClassVar[tuple[str, ...]] = ("highest_kept", "by_length")
    divides_from_length: ClassVar[bool] = True
    depends_on_length: ClassVar[bool] = True
    factor: float = factor_knob(2.0)

    def growth(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the effective factor at this length: s·l/L − (s − 1), at least 1."""
        longest = max(length or spec.context, spec.context)
        return self.factor * longest / spec.context - (self.factor - 1.0)

    def reaching(self, factor: float) -> Self:
        # s·(l/L) − (s − 1) = l/L at every s where l = L, and at s = 1; so 1 reaches the target as plain NTK does.
        return self.with_factor(1.0)

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        return (spec,)


@dataclass(frozen=True)
class Ramp(Scaling):
    """The base of methods that blend each plain frequency with the divided one, by a ramp over turns in training."""

    divides_from_length: ClassVar[bool] = True
    has_ramp: ClassVar[bool] = True
    factor: float = factor_knob()

    def validate(self, spec: RopeSpec) -> None:
        require_factor(self.factor, "factor")
        for name in self.bounds:
            require_turns(getattr(self, name), name)

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        return paper_ramp(spec, *(getattr(self, name) for name in self.bounds))

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return blend(spec, self.factor, self.kept_share(spec))


@dataclass(frozen=True)
class NtkByParts(Ramp):
    """The paper's ramp (eq. 17 to 20): linear in a pair's turns r over the trained context, from alpha to beta."""

    name: str = field(default="ntk-by-parts", init=False)
    line_rank: ClassVar[int] = 7
    bounds: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    alpha: float = knob(1.0, TEXTS("knobs.alpha"), 0.1, 64.0, TEXTS("knobs.slow_turns_help"), log=True)
    beta: float = knob(32.0, TEXTS("knobs.beta"), 0.1, 128.0, TEXTS("knobs.fast_turns_help"), log=True)

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        # Llama 3 scaling is the paper's ramp.
        return (replace(spec, scaling=Llama3(self.factor, self.alpha, self.beta)),)


@dataclass(frozen=True)
class PaperYarn(NtkByParts):
    """YaRN as in the paper: NTK-by-parts and the attention factor √(1/t) = 0.1 ln s + 1 (eq. 22)."""

    name: str = field(default="yarn-paper", init=False)
    line_rank: ClassVar[int] = 6

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        return mscale(self.factor)

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        return ()


@dataclass(frozen=True)
class Yarn(Ramp):
    """YaRN as every implementation released it: the ramp is linear in the pair index, not in the turns.

    Without rounding the ramp is clamp(ln(r/beta_slow) / ln(beta_fast/beta_slow), 0, 1): logarithmic in the turns r.
    """

    name: str = field(default="yarn", init=False)
    rope_type: ClassVar[str] = "yarn"
    line_rank: ClassVar[int] = 0
    plan_texts: ClassVar[tuple[str, ...]] = ("some_kept",)
    ends_at_factor: ClassVar[bool] = True
    reaches_factor: ClassVar[bool] = True
    bounds: ClassVar[tuple[str, ...]] = ("beta_slow", "beta_fast")
    beta_fast: float = knob(32.0, TEXTS("knobs.beta_fast"), 0.1, 128.0, TEXTS("knobs.fast_turns_help"), log=True)
    beta_slow: float = knob(1.0, TEXTS("knobs.beta_slow"), 0.1, 64.0, TEXTS("knobs.slow_turns_help"), log=True)
    truncate: bool = True
    attention: float | None = optional_knob(TEXTS("knobs.attention"), 0.1, 4.0, TEXTS("knobs.attention_help"))
    mscale: float | None = optional_knob(TEXTS("knobs.mscale"), 0.0, 4.0, TEXTS("knobs.mscale_help"))
    mscale_all_dim: float | None = optional_knob(
        TEXTS("knobs.mscale_all_dim"), 0.0, 4.0, TEXTS("knobs.mscale_all_dim_help")
    )
    attention_weight: float | None = optional_knob(
        TEXTS("knobs.attention_weight"), 0.0, 1.0, TEXTS("knobs.attention_weight_help")
    )

    def validate(self, spec: RopeSpec) -> None:
        super().validate(spec)
        if not isinstance(self.truncate, bool):
            raise ValueError(TEXTS("errors.switch", name="truncate", value=short_repr(self.truncate)))
        for name in ("attention", "mscale", "mscale_all_dim", "attention_weight"):
            if getattr(self, name) is not None:
                require_number(getattr(self, name), "attention_factor" if name == "attention" else name)
        if spec.rotary_dim % 2:
            raise ValueError(TEXTS("errors.yarn_even", value=spec.rotary_dim))
        computed = self.attention is None and self.mscale
        if computed and self.mscale_all_dim and not mscale(self.factor, self.mscale_all_dim):
            raise ValueError(TEXTS("errors.mscale", value=self.mscale_all_dim))

    def correction_range(self, spec: RopeSpec) -> tuple[float, float]:
        """Return the pair indices between which the ramp falls from 1 to 0: rounded outwards if `truncate`, clamped."""
        low = correction_dim(spec, self.beta_fast)
        high = correction_dim(spec, self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        # The clamp is rotary_dim - 1, not the last pair rotary_dim/2 - 1, in every released implementation.
        return max(low, 0), min(high, spec.rotary_dim - 1)

    @property
    def as_in_paper(self) -> PaperYarn:
        return PaperYarn(self.factor, self.beta_slow, self.beta_fast)

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        low, high = self.correction_range(spec)
        if low == high:
            high += 0.001
        divided_share: FloatArray = np.clip((np.arange(spec.pairs) - low) / (high - low), 0.0, 1.0)
        return 1.0 - divided_share

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        if self.attention is not None:
            return self.attention
        if self.mscale and self.mscale_all_dim:
            return mscale(self.factor, self.mscale) / mscale(self.factor, self.mscale_all_dim)
        return mscale(self.factor, 1.0 if self.attention_weight is None else 10.0 * self.attention_weight)

    def computes_same(self, ours: RopeSpec, theirs: RopeSpec) -> bool:
        mine, its = (getattr(one.scaling, "mscale_all_dim", None) or 0.0 for one in (ours, theirs))
        return (
            mine == its  # DeepSeek's attention multiplies its softmax scale by a power of it
            and np.array_equal(ours.inv_freq(), theirs.inv_freq())
            and abs(ours.attention_factor() - theirs.attention_factor()) < 1e-6
        )

    def config_keys(self, spec: RopeSpec) -> dict[str, Any]:
        if self.attention_weight is None:
            return super().config_keys(spec)
        # No key has this weight: the factor itself is written.
        keys = replace(self, attention_weight=None, attention=None).config_keys(spec)
        return keys | {"attention_factor": spec.attention_factor()}


@dataclass(frozen=True)
class Llama3(Ramp):
    """Llama 3.1 scaling: the paper's ramp from low_freq_factor to high_freq_factor turns, no attention factor."""

    name: str = field(default="llama3", init=False)
    rope_type: ClassVar[str] = "llama3"
    line_rank: ClassVar[int] = 3
    plan_texts: ClassVar[tuple[str, ...]] = ("some_kept", "trained")
    is_trained_with: ClassVar[bool] = True
    reaches_factor: ClassVar[bool] = True
    bounds: ClassVar[tuple[str, ...]] = ("low_freq_factor", "high_freq_factor")
    factor: float = factor_knob(8.0)
    low_freq_factor: float = knob(
        1.0, TEXTS("knobs.low_freq_factor"), 0.1, 64.0, TEXTS("knobs.low_freq_factor_help"), log=True
    )
    high_freq_factor: float = knob(
        4.0, TEXTS("knobs.high_freq_factor"), 0.1, 128.0, TEXTS("knobs.high_freq_factor_help"), log=True
    )


@dataclass(frozen=True)
class LongRope(Scaling):
    """One divisor per pair: the short list up to the trained length, the long list beyond it.

    An empty list is replaced by NTK-aware divisors (from 1 to the factor), so that the method works for a model that
    publishes none. `factor` None means target / context.
    """

    name: str = field(default="longrope", init=False)
    rope_type: ClassVar[str] = "longrope"
    line_rank: ClassVar[int] = 4
    plan_texts: ClassVar[tuple[str, ...]] = ("searched",)
    divides_from_length: ClassVar[bool] = True
    depends_on_length: ClassVar[bool] = True
    is_trained_with: ClassVar[bool] = True
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    factor: float | None = optional_knob(TEXTS("knobs.factor"), 1.0, 128.0, TEXTS("knobs.longrope_factor_help"))
    attention: float | None = optional_knob(TEXTS("knobs.attention"), 0.1, 4.0, TEXTS("knobs.attention_help"))

    def __post_init__(self) -> None:
        for name in ("short_factor", "long_factor"):
            values = getattr(self, name)
            if not isinstance(values, Iterable):
                raise ValueError(TEXTS("errors.list", name=name, value=short_repr(values)))
            object.__setattr__(self, name, tuple(values))  # configs hold lists, but a method must be hashable

    def validate(self, spec: RopeSpec) -> None:
        for name, values in (("short_factor", self.short_factor), ("long_factor", self.long_factor)):
            if values and len(values) != spec.pairs:
                raise ValueError(TEXTS("errors.per_pair", name=name, pairs=spec.pairs, count=len(values)))
            entries = TEXTS("errors.entries", name=name)
            for value in values:
                require_factor(value, entries)
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

    def factor_for_attention(self, spec: RopeSpec, attention: float) -> float | None:
        """Return the factor from which the method computes this attention factor; None where none does."""
        if attention < 1.0:
            return None
        power = (attention**2 - 1.0) * math.log(spec.context)
        return math.exp(power) if power < math.log(LARGEST_FACTOR) else None

    def divided_share(self, spec: RopeSpec, length: int | None = None) -> float:
        return 1.0

    def go_further(self, spec: RopeSpec, reach: float, target: float) -> Scaling | None:
        """Return the lists with a long one that goes on from the trained one; None where there is no list.

        Pairs that turn often within `reach` keep the trained divisor, slow ones are divided by target / reach more.
        """
        if not self.long_factor:
            return None
        trained, ratio = np.asarray(self.long_factor, dtype=np.float64), max(target / reach, 1.0)
        turned = reach * spec.plain_inv_freq / trained / (2.0 * math.pi)
        weight = np.clip((turned - SLOW) / (FAST - SLOW), 0.0, 1.0)
        longer = trained / (weight + (1.0 - weight) / ratio)
        if longer.max() >= LARGEST_FACTOR:
            return None
        factor = None if self.factor is None else min(self.factor * ratio, LARGEST_FACTOR)
        return replace(self, long_factor=tuple(float(f"{value:.12g}") for value in longer), factor=factor)

    def config_keys(self, spec: RopeSpec) -> dict[str, Any]:
        # Without lists of its own the method uses NTK-like ones; a config must write them out.
        lists = {
            "short_factor": self.divisors(spec, spec.context),
            "long_factor": self.divisors(spec, spec.context + 1),
        }
        keys = super().config_keys(spec)
        return keys | {key: values.tolist() for key, values in lists.items() if key not in keys}

    def sentences(self, spec: RopeSpec) -> list[tuple[str, dict[str, Any]]]:
        return [("divisors", {})]


@dataclass(frozen=True)
class Proportional(Scaling):
    """p-RoPE: the highest frequencies, a share p of the pairs, rotate; the rest have frequency exactly 0.

    The exponents run over the whole rotary_dim, not over the rotated part.
    """

    name: str = field(default="proportional", init=False)
    rope_type: ClassVar[str] = "proportional"
    line_rank: ClassVar[int] = 8
    shares_factor: ClassVar[bool] = False
    rotates_whole_head: ClassVar[bool] = True
    share: float = knob(0.25, TEXTS("knobs.share"), 0.0, 1.0, TEXTS("knobs.share_help"), step=0.01)
    factor: float = factor_knob(1.0)

    def validate(self, spec: RopeSpec) -> None:
        require_number(self.share, "share", least=0.0, most=1.0)
        require_factor(self.factor, "factor")

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        rotated = int(self.share * spec.rotary_dim // 2)
        return freeze(np.where(np.arange(spec.pairs) < rotated, spec.plain_inv_freq / self.factor, 0.0))

    def go_further(self, spec: RopeSpec, reach: float, target: float) -> Scaling | None:
        return None if self.factor == 1.0 else super().go_further(spec, reach, target)

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        # A config asks for it on the whole head only: not faithful, and the result says so.
        return (replace(spec, rotary_dim=spec.head_dim),)

    def config_keys(self, spec: RopeSpec) -> dict[str, Any]:
        return {"partial_rotary_factor": self.share, "factor": self.factor}

    def sentences(self, spec: RopeSpec) -> list[tuple[str, dict[str, Any]]]:
        divided = [] if self.factor == 1.0 else [("share_factor", {"factor": self.factor})]
        return [("share", {"share": self.share}), *divided]


@dataclass(frozen=True)
class ClippedRope(Scaling):
    """CoPE: the lowest frequencies fall to 0 by half a cosine; the first of them keeps its frequency.

    Li et al., https://arxiv.org/abs/2602.05258, code https://github.com/hrlics/CoPE at ed52ba5. The code fades out 20
    pairs of Llama 3; that the pairs with unseen angles are meant is in ml-explore/mlx-lm#1387.
    """

    name: str = field(default="cope", init=False)
    line_rank: ClassVar[int] = 9
    has_ramp: ClassVar[bool] = True
    clipped: int | None = knob(None, TEXTS("knobs.clipped"), 0, 256, TEXTS("knobs.clipped_help"), integer=True)

    def validate(self, spec: RopeSpec) -> None:
        if self.clipped is not None:
            require_number(self.clipped, "clipped", least=0, most=MAX_HEAD_DIM, integer=True)

    def count_clipped(self, spec: RopeSpec) -> int:
        """Return how many pairs fade out, at most all of them."""
        if self.clipped is not None:
            return min(int(self.clipped), spec.pairs)
        return int(np.count_nonzero(wavelength(spec.plain_inv_freq) > spec.context))

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        count = self.count_clipped(spec)
        mask = np.ones(spec.pairs)
        mask[spec.pairs - count :] = 0.5 * (1.0 + np.cos(np.linspace(0.0, np.pi, count)))
        return mask

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq * self.kept_share(spec))

    def divided_share(self, spec: RopeSpec, length: int | None = None) -> float:
        return 0.0

    def sentences(self, spec: RopeSpec) -> list[tuple[str, dict[str, Any]]]:
        return [("clipped", {"count": self.count_clipped(spec)})]


@dataclass(frozen=True)
class Resonance(Scaling):
    """Resonance RoPE: each wavelength is rounded to whole tokens, so that a pair's angles repeat exactly.

    It extends nothing by itself: the first wavelength, 2π tokens, becomes 6, and so that pair turns faster.
    """

    name: str = field(default="resonance", init=False)
    extends: ClassVar[bool] = False
    is_trained_with: ClassVar[bool] = True

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(TAU / np.rint(wavelength(spec.plain_inv_freq)))


REGISTERED: tuple[type[Scaling], ...] = (
    Scaling,
    Linear,
    NtkAware,
    DynamicNtk,
    NtkByParts,
    PaperYarn,
    Yarn,
    Llama3,
    LongRope,
    Proportional,
    ClippedRope,
    Resonance,
)
"""Every method, in the order of menus."""
METHODS: dict[str, type[Scaling]] = {kind.name: kind for kind in REGISTERED}


class MethodLabels(Mapping[str, str]):
    """The names of the methods in the current language."""

    def __getitem__(self, name: str) -> str:
        return METHODS[name].label

    def __iter__(self) -> Iterator[str]:
        return iter(METHODS)

    def __len__(self) -> int:
        return len(METHODS)


LABELS = MethodLabels()


def build_method(name: str, factor: float) -> Scaling:
    """Return a method with this factor, if it has one, and defaults for its other knobs."""
    return METHODS[name]().with_factor(factor)


def list_config_forms(spec: RopeSpec) -> Iterator[RopeSpec]:
    """Yield the same frequencies by methods that configs know, the plainest first.

    Any fixed frequencies are LongRoPE lists. CoPE's last pair has zero frequency: its largest divisor is not faithful.
    """
    forms = spec.scaling.config_forms(spec)
    yield from forms
    if not spec.scaling.depends_on_length and (not forms or np.all(spec.inv_freq() > 0)):
        yield as_divisors(spec, spec.inv_freq(), spec.attention_factor())


def as_divisors(spec: RopeSpec, inv_freq: FloatArray, attention: float) -> RopeSpec:
    """Return LongRoPE with these frequencies and this factor on cos and sin at every length.

    Both attention_factor and factor state the factor on cos and sin, because some runtimes read only one of them.
    Rounding may carry a quotient just past what a list may hold, and zero frequency has none: it gets the nearest.
    """
    with np.errstate(divide="ignore"):
        divisors = np.clip(spec.plain_inv_freq / inv_freq, LEAST_FACTOR, LARGEST_FACTOR)
    values = tuple(float(value) for value in divisors)
    lists = LongRope(values, values, attention=attention)
    return replace(spec, scaling=replace(lists, factor=lists.factor_for_attention(spec, attention)))


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
        raise ValueError(TEXTS("errors.two_pairs", method=method, value=spec.rotary_dim))


def parse_factors(text: str | Sequence[float]) -> tuple[float, ...]:
    """Parse LongRoPE divisors from a list, or text with commas or spaces. Raises `ValueError` that names the entry."""
    words = text.replace(",", " ").strip("[] \n").split() if isinstance(text, str) else list(text)
    found = []
    for word in words:
        try:
            found.append(float(word))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(TEXTS("errors.factors", value=short_repr(word))) from None
    return tuple(found)
