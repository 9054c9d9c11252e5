"""The memory that a decoded value takes."""

from __future__ import annotations

import gc
import sys
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

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
