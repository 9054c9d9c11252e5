"""`rotate` against float64 arithmetic, over pairings, dtypes, shapes, layouts and positions."""

import itertools
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from rope_viz.kernels import exact_table, reference, rotate, rotate_qk
from tests.offenders import for_each

pytestmark = pytest.mark.float32_products

torch = pytest.importorskip("torch")

PAIRINGS = ("half", "interleaved")
# Unit roundoff; a float32 result comes from three roundings of numbers up to sqrt(2) |x|.
UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def frequencies(pairs, base=10_000.0):
    return base ** (-np.arange(pairs) / pairs)


def by_definition(x, positions, inv_freq, pairing, factor=1.0):
    """Every pair (a, b) becomes factor * (a cos - b sin, a sin + b cos); angles from 200-bit arithmetic."""
    x = np.asarray(x, dtype=np.float64)
    result = x.copy()
    places = np.broadcast_to(positions, x.shape[:-2])
    for i, f in enumerate(inv_freq):
        first, second = (i, i + len(inv_freq)) if pairing == "half" else (2 * i, 2 * i + 1)
        with mpmath.workprec(200):
            angle = [mpmath.mpf(float(f)) * int(p) for p in places.flat]
            cos = factor * np.array([float(mpmath.cos(a)) for a in angle]).reshape(places.shape)[..., None]
            sin = factor * np.array([float(mpmath.sin(a)) for a in angle]).reshape(places.shape)[..., None]
        result[..., first] = x[..., first] * cos - x[..., second] * sin
        result[..., second] = x[..., first] * sin + x[..., second] * cos
    return result


def assert_close(y, want, dtype, scale=4.0):
    y = y.detach().double().numpy() if isinstance(y, torch.Tensor) else y
    bound = 4 * UNIT[torch.float32] * scale if dtype in (torch.bfloat16, torch.float16) else 4 * UNIT[dtype] * scale
    assert (np.abs(y - want) <= bound + np.abs(want) * UNIT[dtype] * 1.01).all()


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_reference_is_the_definition(pairing):
    x = np.random.default_rng(0).standard_normal((2, 6, 3, 11))
    positions = np.array([0, 1, -1, 1000, 2**31, -(2**40)])
    y = reference.rotate(x, positions, frequencies(4), pairing=pairing, attention_factor=1.3)
    # 2^40 positions of 2^-65 turns each are 2e-7 turns; up to 2^31 the angle is right to 4e-10.
    want = by_definition(x, positions, frequencies(4), pairing, 1.3)
    np.testing.assert_allclose(y[:, :-1], want[:, :-1], atol=3e-9)
    np.testing.assert_allclose(y[:, -1], want[:, -1], atol=1e-6)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_reference_is_the_dense_matrix(pairing):
    x = np.random.default_rng(0).standard_normal((1, 1, 10))
    y = reference.rotate(x, np.array([77]), frequencies(4), pairing=pairing)
    np.testing.assert_allclose(y[0, 0], reference.matrix(77, frequencies(4), 10, pairing=pairing) @ x[0, 0], atol=1e-15)


SHAPES = [
    (2, 33, 3, 16),
    (33, 1, 16),
    (1, 1, 5, 16),
    (3, 2, 5, 2, 21),
    (2, 0, 3, 16),
    (0, 4, 3, 16),
    (2, 4, 0, 16),
    (300, 1, 8, 128),
    (1, 300, 40, 32),
]


@for_each(itertools.product(PAIRINGS, UNIT, SHAPES, [8, 5]))
def test_torch_agrees_with_the_reference(case):
    pairing, dtype, shape, pairs = case
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    positions = torch.randint(-(2**31), 2**33, shape[:-2])
    factor = 1.25
    y = rotate(x, positions, frequencies(pairs), pairing=pairing, attention_factor=factor)
    want = rotate(x.double().numpy(), positions.numpy(), frequencies(pairs), pairing=pairing, attention_factor=factor)
    assert y.dtype == dtype
    assert_close(y, want, dtype)
    assert torch.equal(y[..., 2 * pairs :], x[..., 2 * pairs :])
    back = rotate(want, positions.numpy(), frequencies(pairs), pairing=pairing, attention_factor=factor, inverse=True)
    np.testing.assert_allclose(back, x.double().numpy(), atol=1e-14)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("positions", [[0, 0, 0], [-1, -2, -3], [2**31 - 1, 2**31, 2**31 + 1], [10**12, -(10**12), 5]])
def test_torch_is_right_at_far_positions(pairing, positions):
    x = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(0))
    y = rotate(x, positions, frequencies(8), pairing=pairing)
    assert_close(y, by_definition(x, positions, frequencies(8), pairing), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_inverse_undoes_and_divides_by_the_factor(pairing, dtype):
    x = torch.randn(2, 9, 3, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    options = {"pairing": pairing, "attention_factor": 1.5}
    there = rotate(x, torch.arange(9), frequencies(6), **options)
    want = rotate(there.double().numpy(), np.arange(9), frequencies(6), inverse=True, **options)
    back = rotate(there, torch.arange(9), frequencies(6), inverse=True, **options)
    assert_close(back, want, dtype)
    np.testing.assert_allclose(back.double(), x.double(), atol=32 * UNIT[dtype])


LAYOUTS = {
    "heads first": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "tokens first": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "strided heads": lambda x: torch.cat([x, x], dim=2)[:, :, : x.shape[2]],
    "dimension not last": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "odd start": lambda x: torch.cat([x[..., :1], x], dim=-1)[..., 1:],
    "every second": lambda x: torch.repeat_interleave(x, 2, dim=-1)[..., ::2],
    "one head repeated": lambda x: x[:, :, :1].expand(-1, -1, x.shape[2], -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_layout_in_memory_does_not_matter(pairing, dtype, layout):
    torch.manual_seed(0)
    x = LAYOUTS[layout](torch.randn(2, 7, 4, 16).to(dtype))
    want = rotate(x.contiguous(), torch.arange(7), frequencies(5), pairing=pairing)
    assert torch.equal(rotate(x, torch.arange(7), frequencies(5), pairing=pairing), want)
    into = LAYOUTS[layout](torch.full_like(x.contiguous(), torch.nan))
    if layout != "one head repeated":
        assert rotate(x, torch.arange(7), frequencies(5), pairing=pairing, out=into) is into
        assert torch.equal(into, want)
        rotate(x, torch.arange(7), frequencies(5), pairing=pairing, out=x)
        assert torch.equal(x, want)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_an_output_that_overlaps_its_input_is_right(pairing):
    whole = torch.randn(9, 4, 16, generator=torch.Generator().manual_seed(0))
    want = rotate(whole[:8].clone(), torch.arange(8), frequencies(8), pairing=pairing)
    assert torch.equal(rotate(whole[:8], torch.arange(8), frequencies(8), pairing=pairing, out=whole[1:]), want)


def test_an_output_of_any_shape_is_written():
    x = torch.randn(2, 3, 5, 4, 8, generator=torch.Generator().manual_seed(0))
    out = torch.zeros(3, 2, 5, 4, 8).transpose(0, 1)
    want = rotate(x, torch.arange(5), frequencies(4), pairing="half")
    assert rotate(x, torch.arange(5), frequencies(4), pairing="half", out=out) is out
    assert torch.equal(out, want)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_table_can_replace_frequencies(pairing, kind):
    x = kind(np.random.default_rng(0).standard_normal((2, 6, 3, 16)))
    table = tuple(kind(part) for part in exact_table(frequencies(8), np.arange(20)))
    places = kind(np.array([3, 19, 0, 1, 1, 7]))
    y = rotate(x, places, table=table, pairing=pairing, attention_factor=2.0)
    want = rotate(x, places, frequencies(8), pairing=pairing, attention_factor=2.0)
    np.testing.assert_allclose(y, want, atol=1e-14)
    counted = rotate(x, None, table=table, pairing=pairing)
    np.testing.assert_allclose(counted, rotate(x, kind(np.arange(6)), frequencies(8), pairing=pairing), atol=1e-14)
    short = tuple(part[:5] for part in table)
    with pytest.raises(ValueError, match="table"):
        rotate(x, None, table=short, pairing=pairing)
    for wrong in ([0, 1, 2, 3, 4, 20], [-1, 0, 1, 2, 3, 4]):
        with pytest.raises(ValueError, match="rows of the table"):
            rotate(x, kind(np.array(wrong)), table=table, pairing=pairing)


def test_a_low_precision_table_is_widened_before_it_is_used():
    x = torch.randn(4, 2, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    cos, sin = (torch.as_tensor(part).bfloat16() for part in exact_table(frequencies(8), np.arange(4)))
    y = rotate(x, None, table=(cos, sin), pairing="half")
    wide = rotate(x.double(), None, table=(cos.double(), sin.double()), pairing="half")
    assert torch.equal(y, wide.bfloat16())


def test_rotating_q_and_k_together_equals_rotating_each():
    torch.manual_seed(0)
    q, k = torch.randn(2, 5, 8, 16), torch.randn(2, 5, 2, 16)
    places = torch.arange(5) + 100
    for kind in (lambda t: t, lambda t: t.numpy()):
        both = rotate_qk(kind(q), kind(k), kind(places), frequencies(8), pairing="half")
        for together, x in zip(both, (q, k), strict=True):
            assert np.array_equal(together, rotate(kind(x), kind(places), frequencies(8), pairing="half"))
    outs = torch.empty_like(q), torch.empty_like(k)
    assert rotate_qk(q, k, places, frequencies(8), pairing="half", out=outs)[1] is outs[1]
    assert torch.equal(outs[1], both_k := rotate(k, places, frequencies(8), pairing="half")), both_k


def test_numpy_out_is_written():
    x = np.ones((2, 1, 4), dtype=np.float32)
    out = np.full_like(x, np.nan)
    assert rotate(x, [0, 1], [1.0, 0.1], pairing="half", out=out) is out
    np.testing.assert_allclose(out, rotate(x, [0, 1], [1.0, 0.1], pairing="half"))


X = torch.zeros(3, 2, 8)
REFUSED = {
    "pairing": lambda kind: rotate(kind(X), [0, 1, 2], [1.0], pairing="GPT-NeoX"),
    "shape": lambda kind: rotate(kind(X[0]), [0, 1, 2], [1.0], pairing="half"),
    "head_dim": lambda kind: rotate(kind(X), [0, 1, 2], np.ones(5), pairing="half"),
    "positions must have": lambda kind: rotate(kind(X), [0, 1], [1.0], pairing="half"),
    "positions must be integers": lambda kind: rotate(kind(X), [0.0, 0.5, 1.0], [1.0], pairing="half"),
    "positions may be": lambda kind: rotate(kind(X), None, [1.0], pairing="half"),
    "either": lambda kind: rotate(kind(X), [0, 1, 2], pairing="half"),
    "attention_factor": lambda kind: rotate(kind(X), [0, 1, 2], [1.0], pairing="half", attention_factor=0.0),
    "inv_freq": lambda kind: rotate(kind(X), [0, 1, 2], [[1.0]], pairing="half"),
    "cos and sin": lambda kind: rotate(kind(X), [0, 1, 2], table=(np.ones(3), np.ones(3)), pairing="half"),
    "out must be": lambda kind: rotate(kind(X), [0, 1, 2], [1.0], pairing="half", out=kind(X[:2])),
}


@pytest.mark.parametrize("message", REFUSED)
@pytest.mark.parametrize("kind", [lambda t: t, lambda t: t.numpy()], ids=["torch", "numpy"])
def test_inconsistent_arguments_raise_a_clear_error(kind, message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message](kind)


@pytest.mark.parametrize(
    "x", [torch.zeros(3, 2, 8, dtype=torch.int32), np.zeros((3, 2, 8), dtype=np.int32)], ids=["torch", "numpy"]
)
def test_integers_are_refused(x):
    with pytest.raises(ValueError, match="float"):
        rotate(x, [0, 1, 2], [1.0], pairing="half")


def test_the_reference_alone_does_not_import_torch():
    code = "import rope_viz.kernels, sys; assert not {'torch', 'triton', 'streamlit', 'plotly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
