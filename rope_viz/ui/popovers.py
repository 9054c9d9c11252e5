"""Popovers whose menus cannot bring an old value back.

The browser applies a value that the server sets only to a widget in the window, and a closed popover has none there.
Its menus send what they last showed with the next click elsewhere, and Streamlit takes that for a choice of the user.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import streamlit as st

from rope_viz.ui import query_params
from rope_viz.ui.session import session


@contextlib.contextmanager
def popover(label: str, key: str) -> Iterator[None]:
    """Put what is drawn inside into a popover; the app runs when it is opened or closed."""
    box = st.popover(label, key=key, on_change=query_params.catch_up)
    session().is_in_closed_popover = not box.open
    try:
        with box:
            yield
    finally:
        session().is_in_closed_popover = False


def record_shown(key: str) -> Callable[[], bool]:
    """Record the value of a widget that is about to be drawn.

    Return a function for its callback: whether the new value is only the old one that the browser still has.
    """
    shown, is_closed = session().shown_values, session().is_in_closed_popover
    if not is_closed:
        shown[key] = st.session_state[key]
    return lambda: is_closed and key in shown and st.session_state[key] == shown[key]
