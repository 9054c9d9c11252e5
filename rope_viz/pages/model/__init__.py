"""My model: how to reach a context, and what each runtime computes from the config."""

from rope_viz.picture.page import Page

PAGE = Page("model", door="model")
"""It has two groups of pictures, a folder each."""
