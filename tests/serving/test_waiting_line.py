"""Visitors take turns in a waiting line, and each has a share of it."""

from dataclasses import dataclass

import pytest

from rope_viz.serving.waiting_line import QueueFullError, WaitingLine


@dataclass(eq=False)
class Entry:
    visitor: str
    number: int


def test_one_entry_of_a_visitor_does_not_wait_for_all_of_another():
    line = WaitingLine[Entry](100)
    for number in range(3):
        line.add(Entry("flood", number))
    line.add(Entry("other", 0))
    order = []
    while line.in_turn():
        entry = line.in_turn()[0]
        line.take(entry)
        order.append((entry.visitor, entry.number))
    assert order == [("flood", 0), ("other", 0), ("flood", 1), ("flood", 2)]
    assert not line._turns
    assert line._shares.count_visitors() == 0


def test_line_is_full_for_one_visitor_and_for_all():
    line = WaitingLine[Entry](2)
    entries = [Entry(visitor, number) for visitor in "ab" for number in range(2)]
    for entry in entries[:2]:
        line.add(entry)
    with pytest.raises(QueueFullError):
        line.add(Entry("a", 2))
    for entry in entries[2:]:
        line.add(entry)
    with pytest.raises(QueueFullError):
        line.add(Entry("c", 0))
    line.remove(entries[0])
    assert entries[0] not in line
    line.add(Entry("c", 0))
    assert len(line) == 4
