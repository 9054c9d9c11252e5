"""Search for the divisors of a model's pairs at a target length. Optuna samples, and stores every trial at once.

Several processes may share a database: each works until all trials are done. A killed process leaves a trial without a
result, which does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec, short_repr
from rope_viz.evaluation import TEXTS
from rope_viz.evaluation.score_divisors import Scorer, Scores
from rope_viz.models.rope_config import to_config
from rope_viz.studies.heads import Turning
from rope_viz.texts.texts import join_items
from rope_viz.tiny_lm.recall import NORMAL, STUDENT, interval

if TYPE_CHECKING:
    import optuna
import dataclasses

from numpy.typing import ArrayLike

from rope_viz.embedding.scaling import LongRope, build_method

STARTS = ("none", "linear", "ntk", "ntk-by-parts", "yarn")
"""Methods whose divisors a search can start from."""


# A search over one divisor per pair needs thousands of trials (LongRoPE, https://arxiv.org/abs/2402.13753, section
# 3). Here log divisors are straight lines between knots over the pairs. The value at each knot is written as a share
# of the room that the value before leaves, so that every point of the unit cube is a monotone curve.
@dataclass(frozen=True)
class DivisorCurve:
    """Curves over `pairs` pairs with `knots` knots, from 1 to at most `largest`, never falling with the pair index."""

    pairs: int
    knots: int
    largest: float

    def __post_init__(self) -> None:
        if not 2 <= self.knots <= self.pairs:
            raise ValueError(TEXTS("search.knots", pairs=self.pairs, got=self.knots))

    @property
    def places(self) -> FloatArray:
        """Return the pair index of each knot, (knots,)."""
        return np.linspace(0.0, self.pairs - 1, self.knots)

    def divisors(self, shares: ArrayLike) -> FloatArray:
        """Return the divisors (pairs,) of a point of the unit cube, (knots,)."""
        room = np.log(self.largest) * np.cumprod(1.0 - np.asarray(shares, dtype=float))
        return np.asarray(np.exp(np.interp(np.arange(self.pairs), self.places, np.log(self.largest) - room)))

    def shares(self, divisors: FloatArray) -> FloatArray:
        """Return the point whose curve meets these divisors at the knots; they must not fall, and be at least 1."""
        most = np.log(self.largest)
        values = np.interp(self.places, np.arange(self.pairs), np.log(divisors))
        values = np.clip(np.maximum.accumulate(values), 0.0, most)
        room = most - np.concatenate([[0.0], values[:-1]])
        steps = np.diff(values, prepend=0.0)
        return np.asarray(np.divide(steps, room, out=np.zeros_like(steps), where=room > 0))


def start_divisors(spec: RopeSpec, method: str, length: int) -> tuple[FloatArray, float]:
    """Return the divisors and the attention factor of a method whose factor just reaches `length`."""
    scaled = dataclasses.replace(spec, scaling=build_method(method, length / spec.context), target=length)
    return spec.plain_inv_freq / scaled.inv_freq(length), scaled.attention_factor(length)


def longrope_spec(spec: RopeSpec, divisors: FloatArray, attention_factor: float, length: int) -> RopeSpec:
    """Return the embedding that has these divisors beyond the trained length, and is unscaled up to it."""
    scaling = LongRope(
        short_factor=(1.0,) * spec.pairs,
        long_factor=tuple(round(float(value), 6) for value in divisors),
        factor=length / spec.context,
        attention=attention_factor,
    )
    return dataclasses.replace(spec, scaling=scaling, target=length)


VERSION = 1
GOALS = ("passkey", "perplexity")
TINY = "tiny"
"""The name of the demo models in a plan."""
Watch: TypeAlias = Callable[[float, dict[str, Any]], None]
"""Takes the share of the work that is done, and the result so far, which has no scores on held-out texts."""
ROOM = 2.0
"""The largest divisor, as a multiple of target over trained length."""
MOST_ATTENTION = 0.2
"""The largest attention factor is 1 + this · ln s; YaRN's is 1 + 0.1 · ln s."""
HELD_OUT = 1_000_000
"""The seed of the first held-out text. Texts of the search begin at 0."""
MOST_TEXTS, MOST_TRIALS = 1000, 100_000


@dataclass(frozen=True)
class SearchPlan:
    """What to search. `attention_factor` None searches it too; `texts` score a trial, `held_out` the result."""

    model: str
    length: int
    by: str = "perplexity"
    knots: int = 6
    starts: tuple[str, ...] = STARTS
    attention_factor: float | None = 1.0
    texts: int = 2
    held_out: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if self.by not in GOALS:
            raise ValueError(TEXTS("search.goal", goals=join_items(GOALS), got=self.by))
        if not self.starts or len(set(self.starts)) < len(self.starts):
            raise ValueError(TEXTS("search.starts"))
        if unknown := [name for name in self.starts if name not in STARTS]:
            raise ValueError(TEXTS("search.start", starts=join_items(STARTS), got=short_repr(unknown[0])))
        if not 1 <= self.texts <= MOST_TEXTS or not 2 <= self.held_out <= MOST_TEXTS:
            raise ValueError(TEXTS("search.texts", most=MOST_TEXTS))

    def curve(self, spec: RopeSpec) -> DivisorCurve:
        """Return the curves of this search. Raises `ValueError` if the length does not extend the model."""
        if self.length <= spec.context:
            raise ValueError(TEXTS("search.longer", context=spec.context, length=self.length))
        return DivisorCurve(spec.pairs, self.knots, ROOM * self.length / spec.context)


def search(
    plan: SearchPlan,
    scorer: Scorer,
    storage: str | None,
    *,
    trials: int,
    say: Callable[[str], None] = lambda line: None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Run trials until so many are done, score the best one on held-out texts, and return the result.

    `storage` is the address of a database that Optuna takes, None for memory. Trials of an earlier run of the same plan
    count. `watch` is called after every trial and every held-out score. Raises `ValueError` if the database holds
    another search, and `ModuleNotFoundError` without Optuna.
    """
    import optuna

    if not len(plan.starts) <= trials <= MOST_TRIALS:
        raise ValueError(TEXTS("search.trial_count", least=len(plan.starts), most=MOST_TRIALS))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    curve = plan.curve(scorer.spec)
    study = open_study(plan, storage)
    enqueue_starts(plan, scorer.spec, curve, study)
    complete = (optuna.trial.TrialState.COMPLETE,)
    if before := len(study.get_trials(deepcopy=False, states=complete)):
        say(TEXTS("search.done", before=before, trials=trials))

    def run_trial(trial: optuna.Trial) -> float:
        shares = [trial.suggest_float(f"knot_{knot}", 0.0, 1.0) for knot in range(plan.knots)]
        attention = plan.attention_factor
        if attention is None:
            attention = trial.suggest_float("attention_factor", 1.0, largest_attention(plan, scorer.spec))
        turn = Turning(scorer.spec.plain_inv_freq / curve.divisors(shares), attention)
        found = scorer.score(turn, plan.length, range(plan.texts))
        trial.set_user_attr("right", float(found.right.mean()))
        trial.set_user_attr("loss", float(found.loss.mean()))
        return goal(plan, found)

    texts = trials * plan.texts + (1 + len(plan.starts)) * plan.held_out

    def report(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        done = len(study.get_trials(deepcopy=False, states=complete))
        if watch is not None:
            watch(done * plan.texts / texts, describe_trials(plan, scorer.spec, curve, study))
        start = trial.user_attrs.get("start")
        value = f"{trial.value:.4f}" + (f" (start {start})" if start else "")
        say(f"trial {done:,} of {trials:,}: {value}, best {study.best_value:.4f}")

    if before < trials:
        limit = optuna.study.MaxTrialsCallback(trials, states=complete)
        study.optimize(run_trial, callbacks=[report, limit])
    say(f"scoring the best divisors and the starts on {plan.held_out:,} held-out texts")
    found = describe_trials(plan, scorer.spec, curve, study)

    def see(remaining: int) -> None:
        if watch is not None:
            watch(1.0 - remaining * plan.held_out / texts, found)

    return found | score_held_out(plan, scorer, found, see)


def open_study(plan: SearchPlan, storage: str | None) -> optuna.Study:
    """Create the study of a plan or open it. Raises `ValueError` if the database holds another search."""
    import optuna

    try:
        database = optuna.storages.get_storage(storage)
        names = optuna.get_all_study_names(database)
        # A new process must not repeat the random numbers of one before it.
        before = len(optuna.load_study(study_name="search", storage=database).trials) if "search" in names else 0
        study = optuna.create_study(
            study_name="search",
            storage=database,
            load_if_exists=True,
            direction="maximize" if plan.by == "passkey" else "minimize",
            sampler=optuna.samplers.TPESampler(seed=plan.seed + before, multivariate=True),
        )
    except Exception as error:  # a database has errors of its own
        if isinstance(error, ModuleNotFoundError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"the database {storage} cannot be used: {reason}") from None
    described = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(plan).items()}
    found = study.user_attrs.get("plan")
    if found is None:
        study.set_user_attr("plan", described)
    elif found != described:
        differing = next(name for name in described if found.get(name) != described[name])
        raise ValueError(f"{storage} holds another search ({differing} differs): name another output or database")
    return study


def enqueue_starts(plan: SearchPlan, spec: RopeSpec, curve: DivisorCurve, study: optuna.Study) -> None:
    """Put the starts before the sampled trials, unless they are done, running or waiting."""
    for name in plan.starts:
        divisors, attention = start_divisors(spec, name, plan.length)
        values = {f"knot_{knot}": float(share) for knot, share in enumerate(curve.shares(divisors))}
        if plan.attention_factor is None:
            values["attention_factor"] = min(attention, largest_attention(plan, spec))
        if not any(
            trial.user_attrs.get("start") == name and trial.state.name in ("COMPLETE", "WAITING")
            for trial in study.get_trials(deepcopy=False)
        ):
            study.enqueue_trial(values, user_attrs={"start": name})


def largest_attention(plan: SearchPlan, spec: RopeSpec) -> float:
    """Return the largest attention factor of a search."""
    return 1.0 + MOST_ATTENTION * math.log(plan.length / spec.context)


def goal(plan: SearchPlan, found: Scores) -> float:
    """Return what is optimised: the share of right answers, or the perplexity of the answers."""
    return float(found.right.mean()) if plan.by == "passkey" else float(np.exp(found.loss.mean()))


def describe_trials(plan: SearchPlan, spec: RopeSpec, curve: DivisorCurve, study: optuna.Study) -> dict[str, Any]:
    """Return the best divisors and the starts, with their scores in the search and the config of the best."""
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]

    def rank(trial: optuna.trial.FrozenTrial) -> tuple[float, float]:
        right, loss = trial.user_attrs["right"], trial.user_attrs["loss"]
        return (-right if plan.by == "passkey" else loss), loss  # of equal shares the one that is surer

    def describe(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
        divisors = curve.divisors([trial.params[f"knot_{knot}"] for knot in range(plan.knots)])
        attention = trial.params.get("attention_factor", plan.attention_factor)
        return {
            "trial": trial.number,
            "start": trial.user_attrs.get("start"),
            "attention_factor": attention,
            "divisors": [round(float(value), 6) for value in divisors],
            "right": trial.user_attrs["right"],
            "loss": trial.user_attrs["loss"],
        }

    best = describe(min(trials, key=rank))
    return {
        "version": VERSION,
        "plan": asdict(plan),
        "trained_length": spec.context,
        "trials": len(trials),
        "best": best,
        "starts": [describe(trial) for trial in trials if trial.user_attrs.get("start")],
        "config": to_config(longrope_spec(spec, np.array(best["divisors"]), best["attention_factor"], plan.length)),
        "history": history(plan, trials),
    }


def score_held_out(
    plan: SearchPlan, scorer: Scorer, found: Mapping[str, Any], see: Callable[[int], None]
) -> dict[str, Any]:
    """Return "best" and "starts" with their scores on held-out texts, and the gain of the best over the best start.

    `see` is called with the number of scores that are left.
    """
    spec, scores, rows = scorer.spec, list[Scores](), [found["best"], *found["starts"]]
    for number, each in enumerate(rows, 1):
        turn = Turning(spec.plain_inv_freq / np.array(each["divisors"]), each["attention_factor"])
        scores.append(scorer.score(turn, plan.length, range(HELD_OUT, HELD_OUT + plan.held_out)))
        see(len(rows) - number)
    best, *starts = (row | {"held_out": describe_scores(each)} for row, each in zip(rows, scores, strict=True))
    of_starts = scores[1:]
    first = min(
        range(len(starts)), key=lambda index: goal(plan, of_starts[index]) * (-1 if plan.by == "passkey" else 1)
    )
    gain = scores[0].right - of_starts[first].right
    low, high = difference_interval(gain)
    return {
        "best": best,
        "starts": starts,
        "gain": {"over": starts[first]["start"], "right": float(gain.mean()), "low": low, "high": high},
    }


def describe_scores(found: Scores) -> dict[str, float]:
    """Return the share of right answers with its 95 % interval, and the mean loss."""
    low, high = interval(found.right.mean(axis=1), found.right.size)
    return {"right": float(found.right.mean()), "low": low, "high": high, "loss": float(found.loss.mean())}


def history(plan: SearchPlan, trials: Sequence[optuna.trial.FrozenTrial]) -> list[dict[str, Any]]:
    """Return the score of every trial in order."""
    return [
        {"trial": trial.number, "right": trial.user_attrs["right"], "loss": trial.user_attrs["loss"]}
        for trial in trials
    ]


def difference_interval(values: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of (models, texts): Student's over texts or models, whichever is wider."""
    groups = [values.ravel(), *([values.mean(axis=1)] if len(values) > 1 else [])]
    half = max(
        STUDENT.get(len(group) - 1, NORMAL) * float(group.std(ddof=1)) / math.sqrt(len(group)) for group in groups
    )
    return float(values.mean()) - half, float(values.mean()) + half
