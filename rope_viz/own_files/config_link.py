"""The configs that links carry, as this process has read them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rope_viz.models.user_config import Upload
from rope_viz.own_files.admit import admit_link
from rope_viz.own_files.link_text import KEY as KEY
from rope_viz.own_files.link_text import LONGEST as LONGEST
from rope_viz.own_files.link_text import write_config as write_config
from rope_viz.own_files.outside import HERE, Content, Reader

MOST_KEPT = 8 << 20
"""Bytes of the configs that a process keeps."""
RESULTS = 256 << 10
"""Bytes that count for what is computed from one config later."""


class Links:
    """The configs of links that were read, by the digest of the value; the least recently used ones are evicted."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self.size = most, 0
        self._found: OrderedDict[bytes, tuple[Upload, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, text: str) -> Upload | None:
        with self._lock:
            tag = digest(text)
            if tag not in self._found:
                return None
            self._found.move_to_end(tag)
            return self._found[tag][0]

    def keep(self, text: str, own: Upload, size: int) -> None:
        with self._lock:
            tag = digest(text)
            if tag in self._found:
                return
            self._found[tag] = own, size + RESULTS
            self.size += size + RESULTS
            while self.size > self._most:
                self.size -= self._found.popitem(last=False)[1][1]


LINKS = Links()
"""The links of this process."""


def digest(text: str) -> bytes:
    """Return a short name of a value."""
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True)
class LinkedConfig(Content[Upload]):
    """The config that a link's value carries."""

    text: str

    def call(self) -> tuple[Callable[..., Upload], tuple[Any, ...]]:
        return admit_link, (self.text,)

    def find(self) -> tuple[Upload] | None:
        known = LINKS.get(self.text)
        return None if known is None else (known,)

    def keep(self, value: Upload, size: int) -> None:
        LINKS.keep(self.text, value, size)


def read_config(text: str, reader: Reader = HERE) -> Upload:
    """Return the config of a value. Raise `ValueError` with a sentence if the value is broken or too large."""
    return reader.read(LinkedConfig(text))[0]
