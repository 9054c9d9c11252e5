"""From a config and a length to the whole answer: what you have, what to do and why, what it costs, what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.advice.kv_cache import GPU, USED, Cache, cache, human, sized
from rope_viz.advice.lint import Finding, check
from rope_viz.advice.parameter_count import weight_bytes
from rope_viz.advice.rank_methods import Advice, Way, recommend
from rope_viz.advice.runtime_instructions import Whole, Writing, whole, writing
from rope_viz.embedding.spec import RopeSpec, require_number
from rope_viz.models.catalog import Model
from rope_viz.models.identify_model import Identity
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.user_config import listed

MOST_SEQUENCES = 4096


@dataclass(frozen=True)
class Memory:
    """What the cache and the weights take at one length; `problem` says why it is not known, and then all else is None.

    `longest` is the longest length that fits beside the weights on one GPU of 80 GB: 0 for none, None for any.
    """

    cache: Cache | None
    cached: float
    weights: float
    stored: str
    longest: int | None
    sequences: int
    problem: str = ""

    def sentences(self, length: int) -> tuple[str, ...]:
        """In words."""
        if self.cache is None:
            return (f"The memory is not known: {self.problem.rstrip('.')}.",)
        many = f"{self.sequences:,} sequences of " if self.sequences > 1 else ""
        each = f", {human(self.cache.per_token)} for every further token" if self.cache.per_token else ""
        groups = listed([said(group.kind, group.layers, group.window) for group in self.cache.groups])
        out = [
            f"KV cache in {self.cache.dtype}: {human(self.cached)} for {many}{length:,} tokens{each} ({groups}).",
            f"Weights: {human(self.weights)} ({self.stored}).",
            fits(self),
        ]
        return (*out, *self.cache.notes)


@dataclass(frozen=True)
class Plan:
    """The whole answer for one config, one length and some runtimes; `way` is the way that is written."""

    config: Mapping[str, Any]
    found: tuple[Finding, ...]
    recognised: Identity
    advice: Advice
    way: Way
    memory: Memory
    file: Whole
    writings: tuple[Writing, ...]

    @property
    def target(self) -> int:
        """The length that is needed."""
        return self.advice.target


def plan(
    config: Mapping[str, Any],
    target: int,
    runtimes: Sequence[str],
    *,
    known: Model | None = None,
    trained: int | None = None,
    layer: str | None = None,
    way: str = "",
    dtype: str = "bfloat16",
    sequences: int = 1,
    own: RopeSpec | None = None,
) -> Plan:
    """Everything that can be said. Raises `ValueError` where the config cannot be read or an argument has no meaning.

    `known` is the model of the list where it was chosen there, `trained` the reader's word on the trained length, `way`
    the short name of the way to write (`Way.id`), the best unless told; `own` an embedding of the reader's, a way more.
    """
    clean = without_about(config)
    recognised = ModelConfig.read(clean).identify(known=known, trained=trained, layer=layer)
    advice = recommend(clean, recognised, target, own=own)
    found = mistakes(clean)
    return planned(clean, recognised, advice, runtimes, found=found, way=way, dtype=dtype, sequences=sequences)


def mistakes(config: Mapping[str, Any]) -> tuple[Finding, ...]:
    """What the check says of a config without the reader's word on the trained length."""
    return tuple(check(without_about(config), without=("trained-length",)))


def planned(
    config: Mapping[str, Any],
    recognised: Identity,
    advice: Advice,
    runtimes: Sequence[str],
    *,
    found: tuple[Finding, ...],
    way: str = "",
    dtype: str = "bfloat16",
    sequences: int = 1,
) -> Plan:
    """The same where it is known what the config is, which ways there are, and what the check has `found`."""
    clean, layer = without_about(config), recognised.layer or None
    chosen = advice.way(way) if way else advice.best
    file = whole(chosen.spec, clean, layer)
    writings = tuple(
        writing(chosen.spec, name, config=clean, layer=layer, length=advice.target, file=file) for name in runtimes
    )
    held = memory(clean, recognised, advice.target, dtype=dtype, sequences=sequences)
    return Plan(clean, found, recognised, advice, chosen, held, file, writings)


def without_about(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without what the list says beside it."""
    return {key: value for key, value in config.items() if key != "_about"}


def memory(
    config: Mapping[str, Any], recognised: Identity, length: int, *, dtype: str = "bfloat16", sequences: int = 1
) -> Memory:
    """What a length takes, with the sizes that the list knows where the config does not say them."""
    require_number(sequences, "sequences", least=1, most=MOST_SEQUENCES, integer=True)
    sizes = {} if recognised.model is None else recognised.model.sizes
    whole = sized(config, sizes) if any(key in config for key in ("hidden_size", "num_attention_heads")) else config
    try:
        kept, (weights, stored) = cache(whole, dtype=dtype), weight_bytes(whole)
    except ValueError as error:
        return Memory(None, 0.0, 0.0, "", None, sequences, str(error))
    room = USED * GPU - weights
    longest = 0 if room <= 0 else kept.longest(room, sequences)
    return Memory(kept, kept.bytes(length, sequences), weights, stored, longest, sequences)


def fits(held: Memory) -> str:
    """Up to which length it fits on one GPU of 80 GB, of which servers take nine tenths."""
    if held.longest is None:
        return "Fits on one 80 GB GPU at any length: its windows bound the cache."
    if held.longest == 0:
        return f"Does not fit on one 80 GB GPU: the weights alone take {human(held.weights)}."
    each = f", {held.sequences:,} sequences at once" if held.sequences > 1 else ""
    return f"Fits on one 80 GB GPU up to {held.longest:,} tokens{each} (90 % of it used, activations not counted)."


def said(kind: str, layers: int, window: int | None) -> str:
    """Layers of one kind in words."""
    name = {
        "full_attention": "full attention",
        "sliding_attention": f"a window of {window:,}" if window else "a window",
        "chunked_attention": f"chunks of {window:,}" if window else "chunks",
        "linear_attention": "a recurrence",
        "mamba": "a recurrence",
        "conv": "a convolution",
    }.get(kind, kind.replace("_", " "))
    return f"{layers} layers with {name}"
