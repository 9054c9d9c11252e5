"""The operators keep torch's contract: gradients, fake shapes, and a compiler that sees one node."""

import numpy as np
import pytest

from rope_viz.kernels import exact_table, rotate, rotate_qk

torch = pytest.importorskip("torch")

from rope_viz.kernels import tensor_cache, torch_library  # noqa: E402, F401 - torch_library registers the gradients

pytestmark = pytest.mark.float32_products

PAIRINGS = ("half", "interleaved")
INV_FREQ = 10_000.0 ** (-np.arange(3) / 3)


def arguments(pairing, *, conjugate=False, table=False, dtype=torch.float64, requires_grad=True):
    torch.manual_seed(0)
    q = torch.randn(2, 5, 3, 8, dtype=dtype, requires_grad=requires_grad)
    k = torch.randn(2, 5, 1, 8, dtype=dtype, requires_grad=requires_grad)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 6, 5, 4, 3]])
    cos, sin = (torch.as_tensor(part) for part in exact_table(INV_FREQ, np.arange(8)))
    angles = (None, cos, sin) if table else (torch.as_tensor(INV_FREQ), None, None)
    return [q, k], positions, *angles, pairing == "interleaved", conjugate, 1.5, False


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_rotate_passes_opcheck(pairing, table, dtype):
    torch.library.opcheck(torch.ops.rope_viz.rotate, arguments(pairing, table=table, dtype=dtype))


@pytest.mark.parametrize("part", [slice(None), slice(1, None)], ids=["whole", "view"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_rotate_into_passes_opcheck(pairing, part):
    xs, *rest = arguments(pairing, requires_grad=False)
    outs = [torch.zeros(2, 5, x.shape[2] + (part.start or 0), 8, dtype=x.dtype)[:, :, part] for x in xs]
    torch.library.opcheck(torch.ops.rope_viz.rotate_into, (outs, xs, *rest))


@pytest.mark.parametrize("start", [0, 1], ids=["whole", "view"])
@pytest.mark.parametrize("shape", [(2, 5, 4, 8), (2, 5, 3, 2, 8)], ids=str)
def test_rotate_within_passes_opcheck(shape, start):
    _, *rest = arguments("half", requires_grad=False)
    whole = torch.randn(2, *shape, dtype=torch.float64)[start]
    torch.library.opcheck(torch.ops.rope_viz.rotate_within, (whole, [0, 1, 1, 2], *rest))


def test_value_checks_pass_opcheck():
    torch.library.opcheck(torch.ops.rope_viz.checked_rows, (torch.tensor([[0, 7]]), 8))
    for interleaved, table in ((False, torch.ones(3, 4)), (True, torch.rand(2, 3, 2).repeat_interleave(2, dim=-1))):
        torch.library.opcheck(torch.ops.rope_viz.one_per_pair, (table, interleaved))


def test_packed_positions_passes_opcheck():
    bounds = torch.tensor([0, 4, 12], dtype=torch.int32)
    torch.library.opcheck(torch.ops.rope_viz.packed_positions, (bounds, 6, None, 2, 1, 8))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradients_of_q_and_k_pass_gradcheck(pairing, table, inverse):
    (q, k), positions, *_ = arguments(pairing)
    q, k, positions = q[:, :2, :2].detach().requires_grad_(), k[:, :2].detach().requires_grad_(), positions[:, :2]
    angles = {"table": exact_table(INV_FREQ, np.arange(8))} if table else {"inv_freq": INV_FREQ}

    def both(q, k):
        return rotate_qk(q, k, positions, pairing=pairing, attention_factor=1.5, inverse=inverse, **angles)

    assert torch.autograd.gradcheck(both, (q, k), fast_mode=True)
    assert torch.autograd.gradgradcheck(both, (q, k), fast_mode=True)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_gradient_is_the_transpose_and_not_the_inverse(pairing):
    (q, _), positions, *_ = arguments(pairing)
    g = torch.randn_like(q)
    y = rotate(q, positions, INV_FREQ, pairing=pairing, attention_factor=1.5)
    (gradient,) = torch.autograd.grad(y, q, g)
    undone = rotate(g, positions, INV_FREQ, pairing=pairing, attention_factor=1.5, inverse=True)
    torch.testing.assert_close(gradient[..., :6], undone[..., :6] * 1.5**2)
    assert torch.equal(gradient[..., 6:], g[..., 6:])


def test_a_gradient_is_not_overwritten():
    (q, _), positions, *_ = arguments("half")
    g = torch.randn_like(q)
    before = g.clone()
    torch.autograd.grad(rotate(q, positions, INV_FREQ, pairing="half"), q, g)
    assert torch.equal(g, before)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("table", [False, True])
def test_compile_traces_through_without_a_break(table, backend):
    (q, k), positions, *_ = arguments("half")
    angles = {"table": exact_table(INV_FREQ, np.arange(8))} if table else {"inv_freq": INV_FREQ}
    angles = {name: torch.as_tensor(np.array(value)) for name, value in angles.items()}

    def scores(q, k):
        q, k = rotate_qk(q, k, positions, pairing="half", attention_factor=1.5, **angles)
        return torch.einsum("bqhd,bkxd->bhqk", q, k)

    compiled = torch.compile(scores, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(q, k), scores(q, k))
    grads = [torch.autograd.grad(f(q, k).sum(), (q, k)) for f in (compiled, scores)]
    torch.testing.assert_close(grads[0], grads[1])


def test_compile_traces_through_numpy_frequencies_and_one_tensor():
    (q, _), positions, *_ = arguments("half")
    compiled = torch.compile(
        lambda x: rotate(x, positions, INV_FREQ, pairing="interleaved"), fullgraph=True, backend="eager"
    )
    torch.testing.assert_close(compiled(q), rotate(q, positions, INV_FREQ, pairing="interleaved"))


def test_compile_traces_through_an_output():
    (q, _), positions, *_ = arguments("half", requires_grad=False)
    frequencies = torch.as_tensor(INV_FREQ)

    def write(x):
        return rotate(x, positions, frequencies, pairing="half", out=torch.zeros_like(x)) + 0

    compiled = torch.compile(write, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q), write(q))


def test_out_argument_has_no_gradient_and_raises():
    (q, _), positions, *_ = arguments("half")
    with pytest.raises(ValueError, match="no_grad"):
        rotate(q, positions, INV_FREQ, pairing="half", out=torch.empty_like(q))


@pytest.mark.parametrize("angles", ["inv_freq", "table"])
def test_learned_angles_are_refused(angles):
    (q, _), positions, *_ = arguments("half")
    frequencies = torch.as_tensor(INV_FREQ).requires_grad_()
    value = frequencies if angles == "inv_freq" else (frequencies[None].cos(), frequencies[None].sin())
    with pytest.raises(ValueError, match="gradient"):
        rotate(q, positions, pairing="half", **{angles: value})


def test_cached_value_of_a_tensor_follows_its_changes():
    asked = []
    total = tensor_cache.cache_last(lambda t: asked.append(1) or int(t.sum()))
    t = torch.tensor([1, 2])
    assert [total(t), total(t), len(asked)] == [3, 3, 1]
    t[0] = 5
    assert [total(t), len(asked)] == [7, 2]
    with torch.inference_mode():
        assert total(torch.tensor([4])) == 4
