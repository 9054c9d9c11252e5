"""Forward pass of the Llama family in PyTorch, for long texts: the graph of `numpy_model` with fused attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from rope_viz.real_models.band_change import BandChange
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.numpy_model import Floats, LayerWeights, TinyLm, checked_tokens, table
from rope_viz.tiny_lm.tasks import Tokens


@dataclass(eq=False)
class KeyValueCache:
    """Rotated keys and values of the first tokens of a text: per layer, two tensors of (key heads, tokens, d).

    `dropped` of the tokens are no longer there, but the following ones have the positions that they would have.
    """

    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    dropped: int = 0

    @property
    def tokens(self) -> int:
        return self.layers[0][0].shape[1] if self.layers else 0

    def cut(self, tokens: int) -> KeyValueCache:
        """Return the cache of the first `tokens` tokens only. Later tokens have not changed them."""
        return KeyValueCache([(k[:, :tokens], v[:, :tokens]) for k, v in self.layers])

    def drop(self, spans: Sequence[tuple[int, int]]) -> KeyValueCache:
        """Return the cache without the tokens from `first` up to `last` of each span, as if nothing had read them.

        That is an approximation: later tokens have read them.
        """
        stays = torch.ones(self.tokens, dtype=torch.bool)
        for first, last in spans:
            stays[first:last] = False
        layers = [(k[:, stays], v[:, stays]) for k, v in self.layers]
        return KeyValueCache(layers, self.dropped + int((~stays).sum()))

    def append(self, index: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of further tokens to a layer, and return all that it has now."""
        if index == len(self.layers):
            self.layers.append((k, v))
        else:
            old_k, old_v = self.layers[index]
            self.layers[index] = torch.cat([old_k, k], dim=1), torch.cat([old_v, v], dim=1)
        return self.layers[index]


class TorchLm:
    """The weights of a model as tensors on one device; those on the CPU share the memory of NumPy's arrays."""

    def __init__(self, model: TinyLm, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        def tensor(values: Floats | None) -> Tensor | None:
            return None if values is None else torch.from_numpy(values).to(device, dtype)

        self.model, self.device, self.dtype = model, device, dtype
        self.layers: list[dict[str, Any]] = [
            {each.name: tensor(getattr(layer, each.name)) for each in fields(LayerWeights)} for layer in model.layers
        ]
        self.embedding = torch.from_numpy(model.embedding).to(device, dtype)
        tied = model.unembedding is model.embedding
        self.unembedding = self.embedding if tied else torch.from_numpy(model.unembedding).to(device, dtype)
        self.norm = torch.from_numpy(model.norm).to(device, dtype)

    @torch.inference_mode()
    def hidden(
        self,
        tokens: ArrayLike,
        turn: Turning | None = None,
        see: Callable[[int, Tensor, Tensor], None] | None = None,
        cache: KeyValueCache | None = None,
        change: BandChange | None = None,
        below: Tensor | None = None,
    ) -> Tensor:
        """Return the final normalised state, (tokens, width); `see` is called with each layer's rotated q and k.

        `turn` None is the trained embedding. The tokens follow those of the `cache`, and are added to it. `change`
        changes some pairs; `below` is the input of its first layer from `enter_layer`, so that the layers below need
        not be computed again. Raises `ValueError` as `numpy_model.logits` does.
        """
        x = self.embed(tokens) if below is None else below
        first_layer = 0 if below is None or change is None else change.first_layer
        x = self.run_layers(x, range(first_layer, len(self.layers)), turn, see, cache, change)
        return self.normalise(x, self.norm)

    @torch.inference_mode()
    def enter_layer(self, tokens: ArrayLike, layer: int) -> Tensor:
        """Return the state that enters a layer, (tokens, width), with the trained embedding."""
        return self.run_layers(self.embed(tokens), range(layer))

    def embed(self, tokens: ArrayLike) -> Tensor:
        """Return the state that enters the first layer, (tokens, width). Raises `ValueError` for wrong tokens."""
        ids = torch.from_numpy(checked_tokens(self.model, tokens)).to(self.device)
        return self.embedding[ids] * self.model.embedding_scale

    def run_layers(
        self,
        x: Tensor,
        layers: range,
        turn: Turning | None = None,
        see: Callable[[int, Tensor, Tensor], None] | None = None,
        cache: KeyValueCache | None = None,
        change: BandChange | None = None,
    ) -> Tensor:
        """Return the state after some layers, from the one that enters them, (tokens, width).

        A `cache` has the keys and values of these layers only.
        """
        model = self.model
        seen, first = (cache.tokens, cache.tokens + cache.dropped) if cache else (0, 0)
        last = first + len(x)
        turn = turn or Turning.from_spec(model.spec, last)
        cos, sin = (torch.from_numpy(part[first:]).to(self.device) for part in table(model, turn, last))
        visible = torch.ones(len(x), seen + len(x), dtype=torch.bool, device=self.device).tril(seen) if seen else None
        for index in layers:
            w = self.layers[index]
            y = self.normalise(x, w["before_attention"])
            q, k, v = (
                functional.linear(y, w[name], w[f"{name}_bias"]).view(len(y), -1, model.head_dim).transpose(0, 1)
                for name in "qkv"
            )
            if w["q_norm"] is not None:
                q, k = self.normalise(q, w["q_norm"]), self.normalise(k, w["k_norm"])
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if change is not None:
                q, k = change.apply(index, q, k, turn.inv_freq, first=first)
                v = v if len(v) == len(k) else v.repeat_interleave(len(k) // len(v), dim=0)
            if see is not None:
                see(index, q, k)
            if cache is not None:
                k, v = cache.append(index - layers.start, k, v)
            mixed = functional.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=visible, is_causal=visible is None, enable_gqa=True
            )
            x = x + functional.linear(mixed[0].transpose(0, 1).flatten(1), w["o"])
            y = self.normalise(x, w["before_mlp"])
            gate = functional.linear(y, w["gate"])
            gate = functional.silu(gate) if model.activation == "silu" else functional.gelu(gate, approximate="tanh")
            x = x + functional.linear(gate * functional.linear(y, w["up"]), w["down"])
        return x

    @torch.inference_mode()
    def losses(
        self,
        tokens: ArrayLike,
        turn: Turning | None = None,
        rows: int = 256,
        change: BandChange | None = None,
        below: Tensor | None = None,
    ) -> Floats:
        """Return the loss in nats of every token but the first, float32 (tokens − 1,); `rows` are computed at once."""
        state = self.hidden(tokens, turn, change=change, below=below)
        targets = torch.as_tensor(tokens, dtype=torch.long, device=self.device)[1:]
        parts = [
            functional.cross_entropy(
                functional.linear(state[first : first + rows][: len(targets) - first], self.unembedding).float(),
                targets[first : first + rows],
                reduction="none",
            )
            for first in range(0, len(targets), rows)
        ]
        found: Floats = torch.cat(parts).cpu().numpy()
        return found

    @torch.inference_mode()
    def last_logits(self, tokens: ArrayLike, count: int, change: BandChange | None = None) -> Tensor:
        """Return the logits of the last `count` tokens, each given those before it, float32 (count, vocabulary)."""
        state = self.hidden(tokens, change=change)[-count - 1 : -1]
        return functional.linear(state, self.unembedding).float()

    @torch.inference_mode()
    def answer(
        self,
        reading: ArrayLike,
        spans: Sequence[tuple[int, int]],
        questions: Sequence[Tokens],
        count: int,
        change: BandChange | None = None,
        below: Sequence[Tensor | None] = (),
    ) -> list[Tensor]:
        """Return the logits of the last `count` tokens of each question, given those before, float32.

        The reading is read once, and every question follows it alone, without the tokens of the other questions'
        `spans` in it. `below` has the states from `enter_questions`.
        """
        cache, below = KeyValueCache(), below or [None] * (len(questions) + 1)
        self.hidden(reading, cache=cache, change=change, below=below[0])
        found = []
        for number, (ids, state) in enumerate(zip(questions, below[1:], strict=True)):
            own = cache.drop(other_spans(spans, number))
            x = self.hidden(ids, cache=own, change=change, below=state)[-count - 1 : -1]
            found.append(functional.linear(x, self.unembedding).float())
        return found

    @torch.inference_mode()
    def enter_questions(
        self, reading: ArrayLike, spans: Sequence[tuple[int, int]], questions: Sequence[Tokens], layer: int
    ) -> list[Tensor]:
        """Return the states that enter a layer, of the reading and of each question after it, (tokens, width)."""
        cache, below = KeyValueCache(), range(layer)
        found = [self.run_layers(self.embed(reading), below, cache=cache)]
        for number, ids in enumerate(questions):
            found.append(self.run_layers(self.embed(ids), below, cache=cache.drop(other_spans(spans, number))))
        return found

    @torch.inference_mode()
    def write_greedily(self, cache: KeyValueCache, token: int, count: int, turn: Turning | None = None) -> list[int]:
        """Return the `count` tokens that follow a token, each the model's first choice; all are added to the cache."""
        written = [token]
        for _ in range(count):
            state = self.hidden(written[-1:], turn, cache=cache)
            written.append(int((state[-1] @ self.unembedding.T).argmax()))
        return written[1:]

    def normalise(self, x: Tensor, scale: Tensor) -> Tensor:
        """Return x over its root mean square, times the scale."""
        return functional.rms_norm(x.float(), x.shape[-1:], None, self.model.epsilon).to(self.dtype) * scale


def other_spans(spans: Sequence[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """Return all spans but one."""
    return [span for index, span in enumerate(spans) if index != number]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate every pair (i, i + d/2) of (heads, tokens, d) in float32."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
