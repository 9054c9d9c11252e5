"""Forward pass of the Llama family in NumPy, with exact attention in bounded memory at any length.

Llama: https://arxiv.org/abs/2302.13971; weights have the names of transformers' `LlamaForCausalLM`, whose logits are
matched to 1e-4 (tests/tiny_lm/test_numpy_model.py). Fields of `LayerWeights` and `Llama` with a default are for the
models of a GGUF file and for probes: grouped keys, biases (Qwen2), norms of q and k (Qwen3), GELU and a scaled
embedding (Gemma). Those of `LayerAttention` are for probes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import exact_angles
from rope_viz.embedding.spec import Pairing, RopeSpec, require_number, short_repr
from rope_viz.kernels.reference import pair_slices
from rope_viz.models.model_config import from_config
from rope_viz.storage.read_file import read_limited_text
from rope_viz.studies.heads import Turning
from rope_viz.studies.tensors import open_tensors
from rope_viz.tiny_lm.tasks import Tokens

Floats: TypeAlias = NDArray[np.float32]

MAX_TOKENS = 1 << 17
ROWS, KEYS = 256, 512
"""Rows and keys whose scores are computed at once: 512 KiB, which fit in the cache."""
SAFE = 60.0
"""Size of scores up to which their exponentials, and sums of them over all tokens, are within float32."""
UNSEEN = np.float32(-np.inf)


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one layer, each (out, in), and the scales of its norms, (width,) or (head_dim,) for q and k."""

    q: Floats
    k: Floats
    v: Floats
    o: Floats
    gate: Floats
    up: Floats
    down: Floats
    before_attention: Floats
    before_mlp: Floats
    q_bias: Floats | None = None
    k_bias: Floats | None = None
    v_bias: Floats | None = None
    q_norm: Floats | None = None
    k_norm: Floats | None = None
    o_bias: Floats | None = None
    gate_bias: Floats | None = None
    up_bias: Floats | None = None
    down_bias: Floats | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Llama:
    """The weights of a model of the Llama family, without its rotary embedding."""

    heads: int
    epsilon: float
    embedding: Floats
    layers: tuple[LayerWeights, ...]
    norm: Floats
    unembedding: Floats
    activation: str = "silu"
    embedding_scale: float = 1.0

    @property
    def key_heads(self) -> int:
        """Return the number of key heads; neighbouring query heads share one."""
        return int(self.layers[0].k.shape[0] // self.head_dim)

    @property
    def head_dim(self) -> int:
        return int(self.layers[0].q.shape[0] // self.heads)

    @property
    def parameters(self) -> int:
        """Return the number of trained parameters, tied embeddings counted once."""
        tied = self.unembedding is self.embedding
        sizes = sum(part.size for layer in self.layers for part in vars(layer).values() if part is not None)
        return int(sizes + self.norm.size + self.embedding.size + (0 if tied else self.unembedding.size))


@dataclass(frozen=True, eq=False, kw_only=True)
class TinyLm(Llama):
    """A loaded tiny_lm. `spec` is the embedding that it was trained with."""

    name: str
    spec: RopeSpec
    config: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """How the attention of a layer rotates q and k, scales the scores, and how far back it sees.

    `cos` and `sin` are (tokens, pairs) and include the attention factor. `scale` None is 1/√d. `window` is in tokens,
    the query's own included; None is all of them.
    """

    cos: Floats
    sin: Floats
    pairing: Pairing = "half"
    scale: float | None = None
    window: int | None = None


def load(folder: str | Path) -> TinyLm:
    """Load the model in a folder with transformers' `config.json` and `model.safetensors`.

    Raises `ValueError` for another kind of model, and `OSError` if the folder or a file is missing.
    """
    folder = Path(folder)
    config = json.loads(read_limited_text(folder / "config.json"))
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
            LayerWeights(*(tensor(f"model.layers.{index}.{part}.weight") for part in PARTS))
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
"""The weights of `LayerWeights` by their names in transformers, in field order."""


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

    def record(index: int, inputs: AttentionInputs) -> None:
        if index == layer:
            q = inputs.rotated_q if len(inputs.rows) == len(wanted) else inputs.rotated_q[:, wanted]
            k = np.repeat(inputs.rotated_k, len(q) // len(inputs.rotated_k), axis=0)
            found.append(np.stack([weights(*pair, wanted) for pair in zip(q, k, strict=True)]))

    hidden(model, ids, turn, wanted, record)
    return found[0]


def queries_and_keys(
    model: TinyLm, tokens: ArrayLike, turn: Turning | None = None
) -> tuple[tuple[Floats, Floats], ...]:
    """Return q and k of every layer before rotation, each float32 (heads or key heads, tokens, head_dim).

    From the second layer on they depend on `turn`, because the first layer's output does.
    """
    ids = checked_tokens(model, tokens)
    found: list[tuple[Floats, Floats]] = []
    hidden(model, ids, turn, np.arange(len(ids)), lambda index, inputs: found.append((inputs.q, inputs.k)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class AttentionInputs:
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
    see: Callable[[int, AttentionInputs], None] | None = None,
) -> Floats:
    """Return the final normalised state, (rows, width); `see` is called with each layer's q and k.

    All layers but the last compute every token, the last one only the wanted rows.
    """
    cos, sin = table(model, turn or Turning.from_spec(model.spec, len(ids)), len(ids))
    return run_layers(model, ids, [LayerAttention(cos, sin)] * len(model.layers), wanted, see)


def run_layers(
    model: Llama,
    ids: Tokens,
    attentions: Sequence[LayerAttention],
    wanted: Tokens,
    see: Callable[[int, AttentionInputs], None] | None = None,
) -> Floats:
    """Return the final normalised state as `hidden` does, with one `LayerAttention` for each layer."""
    all_rows = np.arange(len(ids))
    x: Floats = model.embedding[ids] * np.float32(model.embedding_scale)
    activate = ACTIVATIONS[model.activation]
    for index, (layer, how) in enumerate(zip(model.layers, attentions, strict=True)):
        rows = wanted if index == len(model.layers) - 1 else all_rows
        y = rms_norm(x, layer.before_attention, model.epsilon)
        x, query_input = (x, y) if len(rows) == len(ids) else (x[rows], y[rows])

        q = split_heads(project(query_input, layer.q, layer.q_bias), model.heads)
        k = split_heads(project(y, layer.k, layer.k_bias), model.key_heads)
        v = split_heads(project(y, layer.v, layer.v_bias), model.key_heads)
        q = q if layer.q_norm is None else rms_norm(q, layer.q_norm, model.epsilon)
        k = k if layer.k_norm is None else rms_norm(k, layer.k_norm, model.epsilon)
        rotated_q = rotate(q, how.cos[rows], how.sin[rows], how.pairing)
        rotated_k = rotate(k, how.cos, how.sin, how.pairing)
        if see is not None:
            see(index, AttentionInputs(q, k, rotated_q, rotated_k, rows))
        mixed = attend(rotated_q, rotated_k, v, rows, scale=how.scale, window=how.window)
        x = x + project(mixed, layer.o, layer.o_bias)

        y = rms_norm(x, layer.before_mlp, model.epsilon)
        inner = activate(project(y, layer.gate, layer.gate_bias)) * project(y, layer.up, layer.up_bias)
        x += project(inner, layer.down, layer.down_bias)
    return rms_norm(x, model.norm, model.epsilon)


def attend(
    q: Floats,
    k: Floats,
    v: Floats,
    rows: Tokens,
    *,
    scale: float | None = None,
    window: int | None = None,
) -> Floats:
    """Return softmax(q·k/√d) v over the keys up to each row, (rows, heads·d), with few scores in memory at once.

    `k` and `v` are (key heads, tokens, d); neighbouring heads of `q` share a key head. `scale` is in the place of 1/√d,
    and `window` is the number of keys that a row sees at most.
    """
    heads, count, dim = q.shape
    out = np.empty((count, heads, dim), dtype=np.float32)
    buffer = np.empty(ROWS * KEYS, dtype=np.float32)
    q = q * np.float32(dim**-0.5 if scale is None else scale)
    for head in range(heads):
        key = head * len(k) // heads
        most = float(lengths(q[head]).max() * lengths(k[key]).max())
        for first in range(0, count, ROWS):
            block = slice(first, min(first + ROWS, count))
            out[block, head] = attend_rows(q[head, block], k[key], v[key], rows[block], buffer, most, window)
    return out.reshape(count, heads * dim)


def attend_rows(
    q: Floats, k: Floats, v: Floats, rows: Tokens, buffer: Floats, most: float, window: int | None = None
) -> Floats:
    """Return one head's softmax(q·k) v for at most `ROWS` rows, (rows, d), as many keys at a time as `buffer` holds.

    No score is beyond `most`. Where that is small, the exponential needs no row's maximum subtracted.
    """
    seen, step = int(rows[-1]) + 1, len(buffer) // len(rows)
    first = 0 if window is None else max(0, int(rows[0]) + 1 - window)
    found, total = np.zeros_like(q), np.zeros((len(q), 1), dtype=np.float32)
    # A row whose window begins later sees none of the first keys: a maximum of -inf would make NaN of it.
    highest = np.full_like(total, -np.inf if window is None else -most)
    for begin in range(first, seen, step):
        end = min(begin + step, seen)
        scores = buffer[: len(rows) * (end - begin)].reshape(len(rows), -1)
        np.matmul(q, k[begin:end].T, out=scores)
        hide_later_keys(scores, begin, rows)
        if window is not None:
            hide_earlier_keys(scores, begin, rows, window)
        if most > SAFE:
            higher = np.maximum(highest, scores.max(axis=1, keepdims=True))
            shrink = np.exp(highest - higher)
            found, total, highest = found * shrink, total * shrink, higher
            scores -= higher
        np.exp(scores, out=scores)
        found += scores @ v[begin:end]
        total += scores @ np.ones((end - begin, 1), dtype=np.float32)
    return np.asarray(found / total)


def lengths(x: Floats) -> Floats:
    """Return the length of each vector, (tokens,)."""
    return np.asarray(np.sqrt(np.einsum("td,td->t", x, x)))


def weights(q: Floats, k: Floats, rows: Tokens) -> Floats:
    """Return the attention weights of one head, (rows, tokens)."""
    scores: Floats = np.matmul(q * np.float32(q.shape[-1] ** -0.5), k.T)
    hide_later_keys(scores, 0, rows)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def hide_later_keys(scores: Floats, begin: int, rows: Tokens) -> None:
    """Set the scores of keys after each row to -inf; `scores` is (rows, keys), and its first key is at `begin`."""
    # Only keys after the first row can be hidden.
    first = max(int(rows[0]) + 1, begin)
    late = scores[:, first - begin :]
    late[np.arange(first, begin + scores.shape[1]) > rows[:, None]] = UNSEEN


def hide_earlier_keys(scores: Floats, begin: int, rows: Tokens, window: int) -> None:
    """Set the scores of keys before each row's window to -inf, as `hide_later_keys` does for later ones."""
    # Only keys before the last row's window can be hidden.
    end = min(int(rows[-1]) + 1 - window, begin + scores.shape[1])
    early = scores[:, : max(end - begin, 0)]
    early[np.arange(begin, begin + early.shape[1]) <= rows[:, None] - window] = UNSEEN


def table(model: TinyLm, turn: Turning, tokens: int) -> tuple[Floats, Floats]:
    """Return cos and sin of every position, (tokens, pairs), including the attention factor."""
    if 2 * len(turn.inv_freq) != model.head_dim:
        raise ValueError(f"tiny_lm has {model.head_dim // 2} pairs per head, got {len(turn.inv_freq)} frequencies")
    require_number(turn.attention_factor, "attention_factor")
    angle = exact_angles(turn.inv_freq, np.arange(tokens))
    return tuple((turn.attention_factor * part).astype(np.float32) for part in (np.cos(angle), np.sin(angle)))  # type: ignore[return-value]


def rotate(x: Floats, cos: Floats, sin: Floats, pairing: Pairing = "half") -> Floats:
    """Rotate the pairs of (heads, tokens, d); dimensions beyond the pairs stay."""
    pairs = cos.shape[-1]
    first, second = pair_slices(pairs, pairing)
    out = np.empty_like(x)
    out[..., 2 * pairs :] = x[..., 2 * pairs :]
    np.multiply(x[..., first], cos, out=out[..., first])
    out[..., first] -= x[..., second] * sin
    np.multiply(x[..., second], cos, out=out[..., second])
    out[..., second] += x[..., first] * sin
    return out


def project(x: Floats, weight: Floats, bias: Floats | None) -> Floats:
    """Return a projection of (tokens, width), (tokens, out)."""
    y: Floats = x @ weight.T
    return y if bias is None else y + bias


def split_heads(x: Floats, heads: int) -> Floats:
    """Reshape (tokens, heads·d) to (heads, tokens, d), contiguous."""
    return np.ascontiguousarray(x.reshape(len(x), heads, -1).transpose(1, 0, 2))


def rms_norm(x: Floats, scale: Floats, epsilon: float) -> Floats:
    """Return x over its root mean square, times the scale."""
    mean = np.einsum("...d,...d->...", x, x) / x.shape[-1]
    return np.asarray(x * (1.0 / np.sqrt(mean + np.float32(epsilon)))[..., None] * scale)


def silu(x: Floats) -> Floats:
    """Return x·sigmoid(x)."""
    with np.errstate(over="ignore"):  # exp of a large −x overflows to infinity, and the quotient is 0 as it should be
        return np.asarray(x / (1.0 + np.exp(-x)))


def gelu(x: Floats) -> Floats:
    """Return the tanh approximation of x·Φ(x): https://arxiv.org/abs/1606.08415"""
    inner = np.float32(math.sqrt(2.0 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(np.float32(0.5) * x * (1.0 + np.tanh(inner)))


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"silu": silu, "gelu": gelu}


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
