"""The first page: RoPE in one live picture, and the question that each page answers."""

from rope_viz.pictures import home
from rope_viz.texts import Texts
from rope_viz.ui import page

TEXTS = Texts("home")
LAB = ("recall", "heads", "precision", "kernels")

page.start(TEXTS("title"), page.text("home"))
page.primary_button("learn", TEXTS("learn"))
page.show(home.turning)
page.mobile_knobs("base", "context", "target", "factor")
page.next_page_link("learn", TEXTS("next_page"))
page.explain("picture")
page.starts(TEXTS.group("starts"))
page.questions(TEXTS.group("questions") | {name: page.TEXTS(f"lab.{name}") for name in LAB})
page.words()
