"""The rotation on a GPU: one memory-bound Triton kernel, one launch for q and k.

A program handles all heads (or a group of them) of one token (or a few, if there are few heads). It issues all loads
before it computes, derives the token's angles from a 64-bit phase (fixed_point.py) or a table, and rotates q and k; it
also copies the dimensions past the pairs.

Expected and measured results of each version: benchmarks/NOTES.md.
"""

# ruff: noqa: N803 (capitals mark what is fixed at compile time)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rope_viz.kernels import fixed_point, torch_ops
from rope_viz.kernels.torch_ops import Turn

# Elements of q and k that one program holds in registers: the heads of one token, or a share of them.
PROGRAM_ELEMENTS = 5120
# Bytes that a program should read at least; fewer keep too few requests in flight.
PROGRAM_BYTES = 8192


def rotate_into(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn) -> None:
    """Run `torch_ops.rotate_into` in one launch, for one x or two on one device."""
    outs, xs = [out for out in outs if out.numel()], [x for x in xs if x.numel()]
    if not xs:
        return
    if xs[0].dtype == torch.float64:
        positions, turn = _wide(positions, turn, xs[0].device)
    # The kernel needs contiguous head dimensions.
    sources = [x if x.stride(-1) == 1 else x.contiguous() for x in xs]
    targets = [
        out if out.stride(-1) == 1 else torch.empty_like(out, memory_format=torch.contiguous_format) for out in outs
    ]
    grid, arguments, constants = launch(targets, sources, positions, turn)
    device = torch.cuda.device(xs[0].device) if xs[0].is_cuda else contextlib.nullcontext()
    with device:
        rotate_kernel[grid](*arguments, **constants)
    for target, out in zip(targets, outs, strict=True):
        if target is not out:
            out.copy_(target)
        elif not out.is_inference():
            # torch does not see the kernel write; otherwise a gradient that needs the old values would be wrong.
            torch.autograd.graph.increment_version(out)


def launch(
    outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn
) -> tuple[tuple[int, int], list[Any], dict[str, Any]]:
    """Return (grid, arguments, constants) of the kernel; separate so that tests can compile the same launch."""
    x, out = xs[0], outs[0]
    y, out_y = (xs[1], outs[1]) if len(xs) > 1 else (x, out)
    heads = [x.shape[2], y.shape[2] if y is not x else 0]
    batch, tokens, _, head_dim = x.shape
    groups, blocks = _groups(heads, head_dim)
    row = sum(blocks) * head_dim * x.element_size()
    together = min(
        16, max(1, triton.next_power_of_2(triton.cdiv(PROGRAM_BYTES, row))), triton.next_power_of_2(batch * tokens)
    )
    strides = [stride for tensor in (x, out, y, out_y) for stride in tensor.stride()[:3]]
    unit = 8 if all(stride % 8 == 0 for stride in strides) else 1
    table = turn.inv_freq is None
    if table:
        assert turn.cos is not None
        assert turn.sin is not None
        angles = [None, turn.cos.to(x.device).contiguous(), turn.sin.to(x.device).contiguous()]
    else:
        assert turn.inv_freq is not None
        angles = [_increments(_frequency_bytes(turn.inv_freq), x.device), None, None]
    positions = positions.to(x.device).contiguous()
    arguments = [x, out, y, out_y, positions, *angles, turn.scale, batch * tokens, tokens]
    arguments += [stride // unit for stride in strides]
    tail = head_dim - 2 * turn.pairs
    even = batch * tokens % together == 0
    constants = {
        "UNIT": unit,
        "X_HEADS": heads[0],
        "Y_HEADS": heads[1],
        "X_BLOCK": blocks[0],
        "Y_BLOCK": blocks[1],
        "TOKENS": together,
        "EVEN": even,
        "X_EVEN": even and blocks[0] * groups == heads[0],
        "Y_EVEN": even and blocks[1] * groups == heads[1],
        "SHARED": positions.shape[0] == 1,
        "PAIRS": turn.pairs,
        "PAIRS_BLOCK": triton.next_power_of_2(turn.pairs),
        "TAIL": tail,
        "TAIL_BLOCK": triton.next_power_of_2(tail) if tail else 0,
        "INTERLEAVED": turn.interleaved,
        "CONJUGATE": turn.conjugate,
        "TABLE": table,
        "WIDE": x.dtype == torch.float64,
        "HUGE": batch * tokens > 2**31 - 16,
        # Each extra warp repeats the same sines; a table has none to repeat.
        "num_warps": max(_warps(together * sum(blocks) * head_dim), 4 if table and turn.pairs >= 32 else 2),
    }
    return (triton.cdiv(batch * tokens, together), groups), arguments, constants


@triton.jit
def rotate_kernel(
    x_ptr, out_ptr, y_ptr, out_y_ptr,
    position_ptr, increment_ptr, cos_ptr, sin_ptr, scale, total, tokens,
    x_batch, x_token, x_head, out_batch, out_token, out_head,
    y_batch, y_token, y_head, out_y_batch, out_y_token, out_y_head,
    UNIT: tl.constexpr, X_HEADS: tl.constexpr, Y_HEADS: tl.constexpr, X_BLOCK: tl.constexpr, Y_BLOCK: tl.constexpr,
    TOKENS: tl.constexpr, EVEN: tl.constexpr, X_EVEN: tl.constexpr, Y_EVEN: tl.constexpr, SHARED: tl.constexpr,
    PAIRS: tl.constexpr, PAIRS_BLOCK: tl.constexpr, TAIL: tl.constexpr, TAIL_BLOCK: tl.constexpr,
    INTERLEAVED: tl.constexpr, CONJUGATE: tl.constexpr, TABLE: tl.constexpr, WIDE: tl.constexpr, HUGE: tl.constexpr,
):  # fmt: skip
    """Rotate all heads of TOKENS tokens of x, and of y unless Y_BLOCK is 0; strides count UNIT elements."""
    flat = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    if HUGE:
        flat = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    here = flat < total
    # Counts in 32 bits where they fit, for the division; offsets always in 64 bits.
    batch = (flat // tokens).to(tl.int64)
    token = (flat % tokens).to(tl.int64)
    place = token if SHARED else flat.to(tl.int64)
    position = tl.load(position_ptr + place) if EVEN else tl.load(position_ptr + place, mask=here, other=0)
    group = tl.program_id(1)

    x_at = (batch * x_batch + token * x_token) * UNIT
    x_first, x_second, x_rest = _read(
        x_ptr,
        x_at,
        x_head,
        here,
        group,
        UNIT,
        X_HEADS,
        X_BLOCK,
        X_EVEN,
        PAIRS,
        PAIRS_BLOCK,
        TAIL,
        TAIL_BLOCK,
        INTERLEAVED,
    )
    if Y_BLOCK:
        y_at = (batch * y_batch + token * y_token) * UNIT
        y_first, y_second, y_rest = _read(
            y_ptr,
            y_at,
            y_head,
            here,
            group,
            UNIT,
            Y_HEADS,
            Y_BLOCK,
            Y_EVEN,
            PAIRS,
            PAIRS_BLOCK,
            TAIL,
            TAIL_BLOCK,
            INTERLEAVED,
        )

    pair = tl.arange(0, PAIRS_BLOCK)
    if TABLE:
        row = position[:, None] * PAIRS + pair[None, :]
        if EVEN and PAIRS == PAIRS_BLOCK:
            cos = tl.load(cos_ptr + row)
            sin = tl.load(sin_ptr + row)
        else:
            known = here[:, None] & (pair[None, :] < PAIRS)
            cos = tl.load(cos_ptr + row, mask=known, other=1.0)
            sin = tl.load(sin_ptr + row, mask=known, other=0.0)
        if not WIDE:
            cos = cos.to(tl.float32)
            sin = sin.to(tl.float32)
    else:
        if PAIRS == PAIRS_BLOCK:
            increment = tl.load(increment_ptr + pair)
        else:
            increment = tl.load(increment_ptr + pair, mask=pair < PAIRS, other=0)
        cos, sin = _cos_sin(position[:, None] * increment[None, :])
    cos = cos * scale
    sin = sin * scale
    if CONJUGATE:
        sin = -sin
    cos = cos[:, None, :]
    sin = sin[:, None, :]

    out_at = (batch * out_batch + token * out_token) * UNIT
    _write(
        out_ptr, out_at, out_head, x_first, x_second, x_rest, cos, sin, here, group,
        UNIT, X_HEADS, X_BLOCK, X_EVEN, PAIRS, PAIRS_BLOCK, TAIL, TAIL_BLOCK, INTERLEAVED, TOKENS, WIDE,
    )  # fmt: skip
    if Y_BLOCK:
        out_y_at = (batch * out_y_batch + token * out_y_token) * UNIT
        _write(
            out_y_ptr, out_y_at, out_y_head, y_first, y_second, y_rest, cos, sin, here, group,
            UNIT, Y_HEADS, Y_BLOCK, Y_EVEN, PAIRS, PAIRS_BLOCK, TAIL, TAIL_BLOCK, INTERLEAVED, TOKENS, WIDE,
        )  # fmt: skip


@triton.jit
def _cos_sin(phase):
    """Return cos and sin by the nearest quarter turn and the polynomials of fixed_point.py for the rest."""
    high = (phase >> 32).to(tl.int32)
    quadrant = (high + (1 << 29)) >> 30
    turn = (high - (quadrant << 30)).to(tl.float32) * 2.3283064365386963e-10
    square = turn * turn
    sin = -75.40184020996094 * square + 81.59254455566406
    sin = sin * square - 41.3416633605957
    sin = turn * (sin * square + 6.2831854820251465)
    cos = 59.22028732299805 * square - 85.4428482055664
    cos = cos * square + 64.93931579589844
    cos = cos * square - 19.739208221435547
    cos = cos * square + 1.0
    odd = (quadrant & 1) != 0
    swapped = tl.where(odd, sin, cos)
    sin = tl.where(odd, cos, sin)
    return tl.where(((quadrant + 1) & 2) != 0, -swapped, swapped), tl.where((quadrant & 2) != 0, -sin, sin)


@triton.jit
def _read(
    ptr, at, head_stride, here, group,
    UNIT: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, PAIRS: tl.constexpr,
    PAIRS_BLOCK: tl.constexpr, TAIL: tl.constexpr, TAIL_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr,
):  # fmt: skip
    """Return (first, second) of every pair as (tokens, heads, pairs), and the dimensions past them."""
    row, known = _row(ptr, at, head_stride, here, group, UNIT, HEADS, BLOCK, EVEN)
    if INTERLEAVED:
        both = _load(row, known, 2 * PAIRS, 2 * PAIRS_BLOCK, 0, EVEN)
        first, second = tl.split(tl.reshape(both, (both.shape[0], BLOCK, PAIRS_BLOCK, 2)))
    else:
        first = _load(row, known, PAIRS, PAIRS_BLOCK, 0, EVEN)
        second = _load(row, known, PAIRS, PAIRS_BLOCK, PAIRS, EVEN)
    rest = first
    if TAIL:
        rest = _load(row, known, TAIL, TAIL_BLOCK, 2 * PAIRS, EVEN)
    return first, second, rest


@triton.jit
def _write(
    ptr, at, head_stride, first, second, rest, cos, sin, here, group,
    UNIT: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, PAIRS: tl.constexpr,
    PAIRS_BLOCK: tl.constexpr, TAIL: tl.constexpr, TAIL_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr,
    TOKENS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row, known = _row(ptr, at, head_stride, here, group, UNIT, HEADS, BLOCK, EVEN)
    kind = first.dtype
    if not WIDE:
        first = first.to(tl.float32)
        second = second.to(tl.float32)
    turned = (first * cos - second * sin).to(kind)
    other = (first * sin + second * cos).to(kind)
    if INTERLEAVED:
        both = tl.reshape(tl.join(turned, other), (TOKENS, BLOCK, 2 * PAIRS_BLOCK))
        _store(row, known, both, 2 * PAIRS, 2 * PAIRS_BLOCK, 0, EVEN)
    else:
        _store(row, known, turned, PAIRS, PAIRS_BLOCK, 0, EVEN)
        _store(row, known, other, PAIRS, PAIRS_BLOCK, PAIRS, EVEN)
    if TAIL:
        _store(row, known, rest, TAIL, TAIL_BLOCK, 2 * PAIRS, EVEN)


@triton.jit
def _row(
    ptr, at, head_stride, here, group, UNIT: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr
):
    """Return the start of every head of every token, (tokens, heads, 1), and whether that head exists."""
    head = group * BLOCK + tl.arange(0, BLOCK)
    row = ptr + at[:, None, None] + head[None, :, None].to(tl.int64) * (head_stride * UNIT)
    return row, here[:, None, None] & (head < HEADS)[None, :, None]


@triton.jit
def _load(row, known, COUNT: tl.constexpr, WIDTH: tl.constexpr, START: tl.constexpr, EVEN: tl.constexpr):
    column = tl.arange(0, WIDTH)[None, None, :]
    # A mask that is always true still costs, so only partial blocks get one.
    if COUNT == WIDTH and EVEN:
        return tl.load(row + (START + column))
    return tl.load(row + (START + column), mask=known & (column < COUNT), other=0.0)


@triton.jit
def _store(row, known, value, COUNT: tl.constexpr, WIDTH: tl.constexpr, START: tl.constexpr, EVEN: tl.constexpr):
    column = tl.arange(0, WIDTH)[None, None, :]
    if COUNT == WIDTH and EVEN:
        tl.store(row + (START + column), value)
    else:
        tl.store(row + (START + column), value, mask=known & (column < COUNT))


def _groups(heads: list[int], head_dim: int) -> tuple[int, list[int]]:
    """Return the number of programs per token, and how many heads of each x a program gets."""
    least = max(1, triton.cdiv(sum(heads) * head_dim, PROGRAM_ELEMENTS))

    def blocks(groups: int) -> list[int]:
        return [triton.next_power_of_2(triton.cdiv(count, groups)) if count else 0 for count in heads]

    # Blocks are powers of two: one more group may waste fewer heads.
    groups = min(range(least, least + 4), key=lambda count: count * sum(blocks(count)))
    return groups, blocks(groups)


def _warps(elements: int) -> int:
    return min(8, max(2, int(triton.next_power_of_2(triton.cdiv(elements, 3072)))))


def _wide(positions: Tensor, turn: Turn, device: torch.device) -> tuple[Tensor, Turn]:
    """Return the same turn as a float64 table, because the kernel's own angles and its scale are float32."""
    cos, sin = turn.cos, turn.sin
    if cos is None or sin is None:
        assert turn.inv_freq is not None
        cos, sin = (part.flatten(0, 1) for part in torch_ops.exact_table(turn.inv_freq, positions))
        positions = torch.arange(positions.numel(), device=device).view(positions.shape)
    cos, sin = (part.to(device, torch.float64) * turn.scale for part in (cos, sin))
    return positions, Turn(None, cos, sin, turn.interleaved, turn.conjugate, 1.0)


@functools.lru_cache(maxsize=64)
def _increments(frequency: bytes, device: torch.device) -> Tensor:
    inv_freq = torch.frombuffer(bytearray(frequency), dtype=torch.float64).numpy()
    return torch.from_numpy(fixed_point.increments(inv_freq).copy()).to(device)


def _frequency_bytes(inv_freq: Tensor) -> bytes:
    return inv_freq.detach().cpu().double().contiguous().numpy().tobytes()
