"""Search for a config by name: a file, a folder, a catalog model, the local cache of the Hub, or with --hub the Hub."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rope_viz.cli.hub_access import fetch, is_asked_of_hub, may_be_on_hub
from rope_viz.models.catalog import Model
from rope_viz.models.formats.json_source import read_content, read_raw
from rope_viz.models.formats.side_files import SIDE_FILES
from rope_viz.models.identity import named_config
from rope_viz.models.identity.hf_cache import NAME, find_in_cache, is_model_id
from rope_viz.models.no_rope_types import is_model_config
from rope_viz.storage.limits import CONFIG_FILE_BYTES
from rope_viz.storage.read_file import open_regular, read_limited, read_standard_input

# Folders without a model's own files.
PASSED_OVER = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", "site-packages"))


MOST_FILES = 10_000
"""How many files of a folder are opened at most."""
SHOWN = 5
NO_CONFIG = "no config.json in this folder or its subfolders, and no other file that is a model's config"


@dataclass(frozen=True)
class FolderSearch:
    """The configs below a folder, by content, and the other files; `is_complete` is False if there were too many."""

    configs: tuple[Path, ...]
    skipped: tuple[Path, ...]
    is_complete: bool = True

    def describe_skipped(self, *, every: bool = False) -> str:
        """Return which files are no configs, the first ones or every one by name; empty where there are none."""
        shown = self.skipped if every else self.skipped[:SHOWN]
        names = ", ".join(str(path) for path in shown) + (", …" if len(shown) < len(self.skipped) else "")
        count = len(self.skipped)
        text = f"skipped {count:,} {'file that is no config' if count == 1 else 'files that are no configs'}: {names}"
        if self.is_complete:
            return text if count else ""
        return f"stopped after {MOST_FILES:,} files; {text}"


def search_folder(folder: Path) -> FolderSearch:
    """Find the configs of a folder and its subfolders by content, in order.

    A file named config.json counts whatever it contains. What is in the subfolders of its folder belongs to that model.
    """
    configs: list[Path] = []
    skipped: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [] if NAME in files else sorted(name for name in folders if name not in PASSED_OVER)
        if NAME in files:
            # They are read with the config.
            files = [name for name in files if name not in SIDE_FILES]
        for name in sorted(files, key=lambda name: (name != NAME, name)):
            if len(configs) + len(skipped) >= MOST_FILES:
                return FolderSearch(tuple(configs), tuple(skipped), False)
            path = Path(place) / name
            (configs if name == NAME or contains_config(path) else skipped).append(path)
    return FolderSearch(tuple(configs), tuple(skipped))


def contains_config(path: Path) -> bool:
    """Return whether a file is JSON and has the keys of a model's config."""
    try:
        # A pipe or a device would block, and a config is never so large.
        if not path.is_file():
            return False
        with open_regular(path) as file:
            if not file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
                return False
        return is_model_config(read_raw(read_limited(path, CONFIG_FILE_BYTES)).config)
    except (ValueError, OSError):
        return False


def configs_under(folder: Path) -> list[Path]:
    """Return the config.json files of a folder and its subfolders; without any, the configs that have other names."""
    found = search_folder(folder).configs
    return [path for path in found if path.name == NAME] or list(found)


def find_configs(name: str) -> list[tuple[str, Callable[[], bytes]]]:
    """Return the configs of a name, as (label, read function). Raise `ValueError` if there are none."""
    if name == "-":
        return [(name, standard_input)]
    if not name.strip():
        # Path("") would be the working directory, which an unset shell variable must not select.
        raise ValueError("the name is empty")
    path = Path(name)
    if path.is_dir():
        configs = configs_under(path)
        if not configs:
            raise ValueError(NO_CONFIG)
        return [(str(config), make_reader(config)) for config in configs]
    if path.exists():
        return [(name, make_reader(path))]
    if is_asked_of_hub(name):
        return [(name, functools.partial(fetch, name))]
    listed = find_listed(name)
    if listed is not None:
        if name != listed.id:
            print(f"rope-viz: {name}: read as {listed.id}, a model of the list; nothing was fetched", file=sys.stderr)
        return [(name, lambda: json.dumps(dict(listed.config)).encode())]
    cached = find_in_cache(name)
    if cached is None:
        if may_be_on_hub(name):
            return [(name, functools.partial(fetch, name))]
        hint = ": --hub fetches its config.json" if is_model_id(name) else ""
        raise ValueError(f"no such file, and no such model in the list or in the local Hugging Face cache{hint}")
    return [(name, make_reader(cached))]


def find_listed(name: str) -> Model | None:
    """Return the model of the list that a name means, None for others; with --hub an id means what the Hub has."""
    return None if is_asked_of_hub(name) else named_config.find_listed(name)


def make_reader(path: Path) -> Callable[[], bytes]:
    """Return a function that reads a file; of a GGUF file its header."""

    return functools.partial(read_content, path)


def standard_input() -> bytes:
    """Read standard input."""
    return read_standard_input(CONFIG_FILE_BYTES)
