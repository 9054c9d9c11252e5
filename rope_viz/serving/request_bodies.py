"""Middleware that ends slow request bodies and slow readers of answers, and limits how many bytes they hold.

Slow request headers are the business of a proxy in front, or of uvicorn's --limit-concurrency.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rope_viz.serving import connections
from rope_viz.storage.limits import (
    ANSWER_GRACE_SECONDS,
    ANSWER_IDLE_SECONDS,
    ANSWER_PART_BYTES,
    ANSWER_PARTS_AT_ONCE,
    ANSWER_RATE,
    ANSWER_SECONDS,
    ARRIVING_BODIES,
    ARRIVING_BYTES,
    BODY_GRACE_SECONDS,
    BODY_PAUSE_SECONDS,
    BODY_RATE,
    BODY_SECONDS,
    LINGER_PAUSE_SECONDS,
    LINGER_SECONDS,
    LINGERING_BODIES,
    LINGERING_BODIES_OF_VISITOR,
    SHARE_OF_BODIES,
    SLOW_BODY_RATE,
    SLOW_BODY_SECONDS,
    SMALL_BODIES,
    SMALL_BODY_BYTES,
    UNREAD_ANSWER_BYTES,
    UNREAD_ANSWER_SECONDS,
)
from rope_viz.storage.shares import Shares
from rope_viz.texts import Texts
from rope_viz.ui.visitors import visitor_name

TEXTS = Texts("app")
METHODS = ("POST", "PUT", "PATCH")


class RequestBodies:
    """The middleware. A body that is refused or ended is answered with a sentence, and its connection closes.

    When all places are taken, the slowest body of the visitor with the most of them ends in favour of a new one.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int = ARRIVING_BODIES,
        most_small: int = SMALL_BODIES,
        most_bytes: int = ARRIVING_BYTES,
        pause: float = BODY_PAUSE_SECONDS,
        grace: float = BODY_GRACE_SECONDS,
        total: float = BODY_SECONDS,
        linger: float = LINGER_SECONDS,
    ) -> None:
        self.app = app
        self.pause, self.grace, self.total, self.linger = pause, grace, total, linger
        self._places = Shares(most, most // SHARE_OF_BODIES)
        self._small_places = Shares(most_small, max(1, most_small // SHARE_OF_BODIES))
        self._bytes = Shares(most_bytes, most_bytes * 3 // SHARE_OF_BODIES)
        self._lingering = Shares(LINGERING_BODIES, LINGERING_BODIES_OF_VISITOR)
        self._bodies: set[RequestBody] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in METHODS:
            return await self.app(scope, receive, send)
        visitor = visitor_name((scope.get("client") or ("",))[0])
        places = self._find_place(visitor, is_small=is_small(Headers(scope=scope)))
        if places is None:
            return await self._refuse(503, "server.full", visitor, scope, receive, send)
        body = RequestBody(self, visitor, places, receive, send)
        self._bodies.add(body)
        try:
            await self.app(scope, body.receive, body.send)
        except ClientDisconnect:
            pass  # raised for a body that was ended here, or whose client has left
        except Exception:
            # An app may turn the disconnect into an error of its own.
            if not body.refused:
                raise
        finally:
            body.release()
        if body.refused and not body.answered:
            await self._refuse(*body.refused, visitor, scope, receive, send)
        return None

    def take_bytes(self, body: RequestBody, count: int) -> bool:
        """Count bytes of a body; return whether they are within the limits.

        If all visitors together have too many, a visitor with more than this one gives a body up.
        """
        while not self._bytes.take(body.visitor, count):
            mine = self._bytes.amount_of(body.visitor) + count
            if mine > self._bytes.most_of_visitor:
                return False
            larger = [other for other in self._bodies if self._bytes.amount_of(other.visitor) > mine]
            if not larger:
                return False
            most = max(self._bytes.amount_of(other.visitor) for other in larger)
            end_slowest([other for other in larger if self._bytes.amount_of(other.visitor) == most])
        return True

    def remove(self, body: RequestBody) -> None:
        """Give back what a body has taken."""
        self._bodies.discard(body)
        body.places.give_back(body.visitor)
        self._bytes.give_back(body.visitor, body.size)

    def _find_place(self, visitor: str, *, is_small: bool) -> Shares | None:
        """Take a place for a new body, and return where it was taken, None if there is none."""
        kinds = [self._places, self._small_places] if is_small else [self._places]
        for places in kinds:
            if places.take(visitor):
                return places
        for places in reversed(kinds):
            if self._make_room(visitor, places) and places.take(visitor):
                return places
        return None

    def _make_room(self, visitor: str, places: Shares) -> bool:
        """End the body that gives its place to a new one of a visitor, and return whether there is one.

        Within a visitor's own share, and from a visitor with as few bodies, only a slow body is ended: many that arrive
        together would end each other otherwise.
        """
        mine = places.amount_of(visitor)
        bodies = [body for body in self._bodies if body.places is places]
        if mine >= places.most_of_visitor:
            candidates = [body for body in bodies if body.visitor == visitor and body.is_slow]
        else:
            most = max((places.amount_of(body.visitor) for body in bodies), default=0)
            candidates = [body for body in bodies if places.amount_of(body.visitor) == most]
            if most <= mine + 1:
                candidates = [body for body in candidates if body.is_slow]
        if not candidates:
            return False
        end_slowest(candidates)
        return True

    async def _refuse(self, status: int, key: str, visitor: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a sentence, read some of what still arrives, and close the connection."""

        async def send_and_linger(message: Message) -> None:
            if message["type"] != "http.response.body":
                return await send(message)
            # The client has the whole answer then; the server closes the connection after the last message.
            await send({**message, "more_body": True})
            if self.linger and self._lingering.take(visitor):
                try:
                    await read_rest(receive, self.linger)
                finally:
                    self._lingering.give_back(visitor)
            return await send({"type": "http.response.body", "body": b""})

        headers = {"connection": "close", "cache-control": "no-store", "retry-after": "5"}
        await PlainTextResponse(TEXTS(key), status, headers)(scope, receive, send_and_linger)


class RequestBody:
    """One body: counts its bytes, and tells the app that the client has left once it is refused or ended."""

    def __init__(self, bodies: RequestBodies, visitor: str, places: Shares, receive: Receive, send: Send) -> None:
        self.bodies, self.visitor, self.places = bodies, visitor, places
        self._receive, self._send = receive, send
        self.size = 0
        self.whole, self.answered, self.released = False, False, False
        self.refused: tuple[int, str] | None = None
        self.began = asyncio.get_running_loop().time()
        # Two earlier moments and the bytes that had arrived: the speed is measured from the first one.
        self._marks = ((self.began, 0), (self.began, 0))
        self._waiting: asyncio.Timeout | None = None

    @property
    def speed(self) -> float:
        """Bytes per second that arrived of late."""
        began, size = self._marks[0]
        spent = asyncio.get_running_loop().time() - began
        return (self.size - size) / max(spent, 1.0)

    @property
    def is_slow(self) -> bool:
        """Whether the body may be ended because another one wants its place."""
        return asyncio.get_running_loop().time() - self.began >= SLOW_BODY_SECONDS and self.speed < SLOW_BODY_RATE

    async def receive(self) -> Message:
        """Return the next message of the request, or a disconnect for a body that is too slow or too much."""
        if self.whole:
            # Whoever reads on has taken the body, and waits for the end of a picture that may take long.
            self.release()
            return await self._receive()
        if self.refused:
            return {"type": "http.disconnect"}
        try:
            async with asyncio.timeout(self._patience()) as self._waiting:
                message = await self._receive()
        except TimeoutError:
            self.end(408, "server.slow_body")
        finally:
            self._waiting = None
        if self.refused:
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self.whole = not message.get("more_body")
            count = len(message.get("body", b""))
            if not self.bodies.take_bytes(self, count):
                self.end(503, "server.full")
                return {"type": "http.disconnect"}
            self._count(count)
        return message

    async def send(self, message: Message) -> None:
        if self.refused and not self.answered:
            return  # what the app says to a client that has left; `RequestBodies` answers with the sentence
        self.answered = True
        await self._send(message)

    def end(self, status: int, key: str) -> None:
        """Refuse the rest of the body, and give back its place at once."""
        if self.refused is None:
            self.refused = status, key
        self.release()
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    def release(self) -> None:
        if not self.released:
            self.released = True
            self.bodies.remove(self)

    def _count(self, count: int) -> None:
        self.size += count
        now = asyncio.get_running_loop().time()
        if now - self._marks[1][0] >= SLOW_BODY_SECONDS:
            self._marks = self._marks[1], (now, self.size)

    def _patience(self) -> float:
        spent = asyncio.get_running_loop().time() - self.began
        left = min(self.bodies.grace + self.size / BODY_RATE, self.bodies.total) - spent
        return max(0.0, min(self.bodies.pause, left))


def is_small(headers: Headers) -> bool:
    """Return whether a body names a length that is small."""
    length = headers.get("content-length", "")
    return length.isascii() and length.isdecimal() and len(length) < 12 and int(length) < SMALL_BODY_BYTES


def end_slowest(bodies: list[RequestBody]) -> None:
    """End the slowest of some bodies."""
    min(bodies, key=lambda body: body.speed).end(408, "server.slow_body")


async def read_rest(receive: Receive, seconds: float) -> None:
    """Read and drop the rest of a body for some seconds, or until nothing arrives for a while."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                message = await asyncio.wait_for(receive(), LINGER_PAUSE_SECONDS)
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


_PARTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


async def take_turn() -> None:
    """Wait until a part of a large answer may be made and sent."""
    loop = asyncio.get_running_loop()
    if loop not in _PARTS:
        _PARTS[loop] = asyncio.Semaphore(ANSWER_PARTS_AT_ONCE)
    async with _PARTS[loop]:
        await asyncio.sleep(0)


class ResponseParts:
    """The middleware. uvicorn copies a whole body at once, but waits between the parts until the client takes them.

    A client that takes too little is disconnected.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        grace: float = ANSWER_GRACE_SECONDS,
        total: float = ANSWER_SECONDS,
        idle: float = ANSWER_IDLE_SECONDS,
    ) -> None:
        self.app = app
        self.grace, self.total, self.idle = grace, total, idle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        client = SlowClient(self, scope, send)
        await self.app(scope, receive, client.send)
        connections.abort_if_unread(scope, self.idle)
        return None


class SlowClient:
    """The client of one response, which takes its parts."""

    def __init__(self, parts: ResponseParts, scope: Scope, send: Send) -> None:
        self.parts, self.scope, self._send = parts, scope, send
        self.began: float | None = None
        self.taken = 0
        self.has_left = False

    async def send(self, message: Message) -> None:
        body = message.get("body", b"")
        if message["type"] != "http.response.body" or len(body) <= ANSWER_PART_BYTES:
            return await self._send_part(message)
        whole = memoryview(body)
        with UNREAD.hold(self.scope, body):
            for start in range(0, len(body), ANSWER_PART_BYTES):
                more = start + ANSWER_PART_BYTES < len(body) or message.get("more_body", False)
                if start:
                    await take_turn()
                await self._send_part(
                    {**message, "body": bytes(whole[start : start + ANSWER_PART_BYTES]), "more_body": more}
                )
        return None

    async def _send_part(self, message: Message) -> None:
        """Send a part once the client has taken the last ones; disconnect a client that takes too little."""
        now = asyncio.get_running_loop().time()
        if self.began is None:
            self.began = now
        allowed = min(self.parts.grace + self.taken / ANSWER_RATE, self.parts.total)
        left = max(self.began + allowed - now, 0.0)
        body = message.get("body", b"")
        if isinstance(body, memoryview):
            message = {**message, "body": bytes(body)}
        if self.has_left:
            return
        try:
            async with asyncio.timeout(left):
                await self._send(message)
        except TimeoutError:
            self.has_left = True
            connections.abort(self.scope)
        self.taken += len(body)


class UnreadAnswers:
    """Large answers that clients are reading. Clients of one answer share its bytes, which count once.

    Beyond `most` bytes the answer that has been read longest is given up, unless it is new or the only one.
    """

    def __init__(self, most: int = UNREAD_ANSWER_BYTES, reading: float = UNREAD_ANSWER_SECONDS) -> None:
        self.most, self.reading = most, reading
        self._clients: dict[int, tuple[int, int, float, Scope]] = {}
        self._sizes: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._number = 0

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    @contextlib.contextmanager
    def hold(self, scope: Scope, body: bytes | memoryview) -> Iterator[None]:
        """Count an answer while a client reads it."""
        shared = body.obj if isinstance(body, memoryview) else body
        key, now = id(shared), asyncio.get_running_loop().time()
        self._number += 1
        number = self._number
        self._sizes[key] = len(body)
        self._counts[key] = self._counts.get(key, 0) + 1
        self._clients[number] = key, len(body), now, scope
        self._make_room(now)
        try:
            yield
        finally:
            del self._clients[number]
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key], self._sizes[key]

    def _make_room(self, now: float) -> None:
        """Disconnect the clients of the answers that have been read longest."""
        size, ended = self.size, set[int]()
        for key, length, began, _ in list(self._clients.values()):
            if size <= self.most or now - began < self.reading or len(self._sizes) - len(ended) <= 1:
                break
            if key not in ended:
                ended.add(key)
                size -= length
        for key, _, _, scope in list(self._clients.values()):
            if key in ended:
                connections.abort(scope)


UNREAD = UnreadAnswers()
"""The answers that clients of this process are reading."""
