"""Reading what comes from outside: here, or in a server by processes with limits (`rope_viz.ui.border`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rope_viz.picture.object_size import memory_of

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
