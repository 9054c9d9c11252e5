"""What an address cannot hold: kept in memory under a name that cannot be guessed, and which stands in the address.

The name is a digest of the content, which begins with 16 random bytes of the session it came from. So a name belongs to
one content for good, on every server: whoever has the content can send it to a server that does not know the name.
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

T = TypeVar("T")
SALT = 16
NAME = re.compile(r"[A-Za-z0-9_-]{43}")
"""What `name_of` gives."""
LARGEST = 40 << 20
"""Bytes of one content: above the largest file of vectors that is read."""
MOST = 128 << 20
"""Bytes of all contents: beyond, those that were not asked for the longest are let go."""


class UnknownError(ValueError):
    """A name that this server does not know, or no longer: `name`. Whoever has the content may send it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            "What this picture is drawn from is no longer kept on this server. The page it came from sends it again."
        )


def salt() -> bytes:
    """Random bytes for one session."""
    return secrets.token_bytes(SALT)


def name_of(salted: bytes) -> str:
    """The name of a content with its salt."""
    return base64.urlsafe_b64encode(hashlib.sha256(salted).digest()).decode().rstrip("=")


class Store:
    """Contents by name, and what was read from them."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._contents: OrderedDict[str, tuple[bytes, dict[Any, Any]]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def keep(self, salted: bytes) -> str:
        """Keep a content and give its name. Raises `ValueError` where it is too large."""
        if not SALT <= len(salted) <= LARGEST:
            raise ValueError(f"at most {LARGEST >> 20} MiB are kept, got {len(salted) >> 20} MiB")
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
        """A content with its salt; None where it is not kept."""
        with self._lock:
            found = self._contents.get(name)
        return found[0] if found else None

    def read(self, name: str, decode: Callable[[bytes], T]) -> T:
        """What `decode` makes of a content, remembered beside it. Raises `UnknownError`, and what `decode` raises."""
        with self._lock:
            found = self._contents.get(name)
            if found is None:
                raise UnknownError(name)
            self._contents.move_to_end(name)
        content, values = found
        if decode not in values:
            values[decode] = decode(content[SALT:])
        value: T = values[decode]
        return value


STORE = Store()
"""That of this process."""
