"""RoPE in eight scenes, each with a picture to move, a prediction and a task."""

from __future__ import annotations

import streamlit as st

from rope_viz.pages import learn
from rope_viz.pages.learn.figures import TEXTS
from rope_viz.ui import page


def show() -> None:
    """Show the page. Each scene has a heading of its own, so the page's is for screen readers."""
    with st.container(key="learn"):
        page.start(TEXTS("heading"))
        page.show(learn.story)


show()
