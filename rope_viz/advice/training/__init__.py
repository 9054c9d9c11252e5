"""Trainers against servers."""

from rope_viz.texts import Texts

TEXTS = Texts("training")
