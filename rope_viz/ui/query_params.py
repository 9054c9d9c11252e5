"""The address of this session: what was written last, although the browser may not have heard of it yet.

A control is used before the answer to the one before has come, over a slow line or where the server is busy. Then the
browser asks with the address that it still has, and Streamlit believes it: what was written meanwhile would be undone.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

RECENT = 20
"""Addresses that the browser may still have."""


def write(query: Mapping[str, str]) -> None:
    """Write the address: one step for the Back button, where it is another."""
    st.query_params.from_dict(dict(query))
    seen(query)


def seen(query: Mapping[str, str]) -> None:
    """From now on this is the address."""
    now, before = _ours(query), st.session_state.get("addresses", [])
    st.session_state["addresses"] = [*[each for each in before if each != now][-RECENT:], now]


def catch_up() -> None:
    """In a callback: bring Streamlit to what was written last, where it has an address from before that.

    Not where the reader went there by Back and Forward.
    """
    *earlier, last = st.session_state.get("addresses", [None])
    context = get_script_run_ctx()
    if last is None or context is None or context.is_history_navigation:
        return
    query = st.query_params.to_dict()
    if (known := _ours(query)) in earlier:
        ranges = {key: value for key, value in query.items() if key not in known}
        st.query_params.from_dict(last | ranges)


def _ours(query: Mapping[str, str]) -> dict[str, str]:
    """Without the ranges of pictures, which the browser writes itself (`address.js`)."""
    return {key: value for key, value in query.items() if not key.startswith("axes-")}
