"""What Inductor makes of the rotations is the rotation: in place, on views, at sizes that are no numbers, in any order.

The oracle is complex multiplication in float64. The caches of graphs on disk are left out: they would answer for the
code as it was. What a C++ source was compiled to is kept: it goes by the whole source.
"""

import pytest

torch = pytest.importorskip("torch")

from torch._functorch import config as autograd  # noqa: E402
from torch._inductor import config, cpp_builder, exc  # noqa: E402

from rope_viz.kernels import flash_attn, rotate, rotate_qk  # noqa: E402
from rope_viz.kernels import transformer_engine as te  # noqa: E402
from rope_viz.kernels import transformers as hf  # noqa: E402

pytestmark = pytest.mark.slow

HEADS, HEADDIM, ROWS = 4, 16, 24
# None of the first is the size of anything else: sizes that are equal are one size to the compiler, and what it makes
# of the first serves the second.
SIZES = [(6, 7), (3, 5)]
INV_FREQ = 10_000.0 ** (-torch.arange(8, dtype=torch.float64) / 8)


def table(seed):
    """Angles (ROWS, pairs), and their cos and sin."""
    angle = torch.rand(ROWS, 8, generator=torch.Generator().manual_seed(seed)) * 6.28
    return angle, angle.cos(), angle.sin()


@pytest.fixture(autouse=True)
def compiler():
    try:
        cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler as error:
        pytest.skip(f"Inductor needs a C++ compiler: {error}")


ANGLE, COS, SIN = table(1)
ANGLE_K, COS_K, SIN_K = table(2)


once = torch._dynamo.config.patch(error_on_recompile=True)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    # One thread: a pool of compiling processes takes longer to start than these graphs to compile.
    with config.patch(fx_graph_cache=False, compile_threads=1), autograd.patch(enable_autograd_cache=False):
        yield
    torch._dynamo.reset()


def turned(x, angle, *, start=0, interleaved=False):
    """x (batch, tokens, heads, HEADDIM) in float64, token t turned by row start + t of the angles (rows, pairs)."""
    token = torch.arange(x.shape[1])
    rows = start[:, None] + token if isinstance(start, torch.Tensor) else start + token
    turns = torch.polar(torch.ones_like(angle[rows].double()), angle[rows].double())[..., None, :]
    x = x.double()
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    y = torch.complex(first, second) * turns
    return torch.stack((y.real, y.imag), dim=-1).flatten(-2) if interleaved else torch.cat((y.real, y.imag), dim=-1)


def assert_same(got, want):
    torch.testing.assert_close(got.double(), want, atol=5e-6, rtol=0)


def qkv(shape, layout):
    torch.manual_seed(0)
    return torch.randn(*shape, *((HEADS + 4, HEADDIM) if layout == "grouped" else (3, HEADS, HEADDIM)))


def qkv_rotated(x, layout, angle_k=ANGLE, start=0):
    q, k, v = x.split([HEADS, 2, 2], dim=2) if layout == "grouped" else x.unbind(2)
    parts = turned(q, ANGLE, start=start), turned(k, angle_k, start=start), v.double()
    return torch.cat(parts, dim=2) if layout == "grouped" else torch.stack(parts, dim=2)


def arguments(layout, tables):
    heads = {"num_heads_q": HEADS} if layout == "grouped" else {}
    return {"cos_k": COS_K, "sin_k": SIN_K, **heads} if tables == "two tables" else heads


ORDERS = {
    "grouped first": (None, [("grouped", "one table"), ("stacked", "one table"), ("stacked", "two tables")]),
    "stacked first": (True, [("stacked", "two tables"), ("grouped", "two tables"), ("stacked", "one table")]),
}


@pytest.mark.parametrize("order", ORDERS)
def test_qkv_is_rotated_after_any_earlier_layout(order):
    dynamic, calls = ORDERS[order]
    compiled = torch.compile(flash_attn.apply_rotary_emb_qkv_, fullgraph=True, dynamic=dynamic)
    for shape in SIZES:
        for layout, tables in calls:
            x = qkv(shape, layout)
            want = qkv_rotated(x, layout, ANGLE_K if tables == "two tables" else ANGLE)
            y = compiled(x, COS, SIN, **arguments(layout, tables))
            assert_same(y, want)
            assert_same(x, want)


def test_qkv_has_its_gradient_with_offsets_per_sequence():
    compiled = torch.compile(flash_attn.apply_rotary_emb_qkv_, fullgraph=True, dynamic=True)
    for shape in SIZES:
        for layout in ("stacked", "grouped"):
            x = qkv(shape, layout).requires_grad_()
            start = torch.arange(shape[0], dtype=torch.int32)
            other = x.detach().double().requires_grad_()
            want = qkv_rotated(other, layout, start=start)
            y = compiled(x, COS, SIN, seqlen_offsets=start, **arguments(layout, "one table"))
            g = torch.randn_like(y)
            y.backward(g)
            want.backward(g.double())
            assert_same(y.detach(), want.detach())
            assert_same(x.grad, other.grad)


def unknown(tensor, *places):
    """The tensor, of which the compiler must not take these sizes for numbers; what it does with them it must say.

    In large graphs the others stay numbers: with a sign for each the arithmetic of signs takes most of the time.
    """
    for place in places:
        torch._dynamo.mark_dynamic(tensor, place)
    return tensor


def write_views(x, y, whole):
    """Every way to write a part of a tensor, each to a part of its own; what is not named must stay."""
    flash_attn.apply_rotary_emb(x[:, :, 1], COS, SIN, inplace=True)
    flash_attn.apply_rotary_emb_kv_(x[:, :, 2:4], COS_K, SIN_K, interleaved=True)
    flash_attn.apply_rotary(x[:, :, 5, 1:], COS, SIN, 3, inplace=True)
    places = torch.arange(x.shape[1])
    rotate(x[:, :, 6], places, INV_FREQ, pairing="half", out=x[:, :, 7])
    rotate_qk(y[1], y[2], places, INV_FREQ, pairing="half", out=(y[1], y[3]))
    flash_attn.apply_rotary_emb_qkv_(whole[1], COS, SIN, COS_K, SIN_K)
    bounds = torch.tensor([0, 2, x.shape[1]], dtype=torch.int32)
    flash_attn.apply_rotary_emb(y[4, 0], COS, SIN, False, True, 0, bounds, x.shape[1])


def views_written(x, y, whole):
    x, y, whole = x.double(), y.double(), whole.double()
    exact = torch.outer(torch.arange(x.shape[1]), INV_FREQ)
    x[:, :, 1] = turned(x[:, :, 1], ANGLE)
    x[:, :, 2] = turned(x[:, :, 2], ANGLE_K, interleaved=True)
    x[:, :, 5, 1:] = turned(x[:, :, 5, 1:], ANGLE, start=3)
    x[:, :, 7] = turned(x[:, :, 6], exact)
    y[1], y[3] = turned(y[1], exact), turned(y[2], exact)
    whole[1] = qkv_rotated(whole[1], "stacked", ANGLE_K)
    y[4, 0] = torch.cat((turned(y[4, :1, :2], ANGLE), turned(y[4, :1, 2:], ANGLE)), dim=1)[0]
    return x, y, whole


@once
def test_compiled_writes_reach_the_viewed_memory():
    compiled = torch.compile(write_views, fullgraph=True)
    for batch, tokens in SIZES:
        torch.manual_seed(0)
        given = [
            unknown(torch.randn(batch, tokens, 8, HEADS, HEADDIM), 0, 1, 3),
            unknown(torch.randn(5, batch, tokens, HEADS, HEADDIM), 1, 2, 3),
            unknown(torch.randn(2, batch, tokens, 3, HEADS, HEADDIM), 1, 2, 4),
        ]
        wanted = views_written(*given)
        compiled(*given)
        for got, want in zip(given, wanted, strict=True):
            assert_same(got, want)


@once
def test_compiled_writes_reach_a_view_passed_as_argument():
    def write(x, out):
        flash_attn.apply_rotary_emb(x, COS, SIN, inplace=True)
        rotate(x, torch.arange(x.shape[1]), INV_FREQ, pairing="half", out=out)

    compiled = torch.compile(write, fullgraph=True, dynamic=True)
    for batch, tokens in SIZES:
        whole = torch.randn(batch, tokens, 3, HEADS, HEADDIM, generator=torch.Generator().manual_seed(0))
        want = whole.double()
        want[:, :, 1] = turned(whole[:, :, 1], ANGLE)
        want[:, :, 2] = turned(want[:, :, 1], torch.outer(torch.arange(tokens), INV_FREQ))
        compiled(whole[:, :, 1], whole[:, :, 2])
        assert_same(whole, want)


@once
def test_views_have_their_gradient():
    def forward(x):
        y = x * 1  # in place on a leaf that learns is nothing torch allows
        flash_attn.apply_rotary_emb(y[:, :, 1], COS, SIN, inplace=True)
        return y * 1, flash_attn.apply_rotary_emb_kv_((x * 1)[:, :, 1:], COS, SIN)

    compiled = torch.compile(forward, fullgraph=True, dynamic=True)
    for shape in SIZES:
        results = []
        for function in (forward, compiled):
            x = qkv(shape, "stacked").requires_grad_()
            ys = function(x)
            torch.autograd.backward(ys, [y.detach().sin() for y in ys])
            results.append([*(y.detach() for y in ys), x.grad])
        torch.testing.assert_close(results[0], results[1])


@once
def test_the_other_drop_ins_are_traced_whole():
    freqs = te.RotaryPositionEmbedding(HEADDIM)(ROWS)
    angle = freqs[:, 0, 0, : HEADDIM // 2]
    cos, sin = ANGLE.repeat(1, 2).cos(), ANGLE.repeat(1, 2).sin()

    def forward(x, qkv, start):
        tokens = x.shape[1]
        return (
            te.apply_rotary_pos_emb(x[:, :, 1], freqs, "bshd", start, fused=True),
            te.apply_rotary_pos_emb(x[:, :, 1], freqs, "bshd", start, fused=False),
            *te.apply_fused_qkv_rotary_pos_emb(qkv, freqs, freqs, [2 * HEADDIM, HEADDIM, HEADDIM], "bshd")[:2],
            *hf.apply_rotary_pos_emb(x[:, :, 0], x[:, :, 2], cos[None, :tokens], sin[None, :tokens], 2),
            *rotate_qk(x[:, :, 0], x[:, :, 2], torch.arange(tokens), INV_FREQ, pairing="half"),
        )

    compiled = torch.compile(forward, fullgraph=True)
    for batch, tokens in SIZES:
        torch.manual_seed(0)
        x = unknown(torch.randn(batch, tokens, 3, HEADS, HEADDIM), 0, 1, 3)
        qkv = unknown(torch.randn(batch, tokens, 2, 4 * HEADDIM), 0, 1)
        start = unknown(torch.arange(batch), 0)
        exact = torch.outer(torch.arange(tokens), INV_FREQ)
        q = qkv[..., : 2 * HEADDIM].reshape(batch, tokens, 4, HEADDIM)
        wanted = (
            turned(x[:, :, 1], angle, start=start),
            turned(x[:, :, 1], angle, start=start),
            turned(q, angle),
            turned(qkv[..., 2 * HEADDIM : 3 * HEADDIM], angle),
            turned(x[:, :, 0], ANGLE),
            turned(x[:, :, 2], ANGLE),
            turned(x[:, :, 0], exact),
            turned(x[:, :, 2], exact),
        )
        for got, want in zip(compiled(x, qkv, start), wanted, strict=True):
            assert_same(got, want)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_invalid_values_are_refused_when_compiled_code_runs(backend):
    x = torch.zeros(1, 3, HEADS, HEADDIM)
    unpaired = torch.rand(1, 3, HEADDIM)
    compiled = torch.compile(hf.apply_rotary_pos_emb, fullgraph=True, backend=backend)
    with pytest.raises(ValueError, match="two angles for one pair"):
        compiled(x, x, unpaired, unpaired, 2)
    compiled = torch.compile(te.apply_rotary_pos_emb, fullgraph=True, backend=backend)
    with pytest.raises(ValueError, match="two angles for one pair"):
        compiled(x, unpaired[0, :, None, None], "bshd", fused=True)
    for fused in (False, True):
        for start in ([ROWS], [-1]):
            with pytest.raises(ValueError, match="rows of the table"):
                compiled(x, te.RotaryPositionEmbedding(HEADDIM)(ROWS), "bshd", torch.tensor(start), fused=fused)


def test_tables_from_compiled_inference_serve_in_training():
    module = flash_attn.RotaryEmbedding(HEADDIM)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    x = qkv((2, 7), "stacked")
    with torch.inference_mode():
        want = compiled(x.clone())
    for call in (compiled, module):
        y = call(x.clone().requires_grad_())
        y.sum().backward()
        torch.testing.assert_close(y, want)
