"""What every page stands in: the process set up once, the address followed, the sidebar, then the page."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from rope_viz.ui import controls, state

ASSETS = Path(__file__).parents[2] / "assets"

STYLE = Path(__file__).with_name("frame.css")


def run(pages: Sequence[Any]) -> None:
    """The whole app: one call per run."""
    icon = ASSETS / "icon.svg"
    st.set_page_config(page_title="RoPE Viz", page_icon=str(icon), layout="wide")
    st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(icon))
    settle()
    page = st.navigation(list(pages), position="top")
    st.html(STYLE)
    state.follow_link(page.url_path)
    controls.sidebar()
    controls.messages()
    page.run()


@st.cache_resource(show_spinner=False)
def settle() -> None:
    """Take everything that was imported out of the garbage collector's rounds, which are most of a rerun's time."""
    gc.collect()
    gc.freeze()
