"""An introduction in twelve steps, each with one picture, one sentence and one task."""

from rope_viz.ui import learn_page

learn_page.show()
