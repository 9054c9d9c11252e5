"""What no address can hold, such as a long spec or the user's files, stored for this session under names."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rope_viz.pictures import blob_store
from rope_viz.pictures.choices import Held, Kept
from rope_viz.ui.visitors import session_visitor


def invalidate() -> None:
    """Invalidate the cached `state.now`: at the start of a run and after a change."""
    st.session_state["now is current"] = False


def store_blob(key: str, content: bytes | None, *, of: object = None) -> str:
    """Store content that no address can hold for this session; return the name that pictures use, "" for None."""
    mine = st.session_state.setdefault("held", {})
    if content is None:
        mine.pop(key, None)
        invalidate()
        return ""
    known = mine.get(key)
    if known is None or known[0] != (of or content):
        salted = st.session_state.setdefault("salt", blob_store.salt()) + content
        known = mine[key] = (of or content, blob_store.name_of(salted), salted)
        invalidate()
    if blob_store.STORE.salted(known[1]) is None:
        blob_store.STORE.keep(known[2], session_visitor())
    return str(known[1])


def blob(key: str) -> bytes | None:
    """Return the content stored for this session under a key, or None."""
    known = st.session_state.get("held", {}).get(key)
    return None if known is None else known[2][blob_store.SALT :]


def contents() -> list[bytes]:
    """Return all contents of this session, salted, for a server that lacks them."""
    return [salted for _, _, salted in st.session_state.get("held", {}).values()]


def store_readable(choice: Kept[Any], content: bytes) -> None:
    """Store the content of a choice for this session. Raise `ValueError` with a sentence if it cannot be read."""
    blob_store.require_size(content, choice.largest)
    name = store_blob(choice.key, content)
    try:
        blob_store.STORE.load(name, choice.decode)
    except ValueError:
        store_blob(choice.key, None)
        raise


def load_held(choice: Kept[Any]) -> Held[Any] | None:
    """Return the decoded content of a choice, None if the session has none or it cannot be read now."""
    content = blob(choice.key)
    if content is None:
        return None
    # The same source again, so that a large content is not hashed in every run.
    name = store_blob(choice.key, content, of=st.session_state["held"][choice.key][0])
    try:
        return Held(name, blob_store.STORE.load(name, choice.decode))
    except ValueError as error:
        st.session_state[f"problem.{choice.key}"] = str(error)  # shown next to the choice
        return None
