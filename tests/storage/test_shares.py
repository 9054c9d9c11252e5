"""Shares of visitors: what one holds, what all hold, and both limits."""

from __future__ import annotations

from rope_viz.storage.shares import Shares


def test_a_visitor_takes_no_more_than_its_share() -> None:
    shares = Shares(10, 4)
    assert shares.take("a", 4)
    assert not shares.take("a")
    assert shares.amount_of("a") == 4


def test_all_visitors_take_no_more_than_all_may() -> None:
    shares = Shares(10, 4)
    taken = [shares.take(visitor, 4) for visitor in "abc"]
    assert taken == [True, True, False]
    assert shares.total == 8
    assert shares.has_room("c", 2)
    assert not shares.has_room("c", 3)


def test_what_is_given_back_can_be_taken_again() -> None:
    shares = Shares(4, 4)
    for number in range(1000):
        assert shares.take(f"visitor {number}", 4)
        shares.give_back(f"visitor {number}", 4)
    assert shares.total == 0
    assert not shares._amounts


def test_charged_amounts_may_exceed_the_limits() -> None:
    shares = Shares(10, 4)
    shares.charge("a", 12)
    assert (shares.amount_of("a"), shares.total, shares.count_visitors()) == (12, 12, 1)
    assert not shares.has_room("b")
    shares.give_back("a", 12)
    assert shares.count_visitors() == 0
