"""The size of a dropped config's weights, kept with it: pages and links carry no long lists of layers to count by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rope_viz.advice.memory.kv_cache import read_memory_fields
from rope_viz.advice.memory.parameter_count import weight_bytes
from rope_viz.advice.memory.weight_storage import list_quantizations
from rope_viz.models.formats import SIDE
from rope_viz.models.formats.json_source import LONG_LISTS, to_config
from rope_viz.models.formats.side_files import COUNTED, add_side_files, read_side_values
from rope_viz.models.model_config import ModelConfig, normalise_errors
from rope_viz.models.user_config import Upload, parse_config


def keep_storage(own: Upload, content: str | bytes, files: Mapping[str, bytes]) -> Upload:
    """Return an upload with what its text and the files dropped with it say of weights, cache and lengths.

    Raises `ValueError` that names a file that cannot be read.
    """
    with normalise_errors():
        found = to_config(add_side_files(parse_config(content), files))
    if not any(name in found for name in (SIDE, "quantization_config", "compression_config", "text_config")):
        return own
    # It differs from the upload where that has emptied lists, by which the weights are counted.
    whole = own.reading if own.reading is not None and found == own.config else ModelConfig.read(found)
    size = 0
    try:
        with normalise_errors():
            if not list_quantizations(whole.mapping, read_memory_fields(whole).config):
                size = -1
            else:
                size = round(weight_bytes(whole)[0])
    except (ValueError, TypeError):
        pass  # `COUNTED` 0 says that the size is not known
    side = {key: read_side_values(whole.mapping, key) for key in ("quantization", "generation")}
    side = {key: dict(value) for key, value in side.items() if value}
    if size >= 0:
        short = {key: value for key, value in side.get("quantization", {}).items() if key not in LONG_LISTS}
        side["quantization"] = {**short, COUNTED: size}
    if not side:
        return own
    config = {**own.config, SIDE: side}
    reading = None if own.reading is None else own.reading.with_mapping(config)
    return replace(own, config=config, reading=reading)
