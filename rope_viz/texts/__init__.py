"""Texts of the screen: `rope_viz/texts/<language>/<page>.toml`, one entry per sentence with named placeholders."""

from rope_viz.texts.texts import Sentence, Texts, join

__all__ = ["Sentence", "Texts", "join"]
