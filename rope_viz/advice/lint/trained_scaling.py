"""The rule of the check about a scaling that the model was trained with and that the config no longer has."""

from __future__ import annotations

from collections.abc import Iterator

from rope_viz.advice.lint.lint_context import TEXTS, Finding, Severity, find_dict, place_of
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import Model
from rope_viz.models.identity.identify_model import find_same_sizes
from rope_viz.models.identity.shipped_scaling import describe_method, family_name, find_shipped_spec, is_added_later
from rope_viz.models.identity.trained_scaling import TrainedLoss, find_loss
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes.compare import find_max_ratio
from rope_viz.texts import join

VOCABULARY = "vocab_size"


def trained_scaling_gone(model: ModelConfig) -> Iterator[Finding]:
    """The scaling that the model was trained with is gone; only for models of the list, recognised by their sizes.

    The config has no scaling or another method, maybe with another base, and pairs turn faster than in training or a
    factor on the scores is missing. A note where it may be another model: its base and its vocabulary differ.

    Source: the model's own config.json in rope_viz.models.catalog, each with its source.
    """
    found = model.identity
    ours, models = found.spec, [found.model] if found.model is not None else list_same_sizes(model)
    losses = [find_method_loss(other, found.layer, ours) for other in models]
    if found.how in ("fine-tune", "no config") and (ours.is_scaled or found.model is None):
        return
    # Where another model of these sizes was trained with no scaling, it may be that one.
    if not losses or None in losses:
        return
    trained, loss = models[0], losses[0]
    assert loss is not None
    same_words = trained.sizes.get(VOCABULARY) == model.fields.raw(VOCABULARY)
    severity: Severity = "warning" if found.model is not None or same_words else "note"
    name = family_name(trained)
    site = find_dict(model, found.layer)
    text = join(
        "" if found.model is not None else TEXTS("trained-scaling-gone.sizes", name=name),
        TEXTS("trained-scaling-gone.message", name=name, method=describe_method(loss.trained), loss=loss.words),
    )
    length = min(ours.target, loss.trained.target)
    effect = find_max_ratio(ours.inv_freq(length), loss.trained.inv_freq(length))
    yield Finding("", severity, place_of(model, "rope_scaling") if site is None else site.key, text, effect)


def list_same_sizes(model: ModelConfig) -> list[Model]:
    """Return the models whose sizes the config has, with another base; none for a config that is no file."""
    return find_same_sizes(model.mapping, model.fields, model.specs[model.main_layer])


def find_method_loss(model: Model, layer: str, ours: RopeSpec) -> TrainedLoss | None:
    """Return what an embedding loses of the method that a model was trained with; None where it has that method.

    Up to the length that the method divides from, a model may have no scaling.
    """
    theirs = None if is_added_later(model) else find_shipped_spec(model, layer)
    if theirs is None or not theirs.is_scaled or theirs.scaling.name == ours.scaling.name:
        return None
    if theirs.scaling.divides_from_length and not ours.is_scaled and ours.target <= theirs.context:
        return None
    return find_loss(theirs, ours)
