"""Which layers of a mixture of experts have none, by the keys under which the classes of transformers say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LISTED = "moe_layers_enum"
"""Step 3 lists the layers with experts here: a list, or numbers with commas between them."""


def first_number(value: Any, index: int = 0) -> Any:
    """Return the entry of a list that gives every layer its own number; any other value as it is."""
    if isinstance(value, (list, tuple)):
        return value[index] if index < len(value) else None
    return value


def read_whole(value: Any, default: int) -> int:
    """Return a whole number, or the default for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def is_dense(value: Callable[[str], Any], index: int) -> bool:
    """Return whether the layer at an index of a model with experts has none; `value` reads a key of the config."""
    listed = value("moe_layer_freq")
    if isinstance(listed, (list, tuple)):
        return index < len(listed) and not listed[index]
    kinds = value("mlp_layer_types")
    if isinstance(kinds, (list, tuple)) and index < len(kinds):
        return str(kinds[index]) == "dense"
    chosen = value("moe_layers") or value(LISTED)
    if isinstance(chosen, (list, tuple)):
        return index not in chosen
    written = value(LISTED)
    if isinstance(written, str):
        return str(index) not in (each.strip() for each in written.split(","))
    first = read_whole(value("first_k_dense_replace"), 0) or read_whole(value("num_dense_layers"), 0)
    first = read_whole(first_number(value("moe_layer_start_index")), first)
    last = read_whole(first_number(value("moe_layer_end_index")), -1)
    if index < first or 0 <= last < index or index in (value("mlp_only_layers") or ()):
        return True
    period = read_whole(value("expert_layer_period"), 0)
    if period > 0:
        return index % period != read_whole(value("expert_layer_offset"), 0) % period
    names = ("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval")
    step = next((step for name in names if (step := read_whole(value(name), 0)) > 0), 1)
    return (index + 1) % step != 0
