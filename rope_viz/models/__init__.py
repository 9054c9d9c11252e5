"""How people say it: config.json of either generation, uploads, links, and a catalog of real models."""

from rope_viz.texts import Texts

TEXTS = Texts("configs")
