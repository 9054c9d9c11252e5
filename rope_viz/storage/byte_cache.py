"""A cache that is bounded in bytes: the least recently used values go first, those of a visitor with too much before.

A visitor is a network address. The name "" is this process itself, which has no share to keep to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from rope_viz.storage.shares import Shares

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Entry(NamedTuple, Generic[V]):
    """A value, its bytes, and the visitor whose share it counts to."""

    value: V
    size: int
    visitor: str


class ByteCache(Generic[K, V]):
    """Values by key, with their sizes as the caller tells them. The value that was added last always stays.

    Safe for use by several threads.
    """

    def __init__(self, most: int, most_of_visitor: int | None = None) -> None:
        self._shares = Shares(most, most if most_of_visitor is None else most_of_visitor)
        self._entries: OrderedDict[K, Entry[V]] = OrderedDict()
        # The same keys by visitor, so that evicting a visitor's value does not look through those of the others.
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return self._shares.total

    def get(self, key: K) -> V | None:
        """Return a value and note that it was used; None for an unknown key."""
        with self._lock:
            if key not in self._entries:
                return None
            self._use(key)
            return self._entries[key].value

    def peek(self, key: K) -> V | None:
        """Return a value without noting that; None for an unknown key."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def add(self, key: K, value: V, size: int, visitor: str = "") -> None:
        """Hold a value. A value that the key has already stays, and is noted as used."""
        with self._lock:
            if key not in self._entries:
                self._entries[key] = Entry(value, size, visitor)
                self._keys.setdefault(visitor, OrderedDict())[key] = None
                self._shares.charge(visitor, size)
            self._use(key)
            # Another visitor may have sent the same value before.
            self._make_room(self._entries[key].visitor)

    def grow(self, key: K, value: V, size: int) -> bool:
        """Count more bytes for a value, if it is still held and fits into one visitor's share; return whether it is."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.value is not value or entry.size + size > self._shares.most_of_visitor:
                return False
            self._entries[key] = entry._replace(size=entry.size + size)
            self._shares.charge(entry.visitor, size)
            self._make_room(entry.visitor)
            return True

    def remove(self, key: K) -> None:
        """Forget a value, if it is held."""
        with self._lock:
            if key in self._entries:
                self._remove(key)

    def _use(self, key: K) -> None:
        self._entries.move_to_end(key)
        self._keys[self._entries[key].visitor].move_to_end(key)

    def _make_room(self, visitor: str) -> None:
        """Evict values of the visitor beyond the share, then those of all; the last one of either stays."""
        mine = self._keys[visitor]
        while visitor and self._shares.amount_of(visitor) > self._shares.most_of_visitor and len(mine) > 1:
            self._remove(next(iter(mine)))
        while self._shares.total > self._shares.most and len(self._entries) > 1:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: K) -> None:
        entry = self._entries.pop(key)
        keys = self._keys[entry.visitor]
        del keys[key]
        self._shares.give_back(entry.visitor, entry.size)
        if not keys:
            del self._keys[entry.visitor]
