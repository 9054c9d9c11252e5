"""Compare what a trainer computed with what a server computes, one with one or all with all."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.advice.training import TEXTS
from rope_viz.embedding.spectrum import are_peaks
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import Emulation, emulate_case, read_case, resolve_release
from rope_viz.runtimes.compare import TOLERANCE, Effect, divide, find_max_ratio, log_distance
from rope_viz.runtimes.releases import find_version
from rope_viz.runtimes.rule_engine import Case
from rope_viz.runtimes.trainers import TRAINERS, Training, find_trainer, train_case
from rope_viz.texts import join
from rope_viz.texts.sentences import describe_error
from rope_viz.texts.texts import join_clauses

FREQUENCY_TOLERANCE, SCORE_TOLERANCE = 3e-6, 4e-6
"""What the float32 arithmetic of trainers and servers explains, as in tests/goldens/training.json."""
LIMIT = "max_position_embeddings"


@dataclass(frozen=True)
class Match:
    """A training against a server, for one layer type of a config.

    `same_values` is None where one of them refuses or the server is not known. `same_pairs` is False where the trainer
    rotates other pairs of channels than the server, and `is_permuted` was not given. `effect` is the
    largest frequency ratio and its pair, None where the frequencies agree or the widths differ. Ratios of scores are
    trainer over server, on rotated dimensions (factor squared times softmax multiplier) and on the others.
    `far_position` is the first position where the angles of one pair are more than one radian apart, None where that
    never happens. `notes` are remarks about the config.
    """

    training: Training
    emulation: Emulation
    same_values: bool | None
    effect: Effect | None = None
    widths_differ: bool = False
    score_ratio: float | None = None
    score_ratio_unrotated: float | None = None
    far_position: int | None = None
    same_pairs: bool = True
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool | None:
        """Whether the server gives the scores that were trained, without a change of the checkpoint."""
        return self.same_pairs if self.same_values else self.same_values


def match_training(
    config: Source,
    trainer: str,
    *,
    version: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    server: tuple[str, str | None] = ("transformers", None),
    length: int | None = None,
    layer_type: str | None = None,
    is_permuted: bool = False,
) -> Match:
    """Compare a trainer, with its own options, with a server that gets this config; `length` in tokens.

    `is_permuted`: the rows of q and k were put into the server's order when the checkpoint was converted.

    Raise `ValueError` for an unknown trainer, server or version, for a wrong option, and for a config that describes no
    rotary embedding.
    """
    found, release = find_trainer(trainer, version)
    runtime = resolve_release(*server)
    case, notes = read_matched_case(config, length=length, layer_type=layer_type)
    training = train_case(found, release, case, arguments)
    match = compare_scores(training, emulate_case(*runtime, case), case.has_unrotated)
    return dataclasses.replace(match, same_pairs=is_permuted or has_same_pairs(training, case), notes=notes)


def has_same_pairs(training: Training, case: Case) -> bool:
    """Return whether a trainer's checkpoint has the pairs of channels that the model's class rotates."""
    converts = training.trainer.permutes or not training.supported
    return converts or training.pairing == case.architecture.pairing


def read_matched_case(
    config: Source, *, length: int | None = None, layer_type: str | None = None
) -> tuple[Case, tuple[str, ...]]:
    """Return the case that trainer and server both get, and remarks about the config. Raise `ValueError`."""
    model = ModelConfig.read(config)
    whole, notes = make_limit_whole(model.mapping)
    return read_case(whole if notes else model, length=length, layer_type=layer_type), notes


def make_limit_whole(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the config with a limit such as 16384.0 as a whole number, and a remark where there was one."""
    value = config.get(LIMIT)
    if not isinstance(value, float) or not value.is_integer():
        return config, ()
    note = TEXTS("whole_limit", key=LIMIT, value=value, whole=int(value))
    return {**config, LIMIT: int(value)}, (note,)


def compare_scores(training: Training, emulation: Emulation, has_unrotated: bool) -> Match:
    """Return the comparison of both results; dimensions that do not rotate count where there are any."""
    ours, theirs = training.inv_freq, emulation.inv_freq
    if ours is None or theirs is None:
        return Match(training, emulation, None)
    differ = ours.shape != theirs.shape or not np.array_equal(ours > 0, theirs > 0)
    effect = None if ours.shape != theirs.shape else find_max_ratio(ours, theirs)
    if effect is not None and effect.ratio <= 1.0 + FREQUENCY_TOLERANCE:
        effect = None
    softmax = divide(training.softmax_multiplier or 1.0, emulation.softmax_multiplier or 1.0)
    factors = divide(training.attention_factor or 0.0, emulation.attention_factor or 0.0)
    rotated = factors**2 * softmax
    scores = (rotated, softmax) if has_unrotated or differ else (rotated,)
    agree = all(math.isclose(one, 1.0, rel_tol=SCORE_TOLERANCE) for one in scores)
    same = None if emulation.known.how == "not known" else effect is None and not differ and agree
    far = None if ours.shape != theirs.shape else find_far_position(float(np.max(np.abs(ours - theirs))))
    return Match(training, emulation, same, effect, differ, rotated, softmax, far if effect else None)


def find_far_position(gap: float) -> int | None:
    """Return the first position at which a gap in radians per position exceeds one radian."""
    return None if gap <= 0 else math.floor((1.0 + TOLERANCE) / gap) + 1


def measure_match(match: Match) -> tuple[float, float]:
    """Return how far a training and a server are apart: the logarithms of the ratios of frequencies and of scores."""
    scores = [log_distance(ratio) for ratio in (match.score_ratio, match.score_ratio_unrotated) if ratio is not None]
    ratio = math.inf if match.widths_differ else 0.0 if match.effect is None else math.log(match.effect.ratio)
    return ratio, max(scores, default=0.0)


def describe_match(found: Match) -> str:
    """Return one sentence: what agrees, or the worst pair and from where on its angle is off."""
    training, server = found.training, found.emulation
    if not training.supported:
        return TEXTS("match.untrained", trainer=training.name, reason=training.reason)
    if not server.supported:
        return TEXTS("match.refuses", server=server.name, reason=server.reason)
    if found.same is None:
        return TEXTS("match.unknown", server=server.name, source=server.known.source)
    if found.same:
        return TEXTS("match.same", server=server.name, trainer=training.name)
    if found.same_values:
        return join(TEXTS("match.pairs"), describe_pairs(found))
    parts: list[str] = []
    if found.widths_differ and training.inv_freq is not None and server.inv_freq is not None:
        parts.append(TEXTS("part.widths", trained=len(training.inv_freq), served=len(server.inv_freq)))
    if found.effect is not None:
        key = "part.pair_far" if found.far_position else "part.pair"
        parts.append(TEXTS(key, pair=found.effect.pair, ratio=found.effect.ratio, position=found.far_position))
    if found.score_ratio is not None and not math.isclose(found.score_ratio, 1.0, rel_tol=SCORE_TOLERANCE):
        parts.append(TEXTS("part.scores", ratio=found.score_ratio))
    rest = found.score_ratio_unrotated
    if rest is not None and not parts:
        parts.append(TEXTS("part.rest_scores", ratio=rest))
    if not found.same_pairs:
        parts.append(TEXTS("part.other_pairs"))
    return TEXTS("match.differ", trainer=training.name, server=server.name, parts=join_clauses(parts))


def describe_pairs(found: Match) -> str:
    """Return which channels of a head trainer and server rotate together."""
    training, pairs = found.training, 0 if found.training.inv_freq is None else len(found.training.inv_freq)
    key = "match.adjacent" if training.pairing == "interleaved" else "match.halves"
    return TEXTS(key, trainer=training.name, server=found.emulation.name, pairs=pairs)


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
    ones. Checkpoints count as converted: q and k are in each server's order. `permuted` names the trainers for which
    that takes a permutation.
    """

    trainings: tuple[Training, ...]
    emulations: tuple[Emulation, ...]
    rows: tuple[tuple[Match, ...], ...]
    problem: str = ""
    permuted: tuple[str, ...] = ()

    def find(self, trainer: str, server: str) -> Match:
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
        return TrainingMatrix((), (), (), describe_error(error))
    rows = compare_all(trainings, emulations, case.has_unrotated)
    permuted = tuple(one.trainer.label for one in trainings if not has_same_pairs(one, case))
    return TrainingMatrix(tuple(trainings), tuple(emulations), rows, permuted=permuted)


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
