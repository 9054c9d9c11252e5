"""What no address can hold, such as a long spec or the user's files, stored for this session under names."""

from __future__ import annotations

import hashlib
import threading
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.pictures import blob_store
from rope_viz.pictures.choices import Held, Kept
from rope_viz.ui.visitors import session_visitor

SMALL = 64 << 10
"""Bytes of a content that a session keeps itself."""
_SESSIONS: dict[str, set[str]] = {}
"""The sessions that name a content, by its name."""
_LOCK = threading.Lock()


def invalidate() -> None:
    """Invalidate the cached `state.now`: at the start of a run and after a change."""
    st.session_state["now is current"] = False


class Stored(NamedTuple):
    """A content of this session: what it was made of, its name, its size, and the salted content if it is small.

    A large one is in the store only, which counts it. The user drops the file again should the store evict it.
    """

    of: object
    name: str
    size: int
    small: bytes | None

    @property
    def salted(self) -> bytes | None:
        """Return the salted content, or None if the store evicted it."""
        return self.small or blob_store.STORE.salted(self.name)


def make_stored(salted: bytes, of: object = None) -> Stored:
    """Store a salted content for this session. Raise `ValueError` if it is too large."""
    name = blob_store.STORE.keep(salted, session_visitor())
    with _LOCK:
        _SESSIONS.setdefault(name, set()).add(session_id())
    small = salted if len(salted) <= SMALL else None
    return Stored(of or mark(salted[blob_store.SALT :]), name, len(salted), small)


def mark(content: bytes) -> bytes:
    """Return what a content is compared by: itself, or the digest of a large one."""
    return content if len(content) <= SMALL else hashlib.sha256(content).digest()


def session_id() -> str:
    """Return the id of the running session, "" for none."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id


def release(session: str) -> None:
    """Forget what only this session named: it has ended."""
    with _LOCK:
        for names in _SESSIONS.values():
            names.discard(session)
        unnamed = [name for name, names in _SESSIONS.items() if not names]
        for name in unnamed:
            del _SESSIONS[name]
    blob_store.STORE.forget(unnamed)


def store_blob(key: str, content: bytes | None, *, of: object = None) -> str:
    """Store content that no address can hold for this session; return the name that pictures use, "" for None."""
    mine = st.session_state.setdefault("held", {})
    if content is None:
        mine.pop(key, None)
        invalidate()
        return ""
    known: Stored | None = mine.get(key)
    if known is None or known.of != (of or mark(content)):
        salted = st.session_state.setdefault("salt", blob_store.salt()) + content
        known = mine[key] = make_stored(salted, of)
        invalidate()
    elif blob_store.STORE.salted(known.name) is None:
        make_stored(st.session_state["salt"] + content)
    return known.name


def blob(key: str) -> bytes | None:
    """Return the content stored for this session under a key, or None."""
    known: Stored | None = st.session_state.get("held", {}).get(key)
    salted = None if known is None else known.salted
    return None if salted is None else salted[blob_store.SALT :]


def contents() -> list[bytes]:
    """Return all contents of this session, salted, for a server that lacks them."""
    found = (known.salted for known in st.session_state.get("held", {}).values())
    return [salted for salted in found if salted is not None]


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
    known: Stored | None = st.session_state.get("held", {}).get(choice.key)
    if known is None:
        return None
    if known.small is not None and blob_store.STORE.salted(known.name) is None:
        make_stored(known.small)
    try:
        return Held(known.name, blob_store.STORE.load(known.name, choice.decode))
    except blob_store.UnknownError:
        return None
    except ValueError as error:
        st.session_state[f"problem.{choice.key}"] = str(error)  # shown next to the choice
        return None
