"""Which figure do you need?"""

from rope_viz.pages.registry import doors
from rope_viz.reports.gallery import HEIGHT, WIDTH, list_cards
from rope_viz.texts import Texts
from rope_viz.ui import page
from rope_viz.ui.components.component import component

TEXTS = Texts("gallery")


def show() -> None:
    """Show the page."""
    cards = list_cards()
    page.start(TEXTS("title"), TEXTS("about", count=len(cards)))
    groups = []
    for door in doors():
        found = [card for card in cards if card.door == door]
        if found:
            count = str(TEXTS("figures", count=len(found)))
            titles = [str(TEXTS("actions", title=card.title)) for card in found]
            each = [card.as_dict() | {"actions": title} for card, title in zip(found, titles, strict=True)]
            groups.append({"door": door, "title": page.TEXTS(f"doors.{door}"), "count": count, "cards": each})
    names = ("all", "find", "doors", "none", *(f"copy.{name}" for name in ("address", "embed", "command", "python")))
    texts = {name: TEXTS(name) for name in names}
    data = {"groups": groups, "texts": texts, "width": WIDTH, "height": HEIGHT}
    component("gallery", root_class="rv-gallery", height=900)("gallery", data)
    page.legend(TEXTS("left_out"))


show()
