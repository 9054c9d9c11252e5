"""Which figure do you need?"""

from rope_viz.reports import gallery
from rope_viz.texts import Texts
from rope_viz.ui import page
from rope_viz.ui.components.component import show

TEXTS = Texts("gallery")

page.start(TEXTS("title"), TEXTS("about", count=len(gallery.list_cards())))
show(gallery.list_cards())
page.legend(TEXTS("left_out"))
