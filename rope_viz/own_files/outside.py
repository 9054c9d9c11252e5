"""Reading what comes from outside: here, or in a server by processes with limits (`rope_viz.serving.border`)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Kinds of objects that belong to the program and not to one value."""


def memory_of(value: Any) -> int:
    """Return the bytes of a value with everything that it refers to, each object counted once."""
    return measure(value)[0]


def measure(value: Any, most: float = inf) -> tuple[int, int]:
    """Return the bytes of a value with everything that it refers to, and how many objects that are.

    Beyond `most` objects it stops.
    """
    seen, total, waiting = {id(value)}, 0, [value]
    while waiting and len(seen) <= most:
        each = waiting.pop()
        if isinstance(each, np.ndarray) and each.base is not None:
            # A view has no data of its own, and the garbage collector does not know the array behind it.
            referred: list[Any] = [each.base]
        else:
            referred = gc.get_referents(each)
        total += sys.getsizeof(each)
        for other in referred:
            if id(other) not in seen and not isinstance(other, SHARED):
                seen.add(id(other))
                waiting.append(other)
    return total, len(seen)


T = TypeVar("T")


class Reader(Protocol):
    """Calls a function with contents from outside; returns its value and the bytes of memory that the value takes."""

    def __call__(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, int]: ...


def read_here(function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, int]:
    """Call the function in this process."""
    value = function(*arguments)
    return value, memory_of(value)


READER: Reader = read_here
"""A server puts its own here when it starts."""


def read_outside(function: Callable[..., T], *arguments: Any) -> tuple[T, int]:
    """Return what a function reads from contents of outside, and the bytes of it. Raise `ValueError` as it does."""
    return READER(function, arguments)
