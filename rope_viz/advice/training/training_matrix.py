"""A config given to every trainer and every server: which servers compute what which trainers trained."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rope_viz.advice.training.match_training import Match, compare_scores, measure_match, read_matched_case
from rope_viz.embedding.spectrum import are_peaks
from rope_viz.models.model_config import Source
from rope_viz.runtimes import Emulation, emulate_case, resolve_release
from rope_viz.runtimes.releases import find_version
from rope_viz.runtimes.trainers import TRAINERS, Training, train_case

State: TypeAlias = Literal["same", "differs", "refused", "not known"]

SERVERS: dict[str, tuple[str, str]] = {
    "transformers": ("transformers", find_version("transformers")),
    "transformers-4": ("transformers", find_version("transformers", 1)),
    **{name: (name, find_version(name)) for name in ("vllm", "sglang", "llama.cpp", "mlx-lm", "tensorrt-llm")},
}
"""{id: (runtime, release)} of the columns."""


@dataclass(frozen=True, eq=False)
class TrainingMatrix:
    """Every trainer of a config against every server; `problem` says why there is none.

    `trainings` are in the order of `TRAINERS`, `emulations` in that of `SERVERS`. `rows` has a match per server for
    each trainer. Cells with equal values share one match, whose names are those of the first: `find` has the right
    ones.
    """

    trainings: tuple[Training, ...]
    emulations: tuple[Emulation, ...]
    rows: tuple[tuple[Match, ...], ...]
    problem: str = ""

    def find(self, trainer: str, server: str) -> Match:
        """Return the match of a trainer and a server, by their ids."""
        row, column = list(TRAINERS).index(trainer), list(SERVERS).index(server)
        training, emulation = self.trainings[row], self.emulations[column]
        return dataclasses.replace(self.rows[row][column], training=training, emulation=emulation)

    @functools.cached_property
    def worst(self) -> tuple[str, str] | None:
        """Trainer and server with the largest difference, the first of equal ones; None where none differ."""
        cells = {id(match): (place, match) for place, match in reversed([*enumerate(sum(self.rows, ()))])}
        differing = [(place, match) for place, match in cells.values() if match.same is False]
        if not differing:
            return None
        for level in (0, 1):
            largest = are_peaks([measure_match(match)[level] for _, match in differing])
            differing = [one for one, is_largest in zip(differing, largest, strict=True) if is_largest]
        place = min(place for place, _ in differing)
        return list(TRAINERS)[place // len(SERVERS)], list(SERVERS)[place % len(SERVERS)]


def compare_trainers(
    config: Source,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    releases: Mapping[str, str] | None = None,
) -> TrainingMatrix:
    """Compare every trainer, told what the config says, with every server that gets this config.

    `length` is the sequence length in tokens, `releases` names other releases of servers: {"vllm": "0.8.5"}.
    """
    try:
        case, _ = read_matched_case(config, length=length, layer_type=layer_type)
        trainings = [train_case(trainer, trainer.releases[0], case) for trainer in TRAINERS.values()]
        servers = [resolve_release(name, (releases or {}).get(name, version)) for name, version in SERVERS.values()]
        emulations = [emulate_case(name, version, case) for name, version in servers]
    except ValueError as error:
        return TrainingMatrix((), (), (), str(error))
    rows = compare_all(trainings, emulations, case.has_unrotated)
    return TrainingMatrix(tuple(trainings), tuple(emulations), rows)


def compare_all(
    trainings: Sequence[Training], emulations: Sequence[Emulation], has_unrotated: bool
) -> tuple[tuple[Match, ...], ...]:
    """Return every training against every emulation; equal values are compared once."""
    found: dict[tuple[object, ...], Match] = {}
    ours, theirs = [key_of(one) for one in trainings], [(*key_of(one), one.known.how) for one in emulations]
    rows = []
    for training, left in zip(trainings, ours, strict=True):
        row = []
        for emulation, right in zip(emulations, theirs, strict=True):
            key = (left, right)
            if key not in found:
                found[key] = compare_scores(training, emulation, has_unrotated)
            row.append(found[key])
        rows.append(tuple(row))
    return tuple(rows)


def key_of(one: Training | Emulation) -> tuple[object, ...]:
    """Return what a comparison depends on."""
    values = None if one.inv_freq is None else one.inv_freq.tobytes()
    return values, one.attention_factor, one.softmax_multiplier, one.supported


def state_of(match: Match) -> State:
    """Return the verdict of a match as one of four words."""
    if not (match.training.supported and match.emulation.supported):
        return "refused"
    return "not known" if match.same is None else "same" if match.same else "differs"
