"""The transformers drop-in gives what its published formula gives."""

import pytest

torch = pytest.importorskip("torch")

from rope_viz.kernels.transformers import apply_rotary_pos_emb  # noqa: E402

pytestmark = pytest.mark.float32_products

BATCH, TOKENS, HEADDIM = 2, 7, 16


def formula(x, cos, sin):
    width = cos.shape[-1]
    first, second = x[..., : width // 2], x[..., width // 2 : width]
    turned = x[..., :width] * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((turned, x[..., width:]), dim=-1)


def setup(unsqueeze_dim, batch=BATCH, width=HEADDIM, dtype=torch.float32):
    torch.manual_seed(0)
    shapes = [
        (BATCH, heads, TOKENS, HEADDIM) if unsqueeze_dim == 1 else (BATCH, TOKENS, heads, HEADDIM) for heads in (4, 2)
    ]
    q, k = (torch.randn(shape).to(dtype).requires_grad_() for shape in shapes)
    angle = torch.rand(batch, TOKENS, width // 2) * 6
    angle = torch.cat((angle, angle), dim=-1)
    return q, k, angle.cos().to(dtype), angle.sin().to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("width", [HEADDIM, 8])
@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("unsqueeze_dim", [1, 2])
def test_q_and_k_and_their_gradients(unsqueeze_dim, batch, width, dtype):
    q, k, cos, sin = setup(unsqueeze_dim, batch, width, dtype)
    ys = apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim)
    for x, y in zip((q, k), ys, strict=True):
        other = x.detach().double().requires_grad_()
        want = formula(other, *(part.double().unsqueeze(unsqueeze_dim) for part in (cos, sin)))
        g = torch.randn_like(y)
        y.backward(g)
        want.backward(g.double())
        for got, wanted in ((y, want), (x.grad, other.grad)):
            assert got.dtype == dtype
            torch.testing.assert_close(got, wanted.to(dtype), atol=2e-6, rtol=torch.finfo(dtype).eps * 1.01)


def test_a_float32_table_promotes_bfloat16_as_the_formula_does():
    q, k, cos, sin = setup(1)
    y, _ = apply_rotary_pos_emb(q.bfloat16(), k.bfloat16(), cos, sin)
    assert y.dtype == formula(q.bfloat16(), cos[:, None], sin[:, None]).dtype == torch.float32


def test_learned_and_unpaired_tables_are_applied():
    q, k, cos, sin = setup(1)
    cos, sin = torch.rand_like(cos), torch.rand_like(sin).requires_grad_()
    y, _ = apply_rotary_pos_emb(q, k, cos, sin.detach())
    torch.testing.assert_close(y, formula(q, cos[:, None], sin.detach()[:, None]))
    apply_rotary_pos_emb(q, k, cos, sin)[0].sum().backward()
    gradient = sin.grad.clone()
    sin.grad = None
    formula(q, cos[:, None], sin[:, None]).sum().backward()
    torch.testing.assert_close(gradient, sin.grad)


def test_compile_traces_through_without_a_break():
    q, k, cos, sin = setup(1)
    compiled = torch.compile(apply_rotary_pos_emb, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q, k, cos, sin), apply_rotary_pos_emb(q, k, cos, sin))


@pytest.mark.parametrize(
    "changes",
    [{"unsqueeze_dim": 3}, {"cos": torch.ones(1, 3, 16)}, {"q": torch.ones(2, 4, 7, 8)}, {"cos": torch.ones(7, 16)}],
    ids=["unsqueeze_dim", "shapes differ", "narrow head", "no batch"],
)
def test_inconsistent_arguments_are_refused(changes):
    q, k, cos, sin = setup(1)
    with pytest.raises(ValueError, match="must"):
        apply_rotary_pos_emb(**({"q": q, "k": k, "cos": cos, "sin": sin} | changes))
