"""Evaluation of served models, and the search for better frequencies."""

from rope_viz.texts import Texts

TEXTS = Texts("evaluation")
