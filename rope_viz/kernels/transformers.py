"""Drop-in for transformers' `apply_rotary_pos_emb`, with the same arguments; also for CPU tensors.

Interface: transformers 5.23.0, `models/llama/modeling_llama.py`

The arithmetic is float32 for bfloat16 and float16 tensors. The original multiplies in those dtypes, so the results
differ by its roundings. A GPU waits once for new cos and sin, whose values decide the way.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rope_viz.kernels import tensor_cache, torch_library
from rope_viz.kernels.torch_ops import Turn

__all__ = ["apply_rotary_pos_emb"]


def apply_rotary_pos_emb(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    """Return (q, k) rotated in half pairing; differentiable.

    q, k: (batch, heads, tokens, head_dim) with unsqueeze_dim=1, (batch, tokens, heads, head_dim) with 2. cos, sin:
    (batch or 1, tokens, rotary_dim), every pair's value twice, as in the models' rotary modules; if rotary_dim is less
    than head_dim the rest is copied. Learned or unpaired cos and sin take a plain, slower path; unpaired ones raise
    `ValueError` under torch.compile. As in the original, results have the dtype that q and cos promote to.
    """
    if unsqueeze_dim not in (1, 2):
        raise ValueError(f"unsqueeze_dim must be 1 or 2, got {unsqueeze_dim}")
    if cos.shape != sin.shape or cos.dim() != 3 or cos.shape[-1] % 2:
        raise ValueError(f"cos and sin must both have shape (batch, tokens, rotary_dim), got {tuple(cos.shape)}")
    width = cos.shape[-1]
    q, k = (x.to(torch.promote_types(x.dtype, cos.dtype)) for x in (q, k))
    for x in (q, k):
        if x.dim() != 4 or x.shape[-1] < width:
            raise ValueError(f"q and k must have 4 dimensions, the last at least {width}, got {tuple(x.shape)}")
    batch_first = [x.transpose(1, 2) if unsqueeze_dim == 1 else x for x in (q, k)]
    for x in batch_first:
        if cos.shape[1] != x.shape[1] or cos.shape[0] not in (1, x.shape[0]):
            raise ValueError(f"cos {tuple(cos.shape)} must fit batch {x.shape[0]} and {x.shape[1]} tokens")
    learned = cos.requires_grad or sin.requires_grad or torch_library.has_tangent(cos, sin)
    if learned or not (_is_paired(cos) and _is_paired(sin)):
        turned = [_rotate_plainly(x, cos, sin) for x in batch_first]
    else:
        rows = torch.arange(cos.shape[0] * cos.shape[1], device=cos.device).view(cos.shape[:2])
        turn = Turn(None, _one_per_pair(cos), _one_per_pair(sin), False, False, 1.0)
        # One launch for both, but separate graph nodes, because only one may be differentiated.
        with_grad = torch.is_grad_enabled() and any(x.requires_grad for x in batch_first)
        groups = [[x] for x in batch_first] if with_grad else [batch_first]
        turned = [y for group in groups for y in torch_library.rotate_copies(group, rows, turn, bounded=True)]
    q, k = (x.transpose(1, 2) if unsqueeze_dim == 1 else x for x in turned)
    return q, k


@tensor_cache.cache_last
def _looks_paired(table: Tensor) -> bool:
    first, second = table.chunk(2, dim=-1)
    return torch.equal(first, second)


def _is_paired(table: Tensor) -> bool:
    # A compiler cannot look at values: there the `one_per_pair` operator checks them.
    return True if torch.compiler.is_compiling() else _looks_paired(table)


def _one_per_pair(table: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        return torch_library.one_per_pair(table.detach(), interleaved=False).flatten(0, 1)
    return table[..., : table.shape[-1] // 2].flatten(0, 1)


def _rotate_plainly(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    width = cos.shape[-1]
    work = torch.promote_types(x.dtype, torch.float32)
    cos, sin, body = cos[:, :, None].to(work), sin[:, :, None].to(work), x[..., :width].to(work)
    first, second = body.chunk(2, dim=-1)
    turned = body * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((turned.to(x.dtype), x[..., width:]), dim=-1)
