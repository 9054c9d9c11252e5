"""A way in: twelve steps, each one picture, one sentence and one thing to do."""

from rope_viz.ui import tour

tour.show()
