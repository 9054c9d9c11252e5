"""The configs that links carry, as this process has read them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rope_viz.models.user_config import Upload
from rope_viz.own_files.admit import admit_link
from rope_viz.own_files.link_text import KEY as KEY
from rope_viz.own_files.link_text import write_config as write_config
from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.storage.byte_cache import ByteCache
from rope_viz.storage.limits import LINK_CONFIG_BYTES, LINK_RESULT_BYTES


class Links:
    """The configs of links that were read, by the digest of the value; the least recently used ones are evicted."""

    def __init__(self, most: int = LINK_CONFIG_BYTES) -> None:
        self._configs = ByteCache[bytes, Upload](most)

    def __len__(self) -> int:
        return len(self._configs)

    @property
    def size(self) -> int:
        return self._configs.size

    def get(self, text: str) -> Upload | None:
        return self._configs.get(digest(text))

    def keep(self, text: str, own: Upload, size: int) -> None:
        self._configs.add(digest(text), own, size + LINK_RESULT_BYTES)


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
    return reader.read_outside(LinkedConfig(text))[0]
