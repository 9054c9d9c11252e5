"""What the model of the list ships with, and what of that a config has otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import LABELS, LongRope, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import Model, catalog, main_layer, model_specs
from rope_viz.models.rope_config import KEYS, ORIGINAL, PRETRAINED_TYPES

# Methods that come from training: hardly anybody adds them to a model afterwards.
TRAINED_WITH = ("llama3", "longrope")
NEAR = 0.05
"""Lengths that are this close, in parts, are the same."""


def family(model: Model) -> str:
    """What to call a model of the list: without the method that one of its entries adds."""
    return model.name.partition(", YaRN")[0]


def added_later(model: Model) -> bool:
    """Whether the scaling of an entry is what its maker advises to add, and not what the model was trained with."""
    name = family(model)
    return any(
        one.documented for one in catalog().values() if name in (family(one), family(one).removesuffix(" Instruct"))
    )


def shipped(model: Model, layer: str) -> RopeSpec | None:
    """The embedding that a model of the list ships with for layers of this type; None where the list has none."""
    specs = model_specs(model.id)
    main = main_layer(model, specs)
    if layer not in specs and layer not in ("", "full_attention", "main") and main != layer:
        return None
    return specs.get(layer, specs[main])


def departures(ours: RopeSpec, theirs: RopeSpec) -> dict[str, str]:
    """{key: in words} of what a scaling has otherwise than the one that ships; {} where both turn every pair alike."""
    if alike(ours, theirs):
        return {}
    if ours.scaling.name != theirs.scaling.name:
        return {"rope_type": f"{named(ours)}, not {named(theirs)}"}
    found: dict[str, str] = {}
    for field in dataclasses.fields(theirs.scaling):
        mine, its = (getattr(one.scaling, field.name) for one in (ours, theirs))
        key = KEYS.get(field.name, field.name)
        if mine != its and its is None:
            found[key] = f"{key} {shown(mine)}, not the formula's"
        elif mine != its:
            found[key] = f"{key} {shown(mine)}, not {shown(its)}" if mine is not None else f"no {key}, not {shown(its)}"
    if ours.context != theirs.context and ours.scaling.name in PRETRAINED_TYPES:
        found[ORIGINAL] = f"{ORIGINAL} {ours.context:,}, not {theirs.context:,}"
    return found


def alike(ours: RopeSpec, theirs: RopeSpec) -> bool:
    """Whether two embeddings scale alike, whatever the length that either is written for."""
    if ours.scaling.name != theirs.scaling.name:
        return False
    if ours.scaling == theirs.scaling and (ours.context == theirs.context or ours.scaling.name not in PRETRAINED_TYPES):
        return True
    # A key that says what the formula gives anyway is no other scaling.
    return (
        isinstance(ours.scaling, Yarn)
        and isinstance(theirs.scaling, Yarn)
        and (ours.scaling.mscale_all_dim or 0.0) == (theirs.scaling.mscale_all_dim or 0.0)
        and bool(np.array_equal(ours.inv_freq(), theirs.inv_freq()))
        and abs(ours.attention_factor() - theirs.attention_factor()) < 1e-6
    )


def fits(ours: RopeSpec, theirs: RopeSpec, keys: Mapping[str, Any]) -> bool:
    """Whether what differs is a factor for another length, as who trains a model further may well choose."""
    if not keys or set(keys) - {"factor"} or isinstance(ours.scaling, LongRope):
        return False
    if abs(ours.target / theirs.target - 1.0) < NEAR:
        return False
    factor, its = ours.scaling.factor_for(ours), theirs.scaling.factor_for(theirs)
    if ours.scaling.name == "yarn":
        return abs(factor * ours.context / ours.target - 1.0) < NEAR
    return (factor > its) == (ours.target > theirs.target)


def named(spec: RopeSpec) -> str:
    """A method in a sentence, with its factor where it has one."""
    if spec.scaling.name == "none":
        return "no scaling"
    factor = getattr(spec.scaling, "factor", None)
    return LABELS[spec.scaling.name] + (f" with factor {shown(factor)}" if factor is not None else "")


def shown(value: Any) -> str:
    """A value of a key as a file has it; a list by what it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"a list of {len(value)} numbers from {value[0]:g} to {value[-1]:g}" if value else "an empty list"
    return f"{value:g}"
