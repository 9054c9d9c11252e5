"""The Transformer Engine drop-ins give what its published formula gives, forward and backward."""

import itertools
import math

import pytest

from tests.offenders import for_each

torch = pytest.importorskip("torch")

from rope_viz.kernels.transformer_engine import (  # noqa: E402
    FusedRoPEFunc,
    RotaryPositionEmbedding,
    apply_fused_qkv_rotary_pos_emb,
    apply_rotary_pos_emb,
)

pytestmark = pytest.mark.float32_products

SEQLEN, BATCH, HEADS, HEADDIM = 16, 2, 4, 32
# The unfused form computes in the dtype itself: only float32 can be held to float32's tolerance.
FORMS = [(torch.float32, False), (torch.float32, True), (torch.bfloat16, True), (torch.float16, True)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def formula(x, angle, interleaved):
    """x cos + swapped(x) sin in float32; x (tokens, ..., d), angle (tokens, ..., d2) for every dimension."""
    width = angle.shape[-1]
    x = x.float()
    body = x[..., :width]
    if interleaved:
        swapped = torch.stack((-body[..., 1::2], body[..., ::2]), dim=-1).flatten(-2)
    else:
        swapped = torch.cat((-body[..., width // 2 :], body[..., : width // 2]), dim=-1)
    return torch.cat((body * angle.cos() + swapped * angle.sin(), x[..., width:]), dim=-1)


def share(full, length, size, rank):
    """What rank holds of the first size * length rows: its two chunks."""
    if size == 1:
        return full[:length]
    chunks = full[: size * length].chunk(2 * size)
    return torch.cat((chunks[rank], chunks[2 * size - 1 - rank]))


def assert_same(y, want, dtype):
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), want.to(dtype).float(), atol=2e-6, rtol=1.01 * torch.finfo(dtype).eps)


def check(t, call, want_of, dtype):
    """Forward and backward of call against want_of, for a gradient that is full and one that is broadcast."""
    for broadcast in (False, True):
        leaf = t.detach().requires_grad_()
        other = t.detach().clone().requires_grad_()
        y, want = call(leaf), want_of(other)
        assert y.is_contiguous()
        assert_same(y, want, dtype)
        g = torch.ones((), dtype=dtype).expand(y.shape) if broadcast else torch.randn(y.shape).to(dtype)
        y.backward(g)
        want.backward(g.float())
        assert_same(leaf.grad, other.grad, dtype)
        leaf.grad = None


LAYOUTS = [None, (0, 1), (2, 3)]


@for_each(itertools.product(FORMS, ["sbhd", "bshd"], [False, True], [1, 2], LAYOUTS, [False, True]))
def test_sequences_and_their_gradients(case):
    form, tensor_format, interleaved, size, transpose, starts = case
    dtype, fused = form
    torch.manual_seed(0)
    freqs = RotaryPositionEmbedding(HEADDIM, 0.5, interleaved=interleaved)((SEQLEN + 10) * size)
    shape = (SEQLEN, BATCH, HEADS, HEADDIM) if tensor_format == "sbhd" else (BATCH, SEQLEN, HEADS, HEADDIM)
    t = torch.rand(shape).to(dtype)
    if transpose:
        t = t.transpose(*transpose).contiguous().transpose(*transpose)
    start = torch.tensor([3, 9], dtype=torch.int32) if starts else None
    for rank in range(size):
        shifts = [3, 9] if starts else [0] * BATCH
        angle = torch.stack([share(freqs[shift:, 0], SEQLEN, size, rank) for shift in shifts], dim=1)

        def call(x, rank=rank):
            return apply_rotary_pos_emb(x, freqs, tensor_format, start, interleaved, fused, None, size, rank)

        def want(x, angle=angle):
            return formula(x, angle if tensor_format == "sbhd" else angle.transpose(0, 1), interleaved)

        check(t, call, want, dtype)


@for_each(itertools.product(FORMS, [False, True], [1, 2], [None, (1, 2)], [False, True]))
def test_packed_sequences_and_their_gradients(case):
    form, interleaved, size, transpose, starts = case
    dtype, fused = form
    torch.manual_seed(0)
    lengths = [math.ceil(n / (2 * size)) * 2 * size for n in (7, 1, 12, 3)]
    bounds = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
    freqs = RotaryPositionEmbedding(HEADDIM, interleaved=interleaved)(int(bounds[-1]) + 10)
    t = torch.rand(int(bounds[-1]) // size, HEADS, HEADDIM).to(dtype)
    if transpose:
        t = t.transpose(*transpose).contiguous().transpose(*transpose)
    shifts = [5, 0, 9, 2] if starts else [0] * 4
    start = torch.tensor(shifts, dtype=torch.int32) if starts else None
    for rank in range(size):
        angle = torch.cat(
            [share(freqs[shift:, 0], n // size, size, rank) for n, shift in zip(lengths, shifts, strict=True)]
        )

        def call(x, rank=rank):
            return apply_rotary_pos_emb(x, freqs, "thd", start, interleaved, fused, bounds, size, rank)

        check(t, call, lambda x, angle=angle: formula(x, angle, interleaved), dtype)


@for_each(
    case
    for case in itertools.product(DTYPES, ["sbhd", "bshd"], [False, True], [False, True], [1, 2], [False, True])
    if not (case[4] > 1 and case[5])
)
def test_fused_qkv_splits_rotates_and_has_a_gradient(case):
    dtype, tensor_format, interleaved, same, size, starts = case
    torch.manual_seed(0)
    q_freqs = RotaryPositionEmbedding(HEADDIM, 0.5, interleaved=interleaved)((SEQLEN + 10) * size)
    k_freqs = q_freqs if same else RotaryPositionEmbedding(HEADDIM, rotary_base=77.0, interleaved=interleaved)(99)
    shape = (SEQLEN, BATCH, HEADS, 6 * HEADDIM) if tensor_format == "sbhd" else (BATCH, SEQLEN, HEADS, 6 * HEADDIM)
    qkv = torch.rand(shape).to(dtype)
    shifts = [4, 7] if starts else [0, 0]
    start = torch.tensor(shifts, dtype=torch.int32) if starts else None
    split = [4 * HEADDIM, HEADDIM, HEADDIM]
    for rank in range(size):
        leaf, other = qkv.clone().requires_grad_(), qkv.clone().requires_grad_()
        outs = apply_fused_qkv_rotary_pos_emb(
            leaf, q_freqs, k_freqs, split, tensor_format, start, interleaved, None, size, rank
        )
        q, k, v = other.split(split, dim=-1)
        q = q.reshape(*q.shape[:2], 4 * HEADS, HEADDIM)
        wants = []
        for x, freqs in ((q, q_freqs), (k, k_freqs)):
            angle = torch.stack([share(freqs[shift:, 0], SEQLEN, size, rank) for shift in shifts], dim=1)
            wants.append(formula(x, angle if tensor_format == "sbhd" else angle.transpose(0, 1), interleaved))
        wants.append(v.float())
        gs = [torch.randn(out.shape).to(dtype) for out in outs]
        for out, want in zip(outs, wants, strict=True):
            assert out.is_contiguous()
            assert_same(out, want, dtype)
        torch.autograd.backward(outs, gs)
        torch.autograd.backward(wants, [g.float() for g in gs])
        assert_same(leaf.grad, other.grad, dtype)


@pytest.mark.parametrize("interleaved", [False, True])
def test_two_angles_of_a_pair_may_differ(interleaved):
    torch.manual_seed(0)
    freqs = torch.rand(SEQLEN, 1, 1, 16)
    t = torch.randn(SEQLEN, BATCH, HEADS, HEADDIM)
    check(
        t,
        lambda x: apply_rotary_pos_emb(x, freqs, interleaved=interleaved, fused=True),
        lambda x: (
            formula(x, freqs[:, 0, None, 0], interleaved)[:, :, 0] if x.dim() > 4 else formula(x, freqs, interleaved)
        ),
        torch.float32,
    )


def test_the_function_itself_takes_the_published_arguments():
    freqs = RotaryPositionEmbedding(HEADDIM)(SEQLEN)
    t = torch.randn(BATCH, SEQLEN, HEADS, HEADDIM)
    y = FusedRoPEFunc.apply(t, freqs, None, "bshd", False, None, 1, 0)
    torch.testing.assert_close(y, formula(t, freqs.transpose(0, 1), False))


def test_table_per_sequence_works_only_unfused():
    freqs = torch.rand(SEQLEN, BATCH, 1, 8).repeat(1, 1, 1, 2)
    t = torch.randn(SEQLEN, BATCH, HEADS, HEADDIM)
    torch.testing.assert_close(apply_rotary_pos_emb(t, freqs), formula(t, freqs, False))
    with pytest.raises(ValueError, match="freqs"):
        apply_rotary_pos_emb(t, freqs, fused=True)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("length", "scale"), [(8, 1 / 4), (64, 8 / 64)])
def test_positions_are_interpolated(length, scale, interleaved):
    freqs = RotaryPositionEmbedding(8, 1.0, 4, 8, 100.0, interleaved)(length, offset=2)
    angle = (torch.arange(length) + 2.0)[:, None] * scale * 100.0 ** (-torch.arange(4) / 4)
    want = angle.repeat_interleave(2, dim=-1) if interleaved else torch.cat((angle, angle), dim=-1)
    assert freqs.shape == (length, 1, 1, 8)
    torch.testing.assert_close(freqs[:, 0, 0], want)


T = torch.zeros(SEQLEN, BATCH, HEADS, HEADDIM)
FREQS = torch.zeros(SEQLEN, 1, 1, HEADDIM)
REFUSED = {
    "too long, unfused": (AssertionError, {"freqs": FREQS[:-1]}),
    "too long, fused": (RuntimeError, {"freqs": FREQS[:-1], "fused": True}),
    "packed without bounds": (AssertionError, {"tensor_format": "thd", "t": T[:, 0], "fused": True}),
    "unknown format": (ValueError, {"tensor_format": "hdsb"}),
    "unknown format, fused": (AssertionError, {"tensor_format": "hdsb", "fused": True}),
    "start past the table": (ValueError, {"start_positions": torch.tensor([0, 1]), "fused": True}),
    "start before the table": (ValueError, {"start_positions": torch.tensor([0, -1]), "fused": True}),
    "start past the table, unfused": (ValueError, {"start_positions": torch.tensor([0, 1])}),
    "odd share": (ValueError, {"t": T[:3], "cp_size": 2, "fused": True}),
    "no such rank": (ValueError, {"cp_size": 1, "cp_rank": 1, "fused": True}),
    "tokens past the last bound": (
        ValueError,
        {"t": T[:, 0], "tensor_format": "thd", "cu_seqlens": [0, 9], "fused": True},
    ),
    "packed past the table": (
        ValueError,
        {"t": T[:, 0], "tensor_format": "thd", "cu_seqlens": [0, 16], "freqs": FREQS[:9], "fused": True},
    ),
    "packed odd share": (
        ValueError,
        {"t": T[:4, 0], "tensor_format": "thd", "cu_seqlens": [0, 2, 8], "cp_size": 2, "fused": True},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_arguments_are_refused(case):
    kind, changes = REFUSED[case]
    arguments = {"t": T, "freqs": FREQS} | changes
    if "cu_seqlens" in arguments:
        arguments["cu_seqlens"] = torch.tensor(arguments["cu_seqlens"], dtype=torch.int32)
    with pytest.raises(kind):
        apply_rotary_pos_emb(**arguments)
