"""A user's config as others may see it: in pictures, files and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rope_viz.advice.memory.stored_size import keep_storage
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import name_config
from rope_viz.models.formats import SIDE
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import make_upload, make_upload_of, normalise_config
from rope_viz.models.rope_parameters import LAYER_TYPES
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload, parse_config
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_keys import PLAIN_NAME, PRIVATE, cut_config


class Shown(NamedTuple):
    """What of a config may be shown, and its upload as others read it: None if they cannot."""

    config: dict[str, Any]
    upload: Upload | None


@cache_by_config(1)
def read_shown(own: Upload) -> Shown:
    """Return what of a config may be shown. Its upload is the config itself if others read the same object."""
    cut = cut_config(own.config, own.model_config)
    try:
        # As the text of a link is read: one that says NaN cannot be.
        config = parse_config(json.dumps(cut), skip_lists=True)
        read_as, _ = normalise_config(config, current=RopeSpec())
        # Embeddings follow from the config alone, so equal configs need not be read twice.
        if own.reading is not None and read_as == own.config:
            return Shown(cut, own)
        # Nor are those computed twice that differ in keys that RoPE does not read. Lengths also follow from names.
        if own.reading is not None and is_read_alike(own.reading, read_as):
            return Shown(cut, make_upload_of(own.reading.with_mapping(read_as), read_as))
        return Shown(cut, make_upload(config, current=RopeSpec()))
    except (ValueError, ArithmeticError, RecursionError):
        return Shown(cut, None)


def is_read_alike(model: ModelConfig, config: Mapping[str, Any]) -> bool:
    """Return whether a config differs from one that was read in keys only that RoPE does not read."""
    # The catalog's remarks may name a wrapper, which decides about defaults.
    return not model.wrapper and drop_private(model.mapping) == drop_private(config)


def drop_private(part: Any) -> Any:
    """Return a config, or a part of one, without the keys that name the user's files and modules."""
    if isinstance(part, Mapping):
        return {key: drop_private(value) for key, value in part.items() if key not in PRIVATE}
    return [drop_private(each) for each in part] if isinstance(part, (list, tuple)) else part


def hide(own: Upload) -> Upload:
    """Return the upload of what of a config may be shown, itself if that is all of it. Raise `ValueError`."""
    cut = cut_config(own.config, own.model_config)
    return own if cut == own.config else make_upload(cut, current=RopeSpec())


@cache_by_config(1)
def share_config(own: Upload) -> Upload:
    """Return a user's config without the texts and keys that stay with its owner, and with the same embeddings."""
    shown = read_shown(count_storage(own))
    if shown.config == own.config:
        return own
    if shown.upload is not None and shown.upload.specs == own.specs:
        return shown.upload
    # It cannot be read without what was cut, such as names of layers.
    return Upload(name_config(shown.config), shown.config, name_layers(own.specs))


def count_storage(own: Upload) -> Upload:
    """Return a config with the size of its weights, which follows from lists of names that are cut."""
    if SIDE in own.config or not any(own.config.get(key) for key in ("quantization_config", "compression_config")):
        return own
    return keep_storage(own, json.dumps(own.config), {})


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
