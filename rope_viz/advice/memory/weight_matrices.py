"""The matrices of a language model's layers, one by one: what a quantization may store in few bits.

Norms, biases, routers, convolutions and embeddings are none of them: every quantization leaves those in 16 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rope_viz.advice.memory.kv_cache import (
    ATTENTION,
    OTHER_NAMES,
    count_kv_heads,
    find_layer_kinds,
    read_linear_attention,
    read_mamba,
)
from rope_viz.models.config_reader import Fields
from rope_viz.models.parameter_formulas import LISTED, first_number, is_dense

ONE_PART = ("moe", "mlp")
"""Kinds of layers in models whose layers are either a mixer or a feed-forward part (Nemotron-H)."""


@dataclass(frozen=True)
class Matrix:
    """`copies` equal matrices of one layer, named as checkpoints name them, from the word layers on."""

    name: str
    inputs: int
    outputs: int
    copies: int = 1

    @property
    def count(self) -> int:
        """How many weights they have together."""
        return self.inputs * self.outputs * self.copies


def list_attention(fields: Fields, hidden: int, kind: str) -> Iterator[Matrix]:
    """Yield the matrices of one layer's attention, or of what it has in its place."""
    if kind == "linear_attention":
        keys, values, _, heads, _ = read_linear_attention(fields)
        sizes = {"qkv": 2 * keys + values, "z": values, "b": heads, "a": heads}
        yield from (Matrix(f"linear_attn.in_proj_{name}", hidden, size) for name, size in sizes.items())
        yield Matrix("linear_attn.out_proj", values, hidden)
    elif kind == "mamba":
        keys, values, _, heads, _ = read_mamba(fields)
        yield Matrix("mixer.in_proj", hidden, 2 * values + 2 * keys + heads)
        yield Matrix("mixer.out_proj", values, hidden)
    elif kind == "conv":
        yield Matrix("conv.in_proj", hidden, 3 * hidden)
        yield Matrix("conv.out_proj", hidden, hidden)
    if kind not in ATTENTION:
        return
    heads, latent = fields.required("num_attention_heads"), fields.size("kv_lora_rank")
    if latent is None:
        width, kept = fields.head_dim(), count_kv_heads(fields)
        asked = heads * width * (2 if fields.architecture.memory.gated_attention else 1)
        yield Matrix("self_attn.q_proj", hidden, asked)
        yield from (Matrix(f"self_attn.{name}_proj", hidden, kept * width) for name in "kv")
        yield Matrix("self_attn.o_proj", heads * width, hidden)
        return
    rotated, plain = fields.required("qk_rope_head_dim"), fields.required("qk_nope_head_dim")
    values, query = fields.size("v_head_dim") or plain, fields.size("q_lora_rank")
    asked = heads * (rotated + plain)
    if query is None:
        yield Matrix("self_attn.q_proj", hidden, asked)
    else:
        yield Matrix("self_attn.q_a_proj", hidden, query)
        yield Matrix("self_attn.q_b_proj", query, asked)
    yield Matrix("self_attn.kv_a_proj_with_mqa", hidden, latent + rotated)
    yield Matrix("self_attn.kv_b_proj", latent, heads * (plain + values))
    yield Matrix("self_attn.o_proj", heads * values, hidden)


def list_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> Iterator[Matrix]:
    """Yield the matrices of one layer's feed-forward part; `dense`: it has no experts."""
    width, experts, shared = read_feed_forward(fields, hidden, dense=dense)
    names = ("up", "down") if fields.architecture.memory.two_matrix_mlp else ("gate", "up", "down")
    parts = [("experts.", width, experts), ("shared_expert.", shared, 1)] if experts else [("", width, 1)]
    for part, inner, copies in parts:
        for name in names if inner else ():
            sizes = (inner, hidden) if name == "down" else (hidden, inner)
            yield Matrix(f"mlp.{part}{name}_proj", *sizes, copies)


def read_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> tuple[int, int, int]:
    """Return (width, routed experts, width of the shared experts) of a layer; `dense`: it has no experts."""
    facts, config = fields.architecture.memory, fields.config
    inner = fields.size("intermediate_size") or 4 * hidden
    inner //= 2 if facts.halves_intermediate else 1
    experts = count_experts(fields)
    if experts is None or dense:
        other = (config.get("dense_intermediate_size") or config.get("intermediate_size_mlp")) if experts else None
        return int(other or inner), 0, 0
    width = first_number(fields.value("moe_intermediate_size")) or inner
    names = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    many = next((first_number(config[name]) for name in names if config.get(name) is not None), facts.shared_experts)
    own = next(
        (fields.value(name) for name in ("shared_expert_intermediate_size", "share_expert_dim") if fields.value(name)),
        0,
    )
    shared = (own or (width if facts.shared_expert else 0)) if not many else many * width
    return int(width), experts, int(shared)


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


def list_single_part(fields: Fields, hidden: int, kind: str) -> Iterator[Matrix]:
    """Yield the matrices of a layer of Nemotron-H, which has one part: a mixer, a feed-forward part or experts."""
    if kind in ("linear_attention", "mamba"):
        heads = fields.required("mamba_num_heads")
        inner = heads * fields.required("mamba_head_dim")
        shared = 2 * fields.required("n_groups") * fields.required("ssm_state_size")
        yield Matrix("mixer.in_proj", hidden, 2 * inner + shared + heads)
        yield Matrix("mixer.out_proj", inner, hidden)
    elif kind == "mlp":
        yield from pair_up("mlp.", hidden, fields.required("intermediate_size"), 1)
    elif kind == "moe":
        latent = fields.size("moe_latent_size")
        if latent is not None:
            yield Matrix("mlp.fc1_latent_proj", hidden, latent)
            yield Matrix("mlp.fc2_latent_proj", latent, hidden)
        experts, width = count_experts(fields) or 0, fields.required("moe_intermediate_size")
        yield from pair_up("mlp.experts.", latent or hidden, width, experts)
        yield from pair_up("mlp.shared_expert.", hidden, fields.size("moe_shared_expert_intermediate_size") or 0, 1)
    else:
        yield from list_attention(fields, hidden, kind)


def pair_up(part: str, hidden: int, width: int, copies: int) -> Iterator[Matrix]:
    """Yield the two matrices of a feed-forward part without a gate."""
    if width:
        yield Matrix(f"{part}up_proj", hidden, width, copies)
        yield Matrix(f"{part}down_proj", width, hidden, copies)


def list_matrices(fields: Fields) -> Iterator[Matrix]:
    """Yield the matrices of all layers in order, with the numbers of their layers in their names."""
    hidden, kinds = fields.required("hidden_size"), find_layer_kinds(fields)
    single = any(kind in ONE_PART for kind in kinds)
    # Gemma 4 has a dense part in each layer, and experts in addition.
    has_both = fields.config.get("enable_moe_block") is True
    for index, kind in enumerate(kinds):
        if single:
            found = [*list_single_part(fields, hidden, kind)]
        else:
            dense = is_layer_dense(fields, index)
            found = [*list_attention(fields, hidden, kind), *list_feed_forward(fields, hidden, dense=dense)]
        if has_both:
            experts = [replace(one, name=one.name.removeprefix("mlp.")) for one in found if "experts" in one.name]
            inner = fields.required("intermediate_size")
            ways = {"gate": (hidden, inner), "up": (hidden, inner), "down": (inner, hidden)}
            dense_part = [Matrix(f"mlp.{name}_proj", *sizes) for name, sizes in ways.items()]
            found = [*(one for one in found if "mlp." not in one.name), *dense_part, *experts]
        yield from (replace(one, name=f"layers.{index}.{one.name}") for one in found)
