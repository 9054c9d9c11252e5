"""Other ways to rotate, for comparison: the eager forms that models use, torch.compile, and installed kernels.

Interfaces of the kernels: flash-attention 2.8.3, Liger 0.8.5, FLA 0.6, transformers 5.23.0
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from rope_viz.embedding.spec import Pairing

# The function to call, or the reason why it is unavailable.
Ways: TypeAlias = dict[str, Callable[[], list[Tensor]] | str]

# A dense matrix per token is head_dim times the rotated data: limit it to avoid swapping.
DENSE_BYTES = 1 << 26


def eager_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x cos + swapped(x) sin, x (batch, heads, tokens, head_dim), as in most model code."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def eager_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return the same for adjacent pairs, cos and sin (tokens, 1, pairs)."""
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)


def eager_complex(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate adjacent pairs as complex numbers, as in the first Llama code."""
    pairs = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


def eager_ways(xs: list[Tensor], table: tuple[Tensor, Tensor], pairing: Pairing, *, compiled: bool) -> Ways:
    """Return the eager forms of a pairing; table: float32 (cos, sin), (tokens, pairs)."""
    device, dtype = xs[0].device, xs[0].dtype
    cos, sin = (part.to(device) for part in table)
    ways: Ways = {}
    if pairing == "half":
        wide = [torch.cat((part, part), dim=-1).to(dtype) for part in (cos, sin)]

        def usual() -> list[Tensor]:
            return [eager_half(x.transpose(1, 2), *wide).transpose(1, 2) for x in xs]

        ways["eager rotate_half"] = usual
    else:
        narrow = [part[:, None].to(dtype) for part in (cos, sin)]
        turns = torch.complex(cos, sin)[:, None]

        def usual() -> list[Tensor]:
            return [eager_interleaved(x, *narrow) for x in xs]

        ways["eager interleaved"] = usual
        ways["complex"] = lambda: [eager_complex(x, turns) for x in xs]
    if compiled:
        fast = torch.compile(usual, dynamic=False)
        ways["torch.compile"] = lambda: list(fast())
    size = cos.shape[0] * xs[0].shape[-1] ** 2 * xs[0].element_size()
    if size <= DENSE_BYTES:
        matrices = rotation_matrices(cos, sin, pairing).to(dtype)
        ways["dense matrix"] = lambda: [torch.einsum("tij,bthj->bthi", matrices, x) for x in xs]
    else:
        ways["dense matrix"] = f"its matrices alone would take {size / 1e6:,.0f} MB"
    return ways


def rotation_matrices(cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
    """Return the rotation matrix of every token, (tokens, head_dim, head_dim)."""
    tokens, pairs = cos.shape
    pair = torch.arange(pairs, device=cos.device)
    first, second = (2 * pair, 2 * pair + 1) if pairing == "interleaved" else (pair, pair + pairs)
    result = cos.new_zeros(tokens, 2 * pairs, 2 * pairs)
    result[:, first, first] = result[:, second, second] = cos
    result[:, first, second], result[:, second, first] = -sin, sin
    return result


def peer_ways(xs: list[Tensor], table: tuple[Tensor, Tensor], pairing: Pairing) -> Ways:
    """Return the rotary kernels of other projects, if installed, called as documented."""
    cos, sin = (part.to(xs[0].device) for part in table)
    interleaved = pairing == "interleaved"
    ways: Ways = {}
    for name, module, on_gpu, make in (
        ("flash-attention", "flash_attn.ops.triton.rotary", True, _flash_attention),
        ("FLA", "fla.modules.rotary", True, _fla),
        ("Liger, in place", "liger_kernel.ops.rope", True, _liger),
        ("transformers", "transformers.models.llama.modeling_llama", False, _transformers),
    ):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            ways[name] = "not installed"
        elif on_gpu and not xs[0].is_cuda:
            ways[name] = "needs a GPU"
        elif interleaved and name in ("Liger, in place", "transformers"):
            ways[name] = "split halves only"
        else:
            ways[name] = _make_way(module, make, xs, cos, sin, interleaved)
    return ways


def _make_way(module: str, make: Any, xs: list[Tensor], cos: Tensor, sin: Tensor, interleaved: bool) -> Any:
    try:
        return make(importlib.import_module(module), xs, cos, sin, interleaved)
    except (ImportError, AttributeError) as error:
        return f"cannot be loaded: {error}"


def _flash_attention(module: Any, xs: list[Tensor], cos: Tensor, sin: Tensor, interleaved: bool) -> Any:
    cos, sin = cos.to(xs[0].dtype), sin.to(xs[0].dtype)
    return lambda: [module.apply_rotary(x, cos, sin, interleaved=interleaved) for x in xs]


def _fla(module: Any, xs: list[Tensor], cos: Tensor, sin: Tensor, interleaved: bool) -> Any:
    cos, sin = cos.to(xs[0].dtype), sin.to(xs[0].dtype)
    return lambda: [module.rotary_embedding(x, cos, sin, interleaved=interleaved) for x in xs]


def _liger(module: Any, xs: list[Tensor], cos: Tensor, sin: Tensor, interleaved: bool) -> Any:
    wide = [torch.cat((part, part), dim=-1)[None].to(xs[0].dtype) for part in (cos, sin)]
    # It rewrites its inputs, so it keeps rotating copies of them; the reported error is that of the first call.
    copies = [x.clone().transpose(1, 2) for x in (xs if len(xs) == 2 else [xs[0], xs[0][:, :, :1]])]

    def run() -> list[Tensor]:
        return [y.transpose(1, 2) for y in module.rope_forward(*copies, *wide)[: len(xs)]]

    return run


def _transformers(module: Any, xs: list[Tensor], cos: Tensor, sin: Tensor, interleaved: bool) -> Any:
    wide = [torch.cat((part, part), dim=-1)[None].to(xs[0].dtype) for part in (cos, sin)]
    first, last = xs[0].transpose(1, 2), xs[-1].transpose(1, 2)
    if len(xs) == 2:
        return lambda: [y.transpose(1, 2) for y in module.apply_rotary_pos_emb(first, last, *wide)]
    # The function takes q and k; a single head serves as a cheap k.
    return lambda: [module.apply_rotary_pos_emb(first, first[:, :1, :, :], *wide)[0].transpose(1, 2)]
