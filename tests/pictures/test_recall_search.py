"""The pictures of a search show the divisors of its file, YaRN's by the paper's formula, and its scores."""

import json
import re

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.evaluation.search_results import read_search
from rope_viz.pages import recall, registry
from rope_viz.picture import read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.wire_format import markdown_to_html
from rope_viz.tiny_lm import checkpoints

pytestmark = pytest.mark.float32_products

EXAMPLE = json.loads((checkpoints.FOLDER / "searched.json").read_text(encoding="utf-8"))
RESTING = read_address.read_request(registry.page("recall"), {"model": "llama-3.1-8b"})
SO_FAR = {key: value for key, value in EXAMPLE.items() if key != "gain"} | {"trials": 1}


def picture_request(**given):
    """A request with a content for each of these choices."""
    held = {
        f"recall.{key}": StoredValue(key, read_search(json.dumps(content).encode())) for key, content in given.items()
    }
    return PictureRequest(RESTING.subject, given={**RESTING.given, **held})


def test_lines_are_the_found_divisors_and_yarns():
    drawn = {trace.name: np.array(trace.y, dtype=float) for trace in recall.searched(RESTING).fig.data}
    np.testing.assert_allclose(drawn["found"], 1 / np.array(EXAMPLE["best"]["divisors"]), rtol=1e-9)
    plain = RopeSpec(32, base=10_000.0, context=256)
    yarn = RopeSpec(32, base=10_000.0, context=256, target=4096, scaling=Yarn(factor=16.0))
    np.testing.assert_allclose(drawn["YaRN"], yarn.inv_freq(4096) / plain.inv_freq(), rtol=1e-9)


def test_sentences_and_table_give_the_held_out_scores():
    drawn = recall.searched_scores(RESTING)
    best = EXAMPLE["best"]["held_out"]
    assert drawn.columns["Frequencies"] == ["found", "start: plain", "start: Linear", "start: NTK-aware"]
    shares = [f"{100 * best[name]:.0f}" for name in ("right", "low", "high")]
    assert re.findall(r"\d+", drawn.columns["Right answers"][0]) == shares
    assert drawn.columns["Loss of the answers"][0] == f"{best['loss']:.2f} nats"
    gain = EXAMPLE["gain"]
    assert f"**{100 * gain['right']:+.0f} points**" in drawn.sentence
    assert "NTK-aware" in drawn.sentence
    assert "After 60 trials" in recall.searched(RESTING).sentence
    assert "example that we ran" in recall.searched(RESTING).sentence


def test_search_that_still_runs_claims_no_held_out_scores():
    request = picture_request(searched=SO_FAR)
    sentence = recall.searched(request).sentence
    assert "After 1 trial, the best frequencies" in sentence
    assert "held-out" not in sentence
    assert "known at the end" in recall.searched_scores(request).sentence
    assert "(" not in recall.searched_scores(request).columns["Right answers"][0]


def test_file_is_shown_before_the_search_of_the_page():
    file = json.loads(json.dumps(EXAMPLE).replace('"tiny"', '"mine"'))
    both = picture_request(searched=EXAMPLE, search=file)
    assert "'mine'" in recall.searched(both).sentence
    assert "Model: tiny_lm," in recall.searched(picture_request(searched=EXAMPLE)).sentence
    assert "example that we ran" not in recall.searched(both).sentence


@pytest.mark.parametrize("loss", [-0.25, 0.25])
def test_negative_gain_has_a_minus_sign(loss):
    gain = {"over": "ntk", "right": loss, "low": loss - 0.1, "high": loss + 0.1}
    text = recall.searched_scores(picture_request(search={**EXAMPLE, "gain": gain})).sentence
    assert ("**−25 points**" if loss < 0 else "**+25 points**") in text


def test_name_of_a_model_in_a_file_is_shown_literally():
    named = json.loads(json.dumps(EXAMPLE).replace('"tiny"', '"**b** [x](#source) <i>"'))
    sentence = recall.searched(picture_request(search=named)).sentence
    assert "'**b** [x](#source) &lt;i&gt;'" in markdown_to_html(sentence).replace("&#x27;", "'")
