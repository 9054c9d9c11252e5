"""Count the weights of feed-forward parts: which layers have experts, how many and how wide."""

from __future__ import annotations

from rope_viz.advice.memory_fields import OTHER_NAMES
from rope_viz.models.config_reader import Fields
from rope_viz.models.expert_layers import LISTED, first_number, is_dense


def count_experts(fields: Fields) -> int | None:
    """Return how many routed experts a layer with experts has, None for a dense model."""
    names = ("n_routed_experts", "num_local_experts", "num_experts", *OTHER_NAMES["num_experts"])
    for name in names:
        value = first_number(fields.value(name))
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def is_layer_dense(fields: Fields, index: int) -> bool:
    """Return whether a layer of a model with experts has none."""
    config, first = fields.config, fields.architecture.memory.first_dense
    if first and "moe_layer_start_index" not in config and not config.get("first_k_dense_replace"):
        config = {"first_k_dense_replace": first, **config}
    if fields.value(LISTED) is not None:
        config = {**config, LISTED: fields.value(LISTED)}
    return is_dense(config.get, index)


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
        (fields.value(name) for name in ("shared_expert_intermediate_size", "share_expert_dim") if fields.value(name)),
        0,
    )
    shared = (own or (width if facts.shared_expert else 0)) if not many else many * width
    return int(matrices * hidden * (experts * width + shared) + experts * hidden)
