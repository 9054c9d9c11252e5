"""The index of the Lab."""

from rope_viz.pages.registry import doors, text_of, title_of
from rope_viz.reports.gallery import HEIGHT, WIDTH, make_page_card
from rope_viz.ui import page
from rope_viz.ui.components.component import component

page.start(title_of("lab"), text_of("lab", "about"))
cards = [make_page_card(name, text_of("lab", f"models.{name}")) for name in doors()["lab"][1:]]
data = {"groups": [{"cards": cards}], "texts": {}, "width": WIDTH, "height": HEIGHT, "is_index": True}
component("gallery", root_class="rv-gallery", height=600)("index", data)
