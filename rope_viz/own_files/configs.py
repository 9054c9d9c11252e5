"""The user's own config, and a spec that is too long for a link, as stored contents."""

from __future__ import annotations

import dataclasses
import json

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.user_config import Upload
from rope_viz.own_files.admit import admit_stored, decode_stored
from rope_viz.texts import Texts

TEXTS = Texts("app")


def upload_bytes(own: Upload) -> bytes:
    """Encode a user's config for the store."""
    return json.dumps(own.config).encode()


def upload_of(content: bytes) -> Upload:
    """Decode a user's config. Raise `ValueError` if the content is not one."""
    return admit_stored(content)


def spec_bytes(spec: RopeSpec) -> bytes:
    """Encode a spec for the store."""
    return json.dumps(dataclasses.asdict(spec)).encode()


def spec_of(content: bytes) -> RopeSpec:
    """Decode a spec. Raise `ValueError` if the content is not one."""
    try:
        fields = decode_stored(content)
        scaling = fields.pop("scaling")
        kind = METHODS[scaling.pop("name")]
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in scaling.items()}
        return RopeSpec(**fields, scaling=kind(**lists))
    except (KeyError, TypeError, AttributeError, ArithmeticError):
        raise ValueError(TEXTS("stored.no_spec")) from None
