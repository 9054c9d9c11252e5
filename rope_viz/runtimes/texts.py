"""The texts of this room."""

from rope_viz.texts import Texts

TEXTS = Texts("runtimes")
