"""What each layer of a model does: what it sees, whether it rotates, and whether scaling reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rope_viz.advice.memory.kv_cache import find_layer_kinds, find_layer_window, list_assumed_sizes, read_memory_fields
from rope_viz.models.config_reader import Fields
from rope_viz.models.layer_patterns import resolve_layer_types
from rope_viz.models.model_config import ModelConfig, normalise_errors
from rope_viz.models.parameter_formulas import default_layer_types

Sees: TypeAlias = Literal[
    "full", "sparse", "compressed", "window", "chunk", "recurrent", "convolution", "image", "nothing"
]
# {kind of a layer's cache: what the layer sees}; every other kind is full attention.
SEES: dict[str, Sees] = {
    "indexed_attention": "sparse",
    "minimax_m3_sparse": "sparse",
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "compressed",
    "sliding_attention": "window",
    "hybrid_sliding": "window",
    "chunked_attention": "chunk",
    **dict.fromkeys(("linear_attention", "mamba", "recurrent", "recurrent_gemma"), "recurrent"),
    "conv": "convolution",
    "cross_attention": "image",
    **dict.fromkeys(("moe", "mlp"), "nothing"),
}
WITH_ATTENTION = ("full", "sparse", "compressed", "window", "chunk")


@dataclass(frozen=True)
class Layer:
    """One layer: what it sees, up to how many tokens back (None: all), whether it rotates, what scaling reaches.

    `kind` is that of its cache, `embedding` the key of its embedding.
    """

    sees: Sees
    reach: int | None
    rotates: bool
    scaled: bool
    kind: str
    embedding: str


@dataclass(frozen=True)
class Layers:
    """All layers of a model in order; `assumed`: their number is the default of the class, not in the config."""

    layers: tuple[Layer, ...]
    assumed: bool

    @property
    def scaled(self) -> int:
        """How many layers scaling reaches."""
        return sum(layer.scaled for layer in self.layers)

    @property
    def longest_reach(self) -> int | None:
        """How far back a layer that scaling reaches sees; None where one sees everything, or where none is reached."""
        reaches = [layer.reach for layer in self.layers if layer.scaled]
        known = [reach for reach in reaches if reach is not None]
        return max(known) if known and len(known) == len(reaches) else None


def list_layers(config: ModelConfig, layer: str = "") -> Layers:
    """Return all layers of a model; scaling is that of one layer type, the main one for "".

    Raises `ValueError` where the config does not say how many layers there are or of which kind.
    """
    with normalise_errors():
        fields, scaled = read_memory_fields(config), config.find_layer(layer)
        kinds, types = find_layer_kinds(fields), find_types(fields)
        turns = config.rotating_layers
        # Layers that share an indexer's choice keep no keys of their own for it, but read as few tokens.
        sparse = "indexed_attention" in kinds and fields.size("index_topk") is not None
        found = []
        for index, kind in enumerate(kinds):
            kind_of_type = types[index] if index < len(types) else kind
            sees, reach = find_reach(fields, kind_of_type if kind == "shared_attention" else kind, kind_of_type)
            sees = "sparse" if sparse and sees == "full" else sees
            listed = turns is None or index >= len(turns) or turns[index]
            rotates = sees in WITH_ATTENTION and listed
            key = find_embedding(config, kind_of_type, sees)
            found.append(Layer(sees, reach, rotates, rotates and key == scaled, kind, key))
    return Layers(tuple(found), "num_hidden_layers" in list_assumed_sizes(config))


def find_types(fields: Fields) -> list[str]:
    """Return the type of each layer as the config or its class lists it, [] where neither does."""
    given = resolve_layer_types(fields)
    return given or default_layer_types(fields.kind, fields.size("num_hidden_layers") or 0) or []


def find_reach(fields: Fields, kind: str, type: str) -> tuple[Sees, int | None]:
    """Return what a layer sees and how many tokens back. A window longer than any text of the model is none."""
    sees = SEES.get(kind, "full")
    # An encoder keeps no cache, so its windows are under a key of their own.
    local = fields.size("local_attention") if type == "sliding_attention" else None
    if local is not None:
        return "window", local
    if sees == "chunk":
        return sees, fields.size("attention_chunk_size") or fields.architecture.layers.chunk
    window, limit = find_layer_window(fields), fields.size("max_position_embeddings")
    if sees != "window":
        return sees, None
    if window is None or (limit is not None and window >= limit):
        return "full", None
    return sees, window


def find_embedding(config: ModelConfig, type: str, sees: Sees) -> str:
    """Return the key of the embedding that a layer has."""
    if "" in config.specs:
        return ""
    if "compress" in config.specs:
        return "compress" if sees == "compressed" else "main"
    return type if type in config.specs else config.main_layer
