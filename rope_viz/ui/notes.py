"""Warnings about input that could not be used."""

from __future__ import annotations

import streamlit as st

from rope_viz.figures.words import plain


def warn(sentence: str) -> None:
    """Show a warning. Markdown is escaped, because the sentence may quote a link, a file or typed text."""
    st.warning(plain(sentence))
