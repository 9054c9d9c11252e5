"""Files that describe a model without being a config.json: they are read as the config.json that means the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.models.formats.argument_text import parse_arguments
from rope_viz.models.formats.gguf_config import config_from_gguf, is_gguf_summary, is_whole_source
from rope_viz.models.formats.megatron_config import config_from_megatron, find_arguments
from rope_viz.models.formats.mistral_params import config_from_mistral, is_mistral_params
from rope_viz.models.formats.source_note import FILE, describe_note


def to_config(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config with the keys of transformers; the object itself where it is none of the other files.

    Raises `ValueError` where the file lacks what a config needs.
    """
    if is_gguf_summary(found):
        return config_from_gguf(found["gguf"])
    if is_mistral_params(found):
        return config_from_mistral(found)
    arguments = find_arguments(found)
    return found if arguments is None else config_from_megatron(arguments)


def read_other_text(text: str) -> Mapping[str, Any] | None:
    """Return the config of a text that is no JSON but has Megatron's arguments, as flags or YAML; None for others."""
    arguments = find_arguments(parse_arguments(text))
    return None if arguments is None else config_from_megatron(arguments)


def source_file(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is known of the GGUF file that a config was made from; {} for others, and for a broken entry."""
    found = config.get(FILE)
    return found if isinstance(found, Mapping) and is_whole_source(found) else {}


def describe_source(config: Mapping[str, Any]) -> str:
    """Return sentences on the file that a config was made from, and on what was not read; "" for a config.json."""
    source = source_file(config)
    if source:
        return f"Read from the header of a GGUF file of architecture {source.get('architecture')}."
    found = config.get(FILE)
    return describe_note(found) if isinstance(found, Mapping) else ""
