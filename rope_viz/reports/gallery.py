"""The gallery: every picture as a card with a thumbnail, by door.

A picture is left out by one of two rules. *No data*: it has nothing to draw for the default model. *Repeated*: it is a
small form of another page's picture, as on Home and Learn.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rope_viz.pages import registry
from rope_viz.pages.registry import DOORS, MOVED, SHOWN_ON, TITLES, door_of
from rope_viz.picture import read_address
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest

SMALL_FORMS = ("home", "learn")
"""Pages whose pictures repeat those of others."""
WIDTH, HEIGHT = 224, 146
STYLE = {"width": f"{WIDTH}px", "height": f"{HEIGHT}px", "font_size": "7px", "dpi": "192"}
"""The style of a thumbnail in an address: drawn for its size, at twice the usual resolution."""
TABS = {"extend/layers": "", "runtimes/training": "training"}
"""The tab of My model that shows a picture, where its group has another; "" is above the tabs."""
CROWDED = {key: {"font_size": "5px"} for key in ("attention/maps", "scaling/maps")}
"""The style of figures with so many parts that the usual type leaves no room."""


@dataclass(frozen=True)
class Card:
    """A picture in the gallery: its door, its page with the query that opens it, a title and what it shows."""

    picture: Picture
    door: str
    page: str
    query: str
    title: str

    def as_dict(self) -> dict[str, Any]:
        """Return what the browser needs."""
        # A slow picture is refined in parts: a thumbnail is its first one.
        part = {"part": "0"} if self.picture.parts(default_request(self.picture)) > 1 else {}
        return {
            "picture": self.picture.address,
            "page": self.page,
            "query": self.query,
            "title": self.title,
            "about": self.picture.about.rstrip("."),
            "thumbnail": urlencode(STYLE | CROWDED.get(self.picture.address, {}) | part),
        }


def default_request(picture: Picture) -> PictureRequest:
    """Return the request for a picture of the default model without any choice."""
    return read_address.read_request(registry.page(picture.page), {})


@functools.cache
def why_left_out(picture: Picture) -> str:
    """Return the rule by which a picture is left out, "" if it is in the gallery."""
    if picture.page in SMALL_FORMS:
        return "repeated"
    return "no data" if picture.refuses(default_request(picture)) else ""


@functools.cache
def list_cards() -> tuple[Card, ...]:
    """Return the cards by door, in the order of the pages."""
    cards = [make_card(picture) for picture in registry.pictures() if not why_left_out(picture)]
    return tuple(sorted(cards, key=lambda card: [*DOORS].index(card.door)))


def make_card(picture: Picture) -> Card:
    """Return the card of a picture."""
    page, query = MOVED.get(picture.page, (picture.page, ""))
    page = SHOWN_ON.get(picture.address, page)
    tab = TABS.get(picture.address, "why" if picture.page == "extend" else "")
    query = f"extend.tab={tab}" if tab else query
    return Card(picture, door_of(page), page, query, f"{TITLES[page]}: {picture.name.replace('_', ' ')}")
