"""Run the Triton kernel over many cases and print the worst error of each, as JSON: on the CPU, or `cuda` on a GPU.

Its own process: triton reads TRITON_INTERPRET when a kernel is defined, and is interpreted or not for good.
"""

import contextlib
import itertools
import json
import sys
from unittest import mock

import numpy as np
import torch

from rope_viz.kernels import exact_table, late_checks, reference, triton_ops
from rope_viz.kernels.torch_ops import Turn

# (batch, tokens, heads of q, heads of k, head_dim, pairs)
SHAPES = {
    "even": (1, 2, 4, 2, 16, 8),
    "odd heads, tail": (2, 3, 5, 1, 20, 5),
    "groups of heads": (1, 1, 40, 1, 160, 4),
    "q alone": (1, 3, 3, 0, 8, 2),
    "odd width": (1, 2, 1, 1, 9, 3),
    "several tokens": (2, 257, 1, 1, 8, 4),
    "a large tail": (2, 3, 3, 1, 24, 2),
}
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}


def worst_error(shape, dtype, interleaved, table, conjugate, layout, device="cpu"):
    """Largest |kernel - float64| as a multiple of the allowance.

    Layouts "shared" and "many batches" have one row of positions for all batches, which the latter splits over two
    launches. "twice" rotates one tensor to two outs. In "past the table" some positions are no rows of it: the nearest
    are expected.
    """
    torch.manual_seed(0)
    batch, tokens, q_heads, k_heads, head_dim, pairs = SHAPES[shape]
    xs = [torch.randn(batch, tokens, heads, head_dim).to(DTYPES[dtype]) for heads in (q_heads, k_heads) if heads]
    if layout == "twice":
        xs = [xs[0]] * 2
    if layout == "transposed":
        xs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in xs]
    elif layout == "dimension not last":
        xs = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in xs]
    inv_freq = 10_000.0 ** (-np.arange(pairs) / pairs)
    positions = torch.randint(0, 50, (batch, tokens)) if table else torch.randint(-(2**31), 2**33, (batch, tokens))
    if layout in ("shared", "many batches"):
        positions = positions[:1]
    if layout == "past the table":
        positions = torch.randint(-60, 110, (batch, tokens))
    cos, sin = (torch.as_tensor(part).float() for part in exact_table(inv_freq, np.arange(50)))
    angles = (None, cos, sin) if table else (torch.as_tensor(inv_freq), None, None)
    turn = Turn(*angles, interleaved, conjugate, 1.25)
    outs = [torch.full_like(x, torch.nan) for x in xs] if layout != "in place" else [x.clone() for x in xs]
    outs = [out.to(device) for out in outs]
    versions = [out._version for out in outs]
    sources = outs if layout == "in place" else [x.to(device) for x in xs]
    with mock.patch.object(triton_ops, "MOST_BATCHES", 1 if layout == "many batches" else 65535):
        triton_ops.rotate_into(outs, sources, positions.to(device), turn, bounded=False)
    if device != "cpu":
        torch.cuda.synchronize()
    with contextlib.suppress(ValueError) if layout == "past the table" else contextlib.nullcontext():
        late_checks.raise_found()
        assert layout != "past the table", "a position outside the table was not reported"
    assert all(out._version > version for out, version in zip(outs, versions, strict=True)), "autograd saw no writing"
    worst = 0.0
    for x, out in zip(xs, outs, strict=True):
        # Turned back by the conjugate at the same scale is the inverse times the scale's square.
        want = reference.rotate(
            x.double().numpy(),
            np.broadcast_to(positions.clamp(0, 49).numpy() if table else positions.numpy(), (batch, tokens)),
            None if table else inv_freq,
            table=(cos.numpy(), sin.numpy()) if table else None,
            pairing="interleaved" if interleaved else "half",
            attention_factor=1 / 1.25 if conjugate else 1.25,
            inverse=conjugate,
        )
        # The interpreter truncates to bfloat16 where a GPU rounds: a whole step, not half of one.
        bfloat16 = 2.0 ** (-7 if device == "cpu" else -8)
        step = {"float32": 2.0**-24, "float64": 2.0**-52, "bfloat16": bfloat16, "float16": 2.0**-11}[dtype]
        allowed = (1e-14 if dtype == "float64" else 2e-6) + 1.01 * step * np.abs(want)
        error = np.abs(out.double().cpu().numpy() - want) / allowed
        worst = max(worst, float(error.max()) if not np.isnan(error).any() else float("inf"))
    return worst


def cases():
    """The names of all cases: every flag on the awkward shape, every shape and layout once."""
    for dtype, interleaved, table, conjugate in itertools.product(DTYPES, (0, 1), (0, 1), (0, 1)):
        yield "odd heads, tail", dtype, interleaved, table, conjugate, "plain"
    for shape, interleaved, table in itertools.product(SHAPES, (0, 1), (0, 1)):
        yield shape, "float32", interleaved, table, 0, "plain"
    layouts = ("transposed", "dimension not last", "shared", "in place", "many batches", "twice")
    for layout, interleaved in itertools.product(layouts, (0, 1)):
        yield "odd heads, tail", "float32", interleaved, 0, 0, layout
    for dtype in DTYPES:
        yield "odd heads, tail", dtype, 0, 1, 0, "past the table"


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    json.dump({" | ".join(map(str, case)): worst_error(*case, device) for case in cases()}, sys.stdout)
