"""The rotation on a GPU: one memory-bound Triton kernel, one launch for q and k.

A program handles all heads (or a group of them) of one token (or several, if there are few heads). It issues all loads
before it computes, derives the token's angles from a 64-bit phase (fixed_point.py) or a table, and rotates q and k. It
copies the dimensions past the pairs, unless it rotates in place.

Expected and measured results of each version: benchmarks/NOTES.md.
"""

# ruff: noqa: N803 (capitals mark what is fixed at compile time)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from rope_viz.kernels import fixed_point, late_checks, tensor_cache, torch_ops
from rope_viz.kernels.torch_ops import Turn

# Elements of q and k that one program holds in registers: the heads of one token, or a share of them.
PROGRAM_ELEMENTS = 6144
# Bytes of a whole token that are enough for a program. Others share programs, of SHARED_BYTES.
PROGRAM_BYTES, SHARED_BYTES = 2048, 8192
# The most that a grid takes in its third dimension.
MOST_BATCHES = 65535
# Programs that keep a GPU busy: tokens share programs only where more than these are left.
BUSY_PROGRAMS = 128


def rotate_into(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool) -> None:
    """Run `torch_ops.rotate_into` in one launch, for one x or two on one device.

    Unless the positions are known to be `bounded` by the table, the kernel takes the nearest row of the table for one
    outside, and a later call raises `ValueError` (late_checks.py).
    """
    if not all(x.numel() for x in xs):
        outs, xs = [out for out in outs if out.numel()], [x for x in xs if x.numel()]
        if not xs:
            return
    if xs[0].dtype == torch.float64:
        positions, turn, bounded = _wide(positions, turn, xs[0].device, bounded)
    # The kernel needs contiguous head dimensions.
    sources = [x if x.stride(-1) == 1 else x.contiguous() for x in xs]
    targets = [
        out if out.stride(-1) == 1 else torch.empty_like(out, memory_format=torch.contiguous_format) for out in outs
    ]
    grid, arguments, constants = launch(targets, sources, positions, turn, bounded=bounded)
    if grid[2] > MOST_BATCHES:
        for start in range(0, grid[2], MOST_BATCHES):
            part = slice(start, start + MOST_BATCHES)
            places = positions[part] if len(positions) > 1 else positions
            rotate_into([out[part] for out in outs], [x[part] for x in xs], places, turn, bounded=bounded)
        return
    elsewhere = xs[0].is_cuda and xs[0].device.index != torch.cuda.current_device()
    with torch.cuda.device(xs[0].device) if elsewhere else contextlib.nullcontext():
        rotate_kernel[grid](*arguments, **constants)
    for target, out in zip(targets, outs, strict=True):
        if target is not out:
            out.copy_(target)
        elif not out.is_inference():
            # torch does not see the kernel write; otherwise a gradient that needs the old values would be wrong.
            torch.autograd.graph.increment_version(out)


def launch(
    outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool
) -> tuple[tuple[int, int, int], list[Any], dict[str, Any]]:
    """Return (grid, arguments, constants) of the kernel; separate so that tests can compile the same launch."""
    x, out, device = xs[0], outs[0], xs[0].device
    y, out_y = xs[-1], outs[-1]
    increments, cos, sin = None, turn.cos, turn.sin
    if cos is None or sin is None:
        assert turn.inv_freq is not None
        increments = _increments(turn.inv_freq, device)
    else:
        cos, sin = cos.to(device).contiguous(), sin.to(device).contiguous()
    checked = cos is not None and not bounded
    plan = make_plan(
        x.shape,
        x.stride(),
        out.stride(),
        y.shape if len(xs) > 1 else None,
        y.stride(),
        out_y.stride(),
        positions.stride() if len(positions) > 1 else (0, positions.stride(1)),
        x.dtype,
        _is_same(x, out) and _is_same(y, out_y),
        Kind(turn.pairs, turn.interleaved, turn.conjugate, increments is None, checked, turn.scale != 1.0),
    )
    flag, rows = (late_checks.row_flag(device), 0 if cos is None else len(cos)) if checked else (None, 0)
    positions = positions if positions.device == device else positions.to(device)
    pointers = [x, out, y, out_y, positions, increments, cos, sin, flag]
    return plan.grid, [*pointers, turn.scale, rows, *plan.numbers], plan.constants


@dataclass(frozen=True)
class Kind:
    """What a launch's code depends on besides shapes and strides."""

    pairs: int
    interleaved: bool
    conjugate: bool
    table: bool
    checked: bool
    scaled: bool


@dataclass(frozen=True)
class LaunchPlan:
    """All that a launch needs besides pointers and scale: `numbers` are arguments, `constants` compile-time values."""

    grid: tuple[int, int, int]
    numbers: list[int]
    constants: dict[str, Any]


@functools.lru_cache(maxsize=1024)
def make_plan(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    out_strides: tuple[int, ...],
    y_shape: tuple[int, ...] | None,
    y_strides: tuple[int, ...],
    out_y_strides: tuple[int, ...],
    place_strides: tuple[int, ...],
    dtype: torch.dtype,
    in_place: bool,
    kind: Kind,
) -> LaunchPlan:
    """Return the launch for tensors of these shapes and strides, and positions of these strides."""
    batch, tokens, x_heads, head_dim = x_shape
    heads = [x_heads, 0 if y_shape is None else y_shape[2]]
    strides = [each[:3] for each in (x_strides, out_strides, y_strides, out_y_strides)]
    places = place_strides
    if all(tokens == 1 or each[0] == tokens * each[1] for each in (*strides, places)) and batch * tokens < 2**31 - 64:
        # Batches that follow each other as tokens do are one.
        axis = 0 if tokens == 1 else 1
        strides = [(0, each[axis], each[2]) for each in strides]
        places, batch, tokens = (0, places[axis]), 1, batch * tokens
    width = 2 * kind.pairs
    tail = 0 if in_place else head_dim - width
    groups, blocks = _groups(heads, width + tail)
    elements = sum(blocks) * (width + tail)
    together = _tokens_together(elements * dtype.itemsize, batch, tokens, groups)
    even = tokens % together == 0
    numbers = [number for each in strides for number in each]
    unit = 8 if all(number % 8 == 0 for number in numbers) else 1
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
        "PAIRS": kind.pairs,
        "PAIRS_BLOCK": triton.next_power_of_2(kind.pairs),
        "TAIL": tail,
        "TAIL_BLOCK": triton.next_power_of_2(tail) if tail else 0,
        "INTERLEAVED": kind.interleaved,
        "CONJUGATE": kind.conjugate,
        "TABLE": kind.table,
        "CHECKED": kind.checked,
        "SCALED": kind.scaled,
        "WIDE": dtype == torch.float64,
        "NARROW": dtype.itemsize == 2,
        "HUGE": tokens > 2**31 - 64,
        "num_warps": _warps(elements * together, together, few_sines=tail > width, table=kind.table),
    }
    grid = (triton.cdiv(tokens, together), groups, batch)
    return LaunchPlan(grid, [tokens, *places, *(number // unit for number in numbers)], constants)


@triton.jit
def rotate_kernel(
    x_ptr, out_ptr, y_ptr, out_y_ptr,
    position_ptr, increment_ptr, cos_ptr, sin_ptr, flag_ptr, scale, rows, tokens, position_batch, position_token,
    x_batch, x_token, x_head, out_batch, out_token, out_head,
    y_batch, y_token, y_head, out_y_batch, out_y_token, out_y_head,
    UNIT: tl.constexpr, X_HEADS: tl.constexpr, Y_HEADS: tl.constexpr, X_BLOCK: tl.constexpr, Y_BLOCK: tl.constexpr,
    TOKENS: tl.constexpr, EVEN: tl.constexpr, X_EVEN: tl.constexpr, Y_EVEN: tl.constexpr,
    PAIRS: tl.constexpr, PAIRS_BLOCK: tl.constexpr, TAIL: tl.constexpr, TAIL_BLOCK: tl.constexpr,
    INTERLEAVED: tl.constexpr, CONJUGATE: tl.constexpr, TABLE: tl.constexpr, CHECKED: tl.constexpr,
    SCALED: tl.constexpr, WIDE: tl.constexpr, NARROW: tl.constexpr, HUGE: tl.constexpr,
):  # fmt: skip
    """Rotate all heads of TOKENS tokens of x, and of y unless Y_BLOCK is 0; strides count UNIT elements."""
    program = tl.program_id(0)
    group = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    if HUGE:
        program = program.to(tl.int64)
    token = program * TOKENS + tl.arange(0, TOKENS)
    here = token < tokens
    # Offsets always in 64 bits.
    token = token.to(tl.int64)
    place = position_ptr + batch * position_batch + token * position_token
    position = tl.load(place) if EVEN else tl.load(place, mask=here, other=0)

    x_at = (batch * x_batch + token * x_token) * UNIT
    x_first, x_second, x_rest = _read(
        x_ptr, x_at, x_head, here, group,
        UNIT, X_HEADS, X_BLOCK, X_EVEN, PAIRS, PAIRS_BLOCK, TAIL, TAIL_BLOCK, INTERLEAVED,
    )  # fmt: skip
    if Y_BLOCK:
        y_at = (batch * y_batch + token * y_token) * UNIT
        y_first, y_second, y_rest = _read(
            y_ptr, y_at, y_head, here, group,
            UNIT, Y_HEADS, Y_BLOCK, Y_EVEN, PAIRS, PAIRS_BLOCK, TAIL, TAIL_BLOCK, INTERLEAVED,
        )  # fmt: skip

    pair = tl.arange(0, PAIRS_BLOCK)
    if TABLE:
        if CHECKED:
            row = tl.minimum(tl.maximum(position, 0), rows - 1)
            outside = here & (row != position)
            # The host reads the count of rows first, and then the position.
            tl.store(flag_ptr + 1 + tl.zeros_like(token), position, mask=outside)
            tl.store(flag_ptr + tl.zeros_like(token), tl.zeros_like(token) + rows, mask=outside)
            position = row
        entry = position[:, None] * PAIRS + pair[None, :]
        if EVEN and PAIRS == PAIRS_BLOCK:
            cos = tl.load(cos_ptr + entry)
            sin = tl.load(sin_ptr + entry)
        else:
            known = here[:, None] & (pair[None, :] < PAIRS)
            cos = tl.load(cos_ptr + entry, mask=known, other=1.0)
            sin = tl.load(sin_ptr + entry, mask=known, other=0.0)
        if not WIDE:
            cos = cos.to(tl.float32)
            sin = sin.to(tl.float32)
    else:
        if PAIRS == PAIRS_BLOCK:
            increment = tl.load(increment_ptr + pair)
        else:
            increment = tl.load(increment_ptr + pair, mask=pair < PAIRS, other=0)
        phase = position[:, None] * increment[None, :]
        cos, sin = _short_cos_sin(phase) if NARROW else _cos_sin(phase)
    if SCALED:
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
def _short_cos_sin(phase):
    """Return cos and sin within 8e-7, in fewer instructions: those of half the angle, and then of the angle.

    For bfloat16 and float16, whose roundings are hundreds of times larger. Polynomials in t^2 of sin(pi t) / t and
    cos(pi t) for |t| <= 1/2 turn.
    """
    turn = (phase >> 32).to(tl.int32).to(tl.float32) * 2.3283064365386963e-10
    square = turn * turn
    sin = 0.07765940576791763 * square - 0.5982921719551086
    sin = sin * square + 2.5500776767730713
    sin = sin * square - 5.167710304260254
    sin = turn * (sin * square + 3.1415927410125732)
    cos = 0.2196968048810959 * square - 1.3318802118301392
    cos = cos * square + 4.058412075042725
    cos = cos * square - 4.934792995452881
    cos = cos * square + 0.9999999403953552
    twice = sin + sin
    return 1.0 - twice * sin, twice * cos


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


def _groups(heads: list[int], width: int) -> tuple[int, list[int]]:
    """Return the number of programs per token, and how many heads of each x a program gets."""
    least = max(1, triton.cdiv(sum(heads) * width, PROGRAM_ELEMENTS))

    def blocks(groups: int) -> list[int]:
        return [triton.next_power_of_2(triton.cdiv(count, groups)) if count else 0 for count in heads]

    # Blocks are powers of two: one more group may waste fewer heads.
    groups = min(range(least, least + 4), key=lambda count: count * sum(blocks(count)))
    return groups, blocks(groups)


def _tokens_together(size: int, batch: int, tokens: int, groups: int) -> int:
    """Return how many tokens a program takes, a power of two; size: bytes that it takes of one token.

    A small token, or a share of a token, alone would need barriers between warps to keep its accesses wide.
    """
    if size >= PROGRAM_BYTES and groups == 1:
        return 1
    wanted: int = triton.next_power_of_2(triton.cdiv(SHARED_BYTES, size))
    most = max(1, min(tokens, batch * tokens * groups // BUSY_PROGRAMS))
    return min(wanted, 1 << (most.bit_length() - 1))


def _warps(elements: int, together: int, *, few_sines: bool, table: bool) -> int:
    """Return the warps of a program, which has so many elements of `together` tokens.

    Each warp of a token repeats the token's sines. So a token has one warp, or two if it is large, and tokens that
    share a program have one for every 1024 elements. Where most of a head is copied, repeated sines cost little, and a
    table repeats none; but every thread should have 16 elements or more, for accesses of 16 bytes.
    """
    warps: int
    if together > 1:
        warps = min(4, triton.next_power_of_2(triton.cdiv(elements, 1024)))
    else:
        warps = 1 if elements <= 1536 else 2
    if few_sines:
        warps = min(8, warps * 4)
    elif table and elements >= 2048 * warps:
        warps *= 2
    return warps


def _wide(positions: Tensor, turn: Turn, device: torch.device, bounded: bool) -> tuple[Tensor, Turn, bool]:
    """Return the same turn as a float64 table, because the kernel's own angles and its scale are float32."""
    cos, sin = turn.cos, turn.sin
    if cos is None or sin is None:
        assert turn.inv_freq is not None
        positions = positions.to(device)
        table = torch_ops.exact_table(_increments(turn.inv_freq, device), positions)
        cos, sin = (part.flatten(0, 1) for part in table)
        positions, bounded = torch.arange(positions.numel(), device=device).view(positions.shape), True
    cos, sin = (part.to(device, torch.float64) * turn.scale for part in (cos, sin))
    return positions, Turn(None, cos, sin, turn.interleaved, turn.conjugate, 1.0), bounded


def _increments(inv_freq: Tensor, device: torch.device) -> Tensor:
    if inv_freq.is_cuda:
        inv_freq = tensor_cache.copy_to_host(inv_freq)
    return _increments_of(inv_freq.detach().double().numpy().tobytes(), device)


@functools.lru_cache(maxsize=64)
def _increments_of(frequency: bytes, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.from_numpy(fixed_point.increments(np.frombuffer(frequency)).copy()).to(device)


def _is_same(x: Tensor, out: Tensor) -> bool:
    return x is out or (x.data_ptr() == out.data_ptr() and x.stride() == out.stride())
