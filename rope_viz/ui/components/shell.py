"""What stands around every page in the browser: links that stay in the tab, a banner, the reader's config kept."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.figures.words import glossary
from rope_viz.ui import state
from rope_viz.ui.components.component import component, heard, hears

KEY = "shell"


def mount(pages: list[str], query: Mapping[str, str]) -> None:
    """One per run of the app. `query` is the choice, which a link without one of its own carries along."""
    data = {
        "pages": pages,
        "first": pages[0],
        "query": urlencode(query),
        "words": glossary.listed(),
        "own": state.own_text(),
        "forgotten": "forgotten" in st.session_state,
        "taken": heard(KEY),
        "session": st.session_state.setdefault("session", secrets.token_hex(8)),
    }
    show = component("shell", root_class="rv-shell")
    show(key=KEY, data=data, on_at_change=hears(KEY, _followed), on_own_change=_brought, on_back_change=_here)


def asked() -> tuple[str, dict[str, str]] | None:
    """The page that a link was clicked to before this run, and the link's own query; said once."""
    found: tuple[str, dict[str, str]] | None = st.session_state.pop("go", None)
    return found


def _followed(_: str, link: Any) -> None:
    if isinstance(link, Mapping) and isinstance(link.get("query"), Mapping):
        st.session_state["go"] = str(link.get("page")), {str(key): str(value) for key, value in link["query"].items()}


def _here() -> None:
    """The server is back: the run that follows is all that is wanted."""


def _brought() -> None:
    brought: Any = st.session_state[KEY].get("own")
    if isinstance(brought, Mapping):
        state.bring_back(str(brought.get("text")), here=brought.get("tab") is True)
