"""Attention for transformers that computes only the rows that are compared, in blocks, without a mask of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

NAME = "rope_viz_rows"
BLOCK = 512


@dataclass(eq=False)
class Rows:
    """The rows of the last layer that are needed, None for all, and the number of layers."""

    needed: torch.Tensor | None = None
    layers: int = 0


@dataclass(frozen=True)
class LazyMask:
    """Which keys a query sees: transformers' own function of batch, head, query and key, and the reach in tokens."""

    allows: Callable[..., Any]
    reach: int | None


ROWS = Rows()


def make_mask(*_: Any, mask_function: Callable[..., Any], local_size: int | None = None, **__: Any) -> LazyMask:
    """Return the mask that transformers asks for, without computing it."""
    return LazyMask(mask_function, local_size)


def attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **options: Any
) -> tuple[Any, None]:
    """Return the output of attention, shape (batch, rows, heads, size); rows that are not needed stay zero.

    Raises `RuntimeError` where a model asks for something that is not computed here.
    """
    if not isinstance(attention_mask, LazyMask) or options.get("position_bias") is not None:
        raise RuntimeError("this attention is of another kind")
    groups = query.shape[1] // key.shape[1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    is_last = getattr(module, "layer_idx", None) == ROWS.layers - 1
    rows = ROWS.needed if is_last and ROWS.needed is not None else torch.arange(query.shape[2])
    out = query.new_zeros(*query.shape[:3], value.shape[-1])
    for first in range(0, len(rows), BLOCK):
        asked = rows[first : first + BLOCK]
        end = int(asked.max()) + 1
        begin = 0 if attention_mask.reach is None else max(0, int(asked.min()) - attention_mask.reach)
        places = torch.arange(begin, end)
        zero = torch.zeros((), dtype=torch.long)
        seen = attention_mask.allows(zero, zero, asked[:, None], places[None])
        keys, values = (part[:, :, begin:end].repeat_interleave(groups, 1) for part in (key, value))
        scores = query[:, :, asked] @ keys.mT * scale
        if options.get("softcap") is not None:
            scores = options["softcap"] * torch.tanh(scores / options["softcap"])
        scores = scores.masked_fill(~seen, -torch.inf)
        if options.get("s_aux") is not None:
            sinks = options["s_aux"].reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = torch.cat([scores, sinks], -1)
        shares = scores.softmax(-1)[..., : end - begin]
        out[:, :, asked] = shares @ values
    return out.transpose(1, 2).contiguous(), None


def register() -> None:
    """Tell transformers of this attention."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, make_mask)
