"""What every page stands in: the process set up once, the address followed, the sidebar, then the page."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from rope_viz.ui import controls, state

ASSETS = Path(__file__).parents[2] / "assets"

# Streamlit leaves much room around everything; an instrument shows its picture on the first screen.
STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 4.2rem 2.2rem 3rem; max-width: 1240px; }
[data-testid="stSidebarContent"] [data-testid="stVerticalBlock"] { gap: 0.8rem; }
[data-testid="stMainBlockContainer"] h1 { font-size: 1.7rem; padding: 0 0 0.1rem; }
[data-testid="stMainBlockContainer"] h2 { font-size: 1.2rem; padding: 1.4rem 0 0.2rem; }
@media (max-width: 640px) { [data-testid="stMainBlockContainer"] { padding: 4rem 0.9rem 2rem; } }
</style>"""


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
