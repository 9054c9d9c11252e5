"""Picture of the first page."""

from __future__ import annotations

from rope_viz.figures import clocks
from rope_viz.pictures.outputs import Clocks
from rope_viz.pictures.page import Page, embedding
from rope_viz.pictures.picture_request import Now

PAGE = Page("home", sees=lambda now: embedding(now, without=("pairing", "attention")))


@PAGE.picture(pin=True, height=clocks.HEIGHTS["compact"][0], narrow=clocks.HEIGHTS["compact"][1])
def turning(now: Now) -> Clocks:
    """The pairs of the current model, turning."""
    return Clocks(clocks.message(now.spec, pin=now.pin, compact=True), variant="clocks")
