"""Messages that arrive slowly, or wait for the pace of their page, count as those that a session keeps."""

import asyncio
from types import SimpleNamespace

import pytest
import uvicorn

from rope_viz.serving import arriving_messages, server
from rope_viz.serving.arriving_messages import CountedWebSocket
from rope_viz.storage.limits import COMPONENT_VALUE, MESSAGE_FRAMES
from rope_viz.storage.shares import Holdings, Shares


class Transport:
    aborted = False

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


@pytest.fixture
def held(monkeypatch):
    found = Holdings(Shares(10 * COMPONENT_VALUE, 5 * COMPONENT_VALUE))
    monkeypatch.setattr(arriving_messages, "MESSAGES", found)
    monkeypatch.setattr(arriving_messages.WebSocketsSansIOProtocol, "data_received", lambda self, data: None)
    base = arriving_messages.WebSocketsSansIOProtocol
    monkeypatch.setattr(base, "connection_lost", lambda self, error: setattr(self, "disconnected", True))
    return found


def connection(visitor, buffered=0, frames=(), queued=()):
    found = object.__new__(CountedWebSocket)
    found.client, found.transport, found.frames = (visitor, 1), Transport(), list(frames)
    found.conn = SimpleNamespace(reader=SimpleNamespace(buffer=bytearray(buffered)))
    found.queue, found.disconnected = asyncio.Queue(), False
    for content in queued:
        found.queue.put_nowait({"type": "websocket.receive", "bytes": content})
    return found


def test_half_a_message_counts_to_its_visitor(held):
    first = connection(
        "192.0.2.1", buffered=2 * COMPONENT_VALUE, frames=[bytes(COMPONENT_VALUE)], queued=[bytes(COMPONENT_VALUE)]
    )
    first.data_received(b"")
    assert held.shares.amount_of("192.0.2.1") == 4 * COMPONENT_VALUE
    assert not first.transport.aborted
    second = connection("192.0.2.1", buffered=2 * COMPONENT_VALUE)
    second.data_received(b"")
    assert second.transport.aborted
    other = connection("192.0.2.2", buffered=2 * COMPONENT_VALUE)
    other.data_received(b"")
    assert not other.transport.aborted
    first.conn.reader.buffer.clear()
    first.frames.clear()
    first.data_received(b"")
    assert held.shares.amount_of("192.0.2.1") == 0, "small messages do not count"
    other.connection_lost(None)
    other.data_received(b"")
    assert held.shares.total == 0


def test_message_in_many_parts_ends_its_connection(held):
    page = connection("192.0.2.1", frames=[b"."] * (MESSAGE_FRAMES + 1))
    page.data_received(b"")
    assert page.transport.aborted


def test_uvicorn_makes_counted_connections():
    config = uvicorn.Config(lambda scope, receive, send: None)
    config.load()
    protocol = SimpleNamespace(
        config=config,
        ws_protocol_class=config.ws_protocol_class,
        app=config.app,
        connection_made=None,
    )
    assert server.limit_messages(lambda: protocol)().ws_protocol_class is CountedWebSocket
