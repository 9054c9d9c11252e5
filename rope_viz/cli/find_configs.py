"""Search for a config by name: a file, a folder, a catalog model, or a model in the local Hugging Face cache."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rope_viz.models.catalog import catalog
from rope_viz.models.hf_cache import NAME, find_in_cache
from rope_viz.models.json_source import LARGEST

# Folders without a model's own files.
PASSED_OVER = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", "site-packages"))


def configs_under(folder: Path) -> Iterator[Path]:
    """Yield the folder's config.json, else those of its subfolders in order, not descending below a config."""
    for place, folders, files in os.walk(folder):
        folders[:] = [] if NAME in files else sorted(name for name in folders if name not in PASSED_OVER)
        if NAME in files:
            yield Path(place) / NAME


def find_configs(name: str) -> list[tuple[str, Callable[[], bytes]]]:
    """Return the configs of a name, as (label, read function). Raise `ValueError` if there are none."""
    if name == "-":
        return [(name, standard_input)]
    if not name.strip():
        # Path("") would be the working directory, which an unset shell variable must not select.
        raise ValueError("the name is empty")
    path = Path(name)
    if path.is_dir():
        configs = list(configs_under(path))
        if not configs:
            raise ValueError("no config.json in this folder or its subfolders")
        return [(str(config), make_reader(config)) for config in configs]
    if path.exists():
        return [(name, make_reader(path))]
    if name in catalog():
        return [(name, lambda: json.dumps(dict(catalog()[name].config)).encode())]
    cached = find_in_cache(name)
    if cached is None:
        raise ValueError("no such file, and no such model in the list or in the local Hugging Face cache")
    return [(name, make_reader(cached))]


def make_reader(path: Path) -> Callable[[], bytes]:
    """Return a function that reads a file, up to one byte more than a config may have."""

    def read_bytes() -> bytes:
        # Pipes and devices have no size to check. The caller rejects a text that has the extra byte.
        with path.open("rb") as file:
            return file.read(LARGEST + 1)

    return read_bytes


def standard_input() -> bytes:
    """Read standard input."""
    text = getattr(sys.stdin, "buffer", sys.stdin).read(LARGEST + 1)
    return text if isinstance(text, bytes) else text.encode()
