"""Where a command finds a config: a file, a folder, a model of the list, or a model in the local Hugging Face cache."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rope_viz.models.catalog import catalog
from rope_viz.models.hf_cache import NAME, in_cache
from rope_viz.models.json_source import LARGEST

# Folders that hold other people's files, or none of a model's.
PASSED_OVER = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", "site-packages"))


def configs_under(folder: Path) -> Iterator[Path]:
    """The config.json of a folder, else those of the folders below it, in order; none below one that was found."""
    for place, folders, files in os.walk(folder):
        folders[:] = [] if NAME in files else sorted(name for name in folders if name not in PASSED_OVER)
        if NAME in files:
            yield Path(place) / NAME


def found(name: str) -> list[tuple[str, Callable[[], bytes]]]:
    """The configs that a name stands for: what to call each, and how to read it. Raises `ValueError` for no config."""
    if name == "-":
        return [(name, standard_input)]
    if not name.strip():
        # Path("") is the folder one stands in, and a variable that is not set is no wish to check that.
        raise ValueError("the name is empty")
    path = Path(name)
    if path.is_dir():
        configs = list(configs_under(path))
        if not configs:
            raise ValueError("this folder holds no config.json, nor do those in it")
        return [(str(config), reading(config)) for config in configs]
    if path.exists():
        return [(name, reading(path))]
    if name in catalog():
        return [(name, lambda: json.dumps(dict(catalog()[name].config)).encode())]
    cached = in_cache(name)
    if cached is None:
        raise ValueError("no such file, and no such model in the list or in the local Hugging Face cache")
    return [(name, reading(cached))]


def reading(path: Path) -> Callable[[], bytes]:
    """Reads a file, as far as a config may go and one byte more."""

    def read() -> bytes:
        # No size is asked for: pipes and devices have none. One byte too many is refused by who reads the text.
        with path.open("rb") as file:
            return file.read(LARGEST + 1)

    return read


def standard_input() -> bytes:
    """What comes on standard input."""
    text = getattr(sys.stdin, "buffer", sys.stdin).read(LARGEST + 1)
    return text if isinstance(text, bytes) else text.encode()
