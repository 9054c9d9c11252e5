"""The distances of dual chunk attention and SelfExtend equal those of their published code."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.studies.distance_maps import Chunks, Groups

# Made by tests/goldens/make_distance_maps.py, which runs HKUNLP/ChunkLlama and datamllab/LongLM.
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "distance_maps.json").read_text(encoding="utf-8"))
QUERY, KEY = np.tril_indices(GOLDEN["length"])


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("dual_chunk", Chunks.from_length(GOLDEN["trained"])),
        ("self_extend", Groups(GOLDEN["group"], GOLDEN["window"])),
    ],
)
def test_distances_are_those_of_the_published_code(name, method):
    wanted = np.concatenate([np.array(row) for row in GOLDEN[name]])
    np.testing.assert_allclose(method.distance(QUERY, KEY), wanted, atol=2e-3)


@pytest.mark.parametrize(("trained", "target"), [(4096, 131_072), (262_144, 1_010_000), (64, 65), (2048, 2049)])
def test_no_distance_is_beyond_the_trained_length(trained, target):
    ends = np.array([target - 1]), np.array([0])
    assert Chunks.from_length(trained).distance(*ends) < trained
    assert Groups.from_lengths(trained, target).distance(*ends) <= trained
