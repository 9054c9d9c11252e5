"""Limits of Streamlit's sessions: how many there are, how large their messages and uploads may be, and how they end.

Streamlit 1.67 limits the size of one file and of one message only. `install` puts our storages in the place of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.runtime import memory_session_storage, memory_uploaded_file_manager
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.session_manager import SessionInfo, SessionStorage
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from rope_viz.own_files.outside import HERE, Reader
from rope_viz.pages.registry import ORDER
from rope_viz.serving.page_messages import Pace, cost_of, is_run, screen
from rope_viz.serving.static_middleware import message_page, page_of
from rope_viz.storage.limits import (
    ALL_MESSAGE_BYTES,
    COMPONENT_VALUE,
    FEW_PAGES,
    FIRST_RUN_SECONDS,
    LOST_SESSION_SECONDS,
    LOST_SESSIONS,
    MESSAGE_BURST,
    MESSAGE_BURST_OF_VISITOR,
    MESSAGE_RATE,
    MESSAGE_RATE_OF_VISITOR,
    OPEN_PAGES,
    RESERVED_PAGES,
    SHARE_OF_PAGES,
    UPLOAD_BYTES,
    UPLOAD_BYTES_OF_VISITOR,
)
from rope_viz.storage.shares import Holdings, Shares
from rope_viz.texts import Texts
from rope_viz.ui import own_config, state
from rope_viz.ui.visitors import CONNECTION, find_visitor, visitor_name

TEXTS = Texts("app")
SLEEP = 4001
"""The code that closes a page until it is used again (`web/inline/sleep.js`)."""
STREAM = "/_stcore/stream"
MESSAGES = Holdings(Shares(ALL_MESSAGE_BYTES, ALL_MESSAGE_BYTES // SHARE_OF_PAGES))
"""The bytes of messages: those that arrive, the last one of each page, and the texts that its session keeps."""


def install() -> None:
    """Let Streamlit make our storages. It takes both classes from these modules when the app starts."""
    memory_uploaded_file_manager.MemoryUploadedFileManager = Uploads  # type: ignore[misc]
    memory_session_storage.MemorySessionStorage = LostSessions  # type: ignore[misc, assignment]


class OpenPages:
    """Middleware that gives each page a place, a pace for its messages, and room for what its session keeps of them.

    A visitor with too many open pages gets a page that says so; those that are open go on.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int = OPEN_PAGES,
        messages: Holdings | None = None,
        patience: float = FIRST_RUN_SECONDS,
        reader: Reader = HERE,
    ) -> None:
        self.app, self.patience, self.reader = app, patience, reader
        self.places = Shares(most, most // SHARE_OF_PAGES)
        self.bytes = messages or MESSAGES
        self._pages: set[OpenPage] = set()
        self._paces: dict[str, Pace] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = visitor_name((scope.get("client") or ("",))[0])
        if scope["type"] == "websocket" and scope["path"].endswith(STREAM):
            if self.is_full(visitor) and not self._make_room(visitor):
                # The handshake is refused, and Streamlit's page tries again.
                return await send({"type": "websocket.close", "code": 1013})
            return await self._serve(visitor, scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "GET" and is_page(scope["path"]) and self.is_closed(visitor):
            page = message_page(TEXTS("sessions.title"), TEXTS("sessions.full", most=self.places.most_of_visitor))
            headers = {"retry-after": "20", "refresh": "20", "cache-control": "no-store"}
            return await HTMLResponse(page, 503, headers)(scope, receive, send)
        return await self.app(scope, receive, send)

    def is_full(self, visitor: str) -> bool:
        """True if no place is free for a visitor: the last ones are for visitors with few pages."""
        if not self.places.has_room(visitor):
            return True
        reserved = RESERVED_PAGES if self.places.amount_of(visitor) >= FEW_PAGES else 0
        return self.places.total + reserved >= self.places.most

    def is_closed(self, visitor: str) -> bool:
        """True if a visitor cannot have another page, even if a quiet one of somebody else goes."""
        return self.is_full(visitor) and self._find_quietest(visitor) is None

    def _find_quietest(self, visitor: str) -> OpenPage | None:
        """Return the page that goes for one of this visitor, None if there is none.

        It is the one that was quiet longest, of the visitors with many.
        """
        if self.places.amount_of(visitor) >= min(FEW_PAGES, self.places.most_of_visitor):
            return None
        many = [page for page in self._pages if self.places.amount_of(page.visitor) > FEW_PAGES]
        return min(many, key=lambda page: page.used, default=None)

    def _make_room(self, visitor: str) -> bool:
        quietest = self._find_quietest(visitor)
        if quietest is None:
            return False
        self._leave(quietest)
        # Not awaited: nobody else may take the place meanwhile.
        closing = asyncio.create_task(quietest.close(SLEEP))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return True

    async def _serve(self, visitor: str, scope: Scope, receive: Receive, send: Send) -> None:
        page = OpenPage(self, visitor, receive, send)
        self._pages.add(page)
        self.places.take(visitor)
        CONNECTION.set(page)
        try:
            await self.app(scope, page.receive, page.send)
        finally:
            self._leave(page)

    def _leave(self, page: OpenPage) -> None:
        """Give the place of a page to others, once."""
        if page in self._pages:
            self._pages.remove(page)
            self.places.give_back(page.visitor)
            self.bytes.end(page.id)

    def pace_of(self, visitor: str) -> Pace:
        """Return the pace of a visitor, which outlives the visitor's pages: a new page brings no new burst."""
        if visitor not in self._paces:
            self._paces = {name: pace for name, pace in self._paces.items() if not pace.is_rested}
            self._paces[visitor] = Pace(MESSAGE_BURST_OF_VISITOR, MESSAGE_RATE_OF_VISITOR)
        return self._paces[visitor]


class OpenPage:
    """The connection of one page: holds it back to its pace, and counts what its session keeps of the messages."""

    def __init__(self, pages: OpenPages, visitor: str, receive: Receive, send: Send) -> None:
        self.pages, self.visitor, self._receive, self._send = pages, visitor, receive, send
        self.id = str(id(self))
        self.pace = Pace(MESSAGE_BURST, MESSAGE_RATE)
        self.refusal = ""
        self.reader = pages.reader
        self.state = 0
        self.has_run = self.is_closed = False
        self.opened = self.used = time.monotonic()

    async def receive(self) -> Message:
        """Return the next message when its turn has come. A page that asks for no run is closed."""
        message = await self._receive_soon()
        if message["type"] != "websocket.receive":
            return message
        content = message.get("bytes")
        size = len(content or message.get("text") or b"")
        cost = cost_of(size)
        has_room = self._hold(max(size, self.state))
        wait = max(self.pace.take(cost), self.pages.pace_of(self.visitor).take(cost))
        if wait:
            await asyncio.sleep(wait)
        self.used = time.monotonic()
        if content is None:
            return message

        self.has_run = self.has_run or is_run(content)
        short, is_shortened = screen(content)
        if is_shortened:
            self.refusal = "messages.too_large"
        if not has_room and not self._hold(max(len(short), self.state)):
            self.refusal = "messages.full"
            short, _ = screen(content, most=COMPONENT_VALUE)
        return {**message, "bytes": short}

    def keep(self, size: int) -> bool:
        """Count what the session keeps after a run, in place of the message; return whether there is room for it."""
        self.state = size
        return self._hold(size)

    def _hold(self, size: int) -> bool:
        return self.pages.bytes.put(self.id, self.visitor, "messages", size)

    async def _receive_soon(self) -> Message:
        """Return the next message, or a disconnect if the page has not asked for a run in time."""
        if self.has_run:
            return await self._receive()
        left = self.opened + self.pages.patience - time.monotonic()
        try:
            return await asyncio.wait_for(self._receive(), max(0.0, left))
        except TimeoutError:
            await self.close(SLEEP)
            return {"type": "websocket.disconnect", "code": SLEEP}

    async def send(self, message: Message) -> None:
        """Pass a message on, unless the page was closed here."""
        if self.is_closed:
            raise OSError("this page was closed to make room")  # Starlette ends the connection
        await self._send(message)

    async def close(self, code: int) -> None:
        """Close the connection: the app then receives a disconnect."""
        self.is_closed = True
        with contextlib.suppress(Exception):
            await self._send({"type": "websocket.close", "code": code})


def is_page(path: str) -> bool:
    """Return whether a path is that of a page."""
    return (page_of(path) or "home") in ORDER


class LostSessions(SessionStorage):
    """Sessions whose page lost its connection: each ends soon, and with it everything that only it holds.

    A page that comes back later sends its choices, config and files again.
    """

    def __init__(
        self, *, seconds: float = LOST_SESSION_SECONDS, most: int = LOST_SESSIONS, ttl_seconds: int = 0
    ) -> None:
        # Streamlit sets ttl_seconds by server.disconnectedSessionTTL. Its storage ends a session only when another
        # one is stored.
        self.seconds, self.most = seconds, most
        self._sessions: OrderedDict[str, tuple[SessionInfo, asyncio.TimerHandle]] = OrderedDict()

    def get(self, session_id: str) -> SessionInfo | None:
        found = self._sessions.get(session_id)
        return found[0] if found else None

    def save(self, session_info: SessionInfo) -> None:
        """Keep a session for a while, and end the oldest beyond the most."""
        id = session_info.session.id
        timer = asyncio.get_running_loop().call_later(self.seconds, self._end, id)
        self._sessions[id] = session_info, timer
        if len(self._sessions) > self.most:
            self._end(next(iter(self._sessions)))

    def delete(self, session_id: str) -> None:
        found = self._sessions.pop(session_id, None)
        if found:
            found[1].cancel()

    def list(self) -> list[SessionInfo]:
        return [info for info, _ in self._sessions.values()]

    def _end(self, id: str) -> None:
        info, timer = self._sessions.pop(id)
        timer.cancel()
        info.session.shutdown()


class Uploads(MemoryUploadedFileManager):
    """Streamlit's uploaded files, with a limit for each visitor and for all.

    A callback takes the bytes with `take_upload`. Streamlit alone would keep every file until its session ends.
    """

    def __init__(self, upload_endpoint: str, *, most: int = UPLOAD_BYTES, share: int = UPLOAD_BYTES_OF_VISITOR) -> None:
        super().__init__(upload_endpoint)
        self.bytes = Holdings(Shares(most, share))

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Keep a file. Raise `HTTPException` if its visitor has too many that no page has taken."""
        if not self.bytes.put(session_id, find_visitor(session_id), file.file_id, len(file.data)):
            raise HTTPException(413, TEXTS("sessions.uploads", most=self.bytes.shares.most_of_visitor >> 20))
        super().add_file(session_id, file)

    def remove_file(self, session_id: str, file_id: str) -> None:
        self.bytes.drop(session_id, file_id)
        super().remove_file(session_id, file_id)

    def remove_session_files(self, session_id: str) -> None:
        """Remove everything that a session held: Streamlit calls this when a session ends."""
        self.bytes.end(session_id)
        super().remove_session_files(session_id)
        own_config.HELD.end(session_id)
        state.release(session_id)

    def empty(self, session_id: str, file_id: str) -> None:
        """Drop the bytes of a file; its name stays, for the widget that shows it."""
        for file in self.get_files(session_id, [file_id]):
            self.add_file(session_id, file._replace(data=b""))
