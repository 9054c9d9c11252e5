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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.storage.byte_cache import ByteCache
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import CONTENT_BYTES, CONTENT_OVERHEAD_BYTES, SHARE_OF_STORE, STORE_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")
T = TypeVar("T")
SALT = 16
NAME = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of a name."""


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


def require_size(content: bytes, most: int) -> None:
    """Raise `ContentError` with a sentence if a content has more than `most` bytes."""
    if len(content) > most:
        raise ContentError(TEXTS("stored.too_large", most=most >> 20, size=-(-len(content) // (1 << 20))))


@dataclass
class Blob:
    """One content and its decoded values by decoder.

    `has_large_value`: its value is too large for the server process.
    """

    salted: bytes
    values: dict[Any, Any] = field(default_factory=dict)
    has_large_value: bool = False


class Store:
    """Contents by name, with a cache of their decoded values. Both count towards the limits.

    A visitor is a network address; "" is this process itself, whose contents have no share to keep to. One content with
    its values takes at most the part `share` of the store.
    """

    def __init__(self, most: int = STORE_BYTES, share: int = SHARE_OF_STORE) -> None:
        self._blobs = ByteCache[str, Blob](most, most // share)
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return self._blobs.size

    def keep(self, salted: bytes, visitor: str = "") -> str:
        """Store a salted content of a visitor and return its name. Raise `ValueError` if it is too large."""
        if len(salted) < SALT:
            raise ValueError(TEXTS("stored.too_small", least=SALT, size=len(salted)))
        if len(salted) > CONTENT_BYTES:
            raise ValueError(TEXTS("stored.too_large", most=CONTENT_BYTES >> 20, size=len(salted) >> 20))
        name = name_of(salted)
        self._blobs.add(name, Blob(salted), len(salted) + CONTENT_OVERHEAD_BYTES, visitor)
        return name

    def salted(self, name: str) -> bytes | None:
        """Return a content with its salt, or None if it is not stored."""
        blob = self._blobs.peek(name)
        return None if blob is None else blob.salted

    def load(self, name: str, decode: Callable[[bytes], T], reader: Reader = HERE) -> T:
        """Return the decoded content. Raise `UnknownError`, or `ContentError` if `decode` refuses it.

        The value is cached if it fits into the visitor's share of the store; otherwise it is decoded again next time.
        """
        return reader.read_outside(StoredContent(name, decode, self))[0]

    def content(self, name: str) -> bytes:
        """Return a content without its salt. Raise `UnknownError` if it is not stored."""
        found = self._blobs.get(name)
        if found is None:
            raise UnknownError(name)
        return found.salted[SALT:]

    def find_value(self, name: str, decode: Callable[[bytes], T]) -> tuple[T] | None:
        """Return the cached value of a decoder in a tuple, None if there is none."""
        found = self._blobs.get(name)
        return None if found is None or decode not in found.values else (found.values[decode],)

    def keep_value(self, name: str, decode: Callable[[bytes], T], value: T, size: int) -> None:
        """Cache a value of so many bytes if it fits into the share of the visitor who sent the content."""
        with self._lock:
            found = self._blobs.peek(name)
            if found is not None and decode not in found.values and self._blobs.grow(name, found, size):
                found.values[decode] = value

    def note_large_value(self, name: str) -> None:
        """Remember that the value of a content is too large for the server process."""
        blob = self._blobs.peek(name)
        if blob is not None:
            blob.has_large_value = True

    def has_large_value(self, name: str) -> bool:
        """Return whether the value of a content is known to be too large for the server process."""
        blob = self._blobs.peek(name)
        return blob is not None and blob.has_large_value

    def forget(self, names: Iterable[str]) -> None:
        """Remove contents that no session names any more."""
        for name in names:
            self._blobs.remove(name)


STORE = Store()
"""The store of this process."""


@dataclass(frozen=True)
class StoredContent(Content[T]):
    """A content of a store by its name, as a decoder reads it."""

    name: str
    decode: Callable[[bytes], T]
    store: Store = field(default_factory=lambda: STORE)

    def call(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        return self.decode, (self.store.content(self.name),)

    def find(self) -> tuple[T] | None:
        return self.store.find_value(self.name, self.decode)

    def keep(self, value: T, size: int) -> None:
        self.store.keep_value(self.name, self.decode, value, size)

    def explain(self, error: ValueError) -> ValueError:
        return ContentError(str(error))
