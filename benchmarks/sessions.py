"""A client of Streamlit's WebSocket: it connects as a page does, runs scripts, and sends values of controls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

STREAM = "/_stcore/stream"
FAILURES = (OSError, TimeoutError, websockets.WebSocketException)
"""Errors of a connection that was refused, closed or too slow."""


@dataclass
class Run:
    """What one run of a page sent: the session's id, {id of a control: kind of its element}, and error messages."""

    session: str = ""
    controls: dict[str, str] = field(default_factory=dict)
    exceptions: list[str] = field(default_factory=list)

    def list_controls(self, *kinds: str) -> list[str]:
        """Return the ids of all controls of some kinds."""
        return [id for id, kind in self.controls.items() if kind in kinds]


def connect(url: str, *, source: str = "", **options: Any) -> websockets.connect:
    """Return the connection of a page, from an address of this machine if `source` names one."""
    if source:
        options["local_addr"] = (source, 0)
    address = url.replace("http", "ws", 1) + STREAM
    return websockets.connect(address, subprotocols=["streamlit"], max_size=None, origin=url, **options)


def make_rerun(page: str, query: Mapping[str, str] | str, *states: WidgetState) -> bytes:
    """Return the message that runs a page, with values of its controls. `query` may be encoded already."""
    message = BackMsg()
    message.rerun_script.query_string = query if isinstance(query, str) else urlencode(query)
    message.rerun_script.page_name = page
    message.rerun_script.widget_states.widgets.extend(states)
    return message.SerializeToString()


async def finish_run(socket: websockets.ClientConnection, *, seconds: float = 60, shows: bytes = b"") -> Run:
    """Return what a run sent until its end.

    With `shows`, runs that send nothing with these bytes are passed over: a later message may have
    interrupted them. Raises `TimeoutError` if the server is silent for so many seconds.
    """
    run = Run()
    is_shown = not shows
    while True:
        raw = await asyncio.wait_for(socket.recv(), seconds)
        assert isinstance(raw, bytes)
        is_shown = is_shown or shows in raw

        answer = ForwardMsg()
        answer.ParseFromString(raw)
        kind = answer.WhichOneof("type")
        if kind == "new_session":
            run.session = answer.new_session.initialize.session_id
        elif kind == "delta":
            note_element(run, answer)
        elif kind == "script_finished" and is_shown:
            return run


def note_element(run: Run, answer: ForwardMsg) -> None:
    """Add the control or the error of one element to a run."""
    element = answer.delta.new_element
    kind = element.WhichOneof("type")
    if kind == "exception":
        run.exceptions.append(element.exception.message)
    elif kind is not None and (id := getattr(getattr(element, kind), "id", "")):
        run.controls[id] = kind


async def run_page(
    socket: websockets.ClientConnection, page: str, query: Mapping[str, str], *states: WidgetState
) -> Run:
    """Run a page once and return what it sent."""
    await socket.send(make_rerun(page, query, *states))
    return await finish_run(socket)
