"""The page Scaling shows a model without scaling what a method would do, and calls it an example."""

import csv
import io

import numpy as np
import pytest

from rope_viz.reports.draw import figure

PAIRS = np.arange(64)
PLAIN = 1_000_000.0 ** (-PAIRS / 64)
"""Frequencies of Qwen3 8B: 64 pairs, base one million, from its config.json."""


def yarn_ratio(factor, length, fast=32.0, slow=1.0):
    """The ratio of the released YaRN code: a linear ramp between two whole pairs."""

    def pair(turns):
        return 128 * np.log(length / (turns * 2 * np.pi)) / (2 * np.log(1_000_000.0))

    low, high = max(np.floor(pair(fast)), 0), min(np.ceil(pair(slow)), 127)
    divided = np.clip((PAIRS - low) / (high - low), 0, 1)
    return (1 - divided) + divided / factor


@pytest.mark.parametrize("query", ["", "&target=131072"])
def test_example_is_yarn_by_four(query):
    text = figure(f"scaling/comparison?model=qwen3-8b{query}", "csv").decode()
    rows = list(csv.reader(io.StringIO(text)))
    start = next(i for i, row in enumerate(rows) if "pair i" in row)
    column = next(i for i, cell in enumerate(rows[start]) if "example" in cell)
    found = np.array([float(row[column]) for row in rows[start + 1 : start + 65]])
    assert np.allclose(found, yarn_ratio(4.0, 32_768), rtol=1e-6)
    assert "YaRN" in rows[start][column]


def test_another_method_or_none_is_one_choice():
    assert "Linear, example" in figure("scaling/comparison?model=qwen3-8b&scaling.example=linear").decode()
    assert ", example" not in figure("scaling/comparison?model=qwen3-8b&scaling.example=none").decode()


def test_a_scaled_model_has_no_example():
    assert ", example" not in figure("scaling/comparison?model=llama-3.1-8b").decode()
