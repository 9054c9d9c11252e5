"""Converting q and k weights between the pairings, and the error of converting only some."""

import numpy as np
import pytest
import torch

from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.conversion import conversion_code, conversion_mistakes, weight_permutation
from rope_viz.studies.rotation import rotate
from rope_viz.studies.vectors import draw_normals

pytestmark = pytest.mark.float32_products

HEADS, WIDTH = 3, 5
WAYS = [("interleaved", "half"), ("half", "interleaved"), ("half", "half")]


@pytest.mark.parametrize(("source", "to"), WAYS)
@pytest.mark.parametrize("rotary_dim", [0, 6])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_copied_code_applies_the_permutation(source, to, rotary_dim, library):
    spec = RopeSpec(head_dim=8, rotary_dim=rotary_dim)
    scope: dict = {}
    exec(conversion_code(spec, HEADS, source, to, library), scope)
    rows = weight_permutation(spec, HEADS, source, to)
    for weight in (draw_normals("w", HEADS * 8, WIDTH), draw_normals("bias", HEADS * 8)):
        given = torch.from_numpy(weight) if library == "torch" else weight
        np.testing.assert_array_equal(np.asarray(scope["convert"](given)), weight[rows])


def test_the_permutation_is_that_of_the_transformers_script():
    weight = draw_normals("w", HEADS * 8, WIDTH)
    published = weight.reshape(HEADS, 4, 2, WIDTH).swapaxes(1, 2).reshape(HEADS * 8, WIDTH)
    rows = weight_permutation(RopeSpec(head_dim=8), HEADS, "interleaved", "half")
    np.testing.assert_array_equal(weight[rows], published)


def test_permutation_and_its_inverse_are_the_identity():
    spec = RopeSpec(head_dim=16, rotary_dim=12)
    there, back = (weight_permutation(spec, HEADS, *way) for way in WAYS[:2])
    np.testing.assert_array_equal(there[back], np.arange(HEADS * 16))


def test_converted_weights_give_the_same_scores():
    x, wq, wk = draw_normals("x", WIDTH), draw_normals("wq", 8, WIDTH), draw_normals("wk", 8, WIDTH)
    before, after = RopeSpec(head_dim=8, pairing="interleaved"), RopeSpec(head_dim=8, pairing="half")
    rows = weight_permutation(before, 1, "interleaved", "half")
    first = rotate(before, wq @ x, 9) @ rotate(before, wk @ x, 4)
    second = rotate(after, wq[rows] @ x, 9) @ rotate(after, wk[rows] @ x, 4)
    assert first == pytest.approx(second, abs=1e-12)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_only_converting_q_and_k_is_right(pairing):
    mistakes = {m.name: m for m in conversion_mistakes(RopeSpec(pairing=pairing), np.arange(512))}
    assert mistakes["both"].error == 0.0
    for name in ("q", "k", "none"):
        assert mistakes[name].error > 0.3
    # Nothing turns at distance 0, so there unconverted q and k still agree, but a converted one and the other do not.
    assert mistakes["none"].scores[0] == pytest.approx(mistakes["both"].scores[0], abs=1e-12)
    assert mistakes["q"].scores[0] != pytest.approx(mistakes["both"].scores[0], abs=0.1)


def test_a_head_count_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="heads"):
        weight_permutation(RopeSpec(), 0, "half", "interleaved")
    with pytest.raises(ValueError, match="library"):
        conversion_code(RopeSpec(), 1, "half", "interleaved", "jax")
