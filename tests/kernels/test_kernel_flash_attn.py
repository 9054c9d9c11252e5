"""The flash-attention drop-ins give what its published formula gives, forward and backward."""

import itertools

import pytest

from tests.offenders import for_each

torch = pytest.importorskip("torch")

from rope_viz.kernels import flash_attn  # noqa: E402

pytestmark = pytest.mark.float32_products

BATCH, SEQLEN, HEADS, HEADDIM = 4, 17, 4, 32
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
OFFSETS = ["none", "integer", "tensor"]
EVERY = list(itertools.product(DTYPES, [False, True], [1.0, 0.5], OFFSETS))


def formula(x, cos, sin, interleaved):
    """x cos + swapped(x) sin in float32, with cos and sin already (batch or 1, seqlen, pairs)."""
    width = 2 * cos.shape[-1]
    x = x.float()
    body = x[..., :width]
    if interleaved:
        cos, sin = (part.float().repeat_interleave(2, dim=-1)[:, :, None] for part in (cos, sin))
        swapped = torch.stack((-body[..., 1::2], body[..., ::2]), dim=-1).flatten(-2)
    else:
        cos, sin = (torch.cat((part, part), dim=-1).float()[:, :, None] for part in (cos, sin))
        swapped = torch.cat((-body[..., width // 2 :], body[..., : width // 2]), dim=-1)
    return torch.cat((body * cos + swapped * sin, x[..., width:]), dim=-1)


def setup(dtype, fraction, offsets, seqlen=SEQLEN):
    torch.manual_seed(42)
    angle = torch.rand(2 * seqlen, int(fraction * HEADDIM) // 2) * 6.2831853
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    shift = {"none": 0, "integer": 5, "tensor": torch.randint(0, seqlen + 1, (BATCH,), dtype=torch.int32)}[offsets]
    rows = torch.arange(seqlen)[None] + (shift[:, None] if offsets == "tensor" else shift)
    return cos, sin, shift, cos[rows], sin[rows]


def assert_same(y, want, dtype):
    assert y.dtype == dtype
    # Float32 arithmetic in both: they differ by float32 rounding, then by one rounding to the dtype at most.
    torch.testing.assert_close(y.float(), want.to(dtype).float(), atol=2e-6, rtol=1.01 * torch.finfo(dtype).eps)


@for_each(itertools.product(EVERY, [False, True]))
def test_one_tensor_and_its_gradient(case):
    (dtype, interleaved, fraction, offsets), inplace = case
    cos, sin, shift, cos_rows, sin_rows = setup(dtype, fraction, offsets)
    x = torch.randn(BATCH, SEQLEN, HEADS, HEADDIM).to(dtype).requires_grad_()
    before = x.detach().clone().requires_grad_()
    y = flash_attn.apply_rotary_emb(x, cos, sin, interleaved, inplace, shift)
    want = formula(before, cos_rows, sin_rows, interleaved)
    assert_same(y, want, dtype)
    assert (y.data_ptr() == x.data_ptr()) == inplace
    if not inplace:
        assert torch.equal(x, before)
    g = torch.randn_like(y)
    kept = g.clone()
    y.backward(g)
    want.backward(kept.float())
    assert_same(x.grad, before.grad, dtype)
    assert torch.equal(g, kept)


@for_each(itertools.product(EVERY, [False, True]))
def test_qkv_in_place_and_its_gradient(case):
    (dtype, interleaved, fraction, offsets), gqa = case
    cos, sin, shift, cos_rows, sin_rows = setup(dtype, fraction, offsets)
    shape = (BATCH, SEQLEN, HEADS + 4, HEADDIM) if gqa else (BATCH, SEQLEN, 3, HEADS, HEADDIM)
    qkv = torch.randn(shape).to(dtype).requires_grad_()
    before = qkv.detach().clone().requires_grad_()
    y = flash_attn.apply_rotary_emb_qkv_(
        qkv, cos, sin, interleaved=interleaved, seqlen_offsets=shift, num_heads_q=HEADS if gqa else None
    )
    q, k, v = before.split([HEADS, 2, 2], dim=2) if gqa else before.unbind(2)
    q, k = (formula(part, cos_rows, sin_rows, interleaved) for part in (q, k))
    want = torch.cat((q, k, v.float()), dim=2) if gqa else torch.stack((q, k, v.float()), dim=2)
    assert y.data_ptr() == qkv.data_ptr()
    assert_same(y, want, dtype)
    g = torch.randn_like(y)
    y.backward(g)
    want.backward(g.float())
    assert_same(qkv.grad, before.grad, dtype)


def test_qkv_takes_other_tables_for_k():
    cos, sin, _, _, _ = setup(torch.float32, 1.0, "none")
    qkv = torch.randn(BATCH, SEQLEN, 3, HEADS, HEADDIM)
    want = [
        formula(qkv[:, :, i], table[0][None, :SEQLEN], table[1][None, :SEQLEN], False)
        for i, table in enumerate([(cos, sin), (sin, cos)])
    ]
    y = flash_attn.apply_rotary_emb_qkv_(qkv.clone(), cos, sin, sin, cos)
    torch.testing.assert_close(y, torch.stack([*want, qkv[:, :, 2]], dim=2))


@for_each(EVERY)
def test_kv_in_place_and_its_gradient(case):
    dtype, interleaved, fraction, offsets = case
    cos, sin, shift, cos_rows, sin_rows = setup(dtype, fraction, offsets)
    kv = torch.randn(BATCH, SEQLEN, 2, HEADS, HEADDIM).to(dtype).requires_grad_()
    before = kv.detach().clone().requires_grad_()
    y = flash_attn.apply_rotary_emb_kv_(kv, cos, sin, interleaved=interleaved, seqlen_offsets=shift)
    k = formula(before[:, :, 0], cos_rows, sin_rows, interleaved)
    want = torch.stack((k, before[:, :, 1].float()), dim=2)
    assert_same(y, want, dtype)
    g = torch.randn_like(y)
    y.backward(g)
    want.backward(g.float())
    assert_same(kv.grad, before.grad, dtype)


@for_each(itertools.product(EVERY, [False, True]))
def test_packed_sequences_are_rotated_as_if_padded(case):
    (dtype, interleaved, fraction, offsets), inplace = case
    cos, sin, shift, cos_rows, sin_rows = setup(dtype, fraction, offsets)
    padded = torch.randn(BATCH, SEQLEN, HEADS, HEADDIM).to(dtype)
    lengths = torch.tensor([SEQLEN, 3, 0, 11])
    keep = torch.arange(SEQLEN) < lengths[:, None]
    bounds = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
    x = padded[keep].requires_grad_()
    y = flash_attn.apply_rotary_emb(x, cos, sin, interleaved, inplace, shift, bounds, SEQLEN)
    whole = padded.clone().requires_grad_()
    want = formula(whole, cos_rows, sin_rows, interleaved)[keep]
    assert_same(y, want, dtype)
    g = torch.randn_like(y)
    y.backward(g)
    want.backward(g.float())
    assert_same(x.grad, whole.grad[keep], dtype)


def test_conjugate_turns_back():
    cos, sin, shift, *_ = setup(torch.float32, 0.5, "tensor")
    x = torch.randn(BATCH, SEQLEN, HEADS, HEADDIM)
    there = flash_attn.apply_rotary(x, cos, sin, shift)
    torch.testing.assert_close(flash_attn.apply_rotary(there, cos, sin, shift, conjugate=True), x)


def test_the_plain_torch_form_is_the_formula():
    cos, sin, *_ = setup(torch.float32, 0.5, "none")
    x = torch.randn(BATCH, SEQLEN, HEADS, HEADDIM)
    for interleaved in (False, True):
        want = formula(x, cos[None, :SEQLEN], sin[None, :SEQLEN], interleaved)
        torch.testing.assert_close(flash_attn.apply_rotary_emb_torch(x, cos[:SEQLEN], sin[:SEQLEN], interleaved), want)


@pytest.mark.parametrize("name", ["apply_rotary_emb", "apply_rotary_emb_qkv_", "apply_rotary_emb_kv_"])
def test_compile_gives_the_same(name):
    cos, sin, shift, *_ = setup(torch.float32, 1.0, "tensor")
    shape = {"apply_rotary_emb": (), "apply_rotary_emb_qkv_": (3,), "apply_rotary_emb_kv_": (2,)}[name]
    x = torch.randn(BATCH, SEQLEN, *shape, HEADS, HEADDIM)
    function = getattr(flash_attn, name)
    results = []
    for call in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
        leaf = x.clone().requires_grad_()
        y = call(leaf, cos, sin, seqlen_offsets=shift)
        y.backward(torch.ones_like(y))
        results.append((y.detach(), leaf.grad))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("scale_base", [None, 512.0])
def test_the_module_makes_its_own_tables(scale_base, interleaved):
    torch.manual_seed(0)
    module = flash_attn.RotaryEmbedding(16, 100.0, interleaved, scale_base)
    qkv = torch.randn(BATCH, SEQLEN, 3, HEADS, HEADDIM)
    positions = torch.arange(SEQLEN + 2.0)
    angle = torch.outer(positions, 100.0 ** (-torch.arange(8) / 8))
    scale = torch.ones_like(angle)
    if scale_base:  # xPos: ((2i / d + 0.4) / 1.4)^((m - L / 2) / scale_base), q times and k over it
        scale = ((torch.arange(8) / 8 + 0.4) / 1.4) ** ((positions - (SEQLEN + 2) // 2)[:, None] / scale_base)
    tables = [(angle.cos() * factor, angle.sin() * factor) for factor in (scale, 1 / scale)]
    q, k = (formula(qkv[:, :, i], cos[None, 2:], sin[None, 2:], interleaved) for i, (cos, sin) in enumerate(tables))
    want = torch.stack((q, k, qkv[:, :, 2]), dim=2)
    whole = module(qkv.clone(), seqlen_offset=2)
    torch.testing.assert_close(whole, want)
    apart = module(qkv[:, :, 0].clone(), qkv[:, :, 1:].clone(), torch.full((BATCH,), 2), SEQLEN + 2)
    torch.testing.assert_close(torch.cat((apart[0][:, :, None], apart[1]), dim=2), want)


def refused(**changes):
    cos, sin, *_ = setup(torch.float32, 1.0, "none")
    arguments = {"x": torch.zeros(BATCH, SEQLEN, HEADS, HEADDIM), "cos": cos, "sin": sin} | changes
    return lambda: flash_attn.apply_rotary_emb(**arguments)


PACKED = {"x": torch.zeros(6, HEADS, HEADDIM), "max_seqlen": 4}


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (refused(x=torch.zeros(1, 3, 1, 30)), AssertionError),  # rotary_dim over headdim
        (refused(x=torch.zeros(1, 3, 1, 257)), AssertionError),
        (refused(x=torch.zeros(1, 99, 1, 32)), AssertionError),  # more tokens than rows
        (refused(seqlen_offsets=SEQLEN + 1), AssertionError),
        (refused(seqlen_offsets=torch.zeros(3, dtype=torch.int32)), AssertionError),
        (refused(**(PACKED | {"max_seqlen": None}), cu_seqlens=torch.tensor([0, 6])), AssertionError),
        # From here on the original reads or leaves what it should not.
        (refused(seqlen_offsets=-1), ValueError),
        (refused(seqlen_offsets=torch.tensor([0, 0, 0, SEQLEN + 1])), ValueError),
        (refused(seqlen_offsets=torch.tensor([-1, 0, 0, 0])), ValueError),
        (refused(**PACKED, cu_seqlens=torch.tensor([0, 3, 5])), ValueError),
        (refused(**PACKED, cu_seqlens=torch.tensor([0, 3, 7])), ValueError),
        (refused(**PACKED, cu_seqlens=torch.tensor([1, 3, 6])), ValueError),
        (refused(**PACKED, cu_seqlens=torch.tensor([0, 5, 6])), ValueError),
        (refused(**PACKED, cu_seqlens=torch.tensor([0, 4, 3, 6])), ValueError),
    ],
)
def test_invalid_arguments_are_refused(call, kind):
    with pytest.raises(kind):
        call()
