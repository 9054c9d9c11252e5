"""Wait for a condition instead of a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(find: Callable[[], Value], seconds: float, what: str) -> Value:
    """Return the first true value of `find()`. Raise `AssertionError` naming `what` after so many seconds."""
    end = time.monotonic() + seconds
    while not (value := find()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return value
