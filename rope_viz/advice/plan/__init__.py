"""How to reach a longer context, and the config for it."""

from rope_viz.texts import Texts

TEXTS = Texts("plan")
