"""The pictures of the rotation match the core."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.rotation import figures as rotation
from rope_viz.pages.rotation import words
from rope_viz.studies.conversion import conversion_mistakes
from rope_viz.studies.rotation import equivalent_forms, matrix_laws, rotation_matrix
from rope_viz.studies.vectors import draw_normals

SPEC = RopeSpec(head_dim=32, rotary_dim=24, context=4096, target=16384, scaling=Yarn(4.0))


def drawn_permutation(trace, size):
    matrix = np.zeros((size, size))
    matrix[np.asarray(trace.y), np.asarray(trace.x)] = 1.0
    return matrix


@pytest.mark.parametrize("part", rotation.PARTS)
def test_drawn_permutation_maps_one_matrix_to_the_other(part):
    left, between, right = rotation.matrices(SPEC, 1234, part=part).data
    p = drawn_permutation(between, len(left.z))
    np.testing.assert_array_equal(p.sum(axis=0), 1)
    np.testing.assert_allclose(p @ left.z @ p.T, right.z, atol=1e-6)


def test_the_whole_head_is_the_matrix_of_the_scaled_model():
    left, _, right = rotation.matrices(SPEC, 1234).data
    for trace, pairing in ((left, "interleaved"), (right, "half")):
        expected = rotation_matrix(SPEC, 1234, pairing=pairing, length=SPEC.target)
        np.testing.assert_allclose(trace.z, expected, atol=1e-6)


def test_part_of_a_matrix_names_the_head_dimensions():
    figure = rotation.matrices(RopeSpec(head_dim=128), 10, part="few")
    assert figure.layout.yaxis3.ticktext == ("0", "4", "64", "68")


@pytest.mark.parametrize("source", ["interleaved", "half"])
def test_each_row_is_drawn_once_at_its_permuted_place(source):
    to = "half" if source == "interleaved" else "interleaved"
    figure = rotation.permutation(SPEC, 4, source, to)
    weight = np.arange(2.0 * SPEC.head_dim)
    moved = np.full(weight.size, np.nan)
    for trace in figure.data:
        for old, new, _ in np.asarray(trace.x).reshape(-1, 3):
            assert np.isnan(moved[int(new)])
            moved[int(new)] = weight[int(old)]
    # A rotated row of one head: interleaved 2i and 2i + 1 are i and i + pairs in halves.
    here, there = (0, SPEC.pairs), (0, 1)
    new, old = (here, there) if to == "half" else (there, here)
    for head in range(2):
        base = head * SPEC.head_dim
        assert [moved[base + place] for place in new] == [base + place for place in old]
        assert moved[base + SPEC.head_dim - 1] == base + SPEC.head_dim - 1


def test_only_the_whole_conversion_is_drawn_as_right():
    figure = rotation.mistakes(conversion_mistakes(SPEC, np.arange(rotation.DISTANCES), length=SPEC.target))
    assert [trace.name for trace in figure.data if "right" in trace.name] == ["both (right)"]
    both, none = (next(t for t in figure.data if t.name.startswith(name)) for name in ("both", "neither"))
    assert none.y[0] == pytest.approx(both.y[0])
    assert not np.allclose(none.y[1:], both.y[1:])


def test_the_costs_are_d_squared_against_four_for_each_pair():
    rows = rotation.costs(equivalent_forms(SPEC, draw_normals("x", 32), 77, length=SPEC.target))
    assert rows[0]["multiplications"] == 32 * 32
    assert {row["multiplications"] for row in rows[1:]} == {4 * 12}
    assert all(row["largest difference"] < 1e-13 for row in rows)


def test_the_sentences_hold_the_errors_of_the_laws():
    laws = matrix_laws(SPEC, 1000, 900, length=SPEC.target)
    lines = words.list_laws(laws, 1000, 900)
    assert [line["largest error"] for line in lines] == [law.error for law in laws]
    assert lines[2]["in words"].values["distance"] == "−100"


def test_too_wide_head_gets_a_sentence_instead_of_a_matrix():
    sentence = words.describe_matrix(dataclasses.replace(SPEC, head_dim=2048))
    assert "matrix.too_large" in sentence.entries


def test_every_model_of_the_list_has_a_pairing():
    assert {row["pairing"].split()[0] for row in rotation.pairings()} == {"half", "interleaved"}
