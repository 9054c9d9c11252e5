"""Ask a web server, within a total time and up to a size: an answer ends, whatever the server does.

Python's own timeout is for each read. A server that sends a byte every few seconds, or one `100 Continue` after the
other, never exceeds it.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from rope_viz.storage.limits import FETCHED_ANSWER_BYTES, FETCHED_ERROR_BYTES

CHUNK = 1 << 16


class LateError(TimeoutError):
    """An answer that was not there, whole, at the end of its time."""


class LargeError(ValueError):
    """An answer that is larger than any of its kind."""


@dataclass(frozen=True)
class WebAnswer:
    """The content of a whole answer, and its headers."""

    content: bytes
    headers: Mapping[str, str]


@dataclass
class Exchange:
    """One request with its redirects, which runs in a thread of its own."""

    seconds: float
    most: int
    end: float = field(init=False)
    sockets: list[socket.socket] = field(default_factory=list)
    is_late: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def left(self) -> float:
        """Return the seconds that are left. Raises `LateError` if there are none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise LateError(describe_late(self.seconds))
        return left

    def add(self, opened: socket.socket | None) -> None:
        """Note a connection, so that `stop` can end it. Raises `LateError` if it is too late."""
        with self.lock:
            if opened is not None:
                self.sockets.append(opened)
        if self.is_late:
            self.stop()
            raise LateError(describe_late(self.seconds))

    def stop(self) -> None:
        """End every connection, so that the thread that reads from one ends, too."""
        with self.lock:
            self.is_late = True
            for opened in self.sockets:
                # The thread may have closed it at this moment.
                with contextlib.suppress(OSError, ValueError):
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)


def fetch(
    address: str,
    *,
    seconds: float,
    most: int = FETCHED_ANSWER_BYTES,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> WebAnswer:
    """Return what a server answers to a POST of `data`, or to a GET if there is none.

    `seconds` is the time for all: names, connections, redirects, headers and content. Raises `LateError` after it,
    `LargeError` for an answer of more than `most` bytes, `HTTPError` with the beginning of the content for a refusal,
    and `OSError` or `HTTPException` where there is no answer.
    """
    exchange = Exchange(seconds, most)
    request = urllib.request.Request(address, data, dict(headers or {}))
    future = Future[WebAnswer]()

    def work() -> None:
        try:
            future.set_result(exchange_messages(request, exchange))
        except BaseException as error:
            future.set_exception(error)

    # The search for a host's address cannot be ended, so nobody waits for this thread: it is a daemon.
    threading.Thread(target=work, name="fetch", daemon=True).start()
    try:
        return future.result(seconds)
    except (TimeoutError, urllib.error.URLError) as error:
        if is_own_timeout(error):
            raise LateError(describe_late(seconds)) from None
        raise
    finally:
        exchange.stop()


def is_own_timeout(error: Exception) -> bool:
    """Return whether our time is over. The system's own timeouts, such as ETIMEDOUT, have a number."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError) and reason.errno is None


def describe_late(seconds: float) -> str:
    """Return the sentence about an answer that took too long."""
    return f"no whole answer within {seconds:g} {'second' if seconds == 1 else 'seconds'}"


def exchange_messages(request: urllib.request.Request, exchange: Exchange) -> WebAnswer:
    """Send a request, follow its redirects and read the answer."""
    opener = urllib.request.build_opener(Redirects, HttpHandler(exchange), HttpsHandler(exchange))
    try:
        with opener.open(request, timeout=exchange.left()) as response:
            content = read_content(response, exchange)
            if len(content) > exchange.most:
                raise LargeError(f"answered with more than {exchange.most >> 20} MiB")
            return WebAnswer(content, response.headers)
    except urllib.error.HTTPError as error:
        # Its content is read here, because whoever handles the error has no limits.
        shown = read_content(error, exchange, FETCHED_ERROR_BYTES - 1)
        # urllib has a reason of three lines for redirects in a circle.
        reason = error.msg.partition("\n")[0].rstrip(".")
        raise urllib.error.HTTPError(error.url, error.code, reason, error.hdrs, io.BytesIO(shown)) from None


def read_content(response: Any, exchange: Exchange, most: int | None = None) -> bytes:
    """Return the content of an answer, at most one byte more than allowed."""
    most = exchange.most if most is None else most
    content = bytearray()
    while len(content) <= most:
        # Raises an error after the last second, also while the server sends without a pause.
        exchange.left()
        part = response.read1(min(CHUNK, most + 1 - len(content)))
        if not part:
            break
        content += part
    return bytes(content)


class HttpConnection(http.client.HTTPConnection):
    """A connection by http that an exchange can end."""

    def __init__(self, host: str, *, exchange: Exchange, **options: Any) -> None:
        super().__init__(host, **options)
        self.exchange = exchange

    def connect(self) -> None:
        """Connect, and note the socket."""
        super().connect()
        self.exchange.add(self.sock)


class HttpsConnection(http.client.HTTPSConnection):
    """A connection by https that an exchange can end."""

    def __init__(self, host: str, *, exchange: Exchange, **options: Any) -> None:
        super().__init__(host, **options)
        self.exchange = exchange

    def connect(self) -> None:
        """Connect, and note the socket. The handshake has a total time of its own: that of the connection."""
        super().connect()
        self.exchange.add(self.sock)


class HttpHandler(urllib.request.HTTPHandler):
    """The opener of addresses by http. Each connection gets the time that is left."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self.exchange = exchange

    def http_open(self, req: urllib.request.Request) -> Any:
        req.timeout = self.exchange.left()
        connection: Any = HttpConnection
        return self.do_open(connection, req, exchange=self.exchange)


class HttpsHandler(urllib.request.HTTPSHandler):
    """The opener of addresses by https. Each connection gets the time that is left."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self.exchange = exchange

    def https_open(self, req: urllib.request.Request) -> Any:
        req.timeout = self.exchange.left()
        connection: Any = HttpsConnection
        return self.do_open(connection, req, exchange=self.exchange)


class Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects by http and https that do not carry the key to another host, or to the same one by other means."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request for the new address, without the key if scheme, host or port differ.

        Raises `HTTPError` for another scheme, such as ftp.
        """
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme not in ("http", "https"):
            reason = f"a redirect to {scheme!r:.40} is not followed"
            raise urllib.error.HTTPError(req.full_url, code, reason, headers, fp)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and origin(request.full_url) != origin(req.full_url):
            request.remove_header("Authorization")
        # The caller would read the content of the redirect, of whatever size.
        fp.close()
        return request


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
