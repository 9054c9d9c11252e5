"""Saved pages hold all that their sliders need: exact pictures, the module, and plotly.js where there are axes."""

import json
import re

import pytest

from rope_viz import RopeSpec, model_specs
from rope_viz.embedding.spec import Knob
from rope_viz.widgets import Clocks, Frequencies, Scaling
from rope_viz.widgets.saved_page import STEPS, list_values
from rope_viz.widgets.state import list_sliders


def read_state(path):
    """Return a saved page's text, and the values that it holds."""
    text = path.read_text(encoding="utf-8")
    return text, json.loads(re.search(r"makeModel\((\{.*\})\), el:", text)[1])


def test_what_the_browser_computes_is_not_saved_step_by_step(tmp_path):
    Clocks(RopeSpec()).save_html(tmp_path / "clocks.html")
    text, state = read_state(tmp_path / "clocks.html")
    assert "_frames" not in state
    assert "plotly.js v" not in text
    assert "src=" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.slow
def test_a_saved_step_is_the_picture_of_its_value(tmp_path):
    widget = Scaling(model_specs("qwen3-8b-yarn")[""])
    widget.save_html(tmp_path / "scaling.html")
    text, state = read_state(tmp_path / "scaling.html")
    assert "plotly.js v" in text
    for name, frames in state["_frames"].items():
        value, picture = frames[len(frames) // 2]
        first, _, rest = name.partition(".")
        spec = widget._trait_values["spec"]
        sent = dict(state["spec"])
        sent[first] = {**sent[first], rest: value} if rest else value
        widget.set_state({"spec": sent})
        assert widget._picture == picture, name
        widget.spec = spec


def test_steps_run_from_the_lowest_to_the_highest_value():
    for row in list_sliders(model_specs("llama-3.1-8b")[""]):
        knob = Knob(**{key: value for key, value in row.items() if key != "name"})
        values = list_values(knob)
        assert values == sorted(values)
        assert len(values) == STEPS
        assert values[0] == pytest.approx(knob.low)
        assert values[-1] == pytest.approx(knob.high)


def test_a_widget_saves_its_present_spec(tmp_path):
    widget = Frequencies(RopeSpec())
    widget.spec = RopeSpec(base=31337.0)
    widget.save_html(tmp_path / "a.html")
    assert read_state(tmp_path / "a.html")[1]["spec"]["base"] == 31337.0
