"""Search for divisors of the demo models in a process of its own."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, field
from typing import Any

from rope_viz.evaluation import TEXTS
from rope_viz.evaluation.score_divisors import TinyScorer
from rope_viz.evaluation.search_divisors import TINY, SearchPlan, search
from rope_viz.real_models.model_run import ModelRun
from rope_viz.storage.processes import Tell
from rope_viz.tiny_lm import checkpoints

STARTS = ("none", "linear", "ntk")
"""Without YaRN and NTK-by-parts, so that the search has to find a ramp by itself."""
LENGTH, TRIALS, HELD_OUT = 4096, 30, 8
"""The target length in tokens, trials, and held-out texts of each model."""


def has_optuna() -> bool:
    """True if the package that samples the trials is installed."""
    return importlib.util.find_spec("optuna") is not None


@dataclass
class SearchReport:
    """The newest result of a running search, in the form of search.json; {} before the first trial."""

    found: dict[str, Any] = field(default_factory=dict)

    def add_line(self, line: dict[str, Any]) -> None:
        self.found = line.get("found", self.found)

    def pack(self) -> bytes:
        return json.dumps(self.found, allow_nan=False).encode()


class SearchRun(ModelRun):
    """A search with the three demo models in a process of its own; no measurement runs at the same time."""

    function = f"{__name__}:run_search"
    texts = TEXTS
    group = "search"

    def __init__(self, length: int = LENGTH, trials: int = TRIALS, held_out: int = HELD_OUT) -> None:
        super().__init__({"length": length, "trials": trials, "held_out": held_out})

    def make_report(self, workload: dict[str, Any]) -> SearchReport:
        return SearchReport()

    @property
    def first_step(self) -> str:
        return str(TEXTS("search.loading"))


def run_search(arguments: dict[str, Any], tell: Tell) -> None:
    """Tell the progress with the result so far after every trial, and the whole result at the end."""
    trials = arguments["trials"]
    plan = SearchPlan(TINY, arguments["length"], starts=STARTS, held_out=arguments["held_out"])
    scorer = TinyScorer([checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS])

    def watch(share: float, found: dict[str, Any]) -> None:
        key = "search.trial" if found["trials"] < trials else "search.scoring"
        tell({"fraction": share, "name": TEXTS(key, trial=found["trials"], trials=trials), "found": found})

    found = search(plan, scorer, None, trials=trials, watch=watch)
    tell({"fraction": 1.0, "name": TEXTS("search.scoring"), "found": found})
