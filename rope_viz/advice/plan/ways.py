"""A way to a longer context: its rank, its reasons and what it costs on short texts, in sentences with numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.extend import Option, measure
from rope_viz.embedding.spec import RopeSpec, lists
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.identity.shipped_scaling import family_name, is_same_scaling
from rope_viz.models.identity.trained_scaling import find_trained_embedding, is_trained_scaling
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_list


@dataclass(frozen=True)
class Evidence:
    """One published finding about these methods and these models of the catalog (none: all), with its source.

    `key` is that of its texts, `longest` the longest measured length, 0 where no length was measured.
    """

    methods: tuple[str, ...]
    models: tuple[str, ...]
    key: str
    source: str
    longest: int = 0

    @property
    def text(self) -> str:
        """What was found, in sentences."""
        return TEXTS(f"evidence.{self.key}")

    @property
    def score(self) -> str:
        """The result at the longest measured length."""
        return TEXTS(f"score.{self.key}")


EVIDENCE = tuple(
    Evidence(**{**each, "methods": tuple(each["methods"]), "models": tuple(each["models"])})
    for each in read_own(__file__, "evidence.json")
)


def evidence(method: str, model: str = "") -> tuple[Evidence, ...]:
    """Return what was measured of a method: for this model first, then in general."""
    found = [one for one in EVIDENCE if method in one.methods and (not one.models or model in one.models)]
    return tuple(sorted(found, key=lambda one: not one.models))


Rank: TypeAlias = Literal["as it is", "documented", "its own, further", "usual", "possible", "as set", "not advised"]
RANKS: tuple[Rank, ...] = get_args(Rank)

SUPPORT: Mapping[str, str] = TEXTS.group("support")
"""How a rank is called in texts; the ranks themselves are values in the JSON of `rope-viz extend`."""


@dataclass(frozen=True)
class Way:
    """One way to reach the length `target`: `reach` is the length that it is documented to reach, None if none is.

    `because` is a reason that is not in its numbers. `is_lossy`: something that the model was trained with is lost.
    Its numbers and its reasons are computed when they are first needed, because they take a while.
    """

    rank: Rank
    spec: RopeSpec
    target: int
    recognised: Identity
    title: str
    source: str = ""
    reach: int | None = None
    because: str = ""
    is_lossy: bool = False

    @property
    def is_advised(self) -> bool:
        """Whether it may be written without the user's own word."""
        return self.rank != "not advised" and not self.is_lossy

    @property
    def method(self) -> str:
        return self.spec.scaling.name

    @property
    def option(self) -> Option:
        return measure_once(self.spec, self.target)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(list_reasons(self))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was measured: of this model, else in general, unless its maker documents the method for it."""
        found = evidence(self.method, self.recognised.model.id if self.recognised.model is not None else "")
        own = tuple(one for one in found if one.models)
        return own or (() if self.rank in ("as it is", "documented", "its own, further") else found)

    @property
    def id(self) -> str:
        """A short name for addresses: the method, or "documented", "kept" or "set" where it is that."""
        if self.rank == "possible" and self.spec == self.recognised.spec:
            return "kept"  # ranked behind what its maker documents
        if self.spec.scaling.rotates_whole_head and self.spec.scaling == self.recognised.spec.scaling:
            return "none" if self.spec.base == self.recognised.spec.base else "ntk"
        return {"documented": "documented", "as it is": "kept", "as set": "set"}.get(self.rank, self.method)


@functools.lru_cache(maxsize=256)
def measure_once(spec: RopeSpec, target: int) -> Option:
    """Return the numbers of a spec at a length, cached: the mean cosine takes a while at a million tokens."""
    return measure(spec, target, factor=spec.scaling.factor_for(spec))


def list_reasons(way: Way) -> Iterator[str]:
    """Yield the reasons, in sentences with the numbers of this model at this length."""
    spec, target, reach, measured = way.spec, way.target, way.reach, way.option
    if way.because:
        yield way.because
    if reach is not None and reach > target:
        yield TEXTS("way.reaches", reach=reach, target=target)
    yield describe_angles(way)
    if target <= way.recognised.trained.length and not spec.is_scaled:
        return
    yield from describe_method(spec, measured, target, way.recognised.spec)
    if measured.first_negative is not None:
        yield TEXTS("first_negative", distance=measured.first_negative)
    if abs(measured.logit_factor - 1.0) > 1e-3:
        yield TEXTS("way.logits", factor=measured.logit_factor)


def describe_angles(way: Way) -> str:
    """Return a sentence on the pairs that reach angles beyond the trained length, as far as that is known."""
    target, trained, shipped = way.target, way.recognised.trained, way.recognised.shipped
    if target <= trained.length and not way.spec.is_scaled:
        if trained.is_known:
            return TEXTS("angles.seen")
        return TEXTS("angles.limit", length=trained.length)
    unseen, pairs = way.option.unseen, way.spec.pairs
    if shipped is not None and target <= shipped.target and is_same_scaling(way.spec, shipped):
        return TEXTS("angles.shipped", reach=shipped.target)
    if trained.is_known:
        key = "angles.some_unseen" if unseen else "angles.none_unseen"
    else:
        key = "angles.some_beyond" if unseen else "angles.none_beyond"
    return TEXTS(key, target=target, unseen=unseen, pairs=pairs, length=trained.length)


def describe_method(spec: RopeSpec, measured: Option, target: int, before: RopeSpec) -> Iterator[str]:
    """Yield what a method does to neighbouring tokens, and what it needs."""
    if not spec.is_scaled:
        yield TEXTS("method.unscaled")
    nearest = float(spec.inv_freq(target)[0] / before.inv_freq()[0])
    void = {"all_divided": nearest >= 1.0, "some_kept": not measured.kept}
    for key in spec.scaling.plan_texts:
        if not void.get(key):
            yield TEXTS(f"method.{key}", divided=1.0 / (nearest or 1.0), kept=measured.kept, pairs=spec.pairs)


def describe_short_texts(best: Way, recognised: Identity) -> Iterator[str]:
    """Yield what the method costs below the trained length."""
    trained, spec = recognised.trained.length, best.spec
    if not spec.is_scaled:
        return
    if spec.scaling.depends_on_length and not lists(spec.scaling):
        yield TEXTS("short.by_length", length=spec.context)
        return
    if recognised.shipped is not None and is_same_scaling(spec, recognised.shipped):
        yield TEXTS("short.shipped")
        return
    if best.rank == "as it is" and recognised.departs and recognised.model is not None:
        values = join_list([*recognised.departs.values()], more="end")
        yield TEXTS("short.departs", name=family_name(recognised.model), values=values)
        return
    if best.rank == "as it is" and recognised.model is None:
        yield from describe_unlisted(best, trained)
        return
    if lists(spec.scaling):
        yield TEXTS("short.lists", length=spec.context)
        return
    before = find_trained_embedding(recognised)
    if is_trained_scaling(recognised, before):
        trained = max(before.target, trained)
    else:
        before = spec.plain()
    kept = np.isclose(spec.inv_freq(), before.inv_freq(), rtol=1e-9, atol=0.0)
    count, factor = int(np.count_nonzero(~kept)), (spec.attention_factor() / before.attention_factor()) ** 2
    key = "short.slower_and_logits" if abs(factor - 1.0) > 1e-3 else "short.slower"
    yield TEXTS(key, slower=count, pairs=spec.pairs, trained=trained, factor=factor)
    yield TEXTS("short.two_configs", trained=trained)


def describe_unlisted(best: Way, trained: int) -> Iterator[str]:
    """Yield the same for a config that stays as it is, of a model that is not in the catalog."""
    scaling = best.spec.scaling
    yield TEXTS("short.unlisted")
    if scaling.is_trained_with:
        key = "short.trained_rope" if scaling.label.endswith("RoPE") else "short.trained_scaling"
        yield TEXTS(key, method=scaling.label)
    elif "all_divided" in scaling.plan_texts:
        yield TEXTS("short.linear")
    else:
        yield TEXTS("short.some_trained", method=scaling.label, trained=trained)
