"""What holders have of shares goes with them."""

from rope_viz.storage.shares import Holdings, Shares


def test_holder_gives_everything_back_at_its_end():
    held = Holdings(Shares(100, 60))
    assert held.put("first", "a", "x", 40)
    assert held.put("first", "a", "x", 50), "anew, in place of the old amount"
    assert not held.put("second", "a", "y", 20)
    assert held.amount_of("first") == 50
    assert held.amount_of("second") == 0
    assert held.put("third", "b", "y", 50)
    assert not held.put("third", "b", "z", 1), "all together"
    held.put("first", "a", "x", 10)
    assert held.put("second", "a", "y", 20)
    held.drop("second", "y")
    held.drop("second", "unknown")
    for holder in ("first", "second", "third", "unknown"):
        held.end(holder)
    assert held.shares.total == 0


def test_refused_holder_is_forgotten():
    held = Holdings(Shares(10, 10))
    assert not held.put("first", "a", "x", 11)
    assert held.put("first", "b", "x", 1)
    assert held.shares.amount_of("b") == 1
