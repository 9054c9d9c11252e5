"""Texts of the screen: one entry per sentence, in a page's `texts.<language>.toml` or, if shared, in `<language>/`."""

from rope_viz.texts.languages import cache_by_language, cached_text_property, current_language, use_language
from rope_viz.texts.texts import Sentence, Texts, Translated, TranslatedOptions, join, translate

__all__ = [
    "Sentence",
    "Texts",
    "Translated",
    "TranslatedOptions",
    "cache_by_language",
    "cached_text_property",
    "current_language",
    "join",
    "translate",
    "use_language",
]
