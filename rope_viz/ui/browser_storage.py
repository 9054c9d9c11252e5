"""The user's vectors and files, which no address can hold: the browser stores them for a reload or another server."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Mapping
from typing import Any

import streamlit as st

from rope_viz.pages import registry
from rope_viz.picture import blob_store
from rope_viz.picture.choices import Kept
from rope_viz.ui import state
from rope_viz.ui.state import make_stored

LARGEST = 3 << 20
"""Bytes of one stored content: a tab's storage holds about five million characters."""


@functools.cache
def choices() -> dict[str, Kept[Any]]:
    """Return the choices that the user types or uploads, by key."""
    return {
        key: choice for key, choice in registry.kept_choices().items() if choice.suffixes or choice.typed is not None
    }


def names() -> dict[str, str]:
    """Return this session's storable contents: key -> content name."""
    held = st.session_state.get("held", {})
    return {key: held[key].name for key in choices() if key in held and held[key].size <= LARGEST}


def contents() -> dict[str, str]:
    """Return the contents that the browser has not confirmed, as content name -> base64."""
    held, known = st.session_state.get("held", {}), st.session_state.get("with browser", ())
    found = {name: held[key].salted for key, name in names().items() if name not in known}
    return {name: base64.b64encode(salted).decode() for name, salted in found.items() if salted is not None}


def record_stored_names(known: Any) -> None:
    """Record the names that the browser has stored or cannot store, so that they are not sent again."""
    st.session_state["with browser"] = [str(name) for name in known] if isinstance(known, list) else []


def bring_back(sent: Mapping[str, Any]) -> None:
    """Take over contents from the browser (key -> base64) where this session has none and can decode it."""
    mine = st.session_state.setdefault("held", {})
    for key, text in sent.items():
        choice = choices().get(key)
        if choice is None or key in mine:
            continue
        try:
            salted = base64.b64decode(str(text), validate=True)
            stored = make_stored(salted)
            value = blob_store.STORE.load(stored.name, choice.decode)
        except (ValueError, binascii.Error):
            continue  # from an older release, or edited by hand
        mine[key] = stored
        if choice.typed is not None:
            st.session_state[f"texts.{key}"] = dict(value)
            st.session_state[f"turn.{key}"] = turn(key) + 1
    state.invalidate()


def turn(key: str) -> int:
    """Return the generation of a typed choice's fields, which grows when the browser restores their texts."""
    return int(st.session_state.get(f"turn.{key}", 0))
