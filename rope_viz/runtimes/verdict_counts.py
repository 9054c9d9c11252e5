"""How many runtimes or models agree, differ or refuse, counted apart by how that is known.

A whole engine that answered, rotary code that was executed and code that was read are different evidence, so their
counts are never added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from rope_viz.runtimes.compare import Comparison
from rope_viz.runtimes.provenance import How
from rope_viz.runtimes.releases import RELEASES

State: TypeAlias = Literal["agrees", "differs", "refuses", "not known"]
HOWS: tuple[How, ...] = tuple(how for how in get_args(How) if how != "not known")
"""The kinds of evidence, the strongest first."""


def find_state(one: Comparison) -> State:
    """Return what a comparison found. A runtime that has no code of its own for the model refuses it."""
    if one.how == "not known":
        return "not known"
    if one.emulation.remote or not one.emulation.supported:
        return "refuses"
    return "agrees" if one.agrees else "differs"


def count_states(rows: Iterable[Comparison]) -> dict[How, Counter[State]]:
    """Return how many comparisons found what, for each kind of evidence that occurs."""
    found: dict[How, Counter[State]] = {how: Counter() for how in HOWS}
    for one in rows:
        if one.how in found:
            found[one.how][find_state(one)] += 1
    return {how: counts for how, counts in found.items() if counts}


def count_asked(rows: Iterable[Comparison]) -> int:
    """Return for how many answers the whole engine was asked about this architecture with this scaling."""
    return sum(bool(one.emulation.known.asked) for one in rows)


def is_newest(one: Comparison) -> bool:
    """Return whether a comparison is of a runtime's newest release; papers are no runtimes."""
    emulation = one.emulation
    return emulation.runtime != "paper" and emulation.version == RELEASES[emulation.runtime].today[0]
