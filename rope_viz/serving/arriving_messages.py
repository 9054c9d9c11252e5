"""Bytes of messages that still arrive, or wait to be taken: they count as those that a session keeps.

uvicorn 0.54 buffers a whole message of each connection before the app sees it.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from rope_viz.serving.session_limits import MESSAGES
from rope_viz.storage.limits import COMPONENT_VALUE, MESSAGE_FRAMES
from rope_viz.ui.visitors import visitor_name


class CountedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's connection, which ends if its visitor's messages take more than they may. The page then reconnects."""

    def data_received(self, data: bytes) -> None:
        """Take bytes from the network."""
        super().data_received(data)
        if not self._count() and not self.transport.is_closing():
            self.transport.abort()

    async def receive(self) -> Any:
        """Return the next message to the app."""
        message = await super().receive()
        self._count()
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        MESSAGES.end(self._holder)

    @property
    def _holder(self) -> str:
        return f"arriving {id(self)}"

    def _count(self) -> bool:
        """Count what has arrived and was not taken; return whether there is room for it."""
        if len(self.frames) > MESSAGE_FRAMES:
            return False
        waiting = [event.get("bytes") or event.get("text") or b"" for event in self.queue._queue]  # type: ignore[attr-defined]
        size = len(self.conn.reader.buffer) + sum(map(len, self.frames)) + sum(map(len, waiting))
        # The app reads on after the connection is lost, and its bytes must not count again.
        if size <= COMPONENT_VALUE or self.disconnected:
            MESSAGES.end(self._holder)
            return True
        return MESSAGES.put(self._holder, visitor_name((self.client or ("",))[0]), "arriving", size)
