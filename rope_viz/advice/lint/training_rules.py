"""The rule of the check about a trainer that the user names."""

from __future__ import annotations

from collections.abc import Iterator

from rope_viz.advice.lint.lint_context import Config, Finding, View
from rope_viz.advice.training.match_training import Match, describe_match, match_training
from rope_viz.models.model_config import Source
from rope_viz.runtimes.rule_engine import ORIGINAL
from rope_viz.runtimes.trainers import find_trainer

STATED = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}
"""YaRN keys that transformers 5.23.0 fills in, and that some trainers need in the file."""


def find_training_differences(config: Source, trainer: str, version: str | None = None) -> list[Finding]:
    """Return where a trainer computes something else than transformers, or refuses; none where there is no embedding.

    Raise `ValueError` for an unknown trainer or version.
    """
    find_trainer(trainer, version)
    try:
        return list(trained_otherwise(View(config), trainer, version))
    except (ValueError, ArithmeticError):
        return []


def trained_otherwise(view: View, trainer: str, version: str | None) -> Iterator[Finding]:
    """Yield the finding of each layer type that a trainer computes otherwise."""
    for layer in view.specs:
        found = find_match(view, trainer, version, layer)
        if found.same is not False and found.training.supported:
            continue
        repaired = state_keys(view, trainer, version, layer)
        hint = "" if repaired is None else " State beta_fast, beta_slow, truncate and the original length in the file."
        place = view.site_for(layer)
        key = place.key if place is not None else view.place("rope_parameters")
        text = describe_match(found) + hint
        yield Finding("trained-otherwise", "warning", key, text, found.effect, repaired, "rope_viz.runtimes.trainers")


def find_match(view: View, trainer: str, version: str | None, layer: str, config: Config | None = None) -> Match:
    """Return the trainer against transformers for one layer type of a config, by default the view's own."""
    source = view.model if config is None else config
    return match_training(source, trainer, version=version, layer_type=layer or None)


def state_keys(view: View, trainer: str, version: str | None, layer: str) -> Config | None:
    """Return the config with the keys that transformers fills in, if the trainer then computes the same."""
    site = view.site_for(layer)
    if site is None or site.kind != "yarn":
        return None
    missing = {key: value for key, value in STATED.items() if site.rope.get(key) is None}
    if site.rope.get(ORIGINAL) is None:
        missing[ORIGINAL] = view.specs[layer].context
    if not missing:
        return None
    config = view.changed(site.path, **missing)
    return config if find_match(view, trainer, version, layer, config).same else None
