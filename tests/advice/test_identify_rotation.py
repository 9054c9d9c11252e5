"""Frequencies and rotated vectors are named with their layout, base and method.

Sources: frequencies that trainers' own classes computed (goldens/training.json), vectors that flash-attention rotated
(goldens/conformance_flash_attn.json).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.verify.check_rope import turn_vectors
from rope_viz.advice.verify.conformance import POSITIONS, build_case, list_configs
from rope_viz.advice.verify.identify_rotation import find_method, identify, read_values
from rope_viz.pages.model.runtimes.words import describe_rotation

pytestmark = pytest.mark.float32_products

GOLDENS = Path(__file__).parents[1] / "goldens"
TURNED = json.loads((GOLDENS / "conformance_flash_attn.json").read_text())["rows"]
TRAINED = [
    row
    for row in json.loads((GOLDENS / "training.json").read_text())["rows"]
    if row["verdict"] == "same" and row["inv_freq"] and "rope_type" in row["hf_equivalent"]
]
CONFIGS = list_configs()


def as_file(**values):
    return read_values("values.json", json.dumps(values).encode())


@pytest.mark.parametrize("row", TURNED, ids=lambda row: row["id"])
def test_what_flash_attention_rotated_is_recognised(row):
    config = CONFIGS[row["id"]]
    case = build_case(row["id"], config)
    found = identify(as_file(before=case["q"], after=row["q"], positions=POSITIONS), config)
    assert found.layout == ("interleaved" if "adjacent" in row["id"] else "half")
    assert found.rotary_dim == (case["head_dim"] // 2 if "partial" in row["id"] else case["head_dim"])
    assert found.method.base == config["rope_parameters"]["rope_theta"]
    scaling = config["rope_parameters"]["rope_type"]
    assert found.method.name == ("plain" if scaling == "default" else scaling)
    assert found.method.factor == pytest.approx(config["rope_parameters"].get("factor", 1.0), rel=1e-4)
    assert not [one for one in found.findings if one.is_wrong]


def test_the_method_of_what_trainers_computed_is_named():
    """A row with the verdict "same" computes what its `hf_equivalent` says. LongRoPE has no method of one factor."""
    assert len(TRAINED) >= 30
    for row in TRAINED:
        rope, found = row["hf_equivalent"], find_method(np.asarray(row["inv_freq"]))
        if rope["rope_type"] in ("default", "linear", "llama3", "yarn") and found.name:
            assert found.name == rope["rope_type"].replace("default", "plain"), row["id"]
            assert found.base == rope["rope_theta"]
            assert found.factor == pytest.approx(rope.get("factor", 1.0), rel=1e-6)
    assert sum(not find_method(np.asarray(row["inv_freq"])).name for row in TRAINED) <= 5


@pytest.mark.parametrize("layout", ["half", "split"])
def test_another_layout_than_the_configs_is_named(layout):
    """Cohere rotates neighbours as pairs: the other pairing is a mistake, the other order of the result is none."""
    config = CONFIGS["adjacent-128"]
    q = np.cos(1.0 + np.arange(128) * 0.7)
    turn = np.exp(1j * np.arange(1, 4)[:, None] * 8e6 ** (-np.arange(64) / 64))
    rotated = turn_vectors(np.tile(q, (3, 1)), turn, "half" if layout == "half" else "interleaved")
    if layout == "split":
        rotated = np.concatenate([rotated[:, ::2], rotated[:, 1::2]], axis=1)
    found = identify(as_file(q=q.tolist(), rotated_q=rotated.tolist(), positions=[1, 2, 3]), config)
    assert (found.layout, found.method.base) == (layout, 8e6)
    assert [one.mistake for one in found.findings] == (["pairing"] if layout == "half" else [])


def test_a_mistake_in_a_list_is_named():
    """NumPy's formula of the base alone, which Llama 3.1's config does not mean."""
    plain = 500000.0 ** (-np.arange(64) / 64)
    text = " ".join(map(repr, plain.tolist())).encode()
    sentence = describe_rotation(identify(read_values("mine.txt", text), CONFIGS["llama3-128-8-8192-4"]))
    assert "**128 rotated dimensions** · base 500,000, no scaling" in sentence
    assert "explains them: **scaling ignored**" in sentence
    linear = describe_rotation(identify({"inv_freq": plain / 8.0}, CONFIGS["llama3-128-8-8192-4"]))
    assert "base 500,000, linear scaling by 8" in linear
    assert "**linear instead of its own method**" in linear


def test_unexplained_frequencies_are_reported():
    odd = 10000.0 ** (-np.arange(64) / 64) * (1.0 + 0.1 * np.sin(np.arange(64)))
    found = identify({"inv_freq": odd}, CONFIGS["plain-128"])
    assert found.method.name == ""
    assert "no known scaling method" in describe_rotation(found)
    assert "no known mistake explains them" in describe_rotation(found)


def test_one_later_position_gives_the_layout_alone():
    config = CONFIGS["plain-64"]
    q = np.cos(1.0 + np.arange(64) * 0.7)
    rotated = turn_vectors(q[None], np.exp(1j * 50 * 10000.0 ** (-np.arange(32) / 32))[None], "half")
    found = identify(as_file(q=q.tolist(), rotated_q=rotated[0].tolist(), position=50), config)
    assert (found.layout, found.method, found.findings) == ("half", None, ())
    assert "q at position 1" in describe_rotation(found)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", b"{", "not JSON; write"),
        ("a.json", b"{}", "no 'q'; write"),
        ("a.json", b'"abc"', "inv_freq must be a list of numbers"),
        ("a.json", b'{"inv_freq": [1, "x"]}', "inv_freq must be a list of numbers"),
        ("a.json", b'{"inv_freq": [[1], [1, 2]]}', "inv_freq must be a list of numbers"),
        ("a.json", b'{"inv_freq": []}', "1 to 8,192 numbers, got 0"),
        ("a.json", b'{"inv_freq": [NaN]}', "entry"),
        ("a.json", b'{"q": [1, 2], "rotated_q": [1, 2]}', "no 'positions'; write"),
        ("a.json", b'{"q": [1, 2], "rotated_q": [1], "position": 1}', "needs 1 x 2 numbers"),
        ("a.json", b'{"q": [1, 2], "rotated_q": [1, 2], "position": 0.5}', "whole numbers"),
        ("a.txt", b"one two\nthree", "numbers"),
        ("a.pt", b"1", "must end in"),
    ],
)
def test_wrong_files_get_a_sentence(name, data, problem):
    with pytest.raises(ValueError, match=problem):
        read_values(name, data)


@pytest.mark.parametrize(
    ("q", "rotated", "problem"),
    [
        ([1.0, 2.0], [2.0, 1.0], "a head of this config has 64"),
        ([1.0] * 64, [1.0] * 64, "equals q"),
        ([0.0] * 64, [0.0] * 64, "equals q"),
        ([0.0] * 64, [1.0] * 64, "a pair of zeros"),
    ],
)
def test_vectors_that_cannot_be_compared_get_a_sentence(q, rotated, problem):
    with pytest.raises(ValueError, match=problem):
        identify(as_file(q=q, rotated_q=rotated, position=1), CONFIGS["plain-64"])
