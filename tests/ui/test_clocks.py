"""The data that the clocks send to the browser, and its size."""

import gzip
import json

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import clocks
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.ui.components.scripts import SCRIPTS

PARTS = ("clocks.js", "dials.js", "clocks_files.js")


def test_clocks_script_is_small():
    sizes = {name: len(SCRIPTS[name].read_bytes()) for name in PARTS}
    assert all(size <= 15_000 for size in sizes.values()), sizes
    sent = sum(len(gzip.compress(SCRIPTS[name].read_bytes(), 6)) for name in PARTS)
    assert sent <= 15_000


@pytest.mark.parametrize("name", ["hands.js", "circle.js"])
def test_script_of_the_hands_is_small(name):
    assert len(SCRIPTS[name].read_bytes()) <= 16_000


@pytest.mark.parametrize("model", ["llama-3.1-8b", "yarn-llama-2-7b-128k", "gemma-4-full"])
def test_frequencies_arrive_bit_for_bit(model):
    spec = model_specs(model)[main_layer(catalog()[model], model_specs(model))]
    sent = json.loads(json.dumps(clocks.packed(spec, mode="turn", plain=True)))
    np.testing.assert_array_equal(sent["scaled"], spec.inv_freq(spec.target))
    np.testing.assert_array_equal(sent["first"], spec.plain_inv_freq)


def test_a_message_for_64_pairs_is_below_8_kilobytes():
    spec = model_specs("llama-3.1-8b")[""]
    assert len(json.dumps(clocks.packed(spec, mode="score", plain=False))) < 8_000


def test_unscaled_model_has_one_hand():
    spec = RopeSpec()
    assert not clocks.has_two_hands(spec, "turn")
    assert clocks.packed(spec, mode="turn", plain=True)["scaled"] is None


def test_at_most_256_pairs_are_drawn_and_the_title_names_it():
    sent = clocks.packed(RopeSpec(head_dim=1024), mode="turn", plain=True)
    assert sent["most"] == 256
    assert len(sent["first"]) == 512, "the score needs them all"
    assert sent["title"].startswith("The first 256 of 512 pairs")
