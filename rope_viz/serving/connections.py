"""What ASGI does not tell of a connection: whether its client has left, and how to end it at once.

`watch` adds both to a protocol of uvicorn. Under another server nothing is known, and nothing is ended.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from starlette.types import Receive, Scope, Send

KEY = "rope_viz.connection"
"""The key of a connection's protocol in the scope of its requests."""
CLOSED = (7, 8)
"""States of Linux's TCP_INFO after the client has closed: TCP_CLOSE and TCP_CLOSE_WAIT."""


def watch(protocol: Any) -> None:
    """Let a new protocol of uvicorn drop clients that have left, and put it into the scope of requests.

    When many clients leave early, the server would otherwise do all the work for those who wait no longer before it
    comes to the others.
    """
    app, made = protocol.app, protocol.connection_made

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if has_left(protocol.transport):
            await drop(protocol.transport, receive)
        else:
            await app({**scope, KEY: protocol}, receive, send)

    def connection_made(transport: asyncio.Transport) -> None:
        if has_left(transport):
            transport.set_protocol(asyncio.Protocol())
            transport.abort()
        else:
            made(transport)

    protocol.app, protocol.connection_made = serve, connection_made


async def drop(transport: asyncio.Transport, receive: Receive) -> None:
    """End a connection, and wait until its protocol knows, which needs no answer then."""
    transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass


def has_left(transport: asyncio.Transport) -> bool:
    """Return whether a client has closed its connection, also if its last bytes were not read yet (Linux)."""
    connection = transport.get_extra_info("socket")
    if connection is None or not hasattr(socket, "TCP_INFO") or connection.family == getattr(socket, "AF_UNIX", None):
        return False
    try:
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in CLOSED
    except OSError:
        return True


def has_client_left(scope: Scope) -> bool:
    """Return whether the client of a request has left, where that is known."""
    protocol = scope.get(KEY)
    return protocol is not None and has_left(protocol.transport)


def abort(scope: Scope) -> None:
    """End the connection of a request at once, with whatever its client has not taken."""
    protocol = scope.get(KEY)
    if protocol is not None:
        protocol.transport.abort()


def abort_if_unread(scope: Scope, seconds: float) -> None:
    """End the connection of an answered request if its client has not taken the rest within some seconds.

    The rest is at most two parts; the server itself would wait for ever.
    """
    protocol = scope.get(KEY)
    if protocol is None or not protocol.transport.get_write_buffer_size():
        return
    answered = protocol.cycle

    def end() -> None:
        # The next request of a connection has a cycle of its own; its answer was begun after this one was taken.
        if protocol.cycle is answered and protocol.transport.get_write_buffer_size():
            protocol.transport.abort()

    asyncio.get_running_loop().call_later(seconds, end)
