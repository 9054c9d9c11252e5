"""Which keys of a config.json the project reads, and a config cut down to them."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from rope_viz import advice, models, multi_axis, runtimes
from rope_viz.models.formats.json_source import LONG_LISTS
from rope_viz.models.identity.identify_model import FINE_TUNE_PREFIX, read_own_name
from rope_viz.models.long_names import LONGEST
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.parameter_formulas import formula_keys

ROOMS = (models, multi_axis, runtimes, advice)
"""The rooms that read configs. Each key they read is a string in their code, or in a record."""

OWN_NAME = "_name_or_path"
NAMES = frozenset((OWN_NAME, "name_or_path", "model_name", "base_model_name_or_path", "text_model_id"))
"""Keys that are read but name a user's files or models."""

ROPE_DICTS = ("rope_scaling", "rope_parameters")
"""Every key inside these is read: the check names those that no runtime knows."""

NUMBERED = re.compile(r"[0-9]{1,5}|group_[0-9]{1,3}")
"""Keys that count layers or groups of weights."""

KEY = re.compile(r"[A-Za-z_][\w.-]{0,63}")
WORD = re.compile(rf"[\w.+-]{{1,{LONGEST}}}")
"""A word: no path, no sentence."""


@functools.cache
def known_keys() -> frozenset[str]:
    """Return every key that may be read: the strings in code and records of `ROOMS`, and the names in formulas."""
    found = set[str]()
    for room in ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            found.update(find_strings(load_code(module.name)))
        for folder in room.__path__:
            for path in sorted(Path(folder).rglob("*.json")):
                found.update(find_strings(json.loads(path.read_text(encoding="utf-8"))))
    words = (word for text in found for word in text.split())
    return (frozenset(word for word in words if KEY.fullmatch(word)) | formula_keys()) - NAMES - LONG_LISTS


def load_code(name: str) -> CodeType | None:
    """Return a module's code without running it, None where it has none."""
    spec = importlib.util.find_spec(name)
    loader = None if spec is None else spec.loader
    code = loader.get_code(name) if isinstance(loader, importlib.abc.InspectLoader) else None
    return code


def find_strings(value: Any) -> Iterator[str]:
    """Yield the strings in a module's code or in JSON data, keys included, that may be keys of a config."""
    if isinstance(value, str):
        if all(KEY.fullmatch(word) for word in value.split()):
            yield value
    elif isinstance(value, CodeType):
        yield from find_strings(value.co_consts)
    elif isinstance(value, Mapping):
        yield from find_strings((*value, *value.values()))
    elif isinstance(value, (tuple, list, frozenset)):
        for part in value:
            yield from find_strings(part)


def cut_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with the keys that the project reads, without the user's names, paths and sentences.

    A name that helped to recognise a model of the catalog is replaced by that of the catalog.
    """
    read = ModelConfig.read(config)
    found = cut_object(config, known_keys() | set(read.path))
    name = find_catalog_name(read)
    return {**found, OWN_NAME: name} if name and read_own_name(config) else found


def find_catalog_name(config: ModelConfig) -> str:
    """Return the catalog's name of the model that a config is recognised as, or of which it is a fine-tune; else ""."""
    try:
        found = config.identity
    except ValueError:
        return ""
    name = "" if found.model is None else found.model.name
    return f"Fine-tune of {name}" if name and found.how == "fine-tune" else name


def cut_object(part: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """Return an object with these of its keys, and of those only values that are no names or paths."""
    found = {}
    for key, value in part.items():
        if key in keys or NUMBERED.fullmatch(key) or key.startswith(FINE_TUNE_PREFIX):
            inner = frozenset(value) - NAMES if key in ROPE_DICTS and isinstance(value, Mapping) else frozenset()
            cut = cut_value(value, keys | inner)
            if cut is not UNREAD:
                found[key] = cut
    return found


UNREAD = object()
"""In place of a value that nothing reads."""


def cut_value(value: Any, keys: frozenset[str]) -> Any:
    """Return a value with these of its keys, `UNREAD` for a text that is no word."""
    if isinstance(value, str):
        return value if WORD.fullmatch(value) else UNREAD
    if isinstance(value, Mapping):
        return cut_object(value, keys)
    if isinstance(value, list):
        return [cut for each in value if (cut := cut_value(each, keys)) is not UNREAD]
    return value
