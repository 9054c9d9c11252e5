"""tiny_lm in PyTorch for training: the same Llama, with transformers' weight names. Loaded only to train.

Zhang and Sennrich, RMSNorm, https://arxiv.org/abs/1910.07467; Shazeer, SwiGLU, https://arxiv.org/abs/2002.05202
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.tasks import NOT_ASKED


class Attention(nn.Module):
    """Causal attention over heads with rotated pairs (i, i + d/2)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = functional.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class SwiGlu(nn.Module):
    """The MLP: down(silu(gate)·up)."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention, then the MLP, each after a norm and added to its input."""

    def __init__(self, width: int, heads: int, inner: int, epsilon: float) -> None:
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.mlp = SwiGlu(width, inner)
        self.input_layernorm, self.post_attention_layernorm = (nn.RMSNorm(width, eps=epsilon) for _ in range(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class Body(nn.Module):
    """Embedding, blocks and the last norm: transformers' `model`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        vocabulary, width, epsilon = config["vocab_size"], config["hidden_size"], config["rms_norm_eps"]
        heads, inner, layers = (
            config[key] for key in ("num_attention_heads", "intermediate_size", "num_hidden_layers")
        )
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([Block(width, heads, inner, epsilon) for _ in range(layers)])
        self.norm = nn.RMSNorm(width, eps=epsilon)

    def forward(self, tokens: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Map tokens (batch, tokens) to the normalised state (batch, tokens, width)."""
        x = self.embed_tokens(tokens)
        for block in self.layers:
            x = block(x, cos, sin)
        return self.norm(x)  # type: ignore[no-any-return]


class Network(nn.Module):
    """The language model, with the output weights tied to the embedding."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = Body(config)
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=config["initializer_range"])

    def forward(self, tokens: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return logits of every position, (batch, tokens, vocabulary)."""
        return self.model(tokens, cos, sin) @ self.model.embed_tokens.weight.T  # type: ignore[no-any-return]

    def loss(self, tokens: Tensor, targets: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return weighted cross-entropy over the positions with a target; only those are projected to logits."""
        asked = targets != NOT_ASKED
        logits = self.model(tokens, cos, sin)[asked] @ self.model.embed_tokens.weight.T
        return functional.cross_entropy(logits, targets[asked], reduction="none") @ weight[asked]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate every pair (i, i + d/2) of (…, tokens, d)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def table(turn: Turning, tokens: int) -> tuple[Tensor, Tensor]:
    """Return cos and sin of every position, float32 (tokens, pairs), including the attention factor."""
    angle = np.outer(np.arange(tokens), turn.inv_freq)
    cos, sin = (torch.from_numpy(turn.attention_factor * part).float() for part in (np.cos(angle), np.sin(angle)))
    return cos, sin
