"""A dropped list of frequencies is recognised: its layout, base and method, and a mistake if it is one.

The frequencies are computed here from the formulas of transformers 5.23.0 in float64, not by our code.
"""

import json

import numpy as np
import pytest

from rope_viz.advice.diagnose_frequencies import (
    Rotation,
    diagnose_frequencies,
    diagnose_rotation,
    read_frequencies,
    read_measured,
)
from rope_viz.figures.words.measured import describe_measured
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig


def spec_of(name):
    model = ModelConfig.read(catalog()[name].config)
    return model.specs[model.main_layer]


def plain(base, pairs):
    return 1.0 / base ** (np.arange(pairs) * 2 / (2 * pairs))


LLAMA = spec_of("llama-3.1-8b")
PLAIN = plain(500_000.0, 64)


@pytest.mark.parametrize("layout", ["single", "half", "adjacent"])
def test_layout_and_base_are_recognised(layout):
    values = {"single": PLAIN, "half": np.tile(PLAIN, 2), "adjacent": np.repeat(PLAIN, 2)}[layout]
    found = diagnose_frequencies(values.astype(np.float32).astype(float), LLAMA)
    assert (found.layout, found.pairs, found.base, found.divisor) == (layout, 64, 500_000, 1)
    assert (found.is_plain, found.same, found.mistake) == (True, False, "scaling ignored")


def test_linear_scaling_in_place_of_llama_3_is_named():
    found = diagnose_frequencies(PLAIN / 8, LLAMA)
    assert (found.base, found.divisor, found.is_plain) == (500_000, 8, True)
    assert found.mistake == "linear instead of its own method"


def test_the_llama_3_formula_is_the_model_s_own():
    turns = 8192 * PLAIN / (2 * np.pi)
    share = np.clip((turns - 1) / (4 - 1), 0, 1)
    found = diagnose_frequencies(PLAIN * ((1 - share) / 8 + share), LLAMA)
    assert (found.same, found.mistake, found.is_plain) == (True, "", False)
    assert (found.base, found.divisor) == (500_000, 8)


def test_another_model_has_no_mistake_of_this_one():
    found = diagnose_frequencies(plain(1e6, 32), LLAMA)
    assert (found.pairs, found.base, found.same, found.mistake) == (32, 1e6, False, "")


@pytest.mark.parametrize(
    "text", ["[1, 0.5, 0.25, 0.125]", "1,0.5\n0.25,0.125\n", b"1 0.5 0.25 0.125", "1;0.5;0.25;0.125"]
)
def test_json_text_and_csv_are_read(text):
    assert read_frequencies(text).tolist() == [1, 0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "meta-llama/Llama-3.1-8B", "[1, 2]", "[1, nan, 1, 1]", b"\xff\xfe", "[1, -1, 1, 1]"]
)
def test_anything_else_is_no_list(text):
    assert read_frequencies(text) is None


def test_a_config_is_never_taken_for_a_list():
    assert read_frequencies(json.dumps(dict(catalog()["llama-3.1-8b"].config))) is None


def turn(vector, angles, pairing):
    """Rotate by 2 × 2 matrices, pair by pair."""
    turned, pairs = np.array(vector, dtype=float), len(angles)
    for pair, angle in enumerate(angles):
        i, j = (pair, pair + pairs) if pairing == "half" else (2 * pair, 2 * pair + 1)
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned[[i, j]] = rotation @ turned[[i, j]]
    return turned


QWEN = spec_of("qwen3-8b")
VECTOR = np.random.default_rng(0).normal(size=128)


@pytest.mark.parametrize("position", [1, 7, 1000])
@pytest.mark.parametrize(
    ("pairing", "sign", "base", "mistake"),
    [
        ("half", 1, 1e6, ""),
        ("interleaved", 1, 1e6, "pairing"),
        ("half", -1, 1e6, "turned backwards"),
        ("half", 1, 1e4, "base lost"),
    ],
)
def test_a_rotation_names_its_pairing_and_mistake(position, pairing, sign, base, mistake):
    after = turn(VECTOR, sign * position * plain(base, 64), pairing)
    found = diagnose_rotation(Rotation(VECTOR, after, position), QWEN)
    assert (found.pairing, found.same, found.mistake) == (pairing, not mistake, mistake)
    if position == 1 and sign == 1:
        assert found.frequencies.base == base


def test_a_factor_on_the_rotation_is_measured():
    after = 1.2772588722 * turn(VECTOR, plain(1e6, 64), "half")
    assert diagnose_rotation(Rotation(VECTOR, after, 1), QWEN).factor == pytest.approx(1.2772588722)


def test_two_vectors_without_a_rotation_between_them():
    found = diagnose_rotation(Rotation(VECTOR, VECTOR[::-1] * 2, 1), QWEN)
    assert (found.pairing, found.same) == ("", False)


def test_frequencies_and_rotations_are_read_from_json():
    assert read_measured('{"inv_freq": [1, 0.5, 0.25, 0.1]}').tolist() == [1, 0.5, 0.25, 0.1]
    found = read_measured(json.dumps({"before": [1.0] * 8, "after": [2.0] * 8, "position": 3}))
    assert (found.before.tolist(), found.position) == ([1.0] * 8, 3)
    for text in ('{"inv_freq": "x"}', '{"before": [1], "after": [1], "position": 1}', "{", '{"model_type": "llama"}'):
        assert read_measured(text) is None


def test_a_description_says_layout_base_and_mistake():
    assert describe_measured(np.tile(PLAIN, 2), LLAMA, "Llama 3.1 8B") == (
        "64 frequencies, the list twice: the half-split layout. They are unscaled, base 500,000. "
        "Llama 3.1 8B has other frequencies. The typical mistake that gives these: scaling ignored."
    )
