"""The rotation in plain torch operations, in the forms measured fastest on a CPU (benchmarks/NOTES.md).

Interleaved pairs are complex numbers already: one complex multiplication into the output. Half pairing takes three
in-place operations on blocks small enough for the cache. bfloat16 and float16 pass through a float32 scratch of that
size, so that the arithmetic is float32 throughout.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rope_viz.kernels import fixed_point

# Elements of x per block: 2 MiB of float32, divided among the threads, fits in their caches.
BLOCK = 1 << 19
# Table rows computed, and cached, at a time: 8 MiB for 64 pairs.
TABLE_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Turn:
    """The angles of a rotation: exact from `inv_freq`, or rows of a table; `conjugate` rotates backwards.

    inv_freq: (pairs,) or None; cos, sin: (rows, pairs) or None. Both are multiplied by `scale`.
    """

    inv_freq: Tensor | None
    cos: Tensor | None
    sin: Tensor | None
    interleaved: bool
    conjugate: bool
    scale: float

    @property
    def pairs(self) -> int:
        known = self.inv_freq if self.inv_freq is not None else self.cos
        assert known is not None
        return known.shape[-1]


def rotate_into(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn) -> None:
    """Write every x, rotated, to its out.

    x, out: (batch, tokens, heads, head_dim), any strides, out may be x; positions: int64 (batch, tokens) or (1,
    tokens). If there is a table, positions must be its rows; this is not checked.
    """
    tokens = xs[0].shape[1]
    step = max(1, TABLE_ROWS // max(1, positions.shape[0]))
    double = xs[0].dtype == torch.float64
    for start in range(0, tokens, step):
        span = slice(start, start + step)
        factors = _factors(positions[:, span], turn, double, xs[0].device)
        for x, out in zip(xs, outs, strict=True):
            if x.numel():
                _rotate_span(out[:, span], x[:, span], factors, turn)


def exact_table(increments: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Return (cos, sin), float64 (..., pairs), of int64 positions (...) and the phases per position (pairs,)."""
    angle = (positions[..., None] * increments).double().mul_(2.0 * math.pi * 2.0**-64)
    return torch.cos(angle), angle.sin_()


def _rotate_span(out: Tensor, x: Tensor, factors: tuple[Tensor, Tensor], turn: Turn) -> None:
    """Rotate a range of tokens with given factors, block by block if the form needs it."""
    width = 2 * turn.pairs
    in_place = out.data_ptr() == x.data_ptr()
    work = torch.float64 if x.dtype == torch.float64 else torch.float32
    same = x.dtype == work
    body, out_body = x[..., :width], out[..., :width]
    if turn.interleaved and same and _is_complex(body) and _is_complex(out_body):
        _multiply(out_body, body, factors[0])
    else:
        reads_x = same and not in_place and not (turn.interleaved and not _is_complex(body))
        writes_out = same and not (turn.interleaved and not _is_complex(out_body))
        temp = None if reads_x else _scratch(body, work)
        out_temp = None if writes_out else temp if turn.interleaved and temp is not None else _scratch(body, work)
        compute = _multiply if turn.interleaved else _three_operations
        for block, (rows, columns) in _blocks(body):
            source = block if temp is None else _fit(temp, block).copy_(block)
            target = out_body[rows, columns]
            result = target if out_temp is None else _fit(out_temp, block)
            compute(result, source, *(part[_rows(part, rows), columns] for part in factors))
            if out_temp is not None:
                target.copy_(result)
    if width < x.shape[-1] and not in_place:
        out[..., width:].copy_(x[..., width:])


def _multiply(out: Tensor, x: Tensor, turns: Tensor, _: Tensor | None = None) -> None:
    torch.mul(_complex(x), turns, out=_complex(out))


def _three_operations(out: Tensor, x: Tensor, cos_cos: Tensor, sin: Tensor) -> None:
    half = sin.shape[-1]
    torch.mul(x, cos_cos, out=out)
    out[..., :half].addcmul_(x[..., half:], sin, value=-1)
    out[..., half:].addcmul_(x[..., :half], sin)


def _factors(positions: Tensor, turn: Turn, double: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the factors in the shape that the form takes, (1 or batch, tokens, 1, ...)."""
    if turn.inv_freq is None:
        assert turn.cos is not None
        assert turn.sin is not None
        return _prepare(turn.cos[positions], turn.sin[positions], turn, double)
    frequency = turn.inv_freq.detach().cpu().double().contiguous()
    places = positions.cpu().contiguous()
    key = (places.numpy().tobytes(), tuple(places.shape), frequency.numpy().tobytes())
    make = _remembered if places.numel() <= TABLE_ROWS else _remembered.__wrapped__
    first, second = make(*key, turn.interleaved, turn.conjugate, turn.scale, double)
    return first.to(device), second.to(device)


@functools.lru_cache(maxsize=4)
def _remembered(
    places: bytes,
    shape: tuple[int, ...],
    frequency: bytes,
    interleaved: bool,
    conjugate: bool,
    scale: float,
    double: bool,
) -> tuple[Tensor, Tensor]:
    # Every layer of a model needs the same factors; computing them costs about half as much as using them once.
    with torch.inference_mode(False):
        inv_freq = torch.frombuffer(bytearray(frequency), dtype=torch.float64)
        increments = torch.from_numpy(fixed_point.increments(inv_freq.numpy()).copy())
        positions = torch.frombuffer(bytearray(places), dtype=torch.int64) if places else torch.zeros(0).long()
        cos, sin = exact_table(increments, positions.view(shape))
        return _prepare(cos, sin, Turn(inv_freq, None, None, interleaved, conjugate, scale), double)


def _prepare(cos: Tensor, sin: Tensor, turn: Turn, double: bool) -> tuple[Tensor, Tensor]:
    work = torch.float64 if double else torch.float32
    # A bf16 table is widened before it is scaled, a float64 one scaled before it is rounded.
    cos, sin = (part if part.dtype == torch.float64 else part.to(work) for part in (cos, sin))
    if turn.scale != 1.0:
        cos, sin = cos * turn.scale, sin * turn.scale
    cos, sin = cos.to(work)[:, :, None], sin.to(work)[:, :, None]
    if turn.conjugate:
        sin = -sin
    if turn.interleaved:
        return torch.complex(cos, sin), sin
    return torch.cat((cos, cos), dim=-1), sin


def _blocks(x: Tensor) -> Iterator[tuple[Tensor, tuple[slice, slice]]]:
    """Cut (batch, tokens, ...) into blocks of about BLOCK elements."""
    batch, tokens = x.shape[:2]
    row = max(1, x.shape[2] * x.shape[3])
    columns = max(1, min(tokens, BLOCK // row))
    rows = max(1, BLOCK // (row * columns)) if columns == tokens else 1
    for top in range(0, batch, rows):
        for left in range(0, tokens, columns):
            place = slice(top, top + rows), slice(left, left + columns)
            yield x[place], place


def _rows(part: Tensor, rows: slice) -> slice:
    return rows if part.shape[0] > 1 else slice(None)


def _scratch(x: Tensor, dtype: torch.dtype) -> Tensor:
    block, _ = next(_blocks(x))
    return torch.empty(block.numel(), dtype=dtype, device=x.device)


def _fit(temp: Tensor, block: Tensor) -> Tensor:
    return temp[: block.numel()].view(block.shape)


def _complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.view(*x.shape[:-1], x.shape[-1] // 2, 2))


def _is_complex(x: Tensor) -> bool:
    return x.stride(-1) == 1 and x.storage_offset() % 2 == 0 and all(stride % 2 == 0 for stride in x.stride()[:-1])
