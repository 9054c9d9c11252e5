"""The user's own config in this session: a file that was dropped or pasted, or a config that a link carried."""

from __future__ import annotations

import streamlit as st

from rope_viz.models.user_config import Upload
from rope_viz.picture import config_link, configs

MOST = 8
"""Number of the user's files that a session remembers, for Back."""


def own() -> Upload | None:
    """Return the user's own config, or None."""
    return st.session_state.get("own")


def set_own(config: Upload | None) -> None:
    """Make this the user's own config; None removes it."""
    st.session_state["own"] = config


def remember_upload(upload: Upload) -> None:
    """Make a file the user's own config, and keep it for a return to its address."""
    uploads = {**st.session_state.get("uploads", {}), config_link.write_config(upload): upload}
    st.session_state["uploads"] = dict(list(uploads.items())[-MOST:])
    st.session_state.pop("forgotten", None)
    set_own(upload)


def find_upload(link: str) -> Upload | None:
    """Return the file of this session whose link has this value, None if there is none."""
    found: Upload | None = st.session_state.get("uploads", {}).get(link)
    return found


def is_from_link() -> bool:
    """True if a link carried the config, so that it has only the keys that the project reads."""
    mine = own()
    return mine is not None and mine not in st.session_state.get("uploads", {}).values()


def own_text() -> str:
    """Return the user's file in the form stored by the browser, "" if there is none."""
    mine = own()
    return "" if mine is None or is_from_link() else configs.upload_bytes(mine).decode()


def forget() -> None:
    """Remove the user's own config from this session, and let the browser remove it."""
    for key in ("own", "uploads"):
        st.session_state.pop(key, None)
    st.session_state.get("held", {}).pop("own", None)
    st.session_state["forgotten"] = True
