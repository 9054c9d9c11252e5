"""Recall's loss by position on a user's text is that of the measured file, before that of a text that was read live."""

import json

import numpy as np

from rope_viz.pages import registry
from rope_viz.pages.recall import real_model
from rope_viz.pages.recall.choices import MEASURED
from rope_viz.pages.recall.real_model import own_losses
from rope_viz.picture import read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from tests.pictures.test_real_heads import measured_file

PAGE = registry.page("recall")


def own(path):
    held = StoredValue("here", MEASURED.decode(MEASURED.load(str(path))))
    resting = read_address.read_request(PAGE, {"model": "llama-3.1-8b"})
    return PictureRequest(resting.subject, given={"recall.measured": held})


def test_loss_of_a_measured_file_is_drawn(tmp_path):
    measured_file(tmp_path / "m.json")
    asked = own(tmp_path / "m.json")
    drawn = real_model.live_loss(asked)
    assert drawn.title == "Loss of mine by position, your text"
    lines = {trace.name: trace for trace in drawn.fig.data}
    np.testing.assert_allclose(lines["YaRN"].y, [2.5] * 8)
    np.testing.assert_allclose(lines["YaRN"].x, np.arange(16, 256, 32))
    assert "YaRN −0.50" in drawn.sentence
    assert "256 tokens" in drawn.sentence
    # The trained length is that of the file's config.
    assert own_losses(asked).trained == 64
    assert "trained 64" in str(drawn.fig.layout.shapes)


def test_without_a_file_the_shipped_losses_are_drawn():
    assert own_losses(read_address.read_request(PAGE, {})).name == ""


def test_name_in_a_file_is_shown_without_markup(tmp_path):
    content = measured_file(tmp_path / "m.json")
    content["about"]["model"] = "<b>*Qwen*</b> 3.1-8B"
    (tmp_path / "m.json").write_text(json.dumps(content))
    assert real_model.live_loss(own(tmp_path / "m.json")).title == "Loss of bQwenb 3.1-8B by position, your text"
