"""Configs that note which of their keys are asked for."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from rope_viz import advice, models, multi_axis, pages, runtimes

ROOMS = (models, multi_axis, runtimes, advice, pages)
"""The rooms that read configs."""

COPIES = frozenset(
    """
    with_values changed whole merge_dicts ties_embeddings cut_long_names extend_other_parts find_read_keys
    fill_other_parts
    """.split()
)
"""Functions that copy or compare whole configs, or look at every key."""
COPYING_MODULES = ("config_file.py", "edit_config.py", "kv_cache.py")
"""Their comprehensions copy whole configs, too."""

ASKED: dict[str, str] = {}
"""{key: one of the functions that asked for it}."""


class NotedKey(str):
    """A key of a config. Looking it up compares it with the asked key, and that is noted, also in a copy."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is not True:
            return False
        code = sys._getframe(1).f_code
        module = Path(code.co_filename).name
        is_copy = code.co_name in COPIES or (module in COPYING_MODULES and code.co_name in ("<dictcomp>", "<listcomp>"))
        if not is_copy:
            ASKED.setdefault(str(self), f"{module} {code.co_name}")
        return True


def note_keys(part: Any) -> Any:
    """Return a config, or a part of one, whose keys note that they are asked for."""
    if isinstance(part, dict):
        return {NotedKey(key): note_keys(value) for key, value in part.items()}
    return [note_keys(each) for each in part] if isinstance(part, list) else part


def list_words() -> set[str]:
    """Return the words of the texts in the code of the rooms that read configs."""
    found = set[str]()
    for room in ROOMS:
        for path in Path(room.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.update(node.value.split())
    return found
