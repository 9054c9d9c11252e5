"""One claim about many cases is one test, which lists every case that fails."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest


def for_each(cases: Mapping[str, Any] | Iterable[Any], name: Callable[[Any], str] = str) -> Callable[..., Any]:
    """Run a test on each of `cases`, its first argument, and fail once with all cases that failed.

    `cases` may be a dict by name. Other arguments are fixtures, made once for all cases.
    """
    named = list(cases.items()) if isinstance(cases, Mapping) else [(name(case), case) for case in cases]
    assert named, "a claim about no case cannot fail"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = [failure for label, case in named if (failure := find_failure(test, label, case, fixtures))]
            listed = "\n".join(failures)
            assert not failures, f"{len(failures)} of {len(named)} cases fail:\n{listed}"

        others = list(inspect.signature(test).parameters.values())[1:]
        run.__signature__ = inspect.Signature(others)
        return run

    return decorate


def find_failure(test: Callable[..., None], label: str, case: Any, fixtures: dict[str, Any]) -> str:
    """Return the message of a failed check. Any other error ends the test, with the name of its case."""
    try:
        test(case, **fixtures)
    except (AssertionError, pytest.fail.Exception) as error:
        return f"{label}: {error or 'the assertion has no message'}"
    except Exception as error:
        error.add_note(f"in the case {label}")
        raise
    return ""
