"""What the model of the list ships with, and what of that a config has otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import LABELS
from rope_viz.embedding.spec import RopeSpec, config_key, lists
from rope_viz.models import TEXTS
from rope_viz.models.catalog import Model, catalog, main_layer, model_specs
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES

NEAR = 0.05
"""Lengths with a smaller relative difference count as the same."""


def family_name(model: Model) -> str:
    """Return the name of an entry without the method that it adds."""
    return model.name.partition(", YaRN")[0]


def is_added_later(model: Model) -> bool:
    """Return whether the maker advises an entry's scaling but did not train the model with it."""
    name = family_name(model)
    return any(
        one.documented
        for one in catalog().values()
        if name in (family_name(one), family_name(one).removesuffix(" Instruct"))
    )


def find_shipped_spec(model: Model, layer: str) -> RopeSpec | None:
    """Return the embedding that a model ships with for layers of this type; None where the catalog has none."""
    specs = model_specs(model.id)
    main = main_layer(model, specs)
    if layer not in specs and layer not in ("", "full_attention", "main") and main != layer:
        return None
    return specs.get(layer, specs[main])


def find_departures(ours: RopeSpec, theirs: RopeSpec) -> dict[str, str]:
    """Return {key: in words} of how a scaling differs from the shipped one; {} where both compute the same."""
    if is_same_scaling(ours, theirs):
        return {}
    if ours.scaling.name != theirs.scaling.name:
        return {"rope_type": TEXTS("differs.method", ours=describe_method(ours), theirs=describe_method(theirs))}
    found: dict[str, str] = {}
    for field in dataclasses.fields(theirs.scaling):
        mine, its = (getattr(one.scaling, field.name) for one in (ours, theirs))
        key = config_key(field.name)
        if mine != its and its is None:
            found[key] = TEXTS("differs.formula", key=key, ours=format_value(mine))
        elif mine != its and mine is not None:
            found[key] = TEXTS("differs.value", key=key, ours=format_value(mine), theirs=format_value(its))
        elif mine != its:
            found[key] = TEXTS("differs.missing", key=key, theirs=format_value(its))
    if ours.context != theirs.context and ours.scaling.rope_type in PRETRAINED_TYPES:
        found[ORIGINAL] = TEXTS("differs.original", ours=ours.context, theirs=theirs.context)
    return found


def is_same_scaling(ours: RopeSpec, theirs: RopeSpec) -> bool:
    """Return whether two embeddings scale alike, whatever length either is written for."""
    if ours.scaling.name != theirs.scaling.name:
        return False
    if ours.scaling == theirs.scaling and (
        ours.context == theirs.context or ours.scaling.rope_type not in PRETRAINED_TYPES
    ):
        return True
    # A key that says what the formula gives anyway is no other scaling.
    return ours.scaling.computes_same(ours, theirs)


def is_factor_for_length(ours: RopeSpec, theirs: RopeSpec, keys: Mapping[str, Any]) -> bool:
    """Return whether the difference is only a factor for another length, as in further training."""
    if lists(ours.scaling) and lists(theirs.scaling):
        return not set(keys) - {"factor", "long_factor"} and is_longer_list(ours, theirs)
    if not keys or set(keys) - {"factor"} or lists(ours.scaling):
        return False
    if abs(ours.target / theirs.target - 1.0) < NEAR:
        return False
    factor, its = ours.scaling.factor_for(ours), theirs.scaling.factor_for(theirs)
    if ours.scaling.ends_at_factor and ours.scaling.divides_from_length:
        return abs(factor * ours.context / ours.target - 1.0) < NEAR
    return (factor > its) == (ours.target > theirs.target)


def is_longer_list(ours: RopeSpec, theirs: RopeSpec) -> bool:
    """Return whether a long list goes on from the shipped one: for a longer target, no divisor smaller."""
    mine, its = (one.plain_inv_freq / one.inv_freq(one.context + 1) for one in (ours, theirs))
    if ours.target <= theirs.target * (1.0 + NEAR) or len(mine) != len(its):
        return False
    ratio = ours.target / theirs.target
    return bool(np.all(mine >= its * (1.0 - 1e-6)) and np.all(mine <= its * ratio * (1.0 + 1e-6)))


def describe_method(spec: RopeSpec) -> str:
    """Return a method in words, with its factor where it has one."""
    if not spec.is_scaled:
        return TEXTS("method.none")
    factor, name = getattr(spec.scaling, "factor", None), LABELS[spec.scaling.name]
    return name if factor is None else TEXTS("method.factor", method=name, factor=format_value(factor))


def format_value(value: Any) -> str:
    """Return a value as a file has it; a list by its ends."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        ends = {"first": value[0], "last": value[-1]} if value else {}
        return TEXTS("differs.list", numbers=len(value), **ends) if value else TEXTS("differs.empty_list")
    return f"{value:g}"
