"""Caches of what is computed from a user's config: each config holds its own results, and they end with it.

A cache of the process that had a config in its keys would hold configs that are not counted. The owner of the config
counts it: the store of contents, the cache of links, or a session.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

from rope_viz.models.user_config import Upload
from rope_viz.storage.limits import RESULTS_OF_FUNCTION
from rope_viz.texts import cache_by_language, current_language

P = ParamSpec("P")
T = TypeVar("T")
LOCK = threading.Lock()


def cache_by_config(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache a function: `most` results without a user's config in the process, and some with one in that config.

    A result may hold texts: those in another language are results of their own. The config is one of the arguments, or
    in an argument that is a tuple, such as a `Subject`.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        shared: Any = cache_by_language(most)(function)

        @functools.wraps(function)
        def cached(*arguments: P.args, **named: P.kwargs) -> T:
            own = find_config(arguments)
            if own is None:
                found: T = shared(*arguments)
                return found
            results: dict[Hashable, T] = own.results.setdefault(f"{function.__module__}.{function.__qualname__}", {})
            key = (current_language(), *(each for each in flatten(arguments) if each is not own))
            if key in results:
                return results[key]
            value = function(*arguments, **named)
            with LOCK:
                results[key] = value
                while len(results) > RESULTS_OF_FUNCTION:
                    del results[next(iter(results))]
            return value

        cached.cache_info = shared.cache_info  # type: ignore[attr-defined]
        return cached

    return decorate


def find_config(arguments: tuple[Any, ...]) -> Upload | None:
    """Return the config in arguments, None if there is none."""
    for each in arguments:
        found = find_config(each) if isinstance(each, tuple) else each
        if isinstance(found, Upload):
            return found
    return None


def flatten(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments with the tuples in them unpacked."""
    return tuple(part for each in arguments for part in (flatten(each) if isinstance(each, tuple) else (each,)))
