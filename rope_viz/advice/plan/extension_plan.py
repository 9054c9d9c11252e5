"""From a config and a length to the whole plan: what you have, what to do and why, what it costs, what to write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rope_viz.advice.lint import Finding, check
from rope_viz.advice.memory.estimate_memory import with_catalog_sizes
from rope_viz.advice.memory.kv_cache import GPU, USED, Cache, Group, cache, human, read_memory_fields
from rope_viz.advice.memory.parameter_count import weight_bytes
from rope_viz.advice.memory.weight_storage import find_cache_type
from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.config_file import ConfigFile, is_grave, is_reader, keep_config_file, write_config_file
from rope_viz.advice.plan.export import export, require_target, without_about
from rope_viz.advice.plan.rank_methods import Advice, recommend
from rope_viz.advice.plan.runtime_instructions import NAMES, Instructions, write_instructions
from rope_viz.advice.plan.ways import RANKS, Way, describe_short_texts
from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.catalog import Model
from rope_viz.models.formats import without_source
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.texts.sentences import describe_error, remove_period
from rope_viz.texts.texts import join_clauses, join_list

MOST_SEQUENCES = 4096


@dataclass(frozen=True)
class Memory:
    """Bytes of the cache (`cached`) and of the weights at one length; `problem` says why they are not known.

    `smaller` are the type and the bytes of a cache in 8 bits, if that is less.
    """

    cache: Cache | None
    cached: float
    weights: float
    stored: str
    sequences: int
    problem: str = ""
    smaller: tuple[str, float] | None = None

    @property
    def longest(self) -> int | None:
        """The longest length that fits with the weights on one GPU of 80 GB: 0 for none, None for any."""
        return self.find_longest(GPU)

    def find_longest(self, gpu: float) -> int | None:
        """Return the longest length that fits with the weights into one GPU's bytes: 0 for none, None for any."""
        room = USED * gpu - self.weights
        return 0 if room <= 0 or self.cache is None else self.cache.longest(room, self.sequences)

    def count_gpus(self, gpu: float, cached: float | None = None) -> int:
        """Return how many GPUs of so many bytes hold weights and cache, split evenly."""
        return max(1, math.ceil((self.weights + (self.cached if cached is None else cached)) / (USED * gpu)))

    def sentences(self, length: int) -> tuple[str, ...]:
        """Return the numbers in sentences."""
        if self.cache is None:
            return (TEXTS("memory.unknown", problem=remove_period(self.problem)),)
        kinds = [TEXTS("memory.group", layers=group.layers, kind=describe_kind(group)) for group in self.cache.groups]
        values = {"dtype": self.cache.dtype, "cached": human(self.cached), "length": length}
        each = TEXTS("memory.each", size=human(self.cache.per_token)) if self.cache.per_token else ""
        many = TEXTS("memory.sequences", sequences=self.sequences) if self.sequences > 1 else ""
        out = [
            TEXTS("memory.cache", **values, sequences=many, each=each, groups=join_list(kinds)),
            TEXTS("memory.weights", weights=human(self.weights), stored=self.stored),
            *describe_fit(self),
        ]
        return (*out, *self.cache.notes)


@dataclass(frozen=True)
class ExtensionPlan:
    """The whole answer for one config, one length and some runtimes; `way` is the way that is written.

    `is_gguf`: the config was read from the header of a GGUF file, so there is no config.json to write.

    `refused` is {way's id: why it is not written} where nothing is written. Then `file` is the config as it was, there
    are no instructions, and `way` is the first of the ways.
    """

    config: Mapping[str, Any]
    found: tuple[Finding, ...]
    advice: Advice
    way: Way
    memory: Memory
    file: ConfigFile
    instructions: tuple[Instructions, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    is_gguf: bool = False

    @property
    def warning(self) -> str:
        """Why the way that the user chose is not recommended; empty where it is, or where nothing is written."""
        return (
            ""
            if self.refused or self.way.is_advised
            else TEXTS("not_recommended", title=self.way.title, because=self.way.because)
        )

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why nothing is written, in sentences: one on all ways, then one for each reason; () where something is."""
        reasons: dict[str, list[str]] = {}
        for way in self.advice.ways if self.refused else ():
            reasons.setdefault(self.refused[way.id], []).append(way.title)
        told = [TEXTS("refusal", titles=join_clauses(titles), reason=why) for why, titles in reasons.items()]
        return (TEXTS("refused", target=self.target), *told) if told else ()

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
    dtype: str | None = None,
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
    if known is not None:
        model = replace(model, known=known)  # whatever is asked of it is about the model that was picked
    model.find_layer(layer)
    if advice is None:
        advice = recommend(model, model.identify(trained=trained, layer=layer), target)
    recognised = advice.recognised
    layer = recognised.layer or None
    refused: Mapping[str, str] = {}
    drafts = write_advised_ways(advice, model, layer, runtimes)
    best = choose_draft(drafts)
    if best is not None:
        advice = rank_by_runtimes(put_first(advice, best.way), best, model, layer, runtimes)
    if way:
        written = write_way(advice.way(way), model, layer, runtimes)
    else:
        written = best or WrittenWay(advice.best, keep_config_file(model), ())
        refused = {} if best else explain_refusals(advice, drafts)
    # What a method costs short texts is not known of a runtime that computes something else.
    is_read = written.is_read_by_all or any(one.made.faithful for one in written.instructions)
    advice = replace(advice, short=tuple(describe_short_texts(written.way, recognised)) if is_read else ())
    needed = estimate_memory(model, recognised, advice.target, dtype=dtype, sequences=sequences)
    found = find_mistakes(model) if found is None else found
    config = without_source(model.mapping)
    is_gguf = bool(source_file(model.mapping))
    file, instructions = written.file, written.instructions
    return ExtensionPlan(config, found, advice, written.way, needed, file, instructions, refused, is_gguf)


def find_usual_runtime(config: Mapping[str, Any], usual: str) -> str:
    """Return llama.cpp for the config of a GGUF file, which no other runtime is meant to read, else the usual one."""
    return "llama.cpp" if source_file(config) else usual


def plan(
    config: Source,
    to: int,
    runtimes: str | Sequence[str] = ("transformers",),
    *,
    trained: int | None = None,
    layer: str | None = None,
    way: str = "",
    dtype: str | None = None,
    sequences: int = 1,
) -> ExtensionPlan:
    """Return how to extend a model to `to` tokens, as `rope-viz extend` shows it.

    `runtimes` are names such as "vllm"; `trained` is the trained length in tokens, if you know it better. `layer` is a
    layer type, `way` the id of another of `Plan.advice.ways`, `dtype` the type of the KV cache (None: the file's,
    else bfloat16) for `sequences` requests. Raises `ValueError` where the config cannot be read, and for an unknown
    runtime, layer, way or dtype.
    """
    names = (runtimes,) if isinstance(runtimes, str) else tuple(runtimes)
    options: dict[str, Any] = {"trained": trained, "layer": layer, "dtype": dtype, "sequences": sequences}
    found = make_plan(config, to, names, way=way, **options)
    if way and found.way.id != way:
        known = ", ".join(one.id for one in found.advice.ways)
        raise ValueError(CONFIGS("value.one_of", name="way", options=known, got=short_repr(way)))
    return found


@dataclass(frozen=True)
class WrittenWay:
    """One way with the config file that says it, and what to give each requested runtime."""

    way: Way
    file: ConfigFile
    instructions: tuple[Instructions, ...]

    @property
    def is_read_by_all(self) -> bool:
        """Whether every requested runtime computes the embedding."""
        return all(one.made.faithful for one in self.instructions)

    @property
    def fault(self) -> str:
        """Why it must not be written, in a sentence; empty where it may be."""
        if not self.file.is_safe:
            grave = [one.message for one in self.file.new if is_grave(one)]
            return grave[0] if grave else TEXTS("changed_layers")
        readers = (
            *self.file.runtimes,
            *self.file.unverified,
            *(one.name for one in self.instructions if one.made.faithful),
        )
        if readers:
            return ""
        return self.instructions[0].proof if self.instructions else TEXTS("file.unable", runtime=self.file.others[0])

    @property
    def is_doubtful(self) -> bool:
        """Whether the check has warnings about a method without published results for this model."""
        return bool(self.file.new) and self.way.rank in ("usual", "possible")


def write_way(way: Way, model: ModelConfig, layer: str | None, runtimes: Sequence[str]) -> WrittenWay:
    """Return the config file of one way, and what to give each runtime."""
    file = write_config_file(way.spec, model, layer, runtimes)
    asked: dict[str, Any] = {"config": model, "layer": layer, "length": way.target, "file": file}
    return WrittenWay(way, file, tuple(write_instructions(way.spec, name, **asked) for name in runtimes))


def write_advised_ways(
    advice: Advice, model: ModelConfig, layer: str | None, runtimes: Sequence[str]
) -> tuple[WrittenWay, ...]:
    """Return the drafts of the ways that are advised, in their order, up to one that nothing speaks against."""
    drafts: list[WrittenWay] = []
    for way in advice.ways:
        if way.is_advised:
            drafts.append(write_way(way, model, layer, runtimes))
            if not drafts[-1].fault and not drafts[-1].is_doubtful and drafts[-1].is_read_by_all:
                break
    return tuple(drafts)


def choose_draft(drafts: Sequence[WrittenWay]) -> WrittenWay | None:
    """Return the first safe draft that every requested runtime reads, else the first safe one; None where none is safe.

    Among methods without published results for the model, those without warnings of the check come first.
    """
    safe = sorted((one for one in drafts if not one.fault), key=lambda one: one.is_doubtful)
    return next((one for one in safe if one.is_read_by_all), next(iter(safe), None))


def explain_refusals(advice: Advice, drafts: Sequence[WrittenWay]) -> dict[str, str]:
    """Return {way's id: why it is not written}."""
    faults = {one.way.id: one.fault for one in drafts}
    return {way.id: faults.get(way.id) or way.because or next(iter(way.reasons)) for way in advice.ways}


def put_first(advice: Advice, way: Way) -> Advice:
    """Return the advice with this way as the best one."""
    if advice.best == way:
        return advice
    others = tuple(one for one in advice.ways if one is not way)
    return replace(advice, ways=(way, *others))


def rank_by_runtimes(
    advice: Advice, best: WrittenWay, model: ModelConfig, layer: str | None, runtimes: Sequence[str]
) -> Advice:
    """Return the advice without recommending what a requested runtime does not compute, which then comes last.

    What reaches this length as shipped or documented keeps its rank. All ways do where the runtimes do not read the
    best one.
    """
    if not best.is_read_by_all:
        return advice
    others = [judge_by_runtimes(way, model, layer, runtimes) for way in advice.ways[1:]]
    return replace(advice, ways=(best.way, *sorted(others, key=lambda one: RANKS.index(one.rank))))


def judge_by_runtimes(way: Way, model: ModelConfig, layer: str | None, runtimes: Sequence[str]) -> Way:
    """Return the way, not advised if it is not documented for this length and a runtime does not compute it."""
    if way.rank not in ("its own, further", "usual", "possible") or way.id == "kept":
        return way
    for name in runtimes:
        made = export(way.spec, to=name, config=model, layer_type=layer, served=way.target)
        if not made.faithful:
            reason = remove_period(made.reason)
            because = TEXTS("because.runtime", runtime=NAMES[require_target(name)], reason=reason)
            return replace(way, rank="not advised", because=because)
    return way


def find_mistakes(config: Source) -> tuple[Finding, ...]:
    """Return what the check finds in a config, without the rule that the user's word on the trained length replaces."""
    return tuple(check(without_about(config), without=("trained-length",)))


def estimate_memory(
    model: ModelConfig, recognised: Identity, length: int, *, dtype: str | None = None, sequences: int = 1
) -> Memory:
    """Return what a length takes, with sizes of the catalog's model where the config says none."""
    require_number(sequences, "sequences", least=1, most=MOST_SEQUENCES, integer=True)
    model = with_catalog_sizes(model, recognised)
    try:
        stored_type = dtype or find_cache_type(model.mapping, read_memory_fields(model).config) or "bfloat16"
        kept, (weights, stored) = cache(model, dtype=stored_type), weight_bytes(model)
    except ValueError as error:
        return Memory(None, 0.0, 0.0, "", sequences, describe_error(error))
    small = "q8_0" if source_file(model.mapping) else "fp8"
    in_small = cache(model, dtype=small).bytes(length, sequences)
    cached = kept.bytes(length, sequences)
    smaller = (small, in_small) if in_small < cached else None
    return Memory(kept, cached, weights, stored, sequences, smaller=smaller)


def describe_fit(needed: Memory, gpu: float = GPU) -> tuple[str, ...]:
    """Return up to which length it fits on one GPU of so many bytes, and what makes the wanted length fit."""
    values: dict[str, Any] = {"size": gpu / 1e9, "weights": human(needed.weights)}
    longest, count = needed.find_longest(gpu), needed.count_gpus(gpu)
    if longest is None and count == 1:
        return (TEXTS("memory.any", **values),)
    each = TEXTS("memory.requests", count=needed.sequences) if needed.sequences > 1 else ""
    key = "none" if longest == 0 else "longest"
    first = TEXTS(f"memory.{key}", length=longest or 0, requests=each, **values)
    if count == 1:
        return (first,)
    name, cached = needed.smaller or ("", needed.cached)
    fewer = needed.count_gpus(gpu, cached)
    key = "gpus" if fewer == count else "one_smaller" if fewer == 1 else "gpus_smaller"
    return first, TEXTS(f"memory.{key}", count=count, fewer=fewer, dtype=name, **values)


def describe_kind(group: Group) -> str:
    """Return what layers of one kind keep, in words."""
    name, window = group.kind, group.window
    if name in ("sliding_attention", "chunked_attention"):
        return TEXTS(f"kind.{name}_of" if window else f"kind.{name}", window=window)
    return TEXTS.group("kind").get(name, name.replace("_", " "))
