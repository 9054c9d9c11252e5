"""Who a request comes from, because limits hold for each visitor; and the connection of a page that runs."""

from __future__ import annotations

import ipaddress
from contextvars import ContextVar
from typing import Protocol

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from rope_viz.own_files.outside import HERE, Reader
from rope_viz.storage.limits import COMPONENT_VALUE, CONFIG_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")


def visitor_name(host: str) -> str:
    """Return the visitor of a network address: itself, of IPv6 the network of 64 bits that one client has."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def session_visitor() -> str:
    """Return the visitor of the running session, as `visitor_name` does for that browser's requests; "" for none."""
    if not runtime.exists():
        return ""
    # Streamlit names no address of this machine.
    return visitor_name(st.context.ip_address or "127.0.0.1")


def find_visitor(session_id: str) -> str:
    """Return the visitor of a session with a connection."""
    client = runtime.get_instance().get_client(session_id) if runtime.exists() else None
    context = client.client_context if client else None
    # Streamlit names no address of this machine.
    return visitor_name((context.remote_ip if context else None) or "127.0.0.1")


class Connection(Protocol):
    """The connection of a page, for its runs."""

    refusal: str
    """The key of the sentence that says why something was left out of a message; "" if nothing was."""
    reader: Reader
    """What reads contents from outside for the page's session."""

    def keep(self, size: int) -> bool:
        """Count the bytes that the page's session keeps after a run; return whether there is room for them."""


CONNECTION: ContextVar[Connection | None] = ContextVar("connection", default=None)
"""The connection whose message is handled, or whose page runs."""


def session_reader() -> Reader:
    """Return what reads contents from outside for the running session: that of its server, else this process."""
    page = CONNECTION.get()
    return HERE if page is None else page.reader


def take_refusal() -> str:
    """Return why something was left out of a message of the running page, once; "" if nothing was."""
    page = CONNECTION.get()
    if page is None or not page.refusal:
        return ""
    reason, page.refusal = page.refusal, ""
    return str(TEXTS(reason, most=COMPONENT_VALUE >> 10, config=CONFIG_BYTES >> 20))


def take_upload(file: UploadedFile) -> bytes:
    """Return the bytes of a dropped file, and let the server drop its own.

    Streamlit keeps them until the session ends. Our storage of uploads (`serving/session_limits.py`) has `empty`.
    """
    content = file.getvalue()
    context = get_script_run_ctx()
    empty = None if context is None else getattr(context.uploaded_file_mgr, "empty", None)
    if context is not None and empty is not None:
        empty(context.session_id, file.file_id)
        file.seek(0)
        file.truncate()
    return content
