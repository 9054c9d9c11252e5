"""A queue in which visitors take turns, and in which one visitor and all of them may wait for so many things only."""

from __future__ import annotations

from collections import Counter
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
    """What waits: at most `waiting` entries of one visitor, and twice as many in all.

    Visitors take turns: `turns_of` is how many entries of a visitor were taken while others of the same visitor waited.
    Whoever has had fewer goes first, so that many entries of some visitors do not come before the only one of another.
    """

    def __init__(self, waiting: int) -> None:
        # A dict keeps the order, and finds an entry to remove without looking through the others.
        self._entries: dict[int, T] = {}
        self._shares = Shares(2 * waiting, waiting)
        self._turns = Counter[str]()

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

    def in_turn(self) -> list[T]:
        """Return the entries in the order in which they should be taken: by turns, then by arrival."""
        return sorted(self, key=lambda entry: self._turns[entry.visitor])

    def turns_of(self, visitor: str) -> int:
        """Return how many entries of a visitor were taken since it waits."""
        return self._turns[visitor]

    def take(self, entry: T) -> None:
        """Remove an entry whose turn it is."""
        self._turns[entry.visitor] += 1
        self.remove(entry)

    def remove(self, entry: T) -> None:
        """Remove an entry that waits."""
        del self._entries[id(entry)]
        self._shares.give_back(entry.visitor)
        if not self._shares.amount_of(entry.visitor):
            del self._turns[entry.visitor]
