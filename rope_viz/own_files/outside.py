"""Contents from outside, and what reads them: this process, or in a server processes with limits."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, Protocol, TypeVar

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


class Content(Generic[T]):
    """A content from outside, with the function that reads it. Equal ones have one value."""

    def call(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        """Return the function that reads it, and what to call that with. Raise `ValueError` if it is not here."""
        raise NotImplementedError

    def find(self) -> tuple[T] | None:
        """Return its value if this process has read it, in a tuple."""
        return None

    def keep(self, value: T, size: int) -> None:
        """Take its value, of so many bytes, so that it need not be read again."""

    def explain(self, error: ValueError) -> ValueError:
        """Return the error that says that it cannot be read."""
        return error


class SentContent(Content[T]):
    """A content that a user has just sent. Nothing is kept of it."""

    def __init__(self, function: Callable[..., T], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def call(self) -> tuple[Callable[..., T], tuple[Any, ...]]:
        return self.function, self.arguments


class Reader(Protocol):
    """What reads contents from outside; in a server `rope_viz.serving.border.Border`, with limits."""

    def read_outside(self, content: Content[T]) -> tuple[T, int]:
        """Return the value of a content and the bytes of memory that it takes, 0 if it was read before.

        Raise `ValueError` with a sentence if it cannot be read.
        """


class ReaderHere:
    """Reads in this process: in a command, a notebook, or a process that has limits."""

    def read_outside(self, content: Content[T]) -> tuple[T, int]:
        known = content.find()
        if known is not None:
            return known[0], 0
        function, arguments = content.call()
        try:
            value, size = call_here(function, arguments)
        except ValueError as error:
            raise content.explain(error) from error
        content.keep(value, size)
        return value, size


def call_here(function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, int]:
    """Return the value of a call, and the bytes of memory that it takes."""
    value = function(*arguments)
    return value, memory_of(value)


HERE = ReaderHere()


class ReadContents:
    """The values of contents that were read before, as a reader of them."""

    def __init__(self, values: Mapping[Content[Any], Any]) -> None:
        self.values = values

    def read_outside(self, content: Content[T]) -> tuple[T, int]:
        value = self.values[content]
        if isinstance(value, ValueError):
            raise value
        return value, 0
