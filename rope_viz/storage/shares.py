"""How much of something scarce each visitor holds: open pages, bytes of files, places in a queue.

A visitor is a network address (`visitor_name` in `rope_viz/ui/visitors.py`). The name "" is this process itself.
"""

from __future__ import annotations

import threading
from collections import Counter


class Shares:
    """Amounts by visitor, with a limit for each visitor and one for all of them together.

    Safe for use by several threads.
    """

    def __init__(self, most: int, most_of_visitor: int) -> None:
        self.most = most
        self.most_of_visitor = most_of_visitor
        self._amounts = Counter[str]()
        self._lock = threading.Lock()

    def count_visitors(self) -> int:
        """Return how many visitors hold something."""
        with self._lock:
            return len(self._amounts)

    @property
    def total(self) -> int:
        """What all visitors hold together."""
        with self._lock:
            return self._amounts.total()

    def amount_of(self, visitor: str) -> int:
        """Return what a visitor holds."""
        with self._lock:
            return self._amounts.get(visitor, 0)

    def has_room(self, visitor: str, amount: int = 1) -> bool:
        """Return whether a visitor may take more."""
        with self._lock:
            return self._fits(visitor, amount)

    def take(self, visitor: str, amount: int = 1) -> bool:
        """Take more if both limits allow it, and return whether it was taken."""
        with self._lock:
            if not self._fits(visitor, amount):
                return False
            self._amounts[visitor] += amount
            return True

    def charge(self, visitor: str, amount: int) -> None:
        """Take without asking: the caller makes room afterwards."""
        with self._lock:
            self._amounts[visitor] += amount

    def give_back(self, visitor: str, amount: int = 1) -> None:
        """Give back what was taken. A visitor who holds nothing is forgotten."""
        with self._lock:
            self._amounts[visitor] -= amount
            if self._amounts[visitor] <= 0:
                del self._amounts[visitor]

    def _fits(self, visitor: str, amount: int) -> bool:
        mine = self._amounts.get(visitor, 0) + amount
        everyone = self._amounts.total() + amount
        return mine <= self.most_of_visitor and everyone <= self.most


class Holdings:
    """What holders such as sessions or connections have of `Shares`, by name: all of it goes when the holder does.

    Safe for use by several threads.
    """

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self._sizes: dict[str, dict[str, int]] = {}
        self._visitors: dict[str, str] = {}
        self._lock = threading.Lock()

    def put(self, holder: str, visitor: str, name: str, amount: int) -> bool:
        """Count something anew under its name, and return whether there was room. Without room nothing changes.

        The holder's first visitor counts.
        """
        with self._lock:
            visitor = self._visitors.setdefault(holder, visitor)
            more = amount - self._sizes.get(holder, {}).get(name, 0)
            if more > 0 and not self.shares.take(visitor, more):
                if holder not in self._sizes:
                    del self._visitors[holder]
                return False
            if more < 0:
                self.shares.give_back(visitor, -more)
            self._sizes.setdefault(holder, {})[name] = amount
            return True

    def amount_of(self, holder: str) -> int:
        """Return what a holder has."""
        with self._lock:
            return sum(self._sizes.get(holder, {}).values())

    def drop(self, holder: str, name: str) -> None:
        """Give back what a holder has under a name."""
        with self._lock:
            amount = self._sizes.get(holder, {}).pop(name, 0)
            if amount:
                self.shares.give_back(self._visitors[holder], amount)

    def end(self, holder: str) -> None:
        """Give back all that a holder has."""
        with self._lock:
            amount = sum(self._sizes.pop(holder, {}).values())
            visitor = self._visitors.pop(holder, "")
            if amount:
                self.shares.give_back(visitor, amount)
