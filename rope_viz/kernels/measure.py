"""Throughput of rotations on this machine: our kernels, the usual ways and installed peers, compared with a copy.

A rotation has to read and write every byte once, as a copy does. So throughput is 2 * size of the tensors per second,
whatever a way really moves, and a fraction of the copy measured in the same run.
"""

from __future__ import annotations

import importlib.util
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

# The function to call, or the reason why it is unavailable.
Ways: TypeAlias = dict[str, Callable[[], list[Tensor]] | str]

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


# Tokens and heads for the error measurement, because float64 is slow.
SAMPLE_TOKENS, SAMPLE_HEADS = 64, 2


@dataclass(frozen=True)
class Workload:
    """The tensors to rotate: q (batch, tokens, heads, head_dim) and k with k_heads, from position `start` on."""

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

    @property
    def inv_freq(self) -> FloatArray:
        """Return radians per position, (head_dim / 2,)."""
        pairs = self.head_dim // 2
        return np.asarray(self.base ** (-np.arange(pairs) / pairs))

    @property
    def bytes_moved(self) -> int:
        """Return the bytes of q and k, counted once in and once out."""
        size = torch.finfo(getattr(torch, self.dtype)).bits // 8
        return 2 * size * self.batch * self.tokens * (self.heads + self.k_heads) * self.head_dim

    def tensors(self) -> list[Tensor]:
        """Return random q, and k if k_heads is not 0."""
        generator = torch.Generator().manual_seed(0)
        shapes = [(self.batch, self.tokens, heads, self.head_dim) for heads in (self.heads, self.k_heads) if heads]
        dtype = getattr(torch, self.dtype)
        return [torch.randn(shape, generator=generator).to(self.device, dtype) for shape in shapes]


@dataclass
class Measurement:
    """One way to rotate and its timings so far; `note` is the reason if it did not run."""

    name: str
    workload: Workload
    seconds: list[float] = field(default_factory=list)
    copy_seconds: list[float] = field(default_factory=list)
    error: float | None = None
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
    xs = workload.tensors()
    outs = [torch.empty_like(x) for x in xs]
    ways: Ways = {"copy": lambda: _copy(outs, xs), **_make_our_ways(workload, xs, outs)}
    ways |= eager_ways(xs, _float32_table(workload), workload.pairing, compiled=compiled)
    if peers:
        ways |= peer_ways(xs, _float32_table(workload), workload.pairing)
    ways = {name: way for name, way in ways.items() if not only or name in only or name == "copy"}
    results = {name: Measurement(name, workload) for name in ways}
    running: dict[str, Callable[[], list[Tensor]]] = {}
    total = len(ways) * (rounds + 1)
    for step, (name, way) in enumerate(ways.items(), 1):
        if isinstance(way, str):
            results[name].note = way
        else:
            yield name, (step - 1) / total, results[name]
            results[name].note = _first_call(results[name], way, xs)
            if not results[name].note:
                running[name] = way
        yield name, step / total, results[name]
    for turn in range(rounds):
        for place, (name, way) in enumerate(running.items(), 1):
            results[name].seconds.append(_time(way, workload.device))
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


def _make_our_ways(workload: Workload, xs: list[Tensor], outs: list[Tensor]) -> Ways:
    places = workload.start + torch.arange(workload.tokens, device=workload.device)
    inv_freq = torch.as_tensor(workload.inv_freq)
    pairing = workload.pairing
    table = tuple(part.to(workload.device) for part in _float32_table(workload))
    rows = torch.arange(workload.tokens, device=workload.device)

    def rotate_new() -> list[Tensor]:
        if len(xs) == 1:
            return [rotate(xs[0], places, inv_freq, pairing=pairing)]
        return list(rotate_qk(xs[0], xs[1], places, inv_freq, pairing=pairing))

    def rotate_into() -> list[Tensor]:
        if len(xs) == 1:
            return [rotate(xs[0], places, inv_freq, pairing=pairing, out=outs[0])]
        return list(rotate_qk(xs[0], xs[1], places, inv_freq, pairing=pairing, out=(outs[0], outs[1])))

    def rotate_by_table() -> list[Tensor]:
        return [
            rotate(x, rows, table=(table[0], table[1]), pairing=pairing, out=out)
            for x, out in zip(xs, outs, strict=True)
        ]

    return {"ours, out=": rotate_into, "ours": rotate_new, "ours, float32 table, out=": rotate_by_table}


def _float32_table(workload: Workload) -> tuple[Tensor, Tensor]:
    cos, sin = float32_table(workload.inv_freq, workload.start + np.arange(workload.tokens))
    return torch.from_numpy(cos), torch.from_numpy(sin)


def _copy(outs: list[Tensor], xs: list[Tensor]) -> list[Tensor]:
    return [out.copy_(x) for x, out in zip(xs, outs, strict=True)]


def _first_call(result: Measurement, way: Callable[[], list[Tensor]], xs: list[Tensor]) -> str:
    """Run it once for its error against float64; return the reason if it cannot run."""
    try:
        y = way()[0]
    except (RuntimeError, ImportError, OSError) as error:  # no compiler, no driver: limits of this machine
        return f"does not run here: {str(error).splitlines()[0][:120]}"
    if result.name != "copy":
        load = result.workload
        part = slice(max(0, load.tokens - SAMPLE_TOKENS), load.tokens)
        sample, places = xs[0][:1, part, :SAMPLE_HEADS], load.start + np.arange(load.tokens)[part]
        want = reference.rotate(sample.double().cpu().numpy(), places, load.inv_freq, pairing=load.pairing)
        result.error = float(np.abs(y[:1, part, :SAMPLE_HEADS].double().cpu().numpy() - want).max())
    return ""


def _time(way: Callable[[], list[Tensor]], device: str) -> float:
    if not device.startswith("cuda"):
        start = time.perf_counter()
        way()
        return time.perf_counter() - start
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    first.record()  # type: ignore[no-untyped-call]
    way()
    last.record()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1000  # type: ignore[no-untyped-call]
