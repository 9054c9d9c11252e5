"""Limits of Streamlit's sessions: how many there are, how large their messages and uploads may be, and how they end.

Streamlit 1.67 limits the size of one file and of one message only. `install` puts our storages in the place of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.runtime import memory_session_storage, memory_uploaded_file_manager
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.session_manager import SessionInfo, SessionStorage
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from rope_viz.pages.registry import ORDER
from rope_viz.texts import Texts
from rope_viz.ui import state
from rope_viz.ui.static_middleware import message_page, page_of
from rope_viz.ui.visitors import find_visitor, visitor_name

TEXTS = Texts("app")
MOST = 208
"""Open pages."""
SHARE = 2
"""One visitor has at most this part of the open pages and messages: a half, as a classroom may have one address."""
LARGEST_MESSAGE = 6 << 20
"""Bytes of one message from a page: a pasted config, and the values of all other controls."""
MOST_MESSAGES = 16 << 20
"""Bytes of the last messages of all open pages, which Streamlit keeps as their state."""
MOST_UPLOADS = 48 << 20
"""Bytes of all uploaded files that no page has taken yet."""
UPLOADS_OF_VISITOR = 32 << 20
"""Bytes of one visitor's: one file of the largest size that Streamlit's settings allow."""
SECONDS = 20.0
"""Seconds for which a page that lost its connection keeps its session."""
MOST_LOST = 48
"""Sessions that wait for their page."""
STREAM = "/_stcore/stream"


def install() -> None:
    """Let Streamlit make our storages. It takes both classes from these modules when the app starts."""
    memory_uploaded_file_manager.MemoryUploadedFileManager = Uploads  # type: ignore[misc]
    memory_session_storage.MemorySessionStorage = LostSessions  # type: ignore[misc, assignment]


class OpenPages:
    """Middleware that counts the connections of pages and the bytes of their last messages.

    A visitor with too many open pages gets a page that says so; those that are open go on.
    """

    def __init__(self, app: ASGIApp, *, most: int = MOST, most_bytes: int = MOST_MESSAGES) -> None:
        self.app, self.most, self.most_bytes = app, most, most_bytes
        self._open, self._bytes = Counter[str](), Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = visitor_name((scope.get("client") or ("",))[0])
        if scope["type"] == "websocket" and scope["path"].endswith(STREAM):
            if self.is_full(visitor):
                # The handshake is refused, and Streamlit's page tries again.
                return await send({"type": "websocket.close", "code": 1013})
            return await self._serve(visitor, scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "GET" and is_page(scope["path"]) and self.is_full(visitor):
            page = message_page(TEXTS("sessions.title"), TEXTS("sessions.full", most=self.most // SHARE))
            headers = {"retry-after": "20", "refresh": "20", "cache-control": "no-store"}
            return await HTMLResponse(page, 503, headers)(scope, receive, send)
        return await self.app(scope, receive, send)

    def is_full(self, visitor: str) -> bool:
        return self._open[visitor] >= self.most // SHARE or self._open.total() >= self.most

    async def _serve(self, visitor: str, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "websocket.receive":
                new = len(message.get("bytes") or message.get("text") or b"")
                self._add(visitor, new - size)
                size = new
                if self._bytes[visitor] > self.most_bytes // SHARE or self._bytes.total() > self.most_bytes:
                    await send({"type": "websocket.close", "code": 1009})
                    return {"type": "websocket.disconnect", "code": 1009}
            return message

        self._open[visitor] += 1
        try:
            await self.app(scope, counted, send)
        finally:
            self._add(visitor, -size)
            self._open[visitor] -= 1
            if not self._open[visitor]:
                del self._open[visitor], self._bytes[visitor]

    def _add(self, visitor: str, count: int) -> None:
        self._bytes[visitor] += count


def is_page(path: str) -> bool:
    """Return whether a path is that of a page."""
    return (page_of(path) or "home") in ORDER


class LostSessions(SessionStorage):
    """Sessions whose page lost its connection: each ends soon, and with it everything that only it holds.

    A page that comes back later sends its choices, config and files again.
    """

    def __init__(self, *, seconds: float = SECONDS, most: int = MOST_LOST, ttl_seconds: int = 0) -> None:
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

    def __init__(self, upload_endpoint: str, *, most: int = MOST_UPLOADS, share: int = UPLOADS_OF_VISITOR) -> None:
        super().__init__(upload_endpoint)
        self.most, self.share = most, share
        self._sizes: dict[str, dict[str, int]] = {}
        self._visitors: dict[str, str] = {}
        self._bytes = Counter[str]()
        self._count_lock = threading.Lock()

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Keep a file. Raise `HTTPException` if its visitor has too many that no page has taken."""
        with self._count_lock:
            visitor = self._visitors.setdefault(session_id, find_visitor(session_id))
            files = self._sizes.setdefault(session_id, {})
            more = len(file.data) - files.get(file.file_id, 0)
            if more > 0 and (self._bytes[visitor] + more > self.share or self._bytes.total() + more > self.most):
                raise HTTPException(413, TEXTS("sessions.uploads", most=self.share >> 20))
            files[file.file_id] = len(file.data)
            self._bytes[visitor] += more
        super().add_file(session_id, file)

    def remove_file(self, session_id: str, file_id: str) -> None:
        with self._count_lock:
            size = self._sizes.get(session_id, {}).pop(file_id, 0)
            self._bytes[self._visitors.get(session_id, "")] -= size
        super().remove_file(session_id, file_id)

    def remove_session_files(self, session_id: str) -> None:
        """Remove everything that a session held: Streamlit calls this when a session ends."""
        with self._count_lock:
            size = sum(self._sizes.pop(session_id, {}).values())
            visitor = self._visitors.pop(session_id, "")
            self._bytes[visitor] -= size
            if not self._bytes[visitor]:
                del self._bytes[visitor]
        super().remove_session_files(session_id)
        state.release(session_id)

    def empty(self, session_id: str, file_id: str) -> None:
        """Drop the bytes of a file; its name stays, for the widget that shows it."""
        for file in self.get_files(session_id, [file_id]):
            self.add_file(session_id, file._replace(data=b""))


def take_upload(file: UploadedFile) -> bytes:
    """Return the bytes of a dropped file, and drop Streamlit's own."""
    content, context = file.getvalue(), get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, Uploads):
        context.uploaded_file_mgr.empty(context.session_id, file.file_id)
        file.seek(0)
        file.truncate()
    return content
