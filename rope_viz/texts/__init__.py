"""Texts of the screen: one entry per sentence, in a page's `texts.<language>.toml` or, if shared, in `<language>/`."""

from rope_viz.texts.texts import Sentence, Texts, join

__all__ = ["Sentence", "Texts", "join"]
