"""Bytes of KV cache and weights, and the number of parameters."""

from rope_viz.texts import Texts

TEXTS = Texts("memory")
