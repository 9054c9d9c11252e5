"""Throughput of rotations on this machine: our kernels, the usual ways and installed peers, compared with a copy.

A rotation has to read and write every byte once, as a copy does. So throughput is 2 * size of the tensors per second,
whatever a way really moves, and a fraction of the copy measured in the same run.

On a GPU the time is that of the GPU: a kernel that only spins comes first, while the host prepares the launches. The
host's time per call is a number of its own. Every round takes other tensors, more than the cache holds.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing
from rope_viz.kernels import reference, rotate, rotate_qk
from rope_viz.kernels.tables import float32_table

# run(xs, outs): rotates every x, into outs if it can.
Run: TypeAlias = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class RotationWay:
    """One way to rotate. `gradient` rotates back, where torch cannot derive it; `in_place`: it rotates the outs."""

    run: Run
    gradient: Run | None = None
    in_place: bool = False
    differentiable: bool = True


# The way, or the reason why it is unavailable.
Ways: TypeAlias = dict[str, RotationWay | str]

# A dense matrix per token is head_dim times the rotated data: limit it to avoid swapping.
DENSE_BYTES = 1 << 26


# Other ways to rotate, for comparison: the eager forms that models use, torch.compile, and installed kernels, with
# the interfaces of flash-attention 2.8.3, Liger 0.8.5, FLA 0.6 and transformers 5.23.0.
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


def eager_ways(workload: Workload, table: tuple[Tensor, Tensor], *, compiled: bool) -> Ways:
    """Return the eager forms of a pairing; table: float32 (cos, sin), (tokens, pairs)."""
    dtype, width = getattr(torch, workload.dtype), 2 * workload.pairs
    cos, sin = (part.to(workload.device) for part in table)
    ways: Ways = {}

    def rotate_part(rotate_all: Callable[[Tensor], Tensor]) -> Run:
        if width == workload.head_dim:
            return lambda xs, outs: [rotate_all(x) for x in xs]
        return lambda xs, outs: [torch.cat((rotate_all(x[..., :width]), x[..., width:]), dim=-1) for x in xs]

    if workload.pairing == "half":
        wide = [torch.cat((part, part), dim=-1).to(dtype) for part in (cos, sin)]
        usual = rotate_part(lambda x: eager_half(x.transpose(1, 2), *wide).transpose(1, 2))
        ways["eager rotate_half"] = RotationWay(usual)
    else:
        narrow = [part[:, None].to(dtype) for part in (cos, sin)]
        turns = torch.complex(cos, sin)[:, None]
        usual = rotate_part(lambda x: eager_interleaved(x, *narrow))
        ways["eager interleaved"] = RotationWay(usual)
        ways["complex"] = RotationWay(rotate_part(lambda x: eager_complex(x, turns)))
    if compiled:
        # Programs of earlier shapes count against the limit of recompilations; beyond it the call runs eagerly.
        torch.compiler.reset()
        ways["torch.compile"] = RotationWay(torch.compile(usual, dynamic=False))
    size = cos.shape[0] * width**2 * dtype.itemsize
    if size <= DENSE_BYTES:
        matrices = rotation_matrices(cos, sin, workload.pairing).to(dtype)
        ways["dense matrix"] = RotationWay(rotate_part(lambda x: torch.einsum("tij,bthj->bthi", matrices, x)))
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


def peer_ways(workload: Workload, table: tuple[Tensor, Tensor]) -> Ways:
    """Return the rotary kernels of other projects, if installed, called as documented."""
    cos, sin = (part.to(workload.device) for part in table)
    low = [part.to(getattr(torch, workload.dtype)) for part in (cos, sin)]
    interleaved = workload.pairing == "interleaved"
    ways: Ways = {}
    for name, module, on_gpu, make, given in (
        ("flash-attention, float32 table", "flash_attn.ops.triton.rotary", True, _flash_attention, [cos, sin]),
        ("flash-attention", "flash_attn.ops.triton.rotary", True, _flash_attention, low),
        ("FLA", "fla.modules.rotary", True, _fla, low),
        ("Liger, in place", "liger_kernel.ops.rope", True, _liger, low),
        ("transformers", "transformers.models.llama.modeling_llama", False, _transformers, low),
    ):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            ways[name] = "not installed"
        elif on_gpu and not workload.device.startswith("cuda"):
            ways[name] = "needs a GPU"
        elif interleaved and name in ("Liger, in place", "transformers"):
            ways[name] = "split halves only"
        elif 2 * workload.pairs < workload.head_dim and make is not _flash_attention:
            ways[name] = "rotates whole heads only"
        elif workload.k_heads == 0 and name == "Liger, in place":
            ways[name] = "takes q and k only"
        else:
            ways[name] = _make_way(module, make, given, interleaved)
    return ways


def _make_way(module: str, make: Any, table: list[Tensor], interleaved: bool) -> RotationWay | str:
    try:
        return make(importlib.import_module(module), *table, interleaved)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        return f"cannot be loaded: {error}"


def _flash_attention(module: Any, cos: Tensor, sin: Tensor, interleaved: bool) -> RotationWay:
    def rotate_all(xs: list[Tensor], outs: list[Tensor], conjugate: bool = False) -> list[Tensor]:
        return [module.apply_rotary(x, cos, sin, interleaved=interleaved, conjugate=conjugate) for x in xs]

    return RotationWay(rotate_all, gradient=lambda xs, outs: rotate_all(xs, outs, True))


def _fla(module: Any, cos: Tensor, sin: Tensor, interleaved: bool) -> RotationWay:
    return RotationWay(lambda xs, outs: [module.rotary_embedding(x, cos, sin, interleaved=interleaved) for x in xs])


def _liger(module: Any, cos: Tensor, sin: Tensor, interleaved: bool) -> RotationWay:
    wide = [torch.cat((part, part), dim=-1)[None] for part in (cos, sin)]

    def call(function: Any, outs: list[Tensor]) -> list[Tensor]:
        return [y.transpose(1, 2) for y in function(*(out.transpose(1, 2) for out in outs), *wide)[:2]]

    return RotationWay(
        lambda xs, outs: call(module.rope_forward, outs),
        gradient=lambda xs, outs: call(module.rope_backward, outs),
        in_place=True,
    )


def _transformers(module: Any, cos: Tensor, sin: Tensor, interleaved: bool) -> RotationWay:
    wide = [torch.cat((part, part), dim=-1)[None] for part in (cos, sin)]

    def rotate_all(xs: list[Tensor], outs: list[Tensor]) -> list[Tensor]:
        first, last = xs[0].transpose(1, 2), xs[-1].transpose(1, 2)
        # The function takes q and k; a single head serves as a cheap k.
        last = last if len(xs) == 2 else last[:, :1]
        return [y.transpose(1, 2) for y in module.apply_rotary_pos_emb(first, last, *wide)][: len(xs)]

    return RotationWay(rotate_all)


# Tokens and heads for the error measurement, because float64 is slow.
SAMPLE_TOKENS, SAMPLE_HEADS = 64, 2


@dataclass(frozen=True)
class Workload:
    """The tensors to rotate: q (batch, tokens, heads, head_dim) and k with k_heads, from position `start` on.

    rotary_dim: dimensions of a head that rotate; 0 is all. backward: measure the gradient instead.
    """

    batch: int = 1
    tokens: int = 4096
    heads: int = 32
    head_dim: int = 128
    k_heads: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    pairing: Pairing = "half"
    base: float = 10_000.0
    start: int = 0
    rotary_dim: int = 0
    backward: bool = False

    @property
    def pairs(self) -> int:
        return (self.rotary_dim or self.head_dim) // 2

    @property
    def inv_freq(self) -> FloatArray:
        """Return radians per position, (pairs,)."""
        return np.asarray(self.base ** (-np.arange(self.pairs) / self.pairs))

    @property
    def bytes_moved(self) -> int:
        """Return the bytes of q and k, counted once in and once out."""
        size = torch.finfo(getattr(torch, self.dtype)).bits // 8
        return 2 * size * self.batch * self.tokens * (self.heads + self.k_heads) * self.head_dim

    def tensors(self) -> list[Tensor]:
        """Return random q, and k if k_heads is not 0."""
        generator = torch.Generator(self.device).manual_seed(0)
        shapes = [(self.batch, self.tokens, heads, self.head_dim) for heads in (self.heads, self.k_heads) if heads]
        dtype = getattr(torch, self.dtype)
        return [torch.randn(shape, generator=generator, device=self.device).to(dtype) for shape in shapes]


@dataclass
class Measurement:
    """One way to rotate and its timings so far; `note` is the reason if it did not run."""

    name: str
    workload: Workload
    seconds: list[float] = field(default_factory=list)
    copy_seconds: list[float] = field(default_factory=list)
    host_seconds: list[float] = field(default_factory=list)
    """The host's time of each call on a GPU."""
    error: float | None = None
    relative_error: float | None = None
    """The root mean square of the error over that of the result."""
    note: str = ""

    @property
    def median(self) -> float:
        """Return the median seconds per call, NaN before the first."""
        return statistics.median(self.seconds) if self.seconds else float("nan")

    @property
    def bytes_per_second(self) -> float:
        return self.workload.bytes_moved / self.median

    @property
    def fraction_of_copy(self) -> float:
        """Return throughput relative to a copy of the same bytes in the same rounds; 1 is as fast as the copy."""
        return statistics.median(self.copy_seconds) / self.median if self.copy_seconds else float("nan")


def measure(
    workload: Workload, *, rounds: int = 9, only: tuple[str, ...] = (), compiled: bool = True, peers: bool = True
) -> Iterator[tuple[str, float, Measurement]]:
    """Yield (name, fraction done, its measurement so far) as the ways take turns, `rounds` times each.

    only: names to measure, in addition to the copy. compiled: also torch.compile, which takes seconds to start. A way
    yields the same Measurement object every time; the last yield of a run has fraction 1. A way is first yielded before
    its first call, which may be slow; one that cannot run here has the reason in `note`.
    """
    sets = [(xs, [torch.empty_like(x) for x in xs]) for xs in _make_sets(workload)]
    table = _float32_table(workload)
    ways: Ways = {"copy": RotationWay(_copy), **_make_our_ways(workload)}
    ways |= eager_ways(workload, table, compiled=compiled)
    if peers:
        ways |= peer_ways(workload, table)
    ways = {name: way for name, way in ways.items() if not only or name in only or name == "copy"}
    results = {name: Measurement(name, workload) for name in ways}
    running: dict[str, list[Callable[[], list[Tensor]]]] = {}
    total = len(ways) * (rounds + 1)
    for step, (name, way) in enumerate(ways.items(), 1):
        if isinstance(way, str):
            results[name].note = way
        elif workload.backward and name != "copy" and not (way.gradient or way.differentiable):
            results[name].note = "has no gradient"
        else:
            yield name, (step - 1) / total, results[name]
            try:
                calls = [_bind(way, xs, outs, workload.backward and name != "copy") for xs, outs in sets]
                results[name].note = _first_call(results[name], way, calls[0], *sets[0])
            # No compiler, no driver: limits of this machine. AssertionError: a peer's check of its arguments.
            except (RuntimeError, ImportError, OSError, AssertionError) as error:
                lines = str(error).splitlines() or [type(error).__name__]
                results[name].note = f"does not run here: {lines[0][:120]}"
            if not results[name].note:
                running[name] = calls
        yield name, step / total, results[name]
    for turn in range(rounds):
        for place, (name, calls) in enumerate(running.items(), 1):
            _time(calls[turn % len(calls)], results[name])
            results[name].copy_seconds = results["copy"].seconds
            done = (len(ways) + turn * len(running) + place) / (len(ways) + rounds * len(running))
            yield name, done, results[name]


def agreement(
    *, tokens: int = 64, heads: int = 4, head_dim: int = 128, start: int = 0
) -> Iterator[tuple[Pairing, str, str, float, float]]:
    """Yield (pairing, dtype, backend, largest difference from float64, half a step of the dtype at the largest value).

    Every pairing and dtype on the CPU, and on the GPU if there is one. A difference near half a step is the one
    unavoidable rounding to the result's dtype.
    """
    devices = {"CPU": "cpu"} | ({"GPU": "cuda"} if torch.cuda.is_available() else {})
    for pairing in PAIRINGS:
        for dtype in ("float64", "float32", "float16", "bfloat16"):
            for backend, device in devices.items():
                load = Workload(1, tokens, heads, head_dim, 0, dtype, device, pairing, start=start)
                x, places = load.tensors()[0], start + np.arange(tokens)
                y = rotate(x, places, load.inv_freq, pairing=pairing).double().cpu().numpy()
                want = reference.rotate(x.double().cpu().numpy(), places, load.inv_freq, pairing=pairing)
                half_step = torch.finfo(getattr(torch, dtype)).eps / 2 * 2.0 ** np.floor(np.log2(np.abs(want).max()))
                yield pairing, dtype, backend, float(np.abs(y - want).max()), float(half_step)


def _make_sets(workload: Workload) -> list[list[Tensor]]:
    """Return as many sets of tensors as do not fit into a GPU's cache together."""
    xs, count = workload.tensors(), 1
    if workload.device.startswith("cuda"):
        cache = torch.cuda.get_device_properties(workload.device).L2_cache_size
        count = min(256, math.ceil(4 * cache / workload.bytes_moved))
    return [xs, *([x.clone() for x in xs] for _ in range(count - 1))]


def _make_our_ways(workload: Workload) -> Ways:
    rows = torch.arange(workload.tokens, device=workload.device)
    inv_freq = torch.as_tensor(workload.inv_freq)
    cos, sin = (part.to(workload.device) for part in _float32_table(workload))
    exact: dict[str, Any] = {"positions": workload.start + rows, "inv_freq": inv_freq, "pairing": workload.pairing}
    by_table: dict[str, Any] = {"positions": rows, "table": (cos, sin), "pairing": workload.pairing}

    def rotate_all(xs: list[Tensor], outs: list[Tensor] | None, angles: dict[str, Any]) -> list[Tensor]:
        if len(xs) == 1:
            return [rotate(xs[0], out=None if outs is None else outs[0], **angles)]
        return list(rotate_qk(xs[0], xs[1], out=None if outs is None else (outs[0], outs[1]), **angles))

    return {
        "ours, out=": RotationWay(lambda xs, outs: rotate_all(xs, outs, exact), differentiable=False),
        "ours": RotationWay(lambda xs, outs: rotate_all(xs, None, exact)),
        "ours, float32 table, out=": RotationWay(lambda xs, outs: rotate_all(xs, outs, by_table), differentiable=False),
        "ours, float32 table": RotationWay(lambda xs, outs: rotate_all(xs, None, by_table)),
    }


def _float32_table(workload: Workload) -> tuple[Tensor, Tensor]:
    cos, sin = float32_table(workload.inv_freq, workload.start + np.arange(workload.tokens))
    return torch.from_numpy(cos), torch.from_numpy(sin)


def _copy(xs: list[Tensor], outs: list[Tensor]) -> list[Tensor]:
    return [out.copy_(x) for x, out in zip(xs, outs, strict=True)]


def _bind(way: RotationWay, xs: list[Tensor], outs: list[Tensor], backward: bool) -> Callable[[], list[Tensor]]:
    """Return the call to time: of the way, or of its gradient for the gradients xs."""
    run = way.run
    if not backward:
        return lambda: run(xs, outs)
    if way.gradient is not None:
        gradient = way.gradient
        return lambda: gradient(xs, outs)
    leaves = [torch.zeros_like(x).requires_grad_() for x in xs]
    ys = run(leaves, outs)
    return lambda: list(torch.autograd.grad(ys, leaves, xs, retain_graph=True))


def _first_call(
    result: Measurement, way: RotationWay, call: Callable[[], list[Tensor]], xs: list[Tensor], outs: list[Tensor]
) -> str:
    """Run it once for its error against float64; return the reason if the result is wrong."""
    for x, out in zip(xs, outs, strict=True):
        # What is not written stays NaN.
        out.copy_(x) if way.in_place else out.fill_(torch.nan)
    ys = call()
    if not all(bool(torch.isfinite(y).all()) for y in ys):
        return "leaves elements unwritten"
    if result.name != "copy":
        load = result.workload
        part = slice(max(0, load.tokens - SAMPLE_TOKENS), load.tokens)
        sample, places = xs[0][:1, part, :SAMPLE_HEADS], load.start + np.arange(load.tokens)[part]
        want = reference.rotate(
            sample.double().cpu().numpy(), places, load.inv_freq, pairing=load.pairing, inverse=load.backward
        )
        wrong = ys[0][:1, part, :SAMPLE_HEADS].detach().double().cpu().numpy() - want
        result.error = float(np.abs(wrong).max())
        result.relative_error = float(np.sqrt(np.square(wrong).sum() / np.square(want).sum()))
    return ""


# Cycles of a GPU: about 2 ms.
SPIN = 4_000_000


def _time(call: Callable[[], list[Tensor]], result: Measurement) -> None:
    """Add the time of one call to the result."""
    if not result.workload.device.startswith("cuda"):
        start = time.perf_counter()
        call()
        result.seconds.append(time.perf_counter() - start)
        return
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    # The GPU spins until the host has launched everything; a call that takes the host longer gets a longer spin.
    slowest = max(result.host_seconds, default=0.0)
    torch.cuda._sleep(SPIN * max(1, math.ceil(slowest / 1e-3)))  # type: ignore[no-untyped-call]
    first.record()  # type: ignore[no-untyped-call]
    start = time.perf_counter()
    call()
    result.host_seconds.append(time.perf_counter() - start)
    last.record()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    result.seconds.append(float(first.elapsed_time(last)) / 1000)  # type: ignore[no-untyped-call]
