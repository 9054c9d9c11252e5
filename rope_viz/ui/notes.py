"""What could not be taken as it came, said in one sentence that is shown as it stands."""

from __future__ import annotations

import streamlit as st

from rope_viz.figures.words.common import plain


def warn(sentence: str) -> None:
    """A warning. It may quote what a link, a file or a typed text holds: Markdown has no power in it."""
    st.warning(plain(sentence))
