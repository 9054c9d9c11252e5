"""Linear attention with RoPE by all pairs and by the running state."""

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.linear_attention import (
    crossover,
    feature_map,
    linear_attention,
    measure,
    operations,
    pair_outputs,
    state_outputs,
)
from rope_viz.studies.rotation import rotation_matrix
from rope_viz.studies.vectors import draw_normals

pytestmark = pytest.mark.float32_products

SPEC = RopeSpec(head_dim=8)


def heads(tokens: int, size: int = 8, values: int = 3):
    return draw_normals("q", tokens, size), draw_normals("k", tokens, size), draw_normals("v", tokens, values)


@pytest.mark.parametrize("causal", [False, True])
def test_both_forms_are_equation_19_of_roformer(causal):
    q, k, v = heads(6)
    expected = np.zeros((6, 3))
    for m in range(6):
        numerator, denominator = np.zeros(3), 0.0
        for n in range(m + 1 if causal else 6):
            phi_q, phi_k = (np.where(x > 0, x + 1, np.exp(x)) for x in (q[m], k[n]))
            numerator += (rotation_matrix(SPEC, m) @ phi_q) @ (rotation_matrix(SPEC, n) @ phi_k) * v[n]
            denominator += phi_q @ phi_k
        expected[m] = numerator / denominator
    result = linear_attention(SPEC, q, k, v, causal=causal)
    np.testing.assert_allclose(result.by_pairs, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(result.by_state, expected, rtol=0, atol=1e-13)
    assert result.error < 1e-13


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("spec", [RopeSpec(head_dim=32, scaling=Yarn()), RopeSpec(head_dim=32, rotary_dim=12)], ids=str)
def test_the_running_state_agrees_with_all_pairs_on_long_inputs(spec, causal):
    q, k, v = heads(600, 32, 32)
    by_pairs = pair_outputs(spec, q, k, v, causal=causal)
    np.testing.assert_allclose(state_outputs(spec, q, k, v, causal=causal), by_pairs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(linear_attention(spec, q, k, v, causal=causal).by_pairs, by_pairs, rtol=0, atol=1e-12)


def test_a_causal_output_does_not_know_the_future():
    q, k, v = heads(10)
    changed_k, changed_v = k.copy(), v.copy()
    changed_k[7:], changed_v[7:] = 5.0, -5.0
    before, after = state_outputs(SPEC, q, k, v), state_outputs(SPEC, q, changed_k, changed_v)
    np.testing.assert_array_equal(before[:7], after[:7])
    assert np.abs(before[7:] - after[7:]).max() > 0.1


def test_weights_can_be_negative_and_need_not_sum_to_one():
    q, k, v = heads(12)
    near = linear_attention(SPEC, q, k, v)
    far = linear_attention(SPEC, q, k, v, positions=1000 * np.arange(12))
    assert far.negative > 0.1
    assert far.weights.min() < -0.001
    assert np.abs(far.row_sums - 1.0).max() > 0.1
    assert near.row_sums[0] == pytest.approx(1.0)
    assert near.negative <= far.negative


def test_a_shift_changes_no_weight():
    q, k, v = heads(12)
    here = linear_attention(SPEC, q, k, v)
    there = linear_attention(SPEC, q, k, v, positions=1_000_000 + np.arange(12))
    np.testing.assert_allclose(here.weights, there.weights, rtol=0, atol=1e-9)


def test_the_feature_map_is_elu_plus_one():
    np.testing.assert_allclose(feature_map(np.array([-800.0, -1.0, 0.0, 2.0])), [0.0, np.exp(-1.0), 1.0, 3.0])


@pytest.mark.parametrize("causal", [False, True])
def test_the_state_costs_less_from_the_crossover_on(causal):
    for head_dim, value_dim in ((8, 8), (64, 128), (128, 128), (2, 64)):
        at = crossover(head_dim, value_dim, causal=causal)
        cheaper = operations(at, head_dim, value_dim, causal=causal)
        assert cheaper.state < cheaper.pairs or at == 1
        if at > 1:
            dearer = operations(at - 1, head_dim, value_dim, causal=causal)
            assert dearer.state >= dearer.pairs


def test_pair_cost_is_quadratic_and_state_cost_is_linear():
    once, twice = operations(1000, 64, 64, causal=False), operations(2000, 64, 64, causal=False)
    assert twice.pairs == 4 * once.pairs
    assert twice.state == 2 * once.state


def test_measured_forms_agree():
    (timing,) = measure(SPEC, [300], repeats=1)
    assert timing.tokens == 300
    assert timing.error < 1e-12


def test_shapes_that_do_not_fit_are_refused():
    q, k, v = heads(4)
    with pytest.raises(ValueError, match=r"\(tokens, head_dim\)"):
        linear_attention(SPEC, q, k[:3], v)
    with pytest.raises(ValueError, match="one entry per token, 4 of them"):
        linear_attention(SPEC, q, k, v, positions=np.arange(5))
    with pytest.raises(ValueError, match="tokens"):
        measure(SPEC, [100_000])
