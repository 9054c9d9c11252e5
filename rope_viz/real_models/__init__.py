"""Real models: GGUF files, captures of q and k, measurements of heads and losses."""

from rope_viz.texts import Texts

TEXTS = Texts("real_models")
