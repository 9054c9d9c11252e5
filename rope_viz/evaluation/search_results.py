"""The result of a search for divisors, read from the JSON of `rope-viz search` or of a search that still runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, require_number
from rope_viz.evaluation import TEXTS
from rope_viz.evaluation.search_divisors import MOST_TEXTS, MOST_TRIALS, STARTS, VERSION
from rope_viz.models.model_config import from_config
from rope_viz.storage.decode_json import decode_json

LARGEST = 32 << 20
"""Bytes of a file; the longest search has 100,000 trials of some 100 bytes."""


@dataclass(frozen=True)
class Rating:
    """The share of right answers with its 95 % interval, and their mean loss in nats.

    The interval is None while a search runs: the rating is then that of the texts of the search.
    """

    right: float
    loss: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class SearchResult:
    """The embedding that a search found, its rating and those of the starts by method.

    `gain` is (start, gain in right answers, low, high), None while the search runs. `config` is what to write into
    config.json.
    """

    model: str
    length: int
    trained: int
    trials: int
    held_out: int
    spec: RopeSpec
    best: Rating
    starts: Mapping[str, Rating]
    gain: tuple[str, float, float, float] | None
    config: Mapping[str, Any]


def read_search(content: bytes) -> SearchResult:
    """Read a result. Raises `ValueError` with a sentence for any other content."""
    problem = TEXTS("search.no_result")
    found = decode_json(content, problem) if len(content) <= LARGEST else None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ValueError(problem)
    try:
        return read_parts(found)
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ValueError(problem) from None


def read_parts(found: Mapping[str, Any]) -> SearchResult:
    """Return the result in an object. Raises `ValueError`, and others where a part is missing or of another type."""
    plan, best, starts = found["plan"], found["best"], found["starts"]
    require_number(plan["length"], TEXTS("search.target"), least=2, most=MAX_LENGTH, integer=True)
    require_number(found["trained_length"], TEXTS("search.trained"), least=1, most=plan["length"] - 1, integer=True)
    require_number(found["trials"], TEXTS("search.trials"), least=1, most=MOST_TRIALS, integer=True)
    require_number(plan["held_out"], TEXTS("search.held_out"), least=2, most=MOST_TEXTS, integer=True)
    names = [row["start"] for row in starts]
    # A result so far may have no start yet, and a whole one has at least one.
    if not isinstance(plan["model"], str) or not set(names) <= set(STARTS) or len(set(names)) < len(names):
        raise ValueError(TEXTS("search.no_result"))
    gain = found.get("gain")
    return SearchResult(
        plan["model"][:200],
        plan["length"],
        found["trained_length"],
        found["trials"],
        plan["held_out"],
        read_spec(found),
        read_rating(best, whole=gain is not None),
        {row["start"]: read_rating(row, whole=gain is not None) for row in starts},
        None if gain is None else read_gain(gain, names),
        found["config"],
    )


def read_spec(found: Mapping[str, Any]) -> RopeSpec:
    """Return the embedding of the config, which has the best divisors beyond the trained length."""
    specs = from_config(found["config"])
    spec = specs.get("")
    wanted = found["best"]["divisors"], found["plan"]["length"], found["trained_length"]
    if spec is None or (list(getattr(spec.scaling, "long_factor", ())), spec.target, spec.context) != wanted:
        raise ValueError(TEXTS("search.other_config"))
    return spec


def read_rating(row: Mapping[str, Any], *, whole: bool) -> Rating:
    """Return the rating of one row: on held-out texts, or where they were not read yet on those of the search."""
    scores = row["held_out"] if whole else row
    for name in ("right", "low", "high") if whole else ("right",):
        require_number(scores[name], TEXTS("search.score", name=name), least=0.0, most=1.0)
    require_number(scores["loss"], TEXTS("search.loss"), least=0.0, most=1e6)
    return Rating(scores["right"], scores["loss"], (scores["low"], scores["high"]) if whole else None)


def read_gain(gain: Mapping[str, Any], starts: list[str]) -> tuple[str, float, float, float]:
    """Return the gain over the best start."""
    if gain["over"] not in starts:
        raise ValueError(TEXTS("search.no_result"))
    values = tuple(gain[name] for name in ("right", "low", "high"))
    for value in values:
        require_number(value, TEXTS("search.gain"), least=-20.0, most=20.0)
    return (gain["over"], *values)
