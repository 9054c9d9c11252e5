"""The curves of a comparison: the current spec, other methods for it and pinned variants, each with name and style."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import FloatArray, RopeSpec, knobs
from rope_viz.embedding.spectrum import SPED, STILL
from rope_viz.figures import line_styles
from rope_viz.figures.words import name_band
from rope_viz.models.spec_url import format_value
from rope_viz.models.variant import MOST, Variant
from rope_viz.texts import Texts
from rope_viz.texts.line_breaks import count_letters
from rope_viz.texts.numbers import format_tokens

TEXTS, FIGURES = Texts("app"), Texts("figures")
SIZES = ("base", "head_dim", "rotary_dim", "context", "target", "pairing")
LETTER = 7.4
"""Pixels of a letter at the size of a label."""
LEAST_MARGIN, MOST_MARGIN = 112, 240


@dataclass(frozen=True)
class Compared:
    """One curve of a comparison: a spec and its style."""

    label: str
    spec: RopeSpec
    colour: str
    dash: str = "solid"
    model: str = ""  # the model's name, if several are compared

    @property
    def inv_freq(self) -> FloatArray:
        """Return the frequencies at the target length."""
        return self.spec.inv_freq(self.spec.target)


def compared(
    spec: RopeSpec,
    others: Sequence[RopeSpec],
    variants: Mapping[int, Variant] | None = None,
    *,
    current: Variant | None = None,
) -> list[Compared]:
    """Return the current spec, further methods for it and pinned variants by number, styled by `line_styles`.

    `current` names the model of `spec`, which is needed next to variants. A variant's style belongs to its number.
    """
    looks = [line_styles.CURRENT, *(line_styles.METHODS[other.scaling.name] for other in others)]
    specs = [spec, *others]
    if not variants:
        names = [short_label(each.scaling.name) for each in specs]
        return [Compared(name, each, *look) for name, each, look in zip(names, specs, looks, strict=True)]
    assert current is not None
    free = line_styles.take_slots(MOST, looks)
    looks += [free[number - 1] for number in variants]
    curves = [Variant(current.subject._replace(spec=each), current.name) for each in specs] + [*variants.values()]
    several = len({_model(each) for each in curves}) > 1
    return [
        Compared(name, curve.subject.spec, *look, _model_name(curve) if several else "")
        for name, curve, look in zip(name_curves(curves), curves, looks, strict=True)
    ]


def name_curves(curves: Sequence[Variant]) -> list[str]:
    """Return a name for each curve, the current one first: its model if there are several, and what is particular.

    If the curves of the current model differ in one value, each is named with its own. Otherwise they are named with
    what differs from the current curve, and those of other models with what differs from the model itself.
    """
    current = curves[0]
    several = len({_model(each) for each in curves}) > 1
    group = [each for each in curves if _model(each) == _model(current)]
    varying = _varying(group)
    # Several models are named already, and so the current one needs no method.
    absolute = len(varying) == 1 and not (several and varying == ["method"])
    plain_names: list[str] = []
    for curve in curves:
        if _model(curve) != _model(current) or len(group) == 1:
            first = next(each for each in curves if _model(each) == _model(curve))
            parts = _describe(curve, [curve, curve.start or first])
        else:
            parts = _describe(curve, group if absolute else [curve, current])
        parts = [_model_name(curve), *parts] if several else parts
        name = ", ".join(parts) or short_label(curve.subject.spec.scaling.name)
        plain_names.append(name)
    counts = [plain_names[:index].count(name) for index, name in enumerate(plain_names)]
    return [
        str(TEXTS("variants.same", name=name, count=count)) if count else name
        for name, count in zip(plain_names, counts, strict=True)
    ]


def name_variants(current: Variant, variants: Mapping[int, Variant]) -> dict[int, str]:
    """Return the name of each pinned curve by number, next to the current one."""
    return dict(zip(variants, name_curves([current, *variants.values()])[1:], strict=True))


def plain(current: Compared) -> Compared:
    """Return the curve of the same model before scaling."""
    label = FIGURES("lines.plain_model", model=current.model) if current.model else FIGURES("lines.plain")
    return Compared(label, current.spec.plain(), *line_styles.PLAIN, current.model)


def short_label(method: str) -> str:
    """Return a method's name, short enough for the end of a line."""
    return METHODS[method].short_label


def label_margin(curves: Sequence[Compared]) -> int:
    """Return the width in pixels to the right of a plot that the longest name at the end of a line needs."""
    return int(min(max(LEAST_MARGIN, LETTER * max(count_letters(c.label) for c in curves) + 14), MOST_MARGIN))


def _model(curve: Variant) -> tuple[str, str]:
    return curve.subject.model, curve.name


def _model_name(curve: Variant) -> str:
    return curve.name or TEXTS("custom_model")


def _varying(group: Sequence[Variant]) -> list[str]:
    """Return the fields in which curves differ: of the method only if all have the same one."""
    specs = [each.subject.spec for each in group]
    methods = [spec.scaling for spec in specs]
    of_method = [item.name for item in dataclasses.fields(methods[0]) if item.init]
    if len({method.name for method in methods}) > 1:
        names = ["method"]
    else:
        names = [name for name in of_method if len({getattr(method, name) for method in methods}) > 1]
    sizes = [name for name in SIZES if len({getattr(spec, name) for spec in specs}) > 1]
    if all(spec.rotary_dim == spec.head_dim for spec in specs):
        sizes = [name for name in sizes if name != "rotary_dim"]
    return [*names, *sizes, *(["layer"] if len({each.subject.layer for each in group}) > 1 else [])]


def _describe(curve: Variant, group: Sequence[Variant]) -> list[str]:
    """Return the fields in which curves differ, with this curve's values, in words."""
    out, spec = [], curve.subject.spec
    scaling = spec.scaling
    for name in _varying(group):
        value: Any = getattr(spec, name, getattr(scaling, name, None))
        if name == "method":
            out.append(short_label(scaling.name))
        elif name == "factor":
            out.append(f"{short_label(scaling.name)} × {format_value(value)}")
        elif name == "layer":
            out.append(curve.subject.layer.replace("_", " "))
        elif name == "pairing":
            out.append(str(value))
        elif name in ("context", "target"):
            out.append(TEXTS(f"variants.{name}", value=format_tokens(value)))
        elif name in SIZES:
            out.append(TEXTS(f"variants.{name}", value=f"{value:,.10g}"))
        else:
            knob = knobs(scaling).get(name)
            label = knob.label if knob else name.replace("_", " ")
            listed = isinstance(value, tuple)
            out.append(
                TEXTS("variants.list" if listed else "variants.knob", label=label, value=format_value(value) or "–")
            )
    return out


def compare_factor(spec: RopeSpec) -> float:
    """Return the factor to compare methods at: the model's own, else target over trained length, else 4."""
    own = spec.scaling.factor_for(spec)
    if own > 1.0 and spec.is_scaled:
        return own
    wanted = spec.target / spec.context
    return wanted if wanted > 1.0 else 4.0


def choices(spec: RopeSpec, *, ramps: bool = False) -> dict[str, str]:
    """Return other methods to compare this model with, name -> label; with `ramps`, only those that have a ramp."""
    found = {name: kind for name, kind in METHODS.items() if name not in ("none", spec.scaling.name)}
    return {name: kind.short_label for name, kind in found.items() if kind.has_ramp or not ramps}


def alternatives(spec: RopeSpec, names: Sequence[str]) -> list[RopeSpec]:
    """Return this model under each of these methods at the same factor, without the methods that do not apply."""
    return [other for name in names if (other := alternative(spec, name)) is not None]


def alternative(spec: RopeSpec, method: str) -> RopeSpec | None:
    """Return this model under another method at the same factor, None if the method does not apply."""
    scaling = METHODS[method]()
    if scaling.shares_factor:
        scaling = scaling.with_factor(compare_factor(spec))
    try:
        return dataclasses.replace(spec, scaling=scaling)
    except ValueError:
        return None


def without_zeros(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the columns of rare bands that are empty in all rows."""
    empty = [name for name in map(name_band, (SPED, STILL)) if not any(row[name] for row in rows)]
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]
