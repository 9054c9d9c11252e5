"""A way in: twelve steps, each one picture, one sentence and one thing to do."""

from rope_viz.ui import learn_page

learn_page.show()
