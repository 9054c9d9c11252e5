"""The rules of the check that compare with the list of models: the trained length, and the shipped scaling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rope_viz.advice.lint.lint_context import Config, Finding, Severity, View
from rope_viz.models.identity.shipped_scaling import family_name, is_factor_for_length
from rope_viz.models.rope_config import ORIGINAL
from rope_viz.runtimes.compare import find_max_ratio


def trained_length(view: View) -> Iterator[Finding]:
    """A length that the model was not trained for; only for models of the list, recognised by their numbers.

    max_position_embeddings was raised without scaling, or the factor counts from another than the trained length.

    Source: the trained length and the documented extensions of rope_viz.models.catalog, each with its source.
    """
    if all(spec.scaling.name not in ("none", "yarn", "llama3") for spec in view.specs.values()):
        return
    found = view.model.identity
    window = view.model.find_layer_window(found.layer)
    for text in found.mistakes:
        site = view.site_for(found.layer)
        if found.spec.scaling.name == "none":
            if window is not None and window <= found.trained.length:
                continue  # a longer limit alone is right: no distance exceeds the window, so no angle is new
            repaired = as_documented(view, found.model.documented if found.model else (), found.says)
            effect = None if repaired is None else view.effect(repaired, found.layer)
            yield Finding("", "warning", view.place("max_position_embeddings"), text, effect, repaired)
        elif site is not None and site.rope.get(ORIGINAL) is not None:
            changes: dict[str, Any] = {ORIGINAL: found.trained.length}
            if site.kind == "yarn" and site.rope.get("factor") is not None:
                changes["factor"] = site.number("factor") * found.spec.context / found.trained.length
            repaired = view.changed(site.path, **changes)
            effect = view.effect(repaired, found.layer)
            yield Finding("", "warning", f"{site.key}.{ORIGINAL}", text, effect, repaired)


def not_as_shipped(view: View) -> Iterator[Finding]:
    """Another scaling than the one that the model was trained with; only for models of the list.

    A note if it is a factor for another length, or if the config is of a fine-tune, which may have trained with it.
    A warning for any other key, and if the scaling is missing in a config of the full length.

    Source: the model's own config.json in rope_viz.models.catalog, each with its source.
    """
    found = view.model.identity
    theirs, ours = found.shipped, found.spec
    # A wrong trained length has its own rule.
    departs = {key: text for key, text in found.departs.items() if key != ORIGINAL or not found.mistakes}
    if found.model is None or theirs is None or not departs:
        return
    if ours.scaling.name == "none" and ours.target <= found.trained.length:
        return
    fine_tune = found.how == "fine-tune" and ours.scaling.name != "none"
    severity: Severity = "note" if fine_tune or is_factor_for_length(ours, theirs, found.departs) else "warning"
    site = view.site_for(found.layer)
    # Where there is no scaling, no single key is at fault.
    keys = () if site is None or ours.scaling.name == "none" else site.rope
    key = next((key for key in departs if key in keys), "")
    place = ".".join(part for part in (view.place("rope_scaling") if site is None else site.key, key) if part)
    text = f"{' and '.join(departs.values())} as {family_name(found.model)} was trained and ships."
    text += " A model that was trained further may differ." if severity == "note" else ""
    length = min(ours.target, theirs.target)
    yield Finding("", severity, place, text, find_max_ratio(ours.inv_freq(length), theirs.inv_freq(length)))


def as_documented(view: View, documented: Sequence[Mapping[str, Any]], length: int) -> Config | None:
    """Return the config with the extension that its maker documented for this length; None where there is none."""
    rope = next((one["rope_scaling"] for one in documented if one["to"] == length), None)
    if rope is None:
        return None
    if view.text.get("rope_scaling") or not view.text.get("rope_parameters"):
        return view.changed(view.model.path, rope_scaling=dict(rope))
    return None if view.layers.keys() - {""} else view.changed((*view.model.path, "rope_parameters"), **rope)
