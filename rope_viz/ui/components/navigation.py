"""The browser part of the frame: links within the tab, the connection banner, and stored configs and files."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.ui import browser_storage, own_config, state
from rope_viz.ui.components.component import component

KEY = "shell"


def mount(
    page: str, pages: list[str], query: Mapping[str, str], chip: list[str], share: Mapping[str, str | None]
) -> None:
    """Mount the shell of a page, once per run.

    `query` is the choice, which links without a query carry along; `chip` names the model and its scaling;
    `share` is what the header's menu copies, label -> text, or None for the page's address.
    """
    data = {
        "page": "" if page == pages[0] else page,
        "pages": pages,
        "first": pages[0],
        "query": urlencode(query),
        "chip": chip,
        "share": dict(share),
        "own": own_config.own_text(),
        "forgotten": "forgotten" in st.session_state,
        "held": browser_storage.names(),
        "contents": browser_storage.contents(),
        "restored": "brought" in st.session_state,
        "session": st.session_state.setdefault("session", secrets.token_hex(8)),
    }
    show = component("navigation", root_class="rv-shell")
    show(KEY, data, _take_message, on_restore_change=_restore, on_reconnected_change=_rerun)


def clicked_link() -> tuple[str, dict[str, str]] | None:
    """Return the page and query of the link clicked before this run, once; None if there is none."""
    found: tuple[str, dict[str, str]] | None = st.session_state.pop("go", None)
    return found


def _take_message(name: str, value: Any) -> None:
    if name == "stored":
        browser_storage.record_stored_names(value)
    elif isinstance(value, Mapping) and isinstance(value.get("query"), Mapping):
        st.session_state["go"] = str(value.get("page")), {str(key): str(each) for key, each in value["query"].items()}


def _rerun() -> None:
    """Do nothing: after a reconnect only the rerun is needed."""


def _restore() -> None:
    if "brought" in st.session_state:
        return
    st.session_state["brought"] = True
    what = state.as_mapping(st.session_state[KEY].get("restore"))
    if own := state.as_mapping(what.get("own")):
        state.bring_back(str(own.get("text")), here=own.get("tab") is True)
    browser_storage.bring_back(state.as_mapping(what.get("held")))
