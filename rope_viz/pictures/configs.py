"""A reader's own config, and a spec that no link holds, as contents that are kept under a name."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.read_upload import encodes, of_axes, single_axis_upload


def upload_bytes(own: Upload) -> bytes:
    """A reader's config as it is kept."""
    return json.dumps(own.config).encode()


def upload_of(content: bytes) -> Upload:
    """The reader's config of a content. Raises `ValueError` where it is none."""
    config = _read(content)
    if not isinstance(config, dict):
        raise ValueError("the content kept under this name is no config")
    if isinstance(config.get("_class_name"), str) or encodes(config):
        return of_axes(config)
    return single_axis_upload(config)


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("the content kept under this name is not JSON that can be read") from None


def spec_bytes(spec: RopeSpec) -> bytes:
    """A spec as it is kept."""
    return json.dumps(dataclasses.asdict(spec)).encode()


def spec_of(content: bytes) -> RopeSpec:
    """The spec of a content. Raises `ValueError` where it is none."""
    try:
        fields = _read(content)
        scaling = fields.pop("scaling")
        kind = METHODS[scaling.pop("name")]
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in scaling.items()}
        return RopeSpec(**fields, scaling=kind(**lists))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("the content kept under this name is no embedding") from None
