"""What stands around every page in the browser: links that stay in the tab, a banner, what the reader brought kept."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.ui import browser_storage, state
from rope_viz.ui.components.component import component, heard, hears

KEY = "shell"


def mount(pages: list[str], query: Mapping[str, str]) -> None:
    """One per run of the app. `query` is the choice, which a link without one of its own carries along."""
    data = {
        "pages": pages,
        "first": pages[0],
        "query": urlencode(query),
        "own": state.own_text(),
        "forgotten": "forgotten" in st.session_state,
        "held": browser_storage.names(),
        "contents": browser_storage.contents(),
        "taken": heard(KEY),
        "heard": "brought" in st.session_state,
        "session": st.session_state.setdefault("session", secrets.token_hex(8)),
    }
    show = component("shell", root_class="rv-shell")
    show(key=KEY, data=data, on_at_change=hears(KEY, _said), on_brought_change=_brought, on_back_change=_here)


def asked() -> tuple[str, dict[str, str]] | None:
    """The page that a link was clicked to before this run, and the link's own query; said once."""
    found: tuple[str, dict[str, str]] | None = st.session_state.pop("go", None)
    return found


def _said(name: str, value: Any) -> None:
    if name == "kept":
        browser_storage.told(value)
    elif isinstance(value, Mapping) and isinstance(value.get("query"), Mapping):
        st.session_state["go"] = str(value.get("page")), {str(key): str(each) for key, each in value["query"].items()}


def _here() -> None:
    """The server is back: the run that follows is all that is wanted."""


def _brought() -> None:
    if "brought" in st.session_state:
        return
    st.session_state["brought"] = True
    what = state.as_mapping(st.session_state[KEY].get("brought"))
    if own := state.as_mapping(what.get("own")):
        state.bring_back(str(own.get("text")), here=own.get("tab") is True)
    browser_storage.bring_back(state.as_mapping(what.get("held")))
