"""Who a request comes from: limits of memory and of long jobs hold for each visitor."""

from __future__ import annotations

import ipaddress

import streamlit as st
from streamlit import runtime


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
