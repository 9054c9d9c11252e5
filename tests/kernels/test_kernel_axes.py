"""`rotate` at positions with several axes: against 200-bit arithmetic, against AxesSpec, on every backend."""

import json
import os
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from rope_viz.embedding.axes_spec import THW, interleave_sections, shared_ladder
from rope_viz.embedding.spec import RopeSpec
from rope_viz.kernels import axes, rotate, rotate_qk
from rope_viz.multi_axis.catalog import model_parts

pytestmark = pytest.mark.float32_products

torch = pytest.importorskip("torch")

SPEC = shared_ladder(RopeSpec(head_dim=32, base=5e6), interleave_sections([6, 5, 5], 16), THW)
RNG = np.random.default_rng(7)
WHOLE = RNG.integers(-(2**33), 2**33, (5, 3))
MIXED = np.random.default_rng(1).standard_normal((4, 2))


def exact(positions, weights):
    with mpmath.workprec(200):
        rows = [
            [sum(mpmath.mpf(float(w)) * int(p) for w, p in zip(row, at, strict=True)) for row in weights]
            for at in positions
        ]
        return (np.array([[float(part(angle)) for angle in row] for row in rows]) for part in (mpmath.cos, mpmath.sin))


@pytest.mark.parametrize(
    "weights", [SPEC.weights, np.random.default_rng(2).standard_normal((6, 3))], ids=["m-rope", "mixed"]
)
def test_angles_are_exact_at_any_whole_position(weights):
    (cos, sin), rows = axes.table_of(WHOLE, weights)
    want_cos, want_sin = exact(WHOLE, weights)
    # 2^33 positions of 2^-65 turns each on three axes.
    np.testing.assert_allclose(cos[rows], want_cos, atol=6e-9)
    np.testing.assert_allclose(sin[rows], want_sin, atol=6e-9)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotate_equals_the_rotation_of_the_spec(kind, pairing):
    x = RNG.standard_normal((2, 5, 3, 32))
    places = RNG.uniform(-40, 40, (5, 3)).round(2)
    spec = (
        SPEC
        if pairing == "half"
        else shared_ladder(RopeSpec(head_dim=32, base=5e6, pairing=pairing), interleave_sections([6, 5, 5], 16))
    )
    want = spec.rotate(x.swapaxes(1, 2), places).swapaxes(1, 2)
    given = (torch.from_numpy(x), torch.from_numpy(places)) if kind == "torch" else (x, places)
    np.testing.assert_allclose(np.asarray(rotate(*given, pairing=pairing, weights=spec.weights)), want, atol=1e-13)


def test_one_axis_is_the_rotation_of_inv_freq():
    x, inv_freq = RNG.standard_normal((7, 2, 16)), RopeSpec(head_dim=16).inv_freq()
    places = RNG.integers(0, 2**31, 7)
    one = rotate(x, places[:, None], pairing="half", weights=inv_freq[:, None], attention_factor=1.2)
    np.testing.assert_allclose(one, rotate(x, places, inv_freq, pairing="half", attention_factor=1.2), atol=1e-15)


def test_a_factor_for_every_pair_and_the_way_back():
    factor = np.linspace(0.5, 1.5, 16)
    x = torch.from_numpy(RNG.standard_normal((5, 2, 32)))
    options = {"pairing": "half", "weights": SPEC.weights, "attention_factor": factor}
    there = rotate(x, WHOLE, **options)
    length = torch.hypot(there[..., :16], there[..., 16:]) / torch.hypot(x[..., :16], x[..., 16:])
    np.testing.assert_allclose(length, np.broadcast_to(factor, length.shape), rtol=1e-12)
    np.testing.assert_allclose(rotate(there, WHOLE, inverse=True, **options), x, atol=1e-12)
    back = rotate(there.numpy(), WHOLE, inverse=True, **options)
    np.testing.assert_allclose(back, x, atol=1e-12)


def test_q_and_k_and_gradients_take_positions_per_sequence():
    q, k = (torch.randn(2, 5, heads, 32, dtype=torch.float64, requires_grad=True) for heads in (4, 2))
    places = torch.randint(-1000, 1000, (2, 5, 3))
    out_q, out_k = rotate_qk(q, k, places, pairing="half", weights=SPEC.weights)
    want = SPEC.rotate(q[1].detach().numpy().swapaxes(0, 1), places[1].numpy()).swapaxes(0, 1)
    np.testing.assert_allclose(out_q[1].detach(), want, atol=1e-12)
    (out_q.square().sum() + out_k.square().sum()).backward()
    np.testing.assert_allclose(q.grad, 2 * q.detach(), atol=1e-12)


@pytest.mark.parametrize("id", ["flux.1-dev", "rope-vit-mixed-b", "qwen2-vl-7b"])
def test_a_released_model_turns_as_its_spec(id):
    spec = next(iter(model_parts(id).values()))
    places = RNG.integers(0, 64, (6, len(spec.axes)))
    pairing = "half" if spec.dims[0, 1] > 1 else "interleaved"
    x = RNG.standard_normal((6, 1, spec.head_dim))
    want = spec.rotate(x.swapaxes(0, 1), places).swapaxes(0, 1)
    np.testing.assert_allclose(rotate(x, places, pairing=pairing, weights=spec.weights), want, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"positions": WHOLE[:, :2]}, r"positions must have shape \(..., tokens, 3\)"),
        ({"positions": None}, "left out with a table only"),
        ({"inv_freq": np.ones(16)}, "either inv_freq, weights or table"),
        ({"weights": np.ones(16)}, r"weights must have shape \(pairs, axes\)"),
        ({"weights": np.full((16, 3), np.nan)}, "weights must be finite"),
        ({"attention_factor": np.ones(3)}, "attention_factor must be"),
        ({"positions": np.full((5, 3), np.inf)}, "positions must be finite"),
    ],
)
def test_inconsistent_arguments_raise_a_clear_error(change, said):
    given = {"positions": WHOLE, "weights": SPEC.weights, "pairing": "half", **change}
    with pytest.raises(ValueError, match=said):
        rotate(np.zeros((5, 1, 32)), given.pop("positions"), given.pop("inv_freq", None), **given)


INTERPRETED = """
import json, numpy as np, torch
from rope_viz.kernels import axes, triton_ops
from rope_viz.kernels.torch_ops import Turn
rng = np.random.default_rng(0)
weights, places = rng.standard_normal((8, 3)), torch.from_numpy(rng.integers(-2**33, 2**33, (1, 6, 3)))
(cos, sin), rows = axes.table_of(places, weights)
q, k = torch.randn(1, 6, 4, 20), torch.randn(1, 6, 2, 20)
errors = []
for interleaved in (False, True):
    outs = [torch.empty_like(q), torch.empty_like(k)]
    triton_ops.rotate_into(outs, [q, k], rows, Turn(None, cos, sin, interleaved, False, 1.0), bounded=False)
    for x, out in zip((q, k), outs):
        wide = x.double()
        a, b = (wide[..., 0:16:2], wide[..., 1:16:2]) if interleaved else (wide[..., :8], wide[..., 8:16])
        c, s = cos[:, None], sin[:, None]
        first, second = a * c - b * s, b * c + a * s
        got = (out[..., 0:16:2], out[..., 1:16:2]) if interleaved else (out[..., :8], out[..., 8:16])
        errors += [float((got[0] - first).abs().max()), float((got[1] - second).abs().max())]
        errors.append(float((out[..., 16:] - x[..., 16:]).abs().max()))
print(json.dumps(errors))
"""


def test_the_triton_kernel_reads_the_same_table():
    pytest.importorskip("triton")
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": root}
    answer = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert max(json.loads(answer.stdout)) < 2e-6
