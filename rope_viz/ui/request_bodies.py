"""Middleware that ends slow request bodies, and limits how many arrive at once and how many bytes they hold.

Slow request headers are the business of a proxy in front, or of uvicorn's --limit-concurrency.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rope_viz.texts import Texts
from rope_viz.ui.visitors import visitor_name

TEXTS = Texts("app")
METHODS = ("POST", "PUT", "PATCH")
MOST = 32
"""Bodies that may arrive at once."""
MOST_BYTES = 64 << 20
"""Bytes of all arriving bodies."""
SHARE = 4
"""One visitor has at most this part of the bodies, a quarter, and of their bytes three times as much."""
PAUSE = 15.0
"""Seconds after which a body ends if nothing arrives."""
GRACE = 30.0
"""Seconds that every body may take."""
SLOWEST = 16 << 10
"""Bytes per second that a body must have on average beyond `GRACE`."""


class RequestBodies:
    """The middleware. A body that is refused or ended is answered with a sentence, and its connection closes."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
        pause: float = PAUSE,
        grace: float = GRACE,
    ) -> None:
        self.app, self.most, self.most_bytes, self.pause, self.grace = app, most, most_bytes, pause, grace
        self._bodies, self._bytes = Counter[str](), Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in METHODS:
            return await self.app(scope, receive, send)
        visitor = visitor_name((scope.get("client") or ("",))[0])
        if self._bodies[visitor] >= self.most // SHARE or self._bodies.total() >= self.most:
            return await refuse(503, "server.full", scope, receive, send)
        body = RequestBody(self, visitor, receive, send)
        self._bodies[visitor] += 1
        try:
            await self.app(scope, body.receive, body.send)
        except ClientDisconnect:
            pass  # raised for a body that was ended here, or whose client has left
        finally:
            body.release()
        if body.refused and not body.answered:
            await refuse(*body.refused, scope, receive, send)
        return None

    def add(self, visitor: str, count: int) -> bool:
        """Count bytes of a visitor; return whether they are within the limits."""
        self._bytes[visitor] += count
        return self._bytes[visitor] <= self.most_bytes * 3 // SHARE and self._bytes.total() <= self.most_bytes

    def remove(self, visitor: str, count: int) -> None:
        for counter, number in ((self._bytes, count), (self._bodies, 1)):
            counter[visitor] -= number
            if counter[visitor] <= 0:
                del counter[visitor]


class RequestBody:
    """One body: counts its bytes, and tells the app that the client has left once it is refused."""

    def __init__(self, bodies: RequestBodies, visitor: str, receive: Receive, send: Send) -> None:
        self.bodies, self.visitor, self._receive, self._send = bodies, visitor, receive, send
        self.size, self.whole, self.answered, self.released = 0, False, False, False
        self.refused: tuple[int, str] | None = None
        self.began = asyncio.get_running_loop().time()

    async def receive(self) -> Message:
        """Return the next message of the request, or a disconnect for a body that is too slow or too much."""
        if self.whole:
            # Whoever reads on has taken the body, and waits for the end of a picture that may take long.
            self.release()
            return await self._receive()
        if self.refused:
            return {"type": "http.disconnect"}
        try:
            message = await asyncio.wait_for(self._receive(), self._patience())
        except TimeoutError:
            return self._refuse(408, "server.slow_body")
        if message["type"] == "http.request":
            self.whole = not message.get("more_body")
            count = len(message.get("body", b""))
            self.size += count
            if not self.bodies.add(self.visitor, count):
                return self._refuse(503, "server.full")
        return message

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)

    def release(self) -> None:
        if not self.released:
            self.released = True
            self.bodies.remove(self.visitor, self.size)

    def _refuse(self, status: int, key: str) -> Message:
        self.refused = status, key
        return {"type": "http.disconnect"}

    def _patience(self) -> float:
        spent = asyncio.get_running_loop().time() - self.began
        return max(0.0, min(self.bodies.pause, self.bodies.grace + self.size / SLOWEST - spent))


async def refuse(status: int, key: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a sentence and close the connection."""
    headers = {"connection": "close", "cache-control": "no-store", "retry-after": "5"}
    await PlainTextResponse(TEXTS(key), status, headers)(scope, receive, send)


PART = 64 << 10
"""Bytes of one part. The server keeps about two of them for each client until the client has taken them."""

IDLE_SECONDS = 30
"""Seconds after which the system closes a connection whose client takes nothing (`server.lifespan`)."""


class ResponseParts:
    """The middleware. uvicorn copies a whole body at once, but waits between the parts until the client takes them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_parts(message: Message) -> None:
            body = message.get("body", b"")
            if message["type"] != "http.response.body" or len(body) <= PART:
                return await send(message)
            whole = memoryview(body)
            for start in range(0, len(body), PART):
                more = start + PART < len(body) or message.get("more_body", False)
                await send({**message, "body": bytes(whole[start : start + PART]), "more_body": more})
            return None

        await self.app(scope, receive, send_parts if scope["type"] == "http" else send)
