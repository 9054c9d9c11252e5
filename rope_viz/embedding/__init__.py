"""Rotary embeddings and their numbers: specs, scaling methods, spectrum, exact angles, position ids."""

from rope_viz.texts import Texts

TEXTS = Texts("embedding")
