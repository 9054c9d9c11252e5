"""A dropped list of frequencies is recognised: its layout, base and method, and a mistake if it is one.

The frequencies are computed here from the formulas of transformers 5.23.0 in float64, not by our code.
"""

import json

import numpy as np
import pytest

from rope_viz.advice.diagnose_frequencies import diagnose_frequencies, read_frequencies
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
