"""What to do for a longer context, and why: what the maker documented first, then the methods in order for this model.

The order among methods that nobody documented for a model is a judgement. Each states its reasons in numbers: pairs at
angles never seen in training, neighbours that move together, the first negative mean cosine, the factor on the logits.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from rope_viz.advice.citations import Evidence, evidence
from rope_viz.advice.extend import Option, extend, fits, measure, unseen_pairs
from rope_viz.embedding.scaling import LABELS, LARGEST_FACTOR, Yarn
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, Scaling, require_number
from rope_viz.models.identify_model import Identity
from rope_viz.models.model_config import ModelConfig, Source, from_config
from rope_viz.models.rope_config import ORIGINAL
from rope_viz.models.shipped_scaling import TRAINED_WITH, family_name, is_added_later, is_same_scaling
from rope_viz.models.shipped_scaling import is_factor_for_length as differs_by_factor

Rank: TypeAlias = Literal["as it is", "documented", "its own, further", "usual", "possible", "as set", "not advised"]
RANKS: tuple[Rank, ...] = get_args(Rank)

SUPPORT: dict[Rank, str] = {
    "as it is": "as shipped",
    "documented": "vendor method",
    "its own, further": "vendor method, extrapolated",
    "usual": "common",
    "possible": "untested",
    "as set": "set by you",
    "not advised": "not recommended",
}
"""How a rank is called in texts; the ranks themselves are values in the JSON of `rope-viz extend`."""

# The order of the methods that nobody documented for a model, the best first.
USUAL = ("yarn", "dynamic", "ntk", "llama3", "linear")


@dataclass(frozen=True)
class Way:
    """One way to reach the length `target`: `reach` is the length that it is documented to reach, None if none is.

    Its numbers and its reasons are computed when they are first needed, because they take a while.
    """

    rank: Rank
    spec: RopeSpec
    target: int
    recognised: Identity
    title: str
    source: str = ""
    reach: int | None = None

    @property
    def method(self) -> str:
        """The name of the scaling method."""
        return self.spec.scaling.name

    @property
    def option(self) -> Option:
        """Its numbers at the length: pairs at unseen angles and so on."""
        return measure_once(self.spec, self.target)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in words."""
        return tuple(list_reasons(self))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was measured for the method, this model's own numbers first."""
        return evidence(self.method, self.recognised.model.id if self.recognised.model is not None else "")

    @property
    def id(self) -> str:
        """A short name for addresses: the method, or "documented", "kept" or "set" where it is that."""
        if self.rank == "possible" and self.spec == self.recognised.spec:
            return "kept"  # ranked behind what its maker documents
        return {"documented": "documented", "as it is": "kept", "as set": "set"}.get(self.rank, self.method)


@dataclass(frozen=True)
class Advice:
    """All ways for one model and one length, the best first; `short` says what the best costs on short texts."""

    recognised: Identity
    target: int
    ways: tuple[Way, ...]
    short: tuple[str, ...]

    @property
    def best(self) -> Way:
        """The first way."""
        return self.ways[0]

    def way(self, id: str) -> Way:
        """Return the way of this short name; the best where there is none."""
        return next((way for way in self.ways if way.id == id), self.best)


def recommend(config: Source, recognised: Identity, target: int, *, own: RopeSpec | None = None) -> Advice:
    """Return every way to reach `target` tokens; `own` is an embedding that the user has set.

    Raises `ValueError` where `target` is no length.
    """
    require_number(target, "the length", least=1, most=MAX_LENGTH, integer=True)
    ways = [*documented_ways(ModelConfig.read(config), recognised, int(target))]
    # The config's own embedding stays under its own name, even if it is one that we would choose anyway.
    kept = [one.spec for one in ways if one.id == "kept"]
    others = other_ways(recognised, int(target))
    ways += [one for one in others if not any(is_same_embedding(one.spec, spec) for spec in kept)]
    if own is not None:
        ways.append(Way("as set", own, int(target), recognised, "The settings of the sidebar"))
    seen: dict[str, Way] = {}
    for found in sorted(ways, key=lambda one: RANKS.index(one.rank)):
        if found.rank == "as set" or not any(is_same_embedding(found.spec, one.spec) for one in seen.values()):
            seen.setdefault(found.id, found)
    chosen = tuple(seen.values())
    return Advice(recognised, int(target), chosen, tuple(describe_short_texts(chosen[0], recognised)))


def is_same_embedding(one: RopeSpec, other: RopeSpec) -> bool:
    """Return whether two embeddings rotate every pair alike, for as many tokens."""
    return one == other or (
        isinstance(one.scaling, Yarn)
        and isinstance(other.scaling, Yarn)
        # DeepSeek's attention multiplies its softmax scale by a power of it.
        and (one.scaling.mscale_all_dim or 0.0) == (other.scaling.mscale_all_dim or 0.0)
        and one.target == other.target
        and np.array_equal(one.inv_freq(), other.inv_freq())
        and one.attention_factor() == other.attention_factor()
    )


def start(recognised: Identity) -> RopeSpec:
    """Return the model as it was trained: its own sizes and base, nothing scaled, its trained length as the context."""
    length = recognised.trained.length
    return dataclasses.replace(recognised.spec, context=length, target=length, scaling=Scaling())


def documented_ways(config: ModelConfig, recognised: Identity, target: int) -> Iterator[Way]:
    """Yield the ways that need no judgement: the config as it is where it reaches, and what the maker documented."""
    model, spec, reach, trained = recognised.model, recognised.spec, recognised.reach, recognised.trained
    label, scaled = LABELS[spec.scaling.name], spec.scaling.name != "none"
    documented = [] if model is None or target <= trained.length else model.documented
    entry = min((one for one in documented if one["to"] >= target), key=lambda one: int(one["to"]), default=None)
    if entry is not None:
        made = documented_spec(config, recognised, entry["rope_scaling"])
        yield Way("documented", made, target, recognised, entry["says"], entry["source"], entry["to"])
    ships = find_shipped_way(recognised, target)
    if ships is not None and entry is None:
        yield ships
    if target <= reach and not (recognised.exact and target > spec.target):
        if scaled:
            title = f"Keep the config: {label}, {describe_owner(config, recognised)}, reaches {reach:,} tokens"
            source = model.source if recognised.exact and model is not None else "the config itself"
            rank: Rank = "as it is" if entry is None and not is_doubtful(recognised, ships) else "possible"
            yield Way(rank, spec, target, recognised, title, source, reach)
        else:
            title = f"Keep the config: the model was trained on {trained.length:,} tokens"
            yield Way("as it is", spec, target, recognised, title, trained.source)
    elif target > reach and scaled and getattr(spec.scaling, "factor", None) is not None:
        if not 1e-6 < spec.scaling.factor_for(spec) * target / reach < LARGEST_FACTOR:
            return
        made = with_larger_factor(recognised, target)
        title = f"{label} with a larger factor than its maker used"
        if made.scaling == spec.scaling:
            title = f"Raise max_position_embeddings: {label} with its present factor"
        elif not recognised.exact:
            title = f"{label} with a larger factor than the config has"
        yield Way("its own, further", made, target, recognised, title)


def describe_owner(config: ModelConfig, recognised: Identity) -> str:
    """Return whose scaling the config has: the model's own, what its maker documents, or what somebody has changed."""
    model, spec = recognised.model, recognised.spec
    if model is None:
        return "as in the config"
    name = family_name(model)
    if recognised.exact:
        return f"as {name} ships it"
    if recognised.departs:
        return f"with {' and '.join(recognised.departs.values())} as in {name}"
    for one in model.documented:
        made = documented_spec(config, recognised, one["rope_scaling"])
        if is_same_embedding(made, dataclasses.replace(spec, target=one["to"])):
            return f"which the maker of {name} documents"
    if spec in from_config(model.config).values() and is_added_later(model):
        return f"which the maker of {name} documents"
    return f"which {name} does not use"


def find_shipped_way(recognised: Identity, target: int) -> Way | None:
    """Return what the catalog's model ships with, where the config has it otherwise or says a smaller limit."""
    model, ships, spec = recognised.model, recognised.shipped, recognised.spec
    if model is None or ships is None or ships.target < target or recognised.trained.length >= target:
        return None
    name, label = family_name(model), LABELS[ships.scaling.name]
    if recognised.departs:
        title = f"{label} as {name} ships it, which reaches {ships.target:,} tokens; your config has "
        title += " and ".join(recognised.departs.values())
    elif target > spec.target:
        title = f"Raise max_position_embeddings: {label}, as {name} ships it, reaches {ships.target:,} tokens; "
        title += f"{spec.target:,} is only a limit in the config"
    else:
        return None
    return Way("documented", ships, target, recognised, title, model.source, ships.target)


def is_doubtful(recognised: Identity, ships: Way | None) -> bool:
    """Return whether a changed scaling is rather a slip than what somebody trained a model with."""
    theirs = recognised.shipped
    if ships is None or theirs is None or not recognised.departs or recognised.how == "fine-tune":
        return False
    return not differs_by_factor(recognised.spec, theirs, recognised.departs)


def with_larger_factor(recognised: Identity, target: int) -> RopeSpec:
    """Return the config's own method with a factor as much larger as the length is; the rest of it stays."""
    spec, reach = recognised.spec, recognised.reach
    factor = spec.scaling.factor_for(spec)
    if spec.scaling.name in ("yarn", "llama3") and not recognised.exact:
        # These reach at least as far as their factor says, even if max_position_embeddings is smaller.
        reach = max(reach, round(factor * spec.context))
    scaling: Any = spec.scaling
    return dataclasses.replace(
        spec, target=target, scaling=dataclasses.replace(scaling, factor=factor * max(1.0, target / reach))
    )


def documented_spec(config: ModelConfig, recognised: Identity, rope: Mapping[str, Any]) -> RopeSpec:
    """Return the embedding of the model with the documented keys in its config."""
    part, dicts = config.part, ("rope_parameters", "rope_scaling")
    kept = {
        key: value
        for name in dicts
        for key, value in (part.config.get(name) or {}).items()
        if key in ("partial_rotary_factor", "mrope_section", "mrope_interleaved")
    }
    keys = {key: value for key, value in part.config.items() if key not in dicts}
    keys |= {"model_type": part.kind, "rope_theta": recognised.spec.base, "rope_scaling": {**kept, **rope}}
    keys["max_position_embeddings"] = round(float(rope["factor"]) * int(rope[ORIGINAL]))
    found = from_config(keys)
    return found.get(recognised.layer, next(iter(found.values())))


def other_ways(recognised: Identity, target: int) -> Iterator[Way]:
    """Yield the methods that nobody documented for this model, each with its rank."""
    base, trained = start(recognised), recognised.trained.length
    if target <= trained:
        return
    plain = Way("not advised", extend(base, "none", target), target, recognised, "No scaling, only a longer limit")
    if unseen_pairs(plain.spec, target) == 0:
        yield dataclasses.replace(
            plain, rank="usual", title="No scaling needed: no pair reaches an angle never seen in training"
        )
        return
    for name in USUAL:
        if fits(base, name, target):
            rank: Rank = "usual" if name == "yarn" else "possible"
            title = f"{LABELS[name]}, s = {target / trained:.4g}"
            yield Way(rank, extend(base, name, target), target, recognised, title)
    yield plain


@functools.lru_cache(maxsize=256)
def measure_once(spec: RopeSpec, target: int) -> Option:
    """Return the numbers of a spec at a length, cached: the mean cosine takes a while at a million tokens."""
    return measure(spec, target, factor=spec.scaling.factor_for(spec))


def list_reasons(way: Way) -> Iterator[str]:
    """Yield the reasons, in sentences with the numbers of this model at this length."""
    spec, target, reach, measured = way.spec, way.target, way.reach, way.option
    trained = way.recognised.trained.length
    if reach is not None and reach > target:
        yield f"It reaches {reach:,} tokens; you need {target:,}."
    if target <= trained and spec.scaling.name == "none":
        yield "Every angle up to this length was seen in training."
        return
    if measured.unseen:
        yield (
            f"At {target:,} tokens {measured.unseen} of {spec.pairs} pairs reach angles never seen in training on "
            f"{trained:,} tokens."
        )
    else:
        yield f"At {target:,} tokens no pair reaches an angle never seen in training."
    yield from describe_method(spec, measured, target, way.recognised.spec)
    if measured.first_negative is not None:
        yield (
            f"The mean cosine over the head is first negative at distance {measured.first_negative:,}: from there "
            "similar tokens are no longer preferred on average."
        )
    if abs(measured.logit_factor - 1.0) > 1e-3:
        yield f"All logits are multiplied by {measured.logit_factor:.3g}, because attention spreads over more tokens."


def describe_method(spec: RopeSpec, measured: Option, target: int, before: RopeSpec) -> Iterator[str]:
    """Yield what a method does to neighbouring tokens, and what it needs."""
    name, pairs = spec.scaling.name, spec.pairs
    nearest = float(spec.inv_freq(target)[0] / before.inv_freq()[0])
    if name == "linear" and nearest < 1.0:
        yield (
            f"Every frequency is divided by {1.0 / nearest:.3g}, so neighbouring tokens are harder to tell apart: the "
            "model needs fine-tuning."
        )
    elif name in ("yarn", "llama3") and measured.kept:
        yield f"{measured.kept} of {pairs} pairs keep their frequency: neighbouring tokens stay as distinct as before."
    elif name in ("ntk", "dynamic"):
        yield "The highest frequency stays, the lowest is divided by the full factor, the others by less."
    elif name == "longrope":
        yield "Its lists were found by search for one length of this model and do not apply to another."
    elif name == "none":
        yield "No frequency changes, so short texts lose nothing and long texts gain nothing."
    if name == "dynamic":
        yield (
            "Only transformers computes its base from the current length, so short texts do not change there. Cached "
            "keys keep the base of an earlier length. vLLM, SGLang and llama.cpp do not scale by the length."
        )
    if name == "llama3":
        yield "Known models with this method were trained with it. It has no factor on cos and sin."


def describe_short_texts(best: Way, recognised: Identity) -> Iterator[str]:
    """Yield what the method costs below the trained length."""
    trained, spec = recognised.trained.length, best.spec
    if spec.scaling.name == "none":
        return
    if spec.scaling.name == "dynamic":
        yield f"Up to {spec.context:,} tokens nothing changes, because dynamic NTK scales by the length."
        return
    if recognised.shipped is not None and is_same_scaling(spec, recognised.shipped):
        yield "The model was trained with this scaling, so short texts work as its maker intended."
        return
    if best.rank == "as it is" and recognised.departs and recognised.model is not None:
        yield (
            f"{family_name(recognised.model)} was trained with other values; this config has "
            f"{' and '.join(recognised.departs.values())}. Unless the model was trained again with these values, short "
            "texts no longer match its training."
        )
        return
    if best.rank == "as it is" and recognised.model is None:
        yield from describe_unlisted(best, trained)
        return
    if spec.scaling.name == "longrope":
        yield f"Up to {spec.context:,} tokens the short list is used, beyond that the long one."
        return
    changed = np.abs(spec.inv_freq() / np.where(spec.plain_inv_freq > 0, spec.plain_inv_freq, 1.0) - 1.0) > 1e-9
    count, factor = int(np.count_nonzero(changed)), spec.attention_factor() ** 2
    logits = f", and all logits are multiplied by {factor:.3g}" if abs(factor - 1.0) > 1e-3 else ""
    slower = f"{count} of {spec.pairs} pairs have a lower frequency below {trained:,} tokens, too"
    yield f"The factor is always on: {slower}{logits}."
    yield (
        f"If most texts are shorter than {trained:,} tokens, serve them with the original config and long texts with "
        "this one. transformers scales by the length with dynamic and longrope only; vLLM, SGLang, llama.cpp and "
        "mlx-lm never do."
    )


def describe_unlisted(best: Way, trained: int) -> Iterator[str]:
    """Yield the same for a config that stays as it is, of a model that is not in the catalog."""
    name = best.spec.scaling.name
    yield "It is unknown whether this model was trained with this scaling: it is not in the list of models."
    if name in TRAINED_WITH:
        label = f"{LABELS[name]} scaling" if name == "llama3" else LABELS[name]
        yield f"{label} is normally part of the training; then short texts work as its maker intended."
    elif name == "linear":
        yield "Linear scaling needs training. If the model was trained with it, short texts work as its maker intended."
    else:
        yield (
            f"Some models were trained with {LABELS[name]}; for others it was added later, as their model cards tell. "
            f"Those read texts below {trained:,} tokens better with a config without it."
        )
