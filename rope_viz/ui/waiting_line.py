"""A queue in the order of arrival, in which one visitor and all of them together may wait for so many things only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from rope_viz.storage.shares import Shares


class QueueFullError(RuntimeError):
    """The queue is full."""


class Waiting(Protocol):
    """Something that waits for a visitor."""

    @property
    def visitor(self) -> str: ...


T = TypeVar("T", bound=Waiting)


class WaitingLine(Generic[T]):
    """What waits, first come first: at most `waiting` entries of one visitor, and twice as many in all."""

    def __init__(self, waiting: int) -> None:
        # A dict keeps the order, and finds an entry to remove without looking through the others.
        self._entries: dict[int, T] = {}
        self._shares = Shares(2 * waiting, waiting)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._entries.values()))

    def __contains__(self, entry: T) -> bool:
        return id(entry) in self._entries

    def add(self, entry: T) -> None:
        """Let an entry wait. Raise `QueueFullError` if too many wait."""
        if not self._shares.take(entry.visitor):
            raise QueueFullError
        self._entries[id(entry)] = entry

    def remove(self, entry: T) -> None:
        """Remove an entry that waits."""
        del self._entries[id(entry)]
        self._shares.give_back(entry.visitor)
