"""The files that lie next to a config.json and say how weights and cache are stored, or how long a text may be."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from rope_viz.models import TEXTS
from rope_viz.models.formats import SIDE
from rope_viz.models.formats.json_source import read_raw
from rope_viz.storage.limits import CONFIG_FILE_BYTES
from rope_viz.storage.read_file import read_limited

# {file: the quantization method that it means, "" for a file of its own kind}. The first one that a model has counts.
QUANTIZATIONS = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq", "quant_config.json": "awq"}
GENERATION = "generation_config.json"
SIDE_FILES = (*QUANTIZATIONS, GENERATION)
COUNTED = "weight_bytes"
"""The key of a quantization for the bytes of weights that were counted with its lists of layers; 0: not known."""
LENGTHS = ("max_length", "max_new_tokens")
LISTS = ("exclude_modules", "ignore", "modules_to_not_convert")
EXPERT = re.compile(r"\bexperts\.\d+(?=\.|$)")


def read_side_files(folder: pathlib.Path) -> dict[str, bytes]:
    """Return {name: content} of the files of a folder that are read with its config.json. Raises `OSError`."""
    found = {}
    for name in SIDE_FILES:
        path = folder / name
        if path.is_file():
            found[name] = read_limited(path, CONFIG_FILE_BYTES)
    return found


def add_side_files(config: Mapping[str, Any], files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """Return a config with what these files say under `SIDE`. Raises `ValueError` that names a file it cannot read."""
    side: dict[str, Any] = {}
    for name in SIDE_FILES:
        if name not in files:
            continue
        try:
            found = read_raw(files[name]).config
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if name == GENERATION:
            kept = {key: found[key] for key in LENGTHS if is_length(found.get(key))}
            side |= {"generation": kept} if kept else {}
        elif "quantization" not in side:
            inner = found.get("quantization")
            told = inner if isinstance(inner, Mapping) else found
            method = {"quant_method": QUANTIZATIONS[name]}
            side["quantization"] = shorten_lists({**method, **told}) | {COUNTED: None}
    return {**config, SIDE: side} if side else dict(config)


def split_files(files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Return (name of the config, the files that are read with it) of files dropped together, by their names.

    Raises `ValueError` where several may be the config.
    """
    side = {name: content for name, content in files.items() if name in SIDE_FILES}
    others = [name for name in files if name not in side]
    if "config.json" in others:
        return "config.json", side
    if len(others) > 1:
        raise ValueError(TEXTS("side_files.no_config"))
    return (others or list(files))[0], side if others else {}


def is_length(value: Any) -> TypeGuard[int]:
    """Return whether a value is a number of tokens; 20 is the default of transformers, which it writes into files."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 20


def shorten_lists(quantization: Mapping[str, Any]) -> dict[str, Any]:
    """Return a quantization with one entry for all experts of a layer, which are stored alike."""
    found = dict(quantization)
    for key in LISTS:
        if isinstance(found.get(key), list):
            found[key] = list(dict.fromkeys(EXPERT.sub("experts", str(name)) for name in found[key]))
    layers = found.get("quantized_layers")
    if isinstance(layers, Mapping):
        found["quantized_layers"] = {EXPERT.sub("experts", name): value for name, value in layers.items()}
    return found


def read_side_values(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return what the files next to a config say: under "quantization" or "generation"; {} where they say nothing."""
    side = config.get(SIDE)
    found = side.get(name) if isinstance(side, Mapping) else None
    return found if isinstance(found, Mapping) else {}
