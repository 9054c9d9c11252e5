"""Picture of the first page."""

from __future__ import annotations

from rope_viz.figures import hands
from rope_viz.models.catalog import catalog
from rope_viz.picture.outputs import Hands
from rope_viz.picture.page import Page, embedding
from rope_viz.picture.picture_request import PictureRequest

PAGE = Page("home", sees=lambda request: embedding(request, without=("pairing", "attention")))


@PAGE.picture(height=hands.HEIGHTS[0], narrow=hands.HEIGHTS[1], repeats=True)
def turning(request: PictureRequest) -> Hands:
    """A query and a key as two hands on a circle, the angle between them and their score."""
    known = catalog().get(request.model)
    message = hands.message(request.spec, "" if known is None else known.name)
    return Hands(message, hands.describe(message), variant="hands")
