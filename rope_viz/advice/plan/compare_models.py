"""Two models side by side: what differs in their RoPE, their frequencies, which layers rotate, and their memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice.memory.estimate_memory import memory, with_catalog_sizes
from rope_viz.advice.memory.kv_cache import human
from rope_viz.advice.plan import TEXTS
from rope_viz.embedding import TEXTS as EMBEDDING
from rope_viz.embedding.scaling import LABELS
from rope_viz.embedding.spec import FloatArray, RopeSpec, knobs
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.identity.shipped_scaling import format_value
from rope_viz.models.model_config import ModelConfig


@dataclass(frozen=True)
class Side:
    """One of the two models: its name and its config."""

    name: str
    config: ModelConfig

    @property
    def spec(self) -> RopeSpec:
        """Return the embedding of the main layers, as transformers computes it."""
        return self.config.specs[self.config.main_layer]


@dataclass(frozen=True)
class Fact:
    """One property of both models: a key for JSON, a label, both values, and both in words."""

    key: str
    label: str
    values: tuple[Any, Any]
    words: tuple[str, str]

    @property
    def differs(self) -> bool:
        return bool(self.values[0] != self.values[1])


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Two models at one length in tokens, with the facts of both."""

    sides: tuple[Side, Side]
    length: int
    facts: tuple[Fact, ...]
    memory: tuple[dict[str, Any], dict[str, Any]]

    @property
    def ratio(self) -> FloatArray:
        """Return the second model's frequency over the first one's by pair, for the pairs that both have.

        NaN where the first one's is zero.
        """
        first, second = (side.spec.inv_freq(self.length) for side in self.sides)
        count = min(len(first), len(second))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = second[:count] / first[:count]
        return np.where(first[:count] > 0, found, np.nan)

    def as_dict(self) -> dict[str, Any]:
        known = [None if side.config.identity.model is None else side.config.identity.model.id for side in self.sides]
        ratio = [float(each) if np.isfinite(each) else None for each in self.ratio]
        return {
            "models": [{"name": side.name, "model": id} for side, id in zip(self.sides, known, strict=True)],
            "length": self.length,
            "differences": {fact.key: list(fact.values) for fact in self.facts if fact.differs},
            "same": {fact.key: fact.values[0] for fact in self.facts if not fact.differs},
            "frequency_ratio": ratio,
            "memory": list(self.memory),
        }


def compare_models(first: Side, second: Side, *, length: int | None = None) -> ModelComparison:
    """Compare two models at a length in tokens; the default is the shorter of their two trained lengths.

    Names that are equal get a number. Raise `ValueError` with one sentence if RoPE of one cannot be computed.
    """
    names = (first.name, second.name) if first.name != second.name else (f"{first.name} (1)", f"{first.name} (2)")
    for side in (first, second):
        if side.config.problems:
            raise ValueError(f"{side.name}: {side.config.problems[0]}")
    first, second = (
        Side(name, with_catalog_sizes(side.config, side.config.identity))
        for name, side in zip(names, (first, second), strict=True)
    )
    sides = first, second
    length = length or default_length(first.config, second.config)
    memories = memory(first.config, length=length), memory(second.config, length=length)
    facts = [*list_lengths(sides), *list_layers(sides), *list_embeddings(sides), *list_memory(memories, length)]
    return ModelComparison(sides, length, tuple(facts), memories)


def default_length(first: ModelConfig, second: ModelConfig) -> int:
    """Return the shorter of the trained lengths."""
    return min(first.trained_length.length, second.trained_length.length)


def list_lengths(sides: tuple[Side, Side]) -> list[Fact]:
    """Return model type and lengths."""
    lengths = [side.config.trained_length for side in sides]
    words = [
        f"{one.length:,}" if one.is_known else TEXTS("compared.not_documented", name=one.name, length=one.length)
        for one in lengths
    ]
    original = [side.config.original_length if side.config.has_original_length else None for side in sides]
    return [
        _fact("model_type", TEXTS("compared.model_type"), *(side.config.model_type for side in sides)),
        Fact(
            "trained_length",
            TEXTS("compared.trained_length"),
            (lengths[0].length, lengths[1].length),
            (words[0], words[1]),
        ),
        _fact("original_length", TEXTS("compared.original_length"), *original),
        _fact("limit", "max_position_embeddings", *(side.config.limit for side in sides)),
    ]


def list_layers(sides: tuple[Side, Side]) -> list[Fact]:
    """Return how many layers there are, how many rotate, and the window of those that rotate."""
    rotating = [count_rotating(side.config) for side in sides]
    windows = [side.config.window for side in sides]
    return [
        _fact("rotating_layers", TEXTS("compared.rotating"), *rotating, none=TEXTS("compared.unknown")),
        _fact("window", TEXTS("compared.window"), *windows, none=TEXTS("compared.no_window")),
    ]


def count_rotating(config: ModelConfig) -> str | None:
    """Return how many layers rotate, such as "36 of 36"; None where it is not known."""
    rotating, layers = config.rotating_layers, config.fields.size("num_hidden_layers")
    if rotating is not None:
        return describe_count(sum(rotating), len(rotating))
    return (
        None
        if layers is None or config.architecture.layers.rotating in CONFIGS.group("rotating.which")
        else describe_count(layers, layers)
    )


def describe_count(rotating: int, layers: int) -> str:
    """Return how many of the layers rotate."""
    return TEXTS("compared.count", rotating=rotating, layers=layers)


def list_embeddings(sides: tuple[Side, Side]) -> list[Fact]:
    """Return the embedding of each layer type: sizes, method and attention factor.

    If one model has layer types and the other has not, its only embedding is compared with the main type.
    """
    facts: list[Fact] = []
    names = [[*side.config.specs] for side in sides]
    if names[0] == names[1] or "" in names[0] or "" in names[1]:
        mains = [side.config.main_layer for side in sides]
        types: list[tuple[str | None, str | None]] = [(mains[0], mains[1])]
        types += [(name, name) for name in names[0] if name in names[1] and name not in mains]
        types += [(name, None) for name in names[0] if name not in names[1] and name != mains[0]]
        types += [(None, name) for name in names[1] if name not in names[0] and name != mains[1]]
    else:
        every = dict.fromkeys([*names[0], *names[1]])
        types = [(name if name in names[0] else None, name if name in names[1] else None) for name in every]
    for pair in types:
        specs = [None if name is None else side.config.specs[name] for side, name in zip(sides, pair, strict=True)]
        key = next(name for name in pair if name is not None)
        single = len(types) == 1
        facts += _compare_specs(specs, "" if single else f"{key}.", "" if single else key or "all_layers")
    return facts


def list_memory(memories: tuple[dict[str, Any], dict[str, Any]], length: int) -> list[Fact]:
    """Return parameters, weights and cache of one text of the length."""
    labels = {
        "parameters": (TEXTS("compared.parameters"), lambda value: f"{value:,}"),
        "weight_bytes": (TEXTS("compared.weights"), human),
        "kv_cache_bytes": (TEXTS("compared.cache", length=length), human),
    }
    return [
        _fact(key, label, *(found[key] for found in memories), none=TEXTS("compared.unknown"), form=form)
        for key, (label, form) in labels.items()
    ]


def _of_method(spec: RopeSpec, name: str) -> Any:
    return getattr(spec.scaling, name, None)


def _compare_specs(specs: Sequence[RopeSpec | None], key: str, layers: str) -> list[Fact]:
    def fact(name: str, label: str, read: Callable[[RopeSpec], Any]) -> Fact:
        kind = TEXTS.group("compared.kinds").get(layers, layers)
        label = TEXTS("compared.of_layers", layers=kind, label=label) if layers else label
        return _fact(key + name, label, *(None if spec is None else read(spec) for spec in specs))

    facts = [
        fact("base", TEXTS("compared.base"), lambda spec: spec.base),
        fact("head_dim", TEXTS("compared.head_dim"), lambda spec: spec.head_dim),
        fact("rotary_dim", TEXTS("compared.rotary_dim"), lambda spec: spec.rotary_dim),
        fact("pairs", TEXTS("compared.pairs"), lambda spec: spec.pairs),
        fact("pairing", TEXTS("compared.pairing"), lambda spec: spec.pairing),
        fact("method", TEXTS("compared.scaling"), lambda spec: LABELS[spec.scaling.name]),
    ]
    names = dict.fromkeys(name for spec in specs if spec is not None for name in vars(spec.scaling))
    for name in names:
        labels = [knobs(spec.scaling)[name].label for spec in specs if spec and name in knobs(spec.scaling)]
        label = labels[0] if labels else EMBEDDING.entries.get(f"lists.{name}", name.replace("_", " "))
        facts.append(fact(name, label, functools.partial(_of_method, name=name)))
    factor = fact(
        "attention_factor", TEXTS("compared.attention"), lambda spec: round(spec.attention_factor(spec.target), 6)
    )
    return [*facts, factor]


def _fact(key: str, label: str, *values: Any, none: str = "–", form: Callable[[Any], str] | None = None) -> Fact:
    words = [none if value is None else (form or _word)(value) for value in values]
    return Fact(key, label, (values[0], values[1]), (words[0], words[1]))


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | tuple):
        return format_value(value)
    return f"{value:,.10g}"
