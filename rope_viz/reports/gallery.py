"""The gallery: every picture as a card with a thumbnail, by door.

A picture is left out by one of two rules. *No data*: it has nothing to draw for the default model. *Repeated*: it is a
whole page, as those of Home and Learn, or another page shows the same. Tables follow the other pictures of their door.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rope_viz.pages import registry
from rope_viz.pages.registry import door_of, doors, pictures_on, text_of, title_of
from rope_viz.picture import read_address, write_address
from rope_viz.picture.outputs import Table
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import cache_by_language, current_language

WIDTH, HEIGHT = 224, 146
STYLE = {"width": f"{WIDTH}px", "height": f"{HEIGHT}px", "font_size": "7px", "dpi": "192"}
"""The style of a thumbnail in an address: drawn for its size, at twice the usual resolution."""


@dataclass(frozen=True)
class Card:
    """A picture in the gallery: its door, its page with the query that opens it, a title and what it shows."""

    picture: Picture
    door: str
    page: str
    query: str
    title: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "picture": self.picture.address,
            "page": self.page,
            "query": self.query,
            "title": self.title,
            "about": self.picture.about.rstrip(".。"),
            "thumbnail": write_thumbnail(self.picture),
            "asked": write_address.language_query(),
        }


@cache_by_language()
def write_thumbnail(picture: Picture) -> str:
    """Return the query of a picture's thumbnail."""
    # A slow picture is refined in parts: a thumbnail is its first one.
    part = {"part": "0"} if picture.parts(default_request(picture)) > 1 else {}
    small = {"font_size": "5px"} if picture.crowded else {}
    return urlencode(STYLE | small | part | write_address.write_language(current_language()))


def make_page_card(page: str, model: str) -> dict[str, Any]:
    """Return the card of a whole page, with its first picture and the model that it shows."""
    picture = next(iter(pictures_on(page)), None) or registry.picture("frequencies", "heatmap")
    card = {"picture": picture.address, "page": page, "query": "", "title": title_of(page)}
    return card | {"about": text_of(page, "summary"), "note": model, "thumbnail": write_thumbnail(picture)}


def default_request(picture: Picture) -> PictureRequest:
    """Return the request for a picture of the default model without any choice."""
    return read_address.read_request(registry.page(picture.page), {})


@functools.cache
def why_left_out(picture: Picture) -> str:
    """Return the rule by which a picture is left out, "" if it is in the gallery."""
    if picture.repeats:
        return "repeated"
    return "no data" if picture.refuses(default_request(picture)) else ""


@cache_by_language()
def list_cards() -> tuple[Card, ...]:
    """Return the cards by door, in the order of the pages."""
    cards = [make_card(picture) for picture in registry.pictures() if not why_left_out(picture)]
    return tuple(sorted(cards, key=lambda card: ([*doors()].index(card.door), card.picture.kind is Table)))


def make_card(picture: Picture) -> Card:
    """Return the card of a picture."""
    page, scene = picture.shown_on, f"{picture.name}.title"
    title = text_of(page, scene) if page == "learn" else text_of("gallery", f"names.{picture.page}.{picture.name}")
    return Card(picture, door_of(page), page, picture.query, title)
