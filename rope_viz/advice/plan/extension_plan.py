"""From a config and a length to the whole plan: what you have, what to do and why, what it costs, what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rope_viz.advice.lint import Finding, check
from rope_viz.advice.memory.estimate_memory import with_catalog_sizes
from rope_viz.advice.memory.kv_cache import GPU, USED, Cache, Group, cache, human
from rope_viz.advice.memory.parameter_count import weight_bytes
from rope_viz.advice.plan.config_file import ConfigFile, is_reader, write_config_file
from rope_viz.advice.plan.export import without_about
from rope_viz.advice.plan.rank_methods import Advice, recommend
from rope_viz.advice.plan.runtime_instructions import Instructions, write_instructions
from rope_viz.advice.plan.ways import Way, describe_short_texts
from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.catalog import Model
from rope_viz.models.formats import without_source
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.user_config import join_words

MOST_SEQUENCES = 4096


@dataclass(frozen=True)
class Memory:
    """Bytes of the cache (`cached`) and of the weights at one length; `problem` says why they are not known.

    `longest` is the longest length that fits together with the weights on one GPU of 80 GB: 0 for none, None for any.
    """

    cache: Cache | None
    cached: float
    weights: float
    stored: str
    longest: int | None
    sequences: int
    problem: str = ""

    def sentences(self, length: int) -> tuple[str, ...]:
        """Return the numbers in sentences."""
        if self.cache is None:
            return (f"The memory is unknown: {self.problem.rstrip('.')}.",)
        many = f"{self.sequences:,} sequences of " if self.sequences > 1 else ""
        each = f", {human(self.cache.per_token)} for each additional token" if self.cache.per_token else ""
        groups = join_words([f"{group.layers} layers with {describe_kind(group)}" for group in self.cache.groups])
        out = [
            f"KV cache in {self.cache.dtype}: {human(self.cached)} for {many}{length:,} tokens{each} ({groups}).",
            f"Weights: {human(self.weights)} ({self.stored}).",
            describe_fit(self),
        ]
        return (*out, *self.cache.notes)


@dataclass(frozen=True)
class ExtensionPlan:
    """The whole answer for one config, one length and some runtimes; `way` is the way that is written."""

    config: Mapping[str, Any]
    found: tuple[Finding, ...]
    advice: Advice
    way: Way
    memory: Memory
    file: ConfigFile
    instructions: tuple[Instructions, ...]

    @property
    def recognised(self) -> Identity:
        """Which model the config is of."""
        return self.advice.recognised

    @property
    def is_file_read(self) -> bool:
        """Whether every requested runtime computes the intended embedding from the config.json."""
        names = (*self.file.runtimes, *self.file.unverified)
        return all(is_reader(one.runtime, names) for one in self.instructions)

    @property
    def verify_command(self) -> str:
        """The command that compares what a snippet wrote with the config."""
        layer = self.recognised.layer
        usual = ModelConfig.read(self.file.config).main_layer
        return f"rope-viz verify config.json --from inv_freq.json{f' --layer {layer}' if layer != usual else ''}"

    @property
    def target(self) -> int:
        return self.advice.target


def make_plan(
    config: Source,
    target: int,
    runtimes: Sequence[str],
    *,
    known: Model | None = None,
    trained: int | None = None,
    layer: str | None = None,
    way: str = "",
    dtype: str = "bfloat16",
    sequences: int = 1,
    advice: Advice | None = None,
    found: tuple[Finding, ...] | None = None,
) -> ExtensionPlan:
    """Return the whole plan. Raises `ValueError` where the config cannot be read or an argument has no meaning.

    `known` is the catalog's model where the user picked one, `trained` the user's own word on the trained length,
    `layer` a layer type, `way` the `Way.id` to write (default: the best). `advice` and `found` are the ways and the
    mistakes, if known already.
    """
    model = without_about(config)
    model.find_layer(layer)
    if advice is None:
        advice = recommend(model, model.identify(known=known, trained=trained, layer=layer), target)
    layer = advice.recognised.layer or None
    if way:
        chosen = advice.way(way)
        file, instructions = write_way(chosen, model, layer, runtimes)
    else:
        chosen, file, instructions = write_best_way(advice, model, layer, runtimes)
        advice = put_first(advice, chosen)
    needed = estimate_memory(model, advice.recognised, advice.target, dtype=dtype, sequences=sequences)
    found = find_mistakes(model) if found is None else found
    return ExtensionPlan(without_source(model.mapping), found, advice, chosen, needed, file, instructions)


def plan(
    config: Source,
    to: int,
    runtimes: str | Sequence[str] = ("transformers",),
    *,
    trained: int | None = None,
    layer: str | None = None,
    way: str = "",
    dtype: str = "bfloat16",
    sequences: int = 1,
) -> ExtensionPlan:
    """Return how to extend a model to `to` tokens, as `rope-viz extend` shows it.

    `runtimes` are names such as "vllm"; `trained` is the trained length in tokens, if you know it better. `layer` is a
    layer type, `way` the id of another of `Plan.advice.ways`, `dtype` the type of the KV cache for `sequences`
    requests. Raises `ValueError` where the config cannot be read, and for an unknown runtime, layer, way or dtype.
    """
    names = (runtimes,) if isinstance(runtimes, str) else tuple(runtimes)
    options: dict[str, Any] = {"trained": trained, "layer": layer, "dtype": dtype, "sequences": sequences}
    found = make_plan(config, to, names, way=way, **options)
    if way and found.way.id != way:
        known = ", ".join(one.id for one in found.advice.ways)
        raise ValueError(f"way must be one of {known}, got {short_repr(way)}")
    return found


Written: TypeAlias = tuple[ConfigFile, tuple[Instructions, ...]]


def write_way(way: Way, model: ModelConfig, layer: str | None, runtimes: Sequence[str]) -> Written:
    """Return the config file of one way, and what to give each runtime."""
    file = write_config_file(way.spec, model, layer, runtimes)
    asked: dict[str, Any] = {"config": model, "layer": layer, "length": way.target, "file": file}
    return file, tuple(write_instructions(way.spec, name, **asked) for name in runtimes)


def write_best_way(
    advice: Advice, model: ModelConfig, layer: str | None, runtimes: Sequence[str]
) -> tuple[Way, ConfigFile, tuple[Instructions, ...]]:
    """Return the first way that is safe and that every requested runtime reads, else the first safe one.

    Where none is safe it is the first: then the file says what is wrong with it.
    """
    first: tuple[Way, ConfigFile, tuple[Instructions, ...]] | None = None
    safe: tuple[Way, ConfigFile, tuple[Instructions, ...]] | None = None
    for way in advice.ways:
        file, instructions = write_way(way, model, layer, runtimes)
        first = first or (way, file, instructions)
        if not file.is_safe:
            continue
        safe = safe or (way, file, instructions)
        if all(one.made.faithful for one in instructions):
            return way, file, instructions
    found = safe or first
    assert found is not None, "there is always a way"
    return found


def put_first(advice: Advice, way: Way) -> Advice:
    """Return the advice with this way as the best one."""
    if advice.best == way:
        return advice
    others = tuple(one for one in advice.ways if one is not way)
    return replace(advice, ways=(way, *others), short=tuple(describe_short_texts(way, advice.recognised)))


def find_mistakes(config: Source) -> tuple[Finding, ...]:
    """Return what the check finds in a config, without the rule that the user's word on the trained length replaces."""
    return tuple(check(without_about(config), without=("trained-length",)))


def estimate_memory(
    model: ModelConfig, recognised: Identity, length: int, *, dtype: str = "bfloat16", sequences: int = 1
) -> Memory:
    """Return what a length takes, with sizes of the catalog's model where the config says none."""
    require_number(sequences, "sequences", least=1, most=MOST_SEQUENCES, integer=True)
    model = with_catalog_sizes(model, recognised)
    try:
        kept, (weights, stored) = cache(model, dtype=dtype), weight_bytes(model)
    except ValueError as error:
        return Memory(None, 0.0, 0.0, "", None, sequences, str(error))
    room = USED * GPU - weights
    longest = 0 if room <= 0 else kept.longest(room, sequences)
    return Memory(kept, kept.bytes(length, sequences), weights, stored, longest, sequences)


def describe_fit(needed: Memory) -> str:
    """Return up to which length it fits on one GPU of 80 GB, of which servers take nine tenths."""
    if needed.longest is None:
        return "Fits on one 80 GB GPU at any length: its windows limit the cache."
    if needed.longest == 0:
        return f"Does not fit on one 80 GB GPU: the weights alone take {human(needed.weights)}."
    each = f" with {needed.sequences:,} parallel requests" if needed.sequences > 1 else ""
    return f"Fits on one 80 GB GPU up to {needed.longest:,} tokens{each} (90 % of the memory, without activations)."


def describe_kind(group: Group) -> str:
    """Return what layers of one kind keep, in words."""
    name, window = group.kind, group.window
    if name in ("sliding_attention", "chunked_attention"):
        many, one = ("a window", "a window of") if name == "sliding_attention" else ("chunks", "chunks of")
        return f"{one} {window:,}" if window else many
    recurrent = {"linear_attention": "a recurrence", "mamba": "a recurrence", "conv": "a convolution"}
    return recurrent.get(name, name.replace("_", " "))
