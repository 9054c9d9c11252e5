"""Count the weights of feed-forward parts: which layers have experts, how many and how wide."""

from __future__ import annotations

from typing import Any

from rope_viz.advice.memory_fields import OTHER_NAMES
from rope_viz.models.config_reader import Fields


def first_number(value: Any, index: int = 0) -> Any:
    """Return the entry of a list that gives every layer its own number; any other value as it is."""
    if isinstance(value, (list, tuple)):
        return value[index] if index < len(value) else None
    return value


def count_experts(fields: Fields) -> int | None:
    """Return how many routed experts a layer with experts has, None for a dense model."""
    names = ("n_routed_experts", "num_local_experts", "num_experts", *OTHER_NAMES["num_experts"])
    for name in names:
        value = first_number(fields.value(name))
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def is_dense(fields: Fields, index: int, count: int) -> bool:
    """Return whether a layer of a model with experts has none."""
    config = fields.config
    listed = config.get("moe_layer_freq")
    if isinstance(listed, (list, tuple)):
        return index < len(listed) and not listed[index]
    kinds = config.get("mlp_layer_types")
    if isinstance(kinds, (list, tuple)) and index < len(kinds):
        return str(kinds[index]) == "dense"
    first = config.get("first_k_dense_replace") or config.get("num_dense_layers") or 0
    if fields.architecture.memory.first_dense and "moe_layer_start_index" not in config:
        first = first or fields.architecture.memory.first_dense
    first = first_number(config.get("moe_layer_start_index")) or first
    if index < first or index in (config.get("mlp_only_layers") or ()):
        return True
    steps = (config.get(key) for key in ("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval"))
    step = next((step for step in steps if isinstance(step, int) and step > 0), 1)
    return (index + 1) % step != 0


def count_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> int:
    """Return the number of weights of a layer's feed-forward part; `dense`: it has no experts."""
    facts, config = fields.architecture.memory, fields.config
    matrices = 2 if facts.two_matrix_mlp else 3
    inner = fields.size("intermediate_size") or 4 * hidden
    inner //= 2 if facts.halves_intermediate else 1
    experts = count_experts(fields)
    if experts is None or dense:
        other = (config.get("dense_intermediate_size") or config.get("intermediate_size_mlp")) if experts else None
        return matrices * hidden * int(other or inner)
    width = first_number(fields.value("moe_intermediate_size")) or inner
    names = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    many = next((first_number(config[name]) for name in names if config.get(name) is not None), facts.shared_experts)
    own = next(
        (config[name] for name in ("shared_expert_intermediate_size", "share_expert_dim") if config.get(name)), 0
    )
    shared = (own or (width if facts.shared_expert else 0)) if not many else many * width
    return int(matrices * hidden * (experts * width + shared) + experts * hidden)
