"""The gallery: cards with thumbnails that load as they come into view, a filter by door and a search."""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.pages.registry import DOORS
from rope_viz.reports.gallery import HEIGHT, WIDTH, Card
from rope_viz.texts import Texts
from rope_viz.ui.components.component import component

APP, TEXTS = Texts("app"), Texts("gallery")


def show(cards: Sequence[Card]) -> None:
    """Show the cards by door."""
    groups = []
    for door in DOORS:
        found = [card for card in cards if card.door == door]
        if found:
            count = str(TEXTS("figures", count=len(found)))
            titles = [str(TEXTS("actions", title=card.title)) for card in found]
            each = [card.as_dict() | {"actions": title} for card, title in zip(found, titles, strict=True)]
            groups.append({"door": door, "title": APP(f"doors.{door}"), "count": count, "cards": each})
    names = ("all", "find", "doors", "none", *(f"copy.{name}" for name in ("address", "embed", "command", "python")))
    texts = {name: TEXTS(name) for name in names}
    data = {"groups": groups, "texts": texts, "width": WIDTH, "height": HEIGHT}
    component("gallery", root_class="rv-gallery", height=900)("gallery", data)
