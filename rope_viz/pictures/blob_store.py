"""An in-memory store for contents that no address can hold, under unguessable names that go into the address.

A name is the SHA-256 of the content, which begins with 16 random bytes of its session. It therefore means the same
content on every server: a client that has the content can send it to a server that does not know the name.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from rope_viz.storage.decode_json import decode_content
from rope_viz.texts import Texts

TEXTS = Texts("app")
T = TypeVar("T")
SALT = 16
NAME = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of a name."""
LARGEST = 40 << 20
"""Bytes of one content, above the largest readable file of vectors."""
MOST = 128 << 20
"""Bytes of all contents; beyond this, the least recently used ones are evicted."""


class UnknownError(ValueError):
    """A name that this server does not know or has evicted; a client may send the content again."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(TEXTS("stored.unknown"))


def salt() -> bytes:
    """Return random bytes for one session."""
    return secrets.token_bytes(SALT)


def name_of(salted: bytes) -> str:
    """Return the name of a salted content."""
    return base64.urlsafe_b64encode(hashlib.sha256(salted).digest()).decode().rstrip("=")


class Store:
    """Contents by name, with a cache of their decoded values."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._contents: OrderedDict[str, tuple[bytes, dict[Any, Any]]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def keep(self, salted: bytes) -> str:
        """Store a salted content and return its name. Raise `ValueError` if it is too large."""
        if not SALT <= len(salted) <= LARGEST:
            raise ValueError(TEXTS("stored.too_large", most=LARGEST >> 20, size=len(salted) >> 20))
        name = name_of(salted)
        with self._lock:
            if name not in self._contents:
                self._contents[name] = (salted, {})
                self._size += len(salted)
            self._contents.move_to_end(name)
            while self._size > self._most:
                _, (oldest, _) = self._contents.popitem(last=False)
                self._size -= len(oldest)
        return name

    def salted(self, name: str) -> bytes | None:
        """Return a content with its salt, or None if it is not stored."""
        with self._lock:
            found = self._contents.get(name)
        return found[0] if found else None

    def load(self, name: str, decode: Callable[[bytes], T]) -> T:
        """Return the decoded content, cached. Raise `UnknownError`, or `ContentError` if `decode` refuses it."""
        with self._lock:
            found = self._contents.get(name)
            if found is None:
                raise UnknownError(name)
            self._contents.move_to_end(name)
        content, values = found
        if decode not in values:
            values[decode] = decode_content(decode, content[SALT:])
        value: T = values[decode]
        return value


STORE = Store()
"""The store of this process."""
