"""Forward pass of tiny_lm in NumPy: a Llama of a few layers, exact attention in bounded memory at any length.

Llama: https://arxiv.org/abs/2302.13971; weights have the names of transformers' `LlamaForCausalLM`, whose logits are
matched to 1e-4 (tests/tiny_lm/test_numpy_model.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import exact_angles
from rope_viz.embedding.spec import RopeSpec, require_number, short_repr
from rope_viz.models.model_config import from_config
from rope_viz.studies.heads import Turning
from rope_viz.studies.tensors import open_tensors
from rope_viz.tiny_lm.tasks import Tokens

Floats: TypeAlias = NDArray[np.float32]

MAX_TOKENS = 1 << 17
BLOCK = 1 << 19  # scores in memory at once: 2 MiB, which fits in the cache
UNSEEN = np.float32(-np.inf)


@dataclass(frozen=True)
class Layer:
    """Weights of one layer, each (out, in), and the scales of its two norms, (width,)."""

    q: Floats
    k: Floats
    v: Floats
    o: Floats
    gate: Floats
    up: Floats
    down: Floats
    before_attention: Floats
    before_mlp: Floats


@dataclass(frozen=True, eq=False)
class TinyLm:
    """A loaded tiny_lm. `spec` is the embedding that it was trained with."""

    name: str
    spec: RopeSpec
    heads: int
    epsilon: float
    embedding: Floats
    layers: tuple[Layer, ...]
    norm: Floats
    unembedding: Floats
    config: Mapping[str, Any]

    @property
    def head_dim(self) -> int:
        """Return the dimensions of one head."""
        return int(self.layers[0].q.shape[0] // self.heads)

    @property
    def parameters(self) -> int:
        """Return the number of trained parameters, tied embeddings counted once."""
        tied = self.unembedding is self.embedding
        sizes = sum(part.size for layer in self.layers for part in vars(layer).values())
        return int(sizes + self.norm.size + self.embedding.size + (0 if tied else self.unembedding.size))


def load(folder: str | Path) -> TinyLm:
    """Load the model in a folder with transformers' `config.json` and `model.safetensors`.

    Raises `ValueError` for another kind of model, and `OSError` if the folder or a file is missing.
    """
    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "llama" or config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"{folder.name} must hold a Llama, got {short_repr(config.get('model_type'))}")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    if config.get("num_key_value_heads", heads) != heads:
        raise ValueError("tiny_lm has as many key heads as query heads")
    file = open_tensors(folder / "model.safetensors")

    def tensor(name: str) -> Floats:
        return np.ascontiguousarray(file.read_tensor(name), dtype=np.float32)

    embedding = tensor("model.embed_tokens.weight")
    if embedding.shape != (config["vocab_size"], width):
        raise ValueError(f"the embedding must be {(config['vocab_size'], width)}, got {embedding.shape}")
    return TinyLm(
        name=folder.name,
        spec=from_config(config)[""],
        heads=heads,
        epsilon=config["rms_norm_eps"],
        embedding=embedding,
        layers=tuple(
            Layer(*(tensor(f"model.layers.{index}.{part}.weight") for part in PARTS))
            for index in range(config["num_hidden_layers"])
        ),
        norm=tensor("model.norm.weight"),
        unembedding=embedding if config.get("tie_word_embeddings") else tensor("lm_head.weight"),
        config=MappingProxyType(config),
    )


PARTS = (
    *(f"self_attn.{name}_proj" for name in "qkvo"),
    *(f"mlp.{name}_proj" for name in ("gate", "up", "down")),
    "input_layernorm",
    "post_attention_layernorm",
)
"""The weights of `Layer` by their names in transformers, in field order."""


def logits(model: TinyLm, tokens: ArrayLike, turn: Turning | None = None, *, rows: ArrayLike | None = None) -> Floats:
    """Return the next-token logits of one sequence (tokens,) at `rows` (all, if None), float32 (rows, vocabulary).

    `turn` None is the trained embedding. Attention is exact, over all earlier tokens. Raises `ValueError` for tokens
    outside the vocabulary, more than 131,072 of them, and a `turn` with another number of pairs.
    """
    ids = checked_tokens(model, tokens)
    return np.asarray(hidden(model, ids, turn, checked_rows(rows, len(ids))) @ model.unembedding.T)


def attention(
    model: TinyLm, tokens: ArrayLike, turn: Turning | None = None, *, layer: int, rows: ArrayLike | None = None
) -> Floats:
    """Return the attention weights of a layer for the tokens at `rows`, float32 (heads, rows, tokens)."""
    require_number(layer, "layer", least=0, most=len(model.layers) - 1, integer=True)
    ids = checked_tokens(model, tokens)
    wanted = checked_rows(rows, len(ids))
    found: list[Floats] = []

    def record(index: int, inputs: Taken) -> None:
        if index == layer:
            q = inputs.rotated_q if len(inputs.rows) == len(wanted) else inputs.rotated_q[:, wanted]
            found.append(np.stack([weights(*pair, wanted) for pair in zip(q, inputs.rotated_k, strict=True)]))

    hidden(model, ids, turn, wanted, record)
    return found[0]


def queries_and_keys(
    model: TinyLm, tokens: ArrayLike, turn: Turning | None = None
) -> tuple[tuple[Floats, Floats], ...]:
    """Return q and k of every layer before rotation, each float32 (heads, tokens, head_dim).

    From the second layer on they depend on `turn`, because the first layer's output does.
    """
    ids = checked_tokens(model, tokens)
    found: list[tuple[Floats, Floats]] = []
    hidden(model, ids, turn, np.arange(len(ids)), lambda index, inputs: found.append((inputs.q, inputs.k)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Taken:
    """Inputs of a layer's attention, (heads, rows or tokens, head_dim), before and after rotation."""

    q: Floats
    k: Floats
    rotated_q: Floats
    rotated_k: Floats
    rows: Tokens


def hidden(
    model: TinyLm,
    ids: Tokens,
    turn: Turning | None,
    wanted: Tokens,
    see: Callable[[int, Taken], None] | None = None,
) -> Floats:
    """Return the final normalised state, (rows, width); `see` is called with each layer's q and k.

    All layers but the last compute every token, the last one only the wanted rows.
    """
    cos, sin = table(model, turn or Turning.from_spec(model.spec, len(ids)), len(ids))
    all_rows = np.arange(len(ids))
    x: Floats = model.embedding[ids]
    for index, layer in enumerate(model.layers):
        rows = wanted if index == len(model.layers) - 1 else all_rows
        y = rms_norm(x, layer.before_attention, model.epsilon)
        x, query_input = (x, y) if len(rows) == len(ids) else (x[rows], y[rows])
        q, k, v = (split_heads(z @ w.T, model.heads) for z, w in ((query_input, layer.q), (y, layer.k), (y, layer.v)))
        rotated_q, rotated_k = rotate(q, cos[rows], sin[rows]), rotate(k, cos, sin)
        if see is not None:
            see(index, Taken(q, k, rotated_q, rotated_k, rows))
        x = x + attend(rotated_q, rotated_k, v, rows) @ layer.o.T
        y = rms_norm(x, layer.before_mlp, model.epsilon)
        x += (silu(y @ layer.gate.T) * (y @ layer.up.T)) @ layer.down.T
    return rms_norm(x, model.norm, model.epsilon)


def attend(q: Floats, k: Floats, v: Floats, rows: Tokens) -> Floats:
    """Return softmax(q·k/√d) v over the keys up to each row, (rows, heads·d), with at most `BLOCK` scores in memory."""
    heads, count, dim = q.shape
    out = np.empty((count, heads, dim), dtype=np.float32)
    across = np.ascontiguousarray(k.transpose(0, 2, 1))
    # One buffer for all blocks: new memory costs as much as the product that fills it.
    buffer = np.empty(max(BLOCK, int(rows[-1]) + 1), dtype=np.float32)
    first = 0
    while first < count:
        last = first + max(1, min(count - first, BLOCK // (int(rows[first]) + 1)))
        # Rows are increasing, so the last one of the block sees the most keys.
        last = first + max(1, min(last - first, BLOCK // (int(rows[last - 1]) + 1)))
        seen = int(rows[last - 1]) + 1
        scores = buffer[: (last - first) * seen].reshape(last - first, seen)
        for head in range(heads):
            powers(q[head, first:last], across[head, :, :seen], rows[first:last], scores)
            np.divide(scores @ v[head, :seen], scores.sum(axis=1, keepdims=True), out=out[first:last, head])
        first = last
    return out.reshape(count, heads * dim)


def weights(q: Floats, k: Floats, rows: Tokens) -> Floats:
    """Return the attention weights of one head, (rows, tokens)."""
    found = np.empty((len(q), len(k)), dtype=np.float32)
    powers(q, k.T, rows, found)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def powers(q: Floats, across: Floats, rows: Tokens, out: Floats) -> None:
    """Write exp of the scores minus each row's maximum into `out`, (rows, keys); 0 for keys after the row.

    `across` holds the keys as columns, (head_dim, keys).
    """
    np.matmul(q * np.float32(q.shape[-1] ** -0.5), across, out=out)
    # Only keys after the first row can be masked.
    begin = int(rows[0]) + 1
    if begin < out.shape[1]:
        late = out[:, begin:]
        late[np.arange(begin, out.shape[1]) > rows[:, None]] = UNSEEN
    out -= out.max(axis=1, keepdims=True)
    np.exp(out, out=out)


def table(model: TinyLm, turn: Turning, tokens: int) -> tuple[Floats, Floats]:
    """Return cos and sin of every position, (tokens, pairs), including the attention factor."""
    if 2 * len(turn.inv_freq) != model.head_dim:
        raise ValueError(f"tiny_lm has {model.head_dim // 2} pairs per head, got {len(turn.inv_freq)} frequencies")
    require_number(turn.attention_factor, "attention_factor")
    angle = exact_angles(turn.inv_freq, np.arange(tokens))
    return tuple((turn.attention_factor * part).astype(np.float32) for part in (np.cos(angle), np.sin(angle)))  # type: ignore[return-value]


def rotate(x: Floats, cos: Floats, sin: Floats) -> Floats:
    """Rotate every pair (i, i + d/2) of (heads, tokens, d)."""
    half = x.shape[-1] // 2
    out = np.empty_like(x)
    np.multiply(x[..., :half], cos, out=out[..., :half])
    out[..., :half] -= x[..., half:] * sin
    np.multiply(x[..., half:], cos, out=out[..., half:])
    out[..., half:] += x[..., :half] * sin
    return out


def split_heads(x: Floats, heads: int) -> Floats:
    """Reshape (tokens, heads·d) to (heads, tokens, d), contiguous."""
    return np.ascontiguousarray(x.reshape(len(x), heads, -1).transpose(1, 0, 2))


def rms_norm(x: Floats, scale: Floats, epsilon: float) -> Floats:
    """Return x over its root mean square, times the scale."""
    mean = np.einsum("td,td->t", x, x) / x.shape[1]
    return np.asarray(x * (1.0 / np.sqrt(mean + np.float32(epsilon)))[:, None] * scale)


def silu(x: Floats) -> Floats:
    """Return x·sigmoid(x)."""
    with np.errstate(over="ignore"):  # exp of a large −x overflows to infinity, and the quotient is 0 as it should be
        return np.asarray(x / (1.0 + np.exp(-x)))


def checked_tokens(model: TinyLm, tokens: ArrayLike) -> Tokens:
    """Return one sequence of ids, or raise `ValueError`."""
    ids = np.asarray(tokens)
    if ids.ndim != 1 or not 1 <= len(ids) <= MAX_TOKENS or ids.dtype.kind not in "iu":
        raise ValueError(f"tokens must be 1 to {MAX_TOKENS:,} whole numbers in a row, got shape {ids.shape}")
    if ids.min() < 0 or ids.max() >= len(model.embedding):
        raise ValueError(f"tokens must be from 0 to {len(model.embedding) - 1}, got {ids.min()} to {ids.max()}")
    return ids.astype(np.int64)


def checked_rows(rows: ArrayLike | None, length: int) -> Tokens:
    """Return increasing indices into a sequence, or raise `ValueError`."""
    if rows is None:
        return np.arange(length)
    wanted = np.asarray(rows)
    if wanted.ndim != 1 or not len(wanted) or wanted.dtype.kind not in "iu" or np.any(np.diff(wanted) <= 0):
        raise ValueError("rows must be whole numbers in rising order")
    if wanted[0] < 0 or wanted[-1] >= length:
        raise ValueError(f"rows must be from 0 to {length - 1}, got {wanted[0]} to {wanted[-1]}")
    return wanted.astype(np.int64)
