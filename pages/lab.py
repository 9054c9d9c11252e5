"""The index of the Lab."""

from rope_viz.ui import page

page.start(page.TEXTS("pages.lab"))
page.index("lab")
