"""The first page: the two gestures that explain RoPE, three doors, and a map of all pages."""

from rope_viz.ui import home_page

home_page.show()
