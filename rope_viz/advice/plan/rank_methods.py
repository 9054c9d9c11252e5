"""What to do for a longer context, and why: what the maker documented first, then the methods in order for this model.

The order among methods that nobody documented for a model is a judgement. Each states its reasons in numbers: pairs at
angles never seen in training, neighbours that move together, the first negative mean cosine, the factor on the logits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.extend import extend, fits, unseen_pairs
from rope_viz.advice.plan.ways import RANKS, Rank, Way, describe_short_texts
from rope_viz.embedding.scaling import LABELS
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, Scaling, lists, require_number
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.identity.shipped_scaling import describe_method as describe_scaling
from rope_viz.models.identity.shipped_scaling import family_name, is_added_later
from rope_viz.models.identity.shipped_scaling import is_factor_for_length as differs_by_factor
from rope_viz.models.identity.trained_scaling import find_loss, find_trained_embedding, is_trained_scaling
from rope_viz.models.model_config import ModelConfig, Source, from_config
from rope_viz.models.rope_config import ORIGINAL
from rope_viz.texts import Sentence
from rope_viz.texts.sentences import is_made_from
from rope_viz.texts.texts import join_list

# The order of the methods that nobody documented for a model, the best first.
USUAL = ("yarn", "dynamic", "ntk", "llama3", "linear")


@dataclass(frozen=True)
class Advice:
    """All ways for one model and one length, the best first; `short` says what the best costs on short texts."""

    recognised: Identity
    target: int
    ways: tuple[Way, ...]
    short: tuple[str, ...]

    @property
    def best(self) -> Way:
        return self.ways[0]

    def way(self, id: str) -> Way:
        return next((way for way in self.ways if way.id == id), self.best)


def recommend(config: Source, recognised: Identity, target: int, *, own: RopeSpec | None = None) -> Advice:
    """Return every way to reach `target` tokens; `own` is an embedding that the user has set.

    Raises `ValueError` where `target` is no length.
    """
    require_number(target, TEXTS("length"), least=1, most=MAX_LENGTH, integer=True)
    model = ModelConfig.read(config)
    ways = [reach_target(way) for way in documented_ways(model, recognised, int(target))]
    # The config's own embedding stays under its own name, even if it is one that we would choose anyway.
    kept = [one.spec for one in ways if one.id == "kept"]
    others = other_ways(recognised, int(target))
    ways += [one for one in others if not any(is_same_embedding(one.spec, spec) for spec in kept)]
    ways = [*keep_within_windows(model, recognised, int(target), [*keep_what_was_trained(recognised, ways)])]
    if own is not None:
        # What somebody documents stays documented, even if the user has set it.
        twin = next((one for one in ways if one.source and is_same_embedding(own, one.spec)), None)
        source, reach = ("", None) if twin is None else (twin.source, twin.reach)
        settings = Way("as set", own, int(target), recognised, TEXTS("title.settings"), source, reach)
        ways += keep_what_was_trained(recognised, [settings])
    seen: dict[str, Way] = {}
    for found in sorted(ways, key=lambda one: RANKS.index(one.rank)):
        if found.rank == "as set" or not any(is_same_embedding(found.spec, one.spec) for one in seen.values()):
            seen.setdefault(found.id, found)
    chosen = tuple(seen.values())
    return Advice(recognised, int(target), chosen, tuple(describe_short_texts(chosen[0], recognised)))


def keep_within_windows(model: ModelConfig, recognised: Identity, target: int, ways: list[Way]) -> Iterator[Way]:
    """Yield the ways; where no distance exceeds a window, a longer limit first and scaling not advised."""
    window, spec = model.find_layer_window(recognised.layer), recognised.spec
    # A window longer than the trained length does reach new angles.
    in_vain = window is not None and window <= max(recognised.reach, recognised.trained.length) and window < target
    if not in_vain or any(way.rank == "as it is" for way in ways):
        yield from ways
        return
    key = "because.layer_window" if recognised.layer else "because.window"
    because = TEXTS(key, window=window, layer=recognised.layer)
    made = raise_limit(spec, target)
    title = TEXTS("title.limit_reaches" if made == spec else "title.only_limit")
    yield Way("usual", made, target, recognised, title, because=because)
    for way in ways:
        if not is_same_embedding(way.spec, made):
            yield dataclasses.replace(way, rank="not advised", because=because)


def reach_target(way: Way) -> Way:
    """Return the way with a limit that reaches its length, where the config is kept but says a smaller one.

    What turns with the length divides from the limit, so there it stays.
    """
    spec = way.spec
    if spec.target >= way.target or (spec.scaling.depends_on_length and not lists(spec.scaling)):
        return way
    reached = round(spec.context * spec.scaling.factor_for(spec)) if spec.scaling.reaches_factor else 0
    title = way.title
    if isinstance(title, Sentence) and title.entries[0].startswith("title.kept."):
        title = TEXTS(title.entries[0].replace("kept", "raised"), **title.values)
    return dataclasses.replace(way, spec=raise_limit(spec, max(way.target, reached)), title=title)


def is_same_embedding(one: RopeSpec, other: RopeSpec) -> bool:
    """Return whether two embeddings rotate every pair alike, for as many tokens."""
    same_method = one.scaling.name == other.scaling.name and one.target == other.target
    return one == other or (same_method and one.scaling.computes_same(one, other))


def keep_what_was_trained(recognised: Identity, ways: list[Way]) -> Iterator[Way]:
    """Yield the ways; those that lose something of what the model was trained with are not advised.

    The config as it is needs no judgement, nor does what the maker documents for a model that is no fine-tune.
    """
    trained = find_trained_embedding(recognised)
    needed = is_trained_scaling(recognised, trained)
    trusted = ("as it is",) if recognised.how == "fine-tune" else ("as it is", "documented")
    for way in ways:
        if way.rank in trusted or way.id == "kept":
            yield way
            continue
        loss = find_loss(trained, way.spec)
        key = "because.loss" if trained.is_scaled else "because.config_loss"
        because = "" if loss is None else TEXTS(key, method=describe_scaling(trained), loss=loss.words)
        if needed and way.method != trained.scaling.name:
            because = because or TEXTS("because.dropped", method=describe_scaling(trained))
        if not because:
            yield way
            continue
        rank: Rank = way.rank if way.rank == "as set" else "not advised"
        yield dataclasses.replace(way, rank=rank, because=because, is_lossy=True)


def start(recognised: Identity) -> RopeSpec:
    """Return the model as it was trained: its own sizes and base, nothing scaled, its trained length as the context."""
    length = recognised.trained.length
    return dataclasses.replace(recognised.spec, context=length, target=length, scaling=Scaling())


def documented_ways(config: ModelConfig, recognised: Identity, target: int) -> Iterator[Way]:
    """Yield the ways that need no judgement: the config as it is where it reaches, and what the maker documented."""
    model, spec, reach, trained = recognised.model, recognised.spec, recognised.reach, recognised.trained
    label, scaled = LABELS[spec.scaling.name], spec.is_scaled
    rank: Rank
    documented = [] if model is None or target <= trained.length else model.documented
    if documented and is_scaled_by_another(config, recognised):
        documented = []
    entry = min((one for one in documented if one["to"] >= target), key=lambda one: int(one["to"]), default=None)
    if entry is not None:
        made = documented_spec(config, recognised, entry["rope_scaling"])
        if scaled and find_loss(spec, made):
            entry = None  # the file goes further; it may have been trained so
        else:
            factor, length = entry["rope_scaling"]["factor"], entry["to"]
            title = TEXTS(f"title.documented.{entry['says']}", factor=factor, length=length)
            yield Way("documented", made, target, recognised, title, entry["source"], length)
    ships = find_shipped_way(recognised, target)
    if ships is not None and entry is None:
        yield ships
    further = further_than_shipped(recognised, target)
    if further is not None:
        yield further
    if target <= reach and not (recognised.exact and target > spec.target):
        if scaled:
            owner = describe_owner(config, recognised)
            title = TEXTS("title.kept.scaling", method=label, owner=owner, reach=reach)
            source = model.source if recognised.exact and model is not None else TEXTS("config_itself")
            rank = "as it is" if entry is None and not is_doubtful(recognised, ships) else "possible"
            yield Way(rank, spec, target, recognised, title, source, reach)
        else:
            title = TEXTS(f"title.kept.{'trained' if trained.is_known else 'limit'}", length=trained.length)
            rank = "as it is" if ships is None else "possible"
            yield Way(rank, spec, target, recognised, title, trained.source)
    elif scaled and (target > reach or lists(spec.scaling)):
        longer = go_further(recognised, target)
        if longer is None:
            return
        key = "larger_than_maker" if recognised.exact else "larger_than_config"
        if lists(spec.scaling):
            key = "trained_lists"
        elif longer.scaling == spec.scaling:
            key = "present_factor"
        yield Way("its own, further", longer, target, recognised, TEXTS(f"title.{key}", method=label, reach=reach))


def is_scaled_by_another(config: ModelConfig, recognised: Identity) -> bool:
    """Return whether a model made from another one has a scaling that its maker chose, as InternVL3 does over Qwen2.5.

    What the other maker documents is then about another model.
    """
    return (
        recognised.spec.is_scaled
        and recognised.how == "fine-tune"
        and is_made_from(describe_owner(config, recognised), "owner.not_used")
    )


def describe_owner(config: ModelConfig, recognised: Identity) -> str:
    """Return whose scaling the config has: the model's own, what its maker documents, or what somebody has changed."""
    model, spec = recognised.model, recognised.spec
    if model is None:
        return TEXTS("owner.config")
    name = family_name(model)
    if recognised.exact:
        return TEXTS("owner.shipped", name=name)
    if recognised.departs:
        return TEXTS("owner.departs", values=join_list([*recognised.departs.values()], more="end"), name=name)
    for one in model.documented:
        made = documented_spec(config, recognised, one["rope_scaling"])
        if is_same_embedding(made, dataclasses.replace(spec, target=one["to"])):
            return TEXTS("owner.documented", name=name)
    if spec in from_config(model.config).values() and is_added_later(model):
        return TEXTS("owner.documented", name=name)
    return TEXTS("owner.not_used", name=name)


def find_shipped_way(recognised: Identity, target: int) -> Way | None:
    """Return what the catalog's model ships with, where the config has it otherwise or says a smaller limit."""
    model, ships, spec = recognised.model, recognised.shipped, recognised.spec
    if model is None or ships is None or ships.target < target:
        return None
    # What divides from a length may be absent below it. Any other scaling was on during the whole training.
    if recognised.trained.length >= target and recognised.departs and ships.scaling.divides_from_length:
        return None
    name, label = family_name(model), LABELS[ships.scaling.name]
    if recognised.departs:
        values = join_list([*recognised.departs.values()], more="end")
        title = TEXTS("title.shipped", method=label, name=name, reach=ships.target, values=values)
    elif target > spec.target:
        title = TEXTS("title.shipped_limit", method=label, name=name, reach=ships.target, limit=spec.target)
    else:
        return None
    return Way("documented", ships, target, recognised, title, model.source, ships.target)


def is_doubtful(recognised: Identity, ships: Way | None) -> bool:
    """Return whether a changed scaling is rather a slip than what somebody trained a model with."""
    theirs = recognised.shipped
    if ships is None or theirs is None or not recognised.departs or recognised.how == "fine-tune":
        return False
    return not differs_by_factor(recognised.spec, theirs, recognised.departs)


def further_than_shipped(recognised: Identity, target: int) -> Way | None:
    """Return the trained scaling, taken further, where the config has another one by mistake."""
    ships = find_trained_embedding(recognised)
    if recognised.model is None or ships is recognised.spec or target <= ships.target:
        return None
    scaling = ships.scaling.go_further(ships, ships.target, target)
    if scaling is None:
        return None
    values = join_list([*recognised.departs.values()], more="end")
    title = TEXTS(
        "title.shipped_further", method=LABELS[scaling.name], name=family_name(recognised.model), values=values
    )
    made = dataclasses.replace(ships, target=target, scaling=scaling)
    return Way("its own, further", made, target, recognised, title)


def go_further(recognised: Identity, target: int) -> RopeSpec | None:
    """Return the config's own method for a longer target; the rest of it stays. None where it cannot be enlarged."""
    spec, reach = recognised.spec, recognised.reach
    if spec.scaling.reaches_factor and not recognised.exact:
        # It does so even if max_position_embeddings is smaller.
        reach = max(reach, round(spec.scaling.factor_for(spec) * spec.context))
    scaling = spec.scaling.go_further(spec, reach, target)
    return None if scaling is None else dataclasses.replace(spec, target=target, scaling=scaling)


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
    if recognised.spec.scaling.rotates_whole_head:
        yield from partly_rotating_ways(recognised, target)
        return
    plain = Way("not advised", extend(base, "none", target), target, recognised, TEXTS("title.no_scaling"))
    if unseen_pairs(plain.spec, target) == 0:
        key = "title.none_unseen" if recognised.trained.is_known else "title.none_beyond"
        yield dataclasses.replace(plain, rank="usual", title=TEXTS(key, length=trained))
        return
    for name in USUAL:
        if fits(base, name, target):
            rank: Rank = "usual" if name == USUAL[0] else "possible"
            title = TEXTS("title.method", method=LABELS[name], factor=target / trained)
            yield Way(rank, extend(like_shipped(base, name, recognised), name, target), target, recognised, title)
    yield plain


def like_shipped(base: RopeSpec, method: str, recognised: Identity) -> RopeSpec:
    """Return the model with what its maker ships of this method (thresholds, attention factor), if it ships it."""
    theirs = recognised.shipped
    if theirs is None or theirs.scaling.name != method:
        return base
    return dataclasses.replace(base, scaling=theirs.scaling)


def partly_rotating_ways(recognised: Identity, target: int) -> Iterator[Way]:
    """Yield the ways that keep the pairs of zero frequency, which other methods would rotate."""
    spec, trained = recognised.spec, recognised.trained.length
    grown = grow_base(spec, trained, target)
    because = TEXTS("because.zero_pairs")
    if grown is not None:
        title = TEXTS("title.larger_base", factor=target / trained)
        yield Way("usual", grown, target, recognised, title, because=because)
    # The factor is read by transformers alone.
    if spec.scaling.factor_for(spec) == 1.0:
        made = extend(dataclasses.replace(spec, context=trained), spec.scaling.name, target)
        title = TEXTS("title.linear_pairs", factor=target / trained)
        yield Way("possible", dataclasses.replace(made, target=target), target, recognised, title, because=because)
    title = TEXTS("title.no_scaling")
    yield Way("not advised", raise_limit(spec, target), target, recognised, title)


LARGEST_BASE = 1e15


def grow_base(spec: RopeSpec, length: int, target: int) -> RopeSpec | None:
    """Return a partly rotating head with a larger base, which divides its slowest rotating pair by target / length.

    None for other methods: only this one has pairs of zero frequency, which other methods would rotate.
    """
    if not spec.scaling.rotates_whole_head:
        return None
    slowest = int(np.count_nonzero(spec.inv_freq())) - 1
    if slowest < 1:
        return None
    base = spec.base * (target / length) ** (spec.rotary_dim / (2.0 * slowest))
    return dataclasses.replace(spec, base=base, target=target) if base < LARGEST_BASE else None


def raise_limit(spec: RopeSpec, target: int) -> RopeSpec:
    """Return the embedding as it is with a longer limit."""
    return dataclasses.replace(spec, target=max(spec.target, target))
