"""The browser part of the frame: links within the tab, the connection banner, and stored configs and files."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from rope_viz.own_files import blob_store
from rope_viz.pages import registry
from rope_viz.picture.choices import StoredChoice
from rope_viz.storage.limits import BROWSER_CONTENT_BYTES
from rope_viz.ui import own_config, state
from rope_viz.ui.components.component import clean_message, component
from rope_viz.ui.components.sent_values import any_of, is_link, is_names
from rope_viz.ui.session import session
from rope_viz.ui.state import make_stored
from rope_viz.ui.visitors import session_reader


@functools.cache
def choices() -> dict[str, StoredChoice[Any]]:
    """Return the choices that the user types or uploads, by key."""
    return {
        key: choice for key, choice in registry.kept_choices().items() if choice.suffixes or choice.typed is not None
    }


def names() -> dict[str, str]:
    """Return this session's storable contents: key -> content name."""
    stored = session().stored
    return {key: stored[key].name for key in choices() if key in stored and stored[key].size <= BROWSER_CONTENT_BYTES}


def contents() -> dict[str, str]:
    """Return the contents that the browser has not confirmed, as content name -> base64."""
    stored, known = session().stored, session().names_in_browser
    found = {name: stored[key].salted for key, name in names().items() if name not in known}
    return {name: base64.b64encode(salted).decode() for name, salted in found.items() if salted is not None}


def record_stored_names(known: Any) -> None:
    """Record the names that the browser has stored or cannot store, so that they are not sent again."""
    session().names_in_browser = list(known) if is_names(known) else []


def bring_back(sent: Mapping[str, Any]) -> None:
    """Take over contents from the browser (key -> base64) where this session has none and can decode it."""
    mine = session().stored
    for key, text in sent.items():
        choice = choices().get(key)
        if choice is None or key in mine:
            continue
        if not isinstance(text, str) or len(text) > BROWSER_CONTENT_BYTES * 4 // 3 + 4:
            continue
        try:
            salted = base64.b64decode(text, validate=True)
            stored = make_stored(salted)
            value = blob_store.STORE.load(stored.name, choice.decode, session_reader())
        except (ValueError, binascii.Error):
            continue  # from an older release, or edited by hand
        mine[key] = stored
        if choice.typed is not None:
            session().texts[key] = dict(value)
            session().generations[key] = generation(key) + 1
    state.invalidate()


def _text_of(own: Mapping[str, Any]) -> str:
    """Return the text of a config that a browser sends, "" for anything else."""
    text = own.get("text")
    return text if isinstance(text, str) else ""


def generation(key: str) -> int:
    """Return the generation of a typed choice's fields, which grows when the browser restores their texts."""
    return session().generations.get(key, 0)


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
        "forgotten": session().is_forgotten,
        "held": names(),
        "contents": contents(),
        "restored": session().is_restored,
        "session": session().id,
    }
    show = component("navigation", root_class="rv-shell")
    show(KEY, data, _take_message, any_of(is_names, is_link), on_restore_change=_restore, on_reconnected_change=_rerun)


def clicked_link() -> tuple[str, dict[str, str]] | None:
    """Return the page and query of the link clicked before this run, once; None if there is none."""
    found, session().next_page = session().next_page, None
    return found


def _take_message(name: str, value: Any) -> None:
    if name == "stored":
        record_stored_names(value)
    elif name == "open" and is_link(value):
        session().next_page = value["page"], dict(value["query"])


def _rerun() -> None:
    """Do nothing: after a reconnect only the rerun is needed."""


def _restore() -> None:
    if session().is_restored:
        return
    session().is_restored = True
    what = state.as_mapping(clean_message(st.session_state[KEY].get("restore")))
    if own := state.as_mapping(what.get("own")):
        state.bring_back(_text_of(own), here=own.get("tab") is True)
    bring_back(state.as_mapping(what.get("held")))
