"""A user's config as others may see it: in pictures, files and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rope_viz.advice.memory.stored_size import keep_storage
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import name_config
from rope_viz.models.formats import SIDE
from rope_viz.models.read_upload import has_several_axes, multi_axis_upload, single_axis_upload
from rope_viz.models.rope_parameters import LAYER_TYPES
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_keys import PLAIN_NAME, cut_config


@cache_by_config(1)
def share_config(own: Upload) -> Upload:
    """Return a user's config without the texts and keys that stay with its owner, and with the same embeddings."""
    cut = cut_config(count_storage(own).config)
    if cut == own.config:
        return own
    shown = read_cut(cut)
    if shown is not None and shown.specs == own.specs:
        return shown
    # It cannot be read without what was cut, such as names of layers.
    return Upload(name_config(cut), cut, name_layers(own.specs))


def count_storage(own: Upload) -> Upload:
    """Return a config with the size of its weights, which follows from lists of names that are cut."""
    if SIDE in own.config or not any(own.config.get(key) for key in ("quantization_config", "compression_config")):
        return own
    return keep_storage(own, json.dumps(own.config), {})


def read_cut(config: dict[str, Any]) -> Upload | None:
    """Return the upload of a config that was cut, None if it cannot be read."""
    try:
        return multi_axis_upload(config) if has_several_axes(config) else single_axis_upload(config)
    except (ValueError, ArithmeticError, RecursionError):
        return None


def name_layers(specs: Mapping[str, RopeSpec]) -> dict[str, RopeSpec]:
    """Return embeddings by layer type, each type that may not be shown under a number."""
    return {share_layer(layer, specs): spec for layer, spec in specs.items()}


def share_layer(layer: str, specs: Mapping[str, RopeSpec]) -> str:
    """Return the name of a layer type, or its number among `specs` if the name may not be shown."""
    if not layer or layer in LAYER_TYPES or PLAIN_NAME.fullmatch(layer):
        return layer
    return f"layer_{list(specs).index(layer) + 1}" if layer in specs else ""


def share_subject(subject: Subject) -> Subject:
    """Return the subject with the user's config as others may see it."""
    if subject.own is None:
        return subject
    shown = share_config(subject.own)
    if shown is subject.own:
        return subject
    has_layer = subject.layer in shown.specs
    return subject._replace(
        own=shown, layer=subject.layer if has_layer else share_layer(subject.layer, subject.own.specs)
    )
