"""Which vectors of an attention layer rotate, by which embedding and at which position: of every layer of a model.

The facts are in the records of model types (`RotatedVectors`). A class without an entry there rotates q and k at their
own position and nothing else, which is known where its code was run (tests/goldens/vectors.json).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.advice.memory.kv_cache import count_index_numbers, read_memory_fields
from rope_viz.advice.memory.layer_kinds import WITH_ATTENTION, Layer, list_layers
from rope_viz.embedding.spec import MAX_LENGTH, Pairing, RopeSpec, require_number
from rope_viz.models.architecture import Architecture, RotatedVectors
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig, normalise_errors
from rope_viz.studies.rotation import pair_dimensions

Name: TypeAlias = Literal["q", "k", "v", "output", "block", "index_q", "index_k"]
Evidence: TypeAlias = Literal["executed", "read", ""]
GOLDEN = "vectors.json"
"""What the code of a class did with its vectors when it was run; the records list who is in it."""
WITH_INDEXER = ("indexed_attention", "compressed_sparse_attention", "minimax_m3_sparse")
"""Kinds of layers that choose keys by an indexer with q and k of its own."""


@dataclass(frozen=True)
class Vector:
    """One vector of a head in one layer: whether it rotates (None: not known), and how.

    `size` is its number of channels (None: not known), `start` the first of those that rotate as `spec` and `pairing`
    say. `every`: one vector for so many tokens, at the position of the first of them; 0: it has its own position.
    `inverse`: it is rotated by the opposite angle. `with_value`: it is key and value at once.
    """

    name: Name
    rotates: bool | None
    size: int | None
    spec: RopeSpec
    start: int = 0
    pairing: Pairing = "half"
    every: int = 0
    inverse: bool = False
    with_value: bool = False

    def channels(self) -> NDArray[np.int64]:
        """Return the channels of the head that rotate, in order: those of pairs with zero frequency do not."""
        if not self.rotates:
            return np.zeros(0, dtype=np.int64)
        turning = np.flatnonzero(self.spec.inv_freq())
        first, second = pair_dimensions(self.spec, self.pairing)
        found: NDArray[np.int64] = np.sort(np.concatenate([first[turning], second[turning]])) + self.start
        return found


@dataclass(frozen=True)
class VectorStrip:
    """The vectors of all layers that are alike, and the numbers of these layers."""

    layer: Layer
    spec: RopeSpec
    vectors: tuple[Vector, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class TurningVectors:
    """The strips of a model, in the order of its layers, and how it is known what its class rotates."""

    strips: tuple[VectorStrip, ...]
    evidence: Evidence


def find_turning_vectors(config: ModelConfig) -> TurningVectors:
    """Return which vectors rotate in every kind of layer with attention. Raises `ValueError` for unknown layers."""
    with normalise_errors():
        found: dict[Layer, list[int]] = {}
        for number, layer in enumerate(list_layers(config).layers):
            if layer.sees in WITH_ATTENTION:
                found.setdefault(layer, []).append(number)
        strips = tuple(
            VectorStrip(layer, config.specs[layer.embedding], tuple(list_vectors(config, layer)), tuple(numbers))
            for layer, numbers in found.items()
        )
        return TurningVectors(strips, find_evidence(config.architecture))


def find_evidence(record: Architecture) -> Evidence:
    """Return how it is known which vectors the code of a type rotates."""
    if any(GOLDEN in goldens for goldens in record.executed.values()):
        return "executed"
    return "read" if record.vectors is not None else ""


def list_vectors(config: ModelConfig, layer: Layer) -> Iterator[Vector]:
    """Yield the vectors of a layer with attention."""
    record, fields = config.architecture, read_memory_fields(config).layer(layer.embedding)
    facts, spec = record.vectors or RotatedVectors(), config.specs[layer.embedding]
    is_known = find_evidence(record) != ""
    key_size, value_size = find_head_sizes(fields, spec)
    from_end = facts.part == "last" or fields.has_latent_attention
    start = key_size - spec.rotary_dim if from_end and key_size is not None else 0
    turns, pairing = layer.rotates, spec.pairing
    one = facts.one_key_value
    yield Vector("q", turns, key_size, spec, start, pairing, inverse=facts.backward)
    yield Vector("k", turns, key_size, spec, start, pairing, inverse=facts.backward, with_value=one)
    value = (turns and facts.rotates_value(fields.config)) if is_known else None
    yield Vector("v", value, value_size, spec, start, pairing)
    output = (turns and facts.turns_back) if is_known else None
    yield Vector("output", output, value_size, spec, start, pairing, inverse=facts.turns_back)
    every = find_block(fields, facts, layer.kind)
    if every:
        yield Vector("block", turns, key_size, spec, start, pairing, every, with_value=one)
    if layer.kind in WITH_INDEXER:
        yield from list_index_vectors(fields, facts, layer, spec, every)


def list_index_vectors(
    fields: Fields, facts: RotatedVectors, layer: Layer, spec: RopeSpec, every: int
) -> Iterator[Vector]:
    """Yield the indexer's q and k, of which nothing is known where the record says nothing."""
    size = count_index_numbers(fields)
    turns = layer.rotates if facts.index else None
    start = size - spec.rotary_dim if facts.index == "last" else 0
    pairing = facts.index_pairing or spec.pairing
    blocks = fields.size(facts.index_block_key) if facts.index_block_key else every
    yield Vector("index_q", turns, size, spec, start, pairing)
    yield Vector("index_k", turns, size, spec, start, pairing, blocks or 0)


def find_head_sizes(fields: Fields, spec: RopeSpec) -> tuple[int | None, int | None]:
    """Return the channels of a head of q and k, and of v; None where neither the config nor the class says it."""
    plain = fields.size("qk_nope_head_dim") if fields.has_latent_attention else None
    if plain is not None:
        return plain + spec.rotary_dim, fields.size("v_head_dim")
    if fields.has_latent_attention and spec.rotary_dim == spec.head_dim:
        return None, fields.size("v_head_dim")
    return spec.head_dim, fields.size("v_head_dim", default=spec.head_dim)


def find_block(fields: Fields, facts: RotatedVectors, kind: str) -> int:
    """Return for how many tokens a layer of this kind adds one compressed key, 0 where it adds none."""
    every = (fields.mapping("compress_rates") or {}).get(kind, facts.blocks.get(kind, 0)) if facts.blocks else 0
    require_number(every, "compress_rates", least=0, most=MAX_LENGTH, integer=True)
    return int(every)
