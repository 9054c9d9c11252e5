"""Widgets: the spec follows the browser and the browser follows the spec, with the app's own pictures."""

import base64
import dataclasses
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz import RopeSpec, model_specs
from rope_viz.embedding.scaling import METHODS
from rope_viz.picture import export
from rope_viz.reports.draw import figure, read_figure
from rope_viz.widgets import Clocks, Decay, Frequencies, Hands, Scaling, show
from rope_viz.widgets.notebook import WIDGETS
from rope_viz.widgets.state import PICTURES, read_spec, write_spec
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
YARN = model_specs("qwen3-8b-yarn")[""]


def read_header(widget):
    """Return the JSON of the message that a widget holds."""
    content = base64.b64decode(widget._picture)
    return json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])


def test_every_picture_with_a_widget_has_a_class():
    assert [widget.name for widget in WIDGETS] == [*PICTURES]
    assert [Clocks, Hands, Frequencies, Decay, Scaling] == [*WIDGETS]


@for_each(WIDGETS, lambda widget: widget.name)
def test_an_assigned_spec_is_the_picture_of_the_app(widget):
    made = widget(RopeSpec())
    made.spec = YARN
    picture, request, _ = read_figure(f"{'/'.join(PICTURES[widget.name])}?model=qwen3-8b-yarn")
    request = dataclasses.replace(request, subject=request.subject._replace(model="custom"))
    assert base64.b64decode(made._picture) == export.render(picture, request, "packed")
    assert widget(YARN)._picture == made._picture


@for_each(WIDGETS, lambda widget: widget.name)
def test_a_slider_of_the_browser_moves_spec_and_picture(widget):
    made = widget(YARN)
    before = made._picture
    made.set_state({"spec": {**write_spec(YARN), "base": 77_000}})
    assert made.spec == dataclasses.replace(YARN, base=77_000.0)
    assert made._picture != before
    assert made._picture == widget(made.spec)._picture


def test_sliders_are_the_numbers_of_the_spec():
    made = Clocks(YARN)
    names = [row["name"] for row in made._sliders]
    assert names == ["base", "context", "target", "scaling.factor", "scaling.beta_fast", "scaling.beta_slow"]
    made.spec = RopeSpec()
    assert [row["name"] for row in made._sliders] == ["base", "context", "target"]


@for_each(list(METHODS))
def test_a_spec_is_the_same_after_its_way_through_json(method):
    spec = RopeSpec(target=16384, scaling=METHODS[method]())
    assert read_spec(json.loads(json.dumps(write_spec(spec)))) == spec


@for_each([{"base": 0.5}, {"scaling": {"name": "nothing"}}, {"head_dim": "x"}, {"unknown": 1}])
def test_a_spec_that_cannot_be_is_answered_with_the_present_one(change):
    made, sent = Clocks(YARN), []
    made.send_state = sent.append
    made._receive_spec({**write_spec(YARN), **change})
    assert (made.spec, sent) == (YARN, ["spec"])


def test_a_spec_without_a_picture_is_refused_before_it_is_stored():
    made = Frequencies(YARN)
    with pytest.raises(Exception, match="spec"):
        made.spec = "qwen3-8b"
    assert made.spec == YARN


def test_a_pinned_pair_is_in_the_picture():
    made = Frequencies(YARN)
    before = made._picture
    made.pin = 9
    assert made._picture != before
    assert Clocks(YARN, show="score").pin is None


def test_choices_are_those_of_the_links():
    assert read_header(Clocks(YARN, show="score"))["mode"] == "score"
    assert read_header(Decay(YARN, show="random"))["variant"].startswith("random")
    with pytest.raises(ValueError, match=r"'size' is not a choice of this picture: use one of show, plain, at"):
        Clocks(YARN, size="9")
    with pytest.raises(ValueError, match="show must be a text"):
        Clocks(YARN, show=3)
    with pytest.raises(ValueError, match="score"):
        Clocks(YARN, show="nothing")


def test_plotly_is_sent_when_the_page_has_none():
    made = Scaling(YARN)
    assert made._plotly == ""
    made.set_state({"_needs_plotly": True})
    assert b"plotly.js v" in gzip.decompress(base64.b64decode(made._plotly))[:100]


def make_cell(address):
    """Return the cell that Share → Copy notebook cell copies, from the script's own template."""
    script = (ROOT / "rope_viz" / "web" / "tools.js").read_text(encoding="utf-8")
    template = re.search(r"^export const makeCell = .* => `(.*)`;$", script, re.MULTILINE)[1]
    return template.replace("${quoteName(place, address)}", json.dumps(address)).replace("\\n", "\n")


def run_cell(cell):
    """Run a cell as a notebook does, without the line that installs, and return the value of its last line."""
    first, *lines = cell.strip().splitlines()
    assert first == "%pip install --quiet 'rope-viz[widget]'"
    names = {}
    exec("\n".join(lines[:-1]), names)
    return eval(lines[-1], names)


@for_each(
    [
        "rotation/turning?model=qwen3-8b-yarn&rotation.show=score&rotation.at=4096,17&pin=9",
        "home/turning?model=gemma-3-27b-global",
        "frequencies/wavelengths?model=qwen3-8b-yarn&base=77000&pin=3",
        "decay/curves?model=llama-3.1-8b&decay.show=random",
        "scaling/comparison?model=custom&method=ntk&factor=8&target=32768",
    ]
)
def test_the_cell_of_a_moving_picture_shows_the_very_picture(address):
    made = run_cell(make_cell(address))
    picture, request, _ = read_figure(address)
    assert base64.b64decode(made._picture) == export.render(picture, request, "packed")
    assert made.spec == request.spec


@for_each(["decay/pairs?model=qwen3-8b&decay.at=512", "frequencies/pairs?width=120mm", "rotation/laws"])
def test_the_cell_of_any_other_picture_shows_its_image(address):
    assert run_cell(make_cell(address))._repr_svg_().encode() == figure(address)


def test_an_unknown_picture_is_refused():
    with pytest.raises(ValueError, match="no page"):
        show("nowhere/turning")


def test_without_the_extra_the_error_says_what_to_install():
    """In a process of its own that does not find anywidget. The module for pages needs no such package."""
    script = (
        "import sys; sys.modules['anywidget'] = None\n"
        "import rope_viz.widgets.module as module; print(len(module.make_module()) > 50_000)\n"
        "from rope_viz.widgets import Clocks"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True\n"
    assert done.stderr.endswith("rope_viz.widgets needs anywidget: pip install 'rope-viz[widget]'\n")


def test_hands_name_no_model_for_a_spec():
    assert "this model" in read_header(Hands(YARN))["title"]


def test_the_browser_gets_plain_values_only():
    """A notebook may send an object of another class, such as a sentence with its values, in another form."""
    made = Clocks(YARN)
    left = [made._fixed, made._sliders, write_spec(YARN)]
    while left:
        value = left.pop()
        assert type(value) in (dict, list, tuple, str, int, float, bool, type(None))
        left += value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
