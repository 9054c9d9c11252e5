"""The keys of a GGUF header that belong to one architecture, and which of them were read.

What llama.cpp does with a key is in `gguf_loader.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rope_viz.embedding.spec import require_number
from rope_viz.models import TEXTS
from rope_viz.models.formats import LONGEST_REMARK
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items

LOADER: Mapping[str, Any] = read_own(__file__, "gguf_loader.json")
RELEASE = "0c1e57098"
"""The commit of llama.cpp whose loader `LOADER` describes."""
PARTS = ("rope.", "attention.")
LONGEST_NAME = 80
MOST_LAYERS = 512
"""LLAMA_MAX_LAYERS."""


class HeaderKeys:
    """The keys after the name of the architecture. It remembers which ones were read.

    `kind` is llama.cpp's name of the architecture. Every method raises `ValueError` that names the key.
    """

    def __init__(self, name: str, own: Mapping[str, Any]) -> None:
        self.name, self.kind = name, LOADER["aliases"].get(name, name)
        self._own, self._read = own, set[str]()
        self._refused, self._ignored = set[str](), set[str]()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, the default where the file does not have it or its architecture does not."""
        if not self.has(key):
            return default
        self._read.add(key)
        return self._own[key]

    def has(self, key: str) -> bool:
        """Return whether a file has a key of its architecture, without reading it."""
        return self._own.get(key) is not None and (self.is_read_by_loader(key) or key in LOADER["kept"])

    def peek(self, key: str) -> Any:
        """Return the value of a key without reading it."""
        return self._own.get(key)

    def refuse(self, key: str) -> None:
        """Count a key as not read, because no answer can be given for its value."""
        self._refused.add(key)

    def ignore(self, *names: str) -> None:
        """Count keys as without any effect in this file."""
        self._ignored.update(names)

    def number(self, key: str, default: float, **bounds: Any) -> float:
        """Return a number."""
        value = self.get(key, default)
        require_number(value, f"{self.name}.{key}", **bounds)
        return float(value)

    def size(self, key: str, *, most: int = 1 << 40) -> int | None:
        """Return a whole number, None where the file does not have it."""
        value = self.get(key)
        if value is None:
            return None
        require_number(value, f"{self.name}.{key}", least=0, most=most, integer=True)
        return int(value)

    def layers(self, key: str, count: int, *, at_least: bool = False, peek: bool = False) -> list[int] | None:
        """Return one whole number for each of `count` layers, None where the file does not have the key.

        One number counts for all layers. A list must have `count` values, with `at_least` no fewer. With `peek` the key
        does not count as read.
        """
        value = self.peek(key) if peek else self.get(key)
        if value is None:
            return None
        values: Sequence[Any] = value if isinstance(value, list) else [value] * count
        if len(values) < count or (len(values) > count and not at_least):
            raise ValueError(TEXTS("gguf_file.per_block", name=self.name, key=key, blocks=count, got=len(values)))
        for each in values:
            # A pattern is a list of flags.
            require_number(int(each) if isinstance(each, bool) else each, f"{self.name}.{key}", least=0, integer=True)
        return [int(each) for each in values[:count]]

    def is_read_by_loader(self, key: str) -> bool:
        """Return whether llama.cpp reads a key for this architecture; true where it does not know the architecture."""
        readers = LOADER["specific"].get(key)
        return readers is None or self.kind not in LOADER["architectures"] or self.kind in readers

    def list_unread(self) -> tuple[list[str], list[str]]:
        """Return (keys that decide an answer and were not read, keys that llama.cpp does not use for this file)."""
        unread, ignored = [], []
        for key, value in sorted(self._own.items()):
            if not key.startswith(PARTS) or value is None or key in LOADER["silent"]:
                continue
            name = f"{self.name}.{key}"[:LONGEST_REMARK]
            is_general = key in LOADER["general"] and self.kind in LOADER["architectures"]
            if key in self._refused:
                unread.append(name)
            elif key in self._ignored or (key not in self._read and (is_general or not self.is_read_by_loader(key))):
                ignored.append(name)
            elif key not in self._read:
                unread.append(name)
        return unread, ignored


def quote_keys(names: Iterable[str]) -> str:
    """Return names of keys for a sentence, at most six of them."""
    found = ["".join(letter for letter in str(name)[:LONGEST_NAME] if letter.isprintable()) for name in names]
    shown = join_items(found[:6])
    return TEXTS("gguf.more_keys", names=shown, more=len(found) - 6) if len(found) > 6 else shown
