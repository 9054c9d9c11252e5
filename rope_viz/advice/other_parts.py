"""The other parts of a two-part model, such as an encoder, that have to be extended as the language model is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.advice.check_change import has_same_angles
from rope_viz.advice.export import with_known_methods
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import write_new_keys, write_old_keys
from rope_viz.models.model_config import ModelConfig

PARTS = re.compile("encoder|decoder|expert|dit_config")
"""Names of parts that read the same positions as the language model, such as the action expert of pi0."""


@dataclass(frozen=True)
class OtherParts:
    """`whole` and `fragment` of each other part that is extended too, and `notes` on those that are not."""

    whole: Mapping[str, Mapping[str, Any]]
    fragment: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]


def extend_other_parts(model: ModelConfig, spec: RopeSpec) -> OtherParts:
    """Return the other parts of a wrapper with the same embedding, where they had the same before.

    Source: transformers 5.23.0; the action expert of pi0 continues the positions of its language model, and the
    cross-attention layers of Mllama do not rotate.
    """
    whole: dict[str, Mapping[str, Any]] = {}
    fragment: dict[str, Mapping[str, Any]] = {}
    notes: list[str] = []
    name = model.path[0] if model.path else None
    crossing = model.part.config.get("cross_attention_layers")
    if isinstance(crossing, list) and crossing:
        notes.append(f"The {len(crossing)} cross-attention layers stay as they are: they have no positions.")
    for key, given in model.mapping.items() if name is not None else ():
        if key == name or not PARTS.search(str(key)) or not isinstance(given, Mapping):
            continue
        part = ModelConfig.read({"model_type": model.model_type, **given})
        if part.problems:
            continue
        layer = part.main_layer
        before, ours = part.specs[layer], model.specs[model.main_layer]
        if before.context != ours.context or not has_same_angles(before, ours):
            notes.append(f"{key} stays as it is: it has positions of its own, up to {part.limit:,}.")
            continue
        write = write_new_keys if "rope_parameters" in given else write_old_keys
        change = write(part, next(with_known_methods(spec)), layer or None)
        written = ModelConfig.read(change.whole)
        if written.problems or not has_same_angles(spec, written.specs[layer]):
            notes.append(f"{key} stays as it is: its class cannot say this embedding.")
            continue
        whole[key] = {inner: value for inner, value in change.whole.items() if inner != "model_type" or inner in given}
        fragment[key] = change.fragment
        notes.append(f"{key} is extended in the same way.")
    return OtherParts(whole, fragment, tuple(notes))
