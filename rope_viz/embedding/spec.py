"""`RopeSpec`, the value that describes one rotary position embedding, and the base class of scaling methods.

Su et al., RoFormer, https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from rope_viz.embedding import TEXTS
from rope_viz.embedding.spectrum import BAND_NAMES, Embedding, bands, wavelength
from rope_viz.embedding.spectrum import FloatArray as FloatArray
from rope_viz.embedding.still_dials import draw_dials
from rope_viz.texts import Translated

LEFT = 'style="text-align:left"'


def band_rows(spec: Embedding) -> list[tuple[str, str, str, str]]:
    """Return (band, pairs, shortest and longest wavelength in tokens) of each run of one kind, at the target length."""
    lengths = wavelength(spec.inv_freq(spec.target))
    out = []
    for kind, first, last in bands(spec, length=spec.target).runs:
        pairs = f"{first} – {last}" if last > first else str(first)
        ends = [f"{length:,.4g}" if np.isfinite(length) else "∞" for length in lengths[[first, last]]]
        out.append((BAND_NAMES[kind], pairs, ends[0], ends[1]))
    return out


def render_table(sizes: Sequence[tuple[str, str]], spec: Embedding) -> str:
    """Return the table as HTML: `sizes` as (name, value), and a row for each band of the spec."""
    top = "".join(
        f'<tr><th {LEFT}>{html.escape(name)}</th><td {LEFT} colspan="3">{html.escape(value)}</td></tr>'
        for name, value in sizes
    )
    names = ("pairs that are", "pairs", "first turns once in", "last turns once in")
    head = "".join(f"<th {LEFT}>{name}</th>" for name in names)
    cells = ("".join(f"<td {LEFT}>{html.escape(cell)}</td>" for cell in row) for row in band_rows(spec))
    return f"<table><tbody>{top}<tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"


Pairing: TypeAlias = Literal["interleaved", "half"]

PAIRINGS: tuple[Pairing, ...] = ("half", "interleaved")
MAX_HEAD_DIM = 4096
MAX_LENGTH = 1 << 31
MAX_BASE = 1e30
# Bounds of a factor or divisor; within them no formula here overflows.
LEAST_FACTOR, LARGEST_FACTOR = 1e-9, 1e9
MAX_ATTENTION = 1e12  # bound on |factor on cos and sin|: keeps its square and its products finite


@dataclass(frozen=True)
class Knob:
    """Label, bounds and format of a field, shared by its control, its link and its command-line flag.

    `low` and `high` bound the control, not the value. A config may hold any value that can be computed; the control
    then shows its nearest end.
    """

    label: Translated = Translated()
    low: float  # type: ignore[misc]  # the descriptor above is no default
    high: float  # type: ignore[misc]
    help: Translated = Translated()
    step: float | None = None
    log: bool = False
    integer: bool = False
    unit: str = ""


def knob(default: Any, label: str, low: float, high: float, help: str, **options: Any) -> Any:
    """Return a dataclass field that is also a control; `options` are those of `Knob`."""
    return field(default=default, metadata={"knob": Knob(label, low, high, help, **options)})


def knobs(value: Any) -> dict[str, Knob]:
    """Return the knobs of a spec or scaling (instance or class) by field name, in field order."""
    return {f.name: f.metadata["knob"] for f in dataclasses.fields(value) if "knob" in f.metadata}


def switches(value: Any) -> list[str]:
    """Return the names of the fields of a scaling method that are on or off."""
    return [item.name for item in dataclasses.fields(value) if isinstance(item.default, bool)]


def lists(value: Any) -> list[str]:
    """Return the names of the fields of a scaling method (instance or class) that hold a number per pair."""
    return [item.name for item in dataclasses.fields(value) if isinstance(item.default, tuple)]


def require_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    integer: bool = False,
) -> None:
    """Raise `ValueError` that names the field unless `value` is a finite number within the bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(TEXTS("errors.number", name=name, value=short_repr(value)))
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(TEXTS("errors.too_large", name=name)) from None
    if not math.isfinite(number):
        raise ValueError(TEXTS("errors.finite", name=name, value=number))
    if integer and number != int(number):
        raise ValueError(TEXTS("errors.whole", name=name, value=short_repr(value)))
    if above is not None and not number > above:
        raise ValueError(TEXTS("errors.above", name=name, bound=above, value=short_repr(value)))
    if least is not None and number < least:
        raise ValueError(TEXTS("errors.least", name=name, bound=least, value=short_repr(value)))
    if most is not None and number > most:
        limit = f"{most:,.0f}" if most < 1e15 else f"{most:g}"
        raise ValueError(TEXTS("errors.most", name=name, bound=limit, value=short_repr(value)))


def short_repr(value: Any, limit: int = 40) -> str:
    """Return the value's repr for an error message, cut to `limit` characters."""
    if isinstance(value, np.number):
        value = value.item()
    try:
        text = f"{value!r:.{limit + 1}}" if isinstance(value, str) else repr(value)
    except ValueError:
        return TEXTS("errors.digits")
    return text if len(text) <= limit else text[: limit - 1] + "…"


@contextlib.contextmanager
def refuse_arithmetic_errors() -> Iterator[None]:
    """Turn overflow, division by zero and NaN into `ValueError`."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError:
        raise ValueError(TEXTS("errors.uncomputable")) from None


class MethodLabel:
    """The name of a scaling method in the current language, from the text files."""

    def __get__(self, instance: object, owner: type[Scaling]) -> str:
        if not isinstance(owner.name, str):
            raise AttributeError("label")  # while the dataclass is made
        return TEXTS.entries[f"methods.{owner.name}"]


class ShortLabel:
    """The short name of a scaling method; one without it has its name up to the bracket."""

    def __get__(self, instance: object, owner: type[Scaling]) -> str:
        if not isinstance(owner.name, str):
            raise AttributeError("short_label")
        key = f"short.{owner.name}"
        return TEXTS.entries.get(key) or re.split(r" \(|（", owner.label)[0]


@dataclass(frozen=True)
class Scaling:
    """Plain RoPE, and the base class of every scaling method.

    A method's knobs are its fields. `name` is a field because caches that compare `dataclasses.asdict` would otherwise
    confuse two methods with equal knobs. What other rooms ask about a method is a class variable or a method here.
    """

    name: str = field(default="none", init=False)
    label: ClassVar[str] = MethodLabel()  # type: ignore[assignment]  # in menus
    short_label: ClassVar[str] = ShortLabel()  # type: ignore[assignment]  # at the end of a line
    rope_type: ClassVar[str] = "default"  # in a config; "" where transformers has no such method
    line_rank: ClassVar[int] = 1_000  # place among the line styles, then the order of `METHODS`
    plan_texts: ClassVar[tuple[str, ...]] = ()  # what an extension plan says of it: keys in texts/en/plan.toml
    divides_from_length: ClassVar[bool] = False
    depends_on_length: ClassVar[bool] = False  # the frequencies change with the length of the sequence
    extends: ClassVar[bool] = True  # else it reaches no longer context, and extension plans leave it out
    shares_factor: ClassVar[bool] = True  # a comparison of methods at one factor sets its factor
    rotates_whole_head: ClassVar[bool] = False  # a config can ask for it only where rotary_dim is head_dim
    is_trained_with: ClassVar[bool] = False  # it comes from training: hardly anybody adds it to a model afterwards
    ends_at_factor: ClassVar[bool] = False  # a model reaches at most the factor times the length that it divides from
    reaches_factor: ClassVar[bool] = False  # a model reaches at least the factor times its original length
    has_ramp: ClassVar[bool] = False  # `kept_share` falls from 1 to 0 over the pairs
    bounds: ClassVar[tuple[str, ...]] = ()  # its fields with the turns in training where the ramp begins and ends

    def __init_subclass__(cls) -> None:
        if cls.rope_type == Scaling.rope_type:
            cls.rope_type = ""  # a method without a type of its own is not plain RoPE

    def validate(self, spec: RopeSpec) -> None:
        """Raise `ValueError` if the knobs do not fit this spec."""

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        """Return radians per position, shape (pairs,). `length` is the current sequence length in tokens."""
        return spec.plain_inv_freq

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the factor on cos and sin; logits are multiplied by its square."""
        return 1.0

    def factor_for(self, spec: RopeSpec) -> float:
        """Return the factor that the slowest pairs are divided by; 1 for a method without one."""
        factor = getattr(self, "factor", 1.0)
        return spec.target / spec.context if factor is None else float(factor)

    def growth(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the factor that the slowest pairs are divided by at this length."""
        return self.factor_for(spec)

    def divided_share(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the share of a plain frequency from which down a pair counts as divided, not blended."""
        return 1.0 / max(self.growth(spec, length), 1.0)

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the ramp, shape (pairs,): 1 keeps the plain frequency, 0 divides it by the factor."""
        return np.ones(spec.pairs)

    @property
    def as_in_paper(self) -> Scaling | None:
        """The method as its paper defines it; None where every implementation follows the paper."""
        return None

    def correction_range(self, spec: RopeSpec) -> tuple[float, float] | None:
        """Return YaRN's correction range in pair indices; None for a method without one."""
        return None

    def with_factor(self, factor: float) -> Self:
        """Return the method with this factor; itself if it has none."""
        return dataclasses.replace(self, factor=factor) if hasattr(self, "factor") else self  # type: ignore[call-arg]

    def reaching(self, factor: float) -> Self:
        """Return the method with the factor of its own formula that divides the last pair by `factor` at the target."""
        return self.with_factor(factor)

    def go_further(self, spec: RopeSpec, reach: float, target: float) -> Scaling | None:
        """Return the method for a target beyond the length that it reaches; None if it cannot be enlarged."""
        if getattr(self, "factor", None) is None:
            return None
        factor = self.factor_for(spec) * max(1.0, target / reach)
        return self.with_factor(factor) if 1e-6 < factor < LARGEST_FACTOR else None

    def with_pairs(self, pairs: int) -> Self:
        """Return the method for a head of this many pairs, without lists of another length."""
        unfit: dict[str, Any] = {name: () for name in lists(self) if len(getattr(self, name)) != pairs}
        return dataclasses.replace(self, **unfit) if unfit else self

    def lengths_to_compare(self, spec: RopeSpec) -> tuple[int | None, ...]:
        """Return the lengths at which two embeddings with this method have to be compared."""
        length, longer = spec.context, spec.context + 1 if lists(self) else 2 * spec.context
        return (length, longer, max(spec.target, 4 * length)) if self.depends_on_length else (None,)

    def computes_same(self, ours: RopeSpec, theirs: RopeSpec) -> bool:
        """Return whether two specs of this method with other fields have the same numbers."""
        return False

    def config_forms(self, spec: RopeSpec) -> tuple[RopeSpec, ...]:
        """Return this spec by methods that a config can ask for, the plainest first; empty if there is none."""
        return (spec,) if self.rope_type else ()

    def config_keys(self, spec: RopeSpec) -> dict[str, Any]:
        """Return what a config's RoPE parameters hold of the method, without its type and the lengths."""
        values = {config_key(item.name): getattr(self, item.name) for item in dataclasses.fields(self) if item.init}
        found = {key: value for key, value in values.items() if value not in (None, ())}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}

    def sentences(self, spec: RopeSpec) -> list[tuple[str, dict[str, Any]]]:
        """Return the keys below [method] of the page Scaling's texts that name the method, with their values."""
        if hasattr(self, "factor") or not spec.is_scaled:
            return [("factor", {"method": self.short_label, "factor": self.factor_for(spec)})]
        return [(self.name, {})]


def config_key(name: str) -> str:
    """Return the key of a config for a field of a scaling method."""
    return "attention_factor" if name == "attention" else name


@dataclass(frozen=True)
class RopeSpec:
    """A rotary position embedding: sizes, base, lengths and scaling method.

    Raises `ValueError` if the fields cannot describe a rotation.
    """

    head_dim: int = knob(128, TEXTS("knobs.head_dim"), 4, 512, TEXTS("knobs.head_dim_help"), step=2, integer=True)
    rotary_dim: int = knob(
        0,
        TEXTS("knobs.rotary_dim"),
        2,
        512,
        TEXTS("knobs.rotary_dim_help"),
        step=2,
        integer=True,
    )
    base: float = knob(
        10_000.0,
        TEXTS("knobs.base"),
        100.0,
        1e9,
        TEXTS("knobs.base_help"),
        log=True,
    )
    context: int = knob(
        4096,
        TEXTS("knobs.context"),
        128,
        4_194_304,
        TEXTS("knobs.context_help"),
        log=True,
        integer=True,
        unit="tokens",
    )
    target: int = knob(
        0,
        TEXTS("knobs.target"),
        128,
        16_777_216,
        TEXTS("knobs.target_help"),
        log=True,
        integer=True,
        unit="tokens",
    )
    scaling: Scaling = Scaling()
    pairing: Pairing = "half"

    @property
    def length_name(self) -> str:
        """Return the word for `context`: "original" if the scaling divides from it, else "trained"."""
        return "original" if self.scaling.divides_from_length else "trained"

    def __post_init__(self) -> None:
        for name, fallback in (("rotary_dim", "head_dim"), ("target", "context")):
            if getattr(self, name) == 0 and not isinstance(getattr(self, name), bool):
                object.__setattr__(self, name, getattr(self, fallback))
        require_number(self.head_dim, "head_dim", least=2, most=MAX_HEAD_DIM, integer=True)
        require_number(self.rotary_dim, "rotary_dim", least=2, most=MAX_HEAD_DIM, integer=True)
        require_number(self.base, "base", above=1.0, most=MAX_BASE)
        require_number(self.context, "context", least=1, most=MAX_LENGTH, integer=True)
        require_number(self.target, "target", least=1, most=MAX_LENGTH, integer=True)
        for name, kind in (("head_dim", int), ("rotary_dim", int), ("base", float), ("context", int), ("target", int)):
            object.__setattr__(self, name, kind(getattr(self, name)))
        if self.rotary_dim > self.head_dim:
            raise ValueError(TEXTS("errors.rotary_dim", head_dim=self.head_dim, value=self.rotary_dim))
        if self.rotary_dim == self.head_dim and self.head_dim % 2:
            raise ValueError(TEXTS("errors.even", name="head_dim", value=self.head_dim))
        if 2 * self.pairs > self.head_dim:
            raise ValueError(TEXTS("errors.even", name="rotary_dim", value=self.rotary_dim))
        if not isinstance(self.scaling, Scaling):
            raise ValueError(TEXTS("errors.scaling", value=short_repr(self.scaling)))
        if self.pairing not in PAIRINGS:
            raise ValueError(TEXTS("errors.pairing", value=short_repr(self.pairing)))
        self.scaling.validate(self)
        if type(self.scaling) is not Scaling:  # any base within its bounds gives finite frequencies
            (_require_computable if self._is_built_in else _require_computable.__wrapped__)(self)

    @property
    def is_scaled(self) -> bool:
        """True if a scaling method applies, even one whose knobs change nothing."""
        return self.scaling.name != "none"

    @property
    def _is_built_in(self) -> bool:
        """True if the scaling method is from this package. A user's own method may be unhashable or have state."""
        return type(self.scaling).__module__.startswith("rope_viz.")

    @property
    def pairs(self) -> int:
        """Return the number of rotating pairs. An odd partial rotary_dim is rounded up, as transformers does."""
        return (self.rotary_dim + 1) // 2

    @property
    def plain_inv_freq(self) -> FloatArray:
        """Return the unscaled base^(-2i/rotary_dim), radians per position, shape (pairs,). Read-only."""
        return _compute_plain_inv_freq(self.base, self.rotary_dim)

    def inv_freq(self, length: int | None = None) -> FloatArray:
        """Return radians per position, float64, shape (pairs,). Read-only.

        `length` is the current sequence length in tokens; only dynamic NTK and LongRoPE depend on it. None means the
        state at start-up, before any sequence exceeded the trained context.
        """
        length = check_length(length)
        return _compute_inv_freq(self, length) if self._is_built_in else self.scaling.inv_freq(self, length)

    def attention_factor(self, length: int | None = None) -> float:
        """Return the factor on cos and sin; logits are multiplied by its square."""
        return float(self.scaling.attention_factor(self, check_length(length)))

    def plain(self) -> RopeSpec:
        """Return the same embedding without scaling."""
        return dataclasses.replace(self, scaling=Scaling())

    def sizes(self) -> list[tuple[str, str]]:
        """Return (name, value) of the sizes and the scaling for a notebook, lengths in tokens."""
        partial = "" if self.rotary_dim == self.head_dim else f", of which {self.rotary_dim} rotate"
        out = [("head dimension", f"{self.head_dim}{partial}"), ("base", f"{self.base:,.10g}")]
        out += [("trained length", f"{self.context:,} tokens"), ("target length", f"{self.target:,} tokens")]
        scaling = self.scaling.name
        if self.is_scaled:
            factor, logits = self.scaling.factor_for(self), self.attention_factor(self.target)
            scaling += f", factor {factor:.6g}" + (f", cos and sin × {logits:.6g}" if logits != 1.0 else "")
        return [*out, ("scaling", scaling)]

    def _repr_html_(self) -> str:
        """Return a small HTML table for a notebook, and the pairs as dials at the end of the trained length."""
        return render_table(self.sizes(), self) + draw_dials(self, self.context)


def is_equal_except(one: RopeSpec, other: RopeSpec, *names: str) -> bool:
    """Return whether two specs differ at most in the fields of these names."""
    fields = (item.name for item in dataclasses.fields(RopeSpec) if item.name not in names)
    return all(getattr(one, name) == getattr(other, name) for name in fields)


# Cached: one page run, or one check of a config, builds the same few specs many times.
@functools.lru_cache(1024)
def _compute_plain_inv_freq(base: float, rotary_dim: int) -> FloatArray:
    pairs = (rotary_dim + 1) // 2
    return freeze(base ** (-2.0 * np.arange(pairs) / rotary_dim))


@functools.lru_cache(1024)
def _compute_inv_freq(spec: RopeSpec, length: int | None) -> FloatArray:
    return freeze(spec.scaling.inv_freq(spec, length))


@functools.lru_cache(1024)
def _require_computable(spec: RopeSpec) -> None:
    """Raise `ValueError` unless the frequencies and the attention factor are finite and within bounds."""
    with refuse_arithmetic_errors():
        for length in (None, spec.target):
            if not np.isfinite(spec.inv_freq(length)).all():
                raise ValueError(TEXTS("errors.uncomputable"))
            factor = spec.attention_factor(length)
            require_number(factor, TEXTS("errors.attention_factor"), least=-MAX_ATTENTION, most=MAX_ATTENTION)


def check_length(length: int | None) -> int | None:
    """Return the length as an int; raise `ValueError` if it is out of bounds."""
    if length is None:
        return None
    require_number(length, "length", least=1, most=1e15, integer=True)
    return int(length)


def freeze(array: FloatArray) -> FloatArray:
    """Mark the array read-only and return it: callers share cached arrays."""
    array.flags.writeable = False
    return array
