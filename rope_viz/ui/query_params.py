"""The address as last written, which the browser may not know yet.

On a slow line, or with a busy server, a user may use a second control before the answer to the first has arrived. The
browser then sends its old address, Streamlit adopts it, and the first change would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.storage.limits import REMEMBERED_ADDRESSES
from rope_viz.ui.session import session


def write(query: Mapping[str, str]) -> None:
    """Write the address. A different address is one step for the Back button."""
    st.query_params.from_dict(dict(query))
    record_address(query)


def record_address(query: Mapping[str, str]) -> None:
    """Record the current address."""
    request, before = _without_ranges(query), session().addresses
    session().addresses = [*[each for each in before if each != request][-REMEMBERED_ADDRESSES:], request]


def catch_up() -> None:
    """Restore the last written query if the browser sent an older one; call it first in each callback.

    Navigation by Back and Forward is left alone.
    """
    context, addresses = get_script_run_ctx(), session().addresses
    if not addresses or context is None or context.is_history_navigation:
        return
    *earlier, last = addresses
    query = st.query_params.to_dict()
    if (known := _without_ranges(query)) in earlier:
        ranges = {key: value for key, value in query.items() if key not in known}
        st.query_params.from_dict({**last, **ranges})


def _without_ranges(query: Mapping[str, str]) -> dict[str, str]:
    """Drop the ranges of pictures, which the browser writes itself (`history.js`)."""
    return {key: value for key, value in query.items() if not key.startswith("axes-")}
