"""The cache that is bounded in bytes."""

import random
import threading

from rope_viz.storage.byte_cache import ByteCache


def held(cache, keys):
    """Return the keys that a cache holds, without using them."""
    return [key for key in keys if cache.peek(key) is not None]


def test_least_recently_used_goes_first():
    cache = ByteCache[str, str](30)
    for key in "abc":
        cache.add(key, key.upper(), 10)
    assert cache.get("a") == "A"
    cache.peek("b")
    cache.add("d", "D", 10)
    assert held(cache, "abcd") == ["a", "c", "d"], "looking at b is no use of it"
    assert cache.get("b") is None
    assert (len(cache), cache.size) == (3, 30)


def test_value_that_is_held_stays():
    cache = ByteCache[str, list](30)
    first = [1]
    cache.add("a", first, 10)
    cache.add("b", [2], 10)
    cache.add("a", [1], 25)
    assert cache.get("a") is first
    assert cache.size == 20
    cache.add("c", [3], 15)
    assert held(cache, "abc") == ["a", "c"], "adding a again was a use"


def test_last_value_stays_even_if_it_is_too_large():
    cache = ByteCache[str, str](30, 10)
    cache.add("a", "A", 10, "x")
    cache.add("b", "B", 40, "x")
    assert held(cache, "ab") == ["b"]
    cache.add("c", "C", 10, "y")
    assert held(cache, "bc") == ["c"]


def test_visitor_with_too_much_loses_only_what_is_their_own():
    cache = ByteCache[str, str](100, 25)
    cache.add("old", "O", 20, "other")
    cache.add("own", "P", 30)
    for key in "abc":
        cache.add(key, key.upper(), 10, "x")
    assert held(cache, ["old", "own", "a", "b", "c"]) == ["old", "own", "b", "c"]
    cache.add("process", "Q", 40)
    assert held(cache, ["old", "own", "b", "c", "process"]) == ["own", "b", "c", "process"]


def test_value_grows_only_within_one_share():
    cache = ByteCache[str, str](100, 25)
    value = "A"
    cache.add("a", value, 10, "x")
    cache.add("b", "B", 10, "x")
    assert not cache.grow("a", value, 16)
    assert not cache.grow("a", "another", 1)
    assert not cache.grow("unknown", value, 1)
    assert cache.size == 20
    cache.get("a")
    assert cache.grow("a", value, 15)
    assert held(cache, "ab") == ["a"]
    assert cache.size == 25


def test_removed_values_count_no_more():
    cache = ByteCache[str, str](100, 50)
    cache.add("a", "A", 10, "x")
    cache.remove("a")
    cache.remove("a")
    assert (len(cache), cache.size) == (0, 0)
    assert "a" not in cache
    assert not cache.grow("a", "A", 1)


def test_threads_leave_the_sizes_right():
    cache = ByteCache[int, str](1000, 400)

    def work(seed):
        chance = random.Random(seed)
        for _ in range(2000):
            key = chance.randrange(50)
            value = cache.get(key)
            if value is not None and chance.random() < 0.3:
                cache.grow(key, value, 5)
            elif chance.random() < 0.2:
                cache.remove(key)
            else:
                cache.add(key, f"value {key}", 40, f"visitor {key % 3}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < cache.size <= 1000
    for key in range(50):
        cache.remove(key)
    assert (len(cache), cache.size) == (0, 0)


def test_a_value_of_another_visitor_stays_theirs():
    cache = ByteCache(100, 100)
    cache.add("name", "value", 10, "a")
    cache.add("name", "value", 10, "b")
    assert cache.size == 10
