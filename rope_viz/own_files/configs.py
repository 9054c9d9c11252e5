"""Serialisation of the user's own config, and of a spec too long for a link, as stored contents."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from typing import Any

from rope_viz.advice.lint import check
from rope_viz.advice.plan.export import llama_config
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import write_old_keys
from rope_viz.models.long_names import cut_long_names
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import has_several_axes, multi_axis_upload, single_axis_upload
from rope_viz.models.user_config import Upload, check_shape, empty_long_values
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.limits import CHECK_SECONDS, STORED_CONFIG_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")


# Defaults of transformers' Llama class, for a spec without a config.
LLAMA = {"num_hidden_layers": 32, "intermediate_size": 11_008, "vocab_size": 32_000}


def upload_bytes(own: Upload) -> bytes:
    """Encode a user's config for the store."""
    return json.dumps(own.config).encode()


def upload_of(content: bytes) -> Upload:
    """Decode a user's config. Raise `ValueError` if the content is not one."""
    config = _read(content)
    if not isinstance(config, dict):
        raise ValueError(TEXTS("stored.no_config"))
    config = dict(cut_long_names(empty_long_values(config)[0])[0])
    check_shape(config)
    return prove_cheap(multi_axis_upload(config) if has_several_axes(config) else single_axis_upload(config))


def prove_cheap(own: Upload) -> Upload:
    """Return a config whose pages are computed quickly, as its check is. Raise `ValueError` for others."""
    began = time.process_time()
    check(own.config)
    if time.process_time() - began > CHECK_SECONDS:
        raise ValueError(TEXTS("stored.slow"))
    return own


def _read(content: bytes) -> Any:
    if len(content) > STORED_CONFIG_BYTES:
        raise ValueError(TEXTS("stored.too_large", most=STORED_CONFIG_BYTES >> 20, size=len(content) >> 20))
    return decode_json(content, TEXTS("stored.no_json"))


def spec_bytes(spec: RopeSpec) -> bytes:
    """Encode a spec for the store."""
    return json.dumps(dataclasses.asdict(spec)).encode()


def spec_of(content: bytes) -> RopeSpec:
    """Decode a spec. Raise `ValueError` if the content is not one."""
    try:
        fields = _read(content)
        scaling = fields.pop("scaling")
        kind = METHODS[scaling.pop("name")]
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in scaling.items()}
        return RopeSpec(**fields, scaling=kind(**lists))
    except (KeyError, TypeError, AttributeError, ArithmeticError):
        raise ValueError(TEXTS("stored.no_spec")) from None


@functools.lru_cache(256)
def numbers_config(spec: RopeSpec) -> ModelConfig:
    """Return a config with the numbers of an embedding that has none: that of a Llama of usual sizes."""
    return ModelConfig.read({**write_old_keys(llama_config(spec), spec).whole, **LLAMA}, numbers_only=True)
