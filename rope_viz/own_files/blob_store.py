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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.shares import Shares
from rope_viz.texts import Texts

TEXTS = Texts("app")
T = TypeVar("T")
SALT = 16
NAME = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of a name."""
LARGEST = 40 << 20
"""Bytes of one content, above the largest readable file of vectors."""
MOST = 128 << 20
"""Bytes of all contents and their decoded values; beyond this, the least recently used ones are evicted."""
SHARE = 4
"""One visitor's contents take at most this part of the store, a quarter, or are a single one."""
OVERHEAD = 1 << 10
"""Bytes that each content counts in addition to its own: its name and its place in the store."""


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
    """One content, the visitor who sent it, its decoded values by decoder, and the bytes of all of it.

    `has_large_value`: its value is too large for the server process.
    """

    salted: bytes
    visitor: str
    size: int
    values: dict[Any, Any] = field(default_factory=dict)
    has_large_value: bool = False


class Store:
    """Contents by name, with a cache of their decoded values. Both count towards the limits.

    A visitor is a network address; "" is this process itself, whose contents have no share to keep to. One content with
    its values takes at most the part `share` of the store.
    """

    def __init__(self, most: int = MOST, share: int = SHARE) -> None:
        self._sizes = Shares(most, most // share)
        self._blobs: OrderedDict[str, Blob] = OrderedDict()
        # The same contents by visitor, so that evicting one does not look through those of the others.
        self._of_visitor: dict[str, OrderedDict[str, Blob]] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return self._sizes.total

    def keep(self, salted: bytes, visitor: str = "") -> str:
        """Store a salted content of a visitor and return its name. Raise `ValueError` if it is too large."""
        if len(salted) < SALT:
            raise ValueError(TEXTS("stored.too_small", least=SALT, size=len(salted)))
        if len(salted) > LARGEST:
            raise ValueError(TEXTS("stored.too_large", most=LARGEST >> 20, size=len(salted) >> 20))
        name = name_of(salted)
        with self._lock:
            if name not in self._blobs:
                blob = self._blobs[name] = Blob(salted, visitor, 0)
                self._of_visitor.setdefault(visitor, OrderedDict())[name] = blob
                self._charge(blob, len(salted) + OVERHEAD)
            self._use(name)
            self._evict(name)
        return name

    def salted(self, name: str) -> bytes | None:
        """Return a content with its salt, or None if it is not stored."""
        with self._lock:
            found = self._blobs.get(name)
        return found.salted if found else None

    def load(self, name: str, decode: Callable[[bytes], T], reader: Reader = HERE) -> T:
        """Return the decoded content. Raise `UnknownError`, or `ContentError` if `decode` refuses it.

        The value is cached if it fits into the visitor's share of the store; otherwise it is decoded again next time.
        """
        return reader.read(StoredContent(name, decode, self))[0]

    def content(self, name: str) -> bytes:
        """Return a content without its salt. Raise `UnknownError` if it is not stored."""
        with self._lock:
            found = self._blobs.get(name)
            if found is None:
                raise UnknownError(name)
            self._use(name)
        return found.salted[SALT:]

    def find_value(self, name: str, decode: Callable[[bytes], T]) -> tuple[T] | None:
        """Return the cached value of a decoder in a tuple, None if there is none."""
        with self._lock:
            found = self._blobs.get(name)
            if found is None or decode not in found.values:
                return None
            self._use(name)
            return (found.values[decode],)

    def keep_value(self, name: str, decode: Callable[[bytes], T], value: T, size: int) -> None:
        """Cache a value of so many bytes if it fits into the share of the visitor who sent the content."""
        with self._lock:
            found = self._blobs.get(name)
            if found is None or decode in found.values or found.size + size > self._sizes.most_of_visitor:
                return
            found.values[decode] = value
            self._charge(found, size)
            self._evict(name)

    def note_large_value(self, name: str) -> None:
        """Remember that the value of a content is too large for the server process."""
        with self._lock:
            if name in self._blobs:
                self._blobs[name].has_large_value = True

    def has_large_value(self, name: str) -> bool:
        """Return whether the value of a content is known to be too large for the server process."""
        with self._lock:
            return name in self._blobs and self._blobs[name].has_large_value

    def forget(self, names: Iterable[str]) -> None:
        """Remove contents that no session names any more."""
        with self._lock:
            for name in names:
                if name in self._blobs:
                    self._remove(name)

    def _charge(self, blob: Blob, size: int) -> None:
        blob.size += size
        self._sizes.charge(blob.visitor, size)

    def _use(self, name: str) -> None:
        self._blobs.move_to_end(name)
        self._of_visitor[self._blobs[name].visitor].move_to_end(name)

    def _evict(self, newest: str) -> None:
        """Evict the least recently used contents, first those of the visitor of `newest` beyond the share."""
        visitor = self._blobs[newest].visitor
        mine = self._of_visitor[visitor]
        while visitor and self._sizes.amount_of(visitor) > self._sizes.most_of_visitor and self._evict_oldest(mine):
            pass
        while self._sizes.total > self._sizes.most and self._evict_oldest(self._blobs):
            pass

    def _evict_oldest(self, blobs: OrderedDict[str, Blob]) -> bool:
        """Remove the least recently used one of some contents; return False if it is the only one."""
        if len(blobs) == 1:
            return False
        self._remove(next(iter(blobs)))
        return True

    def _remove(self, name: str) -> None:
        blob = self._blobs.pop(name)
        mine = self._of_visitor[blob.visitor]
        del mine[name]
        self._sizes.give_back(blob.visitor, blob.size)
        if not mine:
            del self._of_visitor[blob.visitor]


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
