"""The module `rope-viz.js`: the moving pictures, joined from the scripts of the app."""

from __future__ import annotations

from rope_viz import __version__
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.spec_url import Subject
from rope_viz.picture.outputs import Clocks
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Texts
from rope_viz.web import made
from rope_viz.web.bundle import bundle
from rope_viz.widgets.state import find_picture, list_fixed, list_sliders, write_spec

TEXTS = Texts("widget")
ALONE = ("Clocks", "Hands")
"""The widgets that a page can show without Python."""


def make_module() -> str:
    """Return the module. It needs no other file, except plotly.js for pictures with axes."""
    head = TEXTS("module", version=__version__)
    return f"// {head}\n{bundle('widget.js', {'texts.js': made.texts, 'states.js': make_states})}"


def make_states() -> bytes:
    """Make a script with the state of each widget that a page can show without Python.

    Its message holds no frequencies: the browser computes them.
    """
    request, states = PictureRequest(Subject(RopeSpec())), {}
    for name in ALONE:
        picture = find_picture(name)
        drawn = picture(request)
        assert isinstance(drawn, Clocks)
        states[name.lower()] = {
            "spec": write_spec(request.spec),
            "pin": None,
            "_picture": {"kind": drawn.renderer, **drawn.message, "inv_freq": [], "first": [], "bands": []},
            "_sliders": list_sliders(request.spec),
            "_fixed": list_fixed(),
        }
    return made.module(STATES=states)
