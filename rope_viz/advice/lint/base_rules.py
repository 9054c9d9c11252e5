"""The rules of the check about a base that is missing, or that is not that of the model whose sizes the config has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rope_viz.advice.lint.lint_context import (
    TEXTS,
    Finding,
    Severity,
    find_dict,
    place_of,
    write_keys,
)
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import Model, main_layer, model_specs
from rope_viz.models.config_reader import is_number
from rope_viz.models.identity.identify_model import VOCABULARY, find_same_sizes, find_similar_models
from rope_viz.models.identity.shipped_scaling import family_name
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes.compare import Effect, find_max_ratio
from rope_viz.texts import join

BASE_KEY = re.compile(r"theta|(^|_)base($|_freq)|freq_base|rope_base")
"""Names of the base in any class."""
MORE_WORDS = 0.02
"""A fine-tune adds at most this share of entries to the vocabulary."""


def missing_base(model: ModelConfig) -> Iterator[Finding]:
    """No base in the file, and the default of the class is not that of the model whose sizes the config has.

    Source: the base in rope_viz.models.catalog, each with its source, and the default of the class of transformers
    5.24.0, executed.
    """
    ours = model.specs[model.main_layer]
    if has_base(model.text):
        return
    for relative in list_relatives(model, ours)[:1]:
        theirs = find_main_spec(relative)
        severity: Severity = "error" if has_same_vocabulary(model, relative) else "warning"
        name = family_name(relative)
        text = TEXTS("missing-base.message", ours=ours.base, name=name, theirs=theirs.base)
        site = find_dict(model, model.main_layer)
        path = site.path if site is not None and "rope_parameters" in site.path else model.path
        repaired = write_keys(model, path, rope_theta=theirs.base)
        yield Finding("", severity, place_of(model, "rope_theta"), text, compare_bases(ours, theirs), repaired)


def other_base(model: ModelConfig) -> Iterator[Finding]:
    """Another base than that of the model whose sizes and vocabulary the config has.

    A note where the length goes with the base, as in further training: both larger, or both smaller.

    Source: the base in rope_viz.models.catalog, each with its source; Men et al., https://arxiv.org/abs/2405.14591:
    training for a longer context takes a larger base.
    """
    ours = model.specs[model.main_layer]
    if not has_base(model.text):
        return
    for relative in list_relatives(model, ours)[:1]:
        theirs = find_main_spec(relative)
        limit = model.limit
        shipped = max(theirs.target, relative.config.get("max_position_embeddings", 0))
        is_larger = ours.base > theirs.base
        goes_along = limit > shipped if is_larger else limit < shipped
        text = join(
            TEXTS("other-base.message", ours=ours.base, model=family_name(relative), theirs=theirs.base),
            TEXTS("other-base.further", limit=limit) if goes_along else TEXTS("other-base.write"),
        )
        severity: Severity = "note" if goes_along else "warning"
        yield Finding("", severity, place_of(model, "rope_theta"), text, compare_bases(ours, theirs))


def has_base(part: Mapping[str, Any]) -> bool:
    """Return whether a config, or a rope dict in it, has a number or numbers under a name of the base."""
    for key, value in part.items():
        if isinstance(value, Mapping):
            if has_base(value):
                return True
        elif BASE_KEY.search(str(key)) and (is_number(value) or isinstance(value, (list, str))):
            return True
    return False


def list_relatives(model: ModelConfig, ours: RopeSpec) -> list[Model]:
    """Return the models whose sizes and vocabulary the config has, the nearest first; none where one has its base.

    A base that the class fills in says nothing: then a model with exactly this vocabulary goes before one with the
    default.
    """
    is_given = has_base(model.text)
    if model.identity.how == "no config" or (is_given and model.identity.model is not None):
        return []
    based = [one.model for one in find_similar_models(model.mapping, model.fields, ours) if one.based]
    if based and (is_given or any(has_same_vocabulary(model, one) for one in based)):
        return []
    fits = has_same_vocabulary if based else has_similar_vocabulary
    return [one for one in find_same_sizes(model.mapping, model.fields, ours) if fits(model, one)]


def has_same_vocabulary(model: ModelConfig, other: Model) -> bool:
    """Return whether the config has exactly the vocabulary of a model."""
    return bool(model.fields.raw(VOCABULARY) == other.sizes.get(VOCABULARY))


def has_similar_vocabulary(model: ModelConfig, other: Model) -> bool:
    """Return whether the config has the vocabulary of a model, or a few entries more or fewer."""
    ours, theirs = model.fields.raw(VOCABULARY), other.sizes.get(VOCABULARY)
    return is_number(ours) and is_number(theirs) and abs(ours - theirs) <= MORE_WORDS * theirs


def find_main_spec(model: Model) -> RopeSpec:
    """Return the embedding of a model's main layers."""
    specs = model_specs(model.id)
    return specs[main_layer(model, specs)]


def compare_bases(ours: RopeSpec, theirs: RopeSpec) -> Effect | None:
    """Return the largest ratio between the frequencies of two embeddings."""
    length = min(ours.target, theirs.target)
    return find_max_ratio(ours.inv_freq(length), theirs.inv_freq(length))
