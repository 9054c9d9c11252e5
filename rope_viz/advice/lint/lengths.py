"""The rule of the check about the trained length, which a config often gets wrong and the list of models knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rope_viz.advice.lint.view import Config, Finding, View
from rope_viz.configs.models import ORIGINAL, number


def trained_length(view: View) -> Iterator[Finding]:
    """A length that the model was not trained for, told for models of the list, which are known by their numbers.

    max_position_embeddings raised and nothing scaled, or a factor that counts from another length than the trained one.

    Source: the trained length and the documented extensions of rope_viz.configs.catalog, each with its source.
    """
    # Here, so that what rules share does not wait for the list of models.
    from rope_viz.advice.recognise import Recognised, recognise

    if all(spec.scaling.name not in ("none", "yarn", "llama3") for spec in view.specs.values()):
        return
    found: Recognised = recognise(view.config)
    for text in found.mistakes:
        site = next((site for site in view.sites if found.layer in site.layers), None)
        if found.spec.scaling.name == "none":
            repaired = as_documented(view, found.model.documented if found.model else (), found.says)
            effect = None if repaired is None else view.effect(repaired, found.layer)
            yield Finding("", "warning", view.place("max_position_embeddings"), text, effect, repaired)
        elif site is not None and site.rope.get(ORIGINAL) is not None:
            changes: dict[str, Any] = {ORIGINAL: found.trained.length}
            if site.kind == "yarn" and site.rope.get("factor") is not None:
                whole = number(dict(site.rope), "factor") * found.spec.context
                changes["factor"] = whole / found.trained.length
            repaired = view.changed(site.path, **changes)
            effect = view.effect(repaired, found.layer)
            yield Finding("", "warning", f"{site.key}.{ORIGINAL}", text, effect, repaired)


def as_documented(view: View, documented: Sequence[Mapping[str, Any]], says: int) -> Config | None:
    """The config with the extension that its maker documented for this very length; None where there is none."""
    rope = next((one["rope_scaling"] for one in documented if one["to"] == says), None)
    if rope is None:
        return None
    if view.text.get("rope_scaling") or not view.text.get("rope_parameters"):
        return view.changed(view.root, rope_scaling=dict(rope))
    return None if view.layers.keys() - {""} else view.changed((*view.root, "rope_parameters"), **rope)
