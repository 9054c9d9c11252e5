"""HTTP parts of the app beyond Streamlit: routes for scripts and pictures, and security headers."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_run_context import RunLocation, ThreadState
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from rope_viz.figures.badge import make_badge
from rope_viz.models.catalog import catalog
from rope_viz.own_files.blob_store import UnknownError
from rope_viz.pages import home
from rope_viz.pages.learn import figures as learn
from rope_viz.picture import read_address
from rope_viz.reports.story_page import story_page
from rope_viz.serving import connections, page_runs, picture_route
from rope_viz.serving.arriving_messages import CountedWebSocket
from rope_viz.serving.border import BORDER
from rope_viz.serving.memory import keep_memory_small
from rope_viz.serving.request_bodies import RequestBodies, ResponseParts
from rope_viz.serving.session_limits import OpenPages, install
from rope_viz.serving.static_middleware import Packing
from rope_viz.storage.crash_text import keep_messages_out_of_logs
from rope_viz.storage.limits import ANSWER_IDLE_SECONDS, LARGE_BLOCK_BYTES, MESSAGE_BYTES, THREAD_SWITCH_SECONDS
from rope_viz.texts import Texts, use_language
from rope_viz.texts.languages import list_languages
from rope_viz.ui import app_shell
from rope_viz.ui.components import sent_values
from rope_viz.ui.components.scripts import NAMES, PREFIX, language_of, packed
from rope_viz.ui.language import Languages

# Streamlit imports components from blob: addresses, has one inline script and inserts styles at run time; everything
# else is forbidden, above all other hosts. WebAssembly too: only long.js in Streamlit's protobuf library requests it,
# for 64-bit products, and falls back to JavaScript (Firefox reports that on its console).
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "media-src 'self' blob:",
        "connect-src 'self' data: blob:{sockets}",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'{frames}",
    )
)
TEXTS = Texts("app")
HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?")
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


def script(request: Request) -> Response:
    """Answer with a script by name, compressed if the browser accepts that; 404 for an unknown name."""
    name, language = request.path_params["name"], language_of(request.path_params["version"])
    if name not in NAMES or language not in list_languages():
        return Response("Not found", status_code=404)
    with use_language(language):
        content, compressed, tag = packed(name)
    headers = {"cache-control": "public, max-age=31536000, immutable", "etag": f'"{tag}"', "vary": "accept-encoding"}
    if picture_route.known(request, tag):
        return Response(status_code=304, headers=headers)
    if picture_route.takes_gzip(request.headers):
        headers["content-encoding"] = "gzip"
        content = compressed
    return Response(content, media_type="text/javascript", headers=headers)


def scene(request: Request) -> Response:
    """Answer with one scene of Learn for a frame, without a session; 404 if there is no such scene."""
    number = request.path_params["number"]
    # Python refuses to convert thousands of digits, and takes those of other scripts.
    if not (number.isascii() and number.isdecimal() and len(number) < 3 and 1 <= int(number) <= learn.SCENES):
        return Response("Not found", status_code=404)
    return Response(story_page(int(number), ".."), media_type="text/html", headers={"cache-control": "no-cache"})


def badge(request: Request) -> Response:
    """Answer with the badge of a model of the list, for a model card; 404 for another name."""
    model = catalog().get(request.path_params["model"].removesuffix(".svg"))
    if model is None:
        return picture_route.respond(404, str(TEXTS("server.badge")))
    headers = {**picture_route.OPEN, "cache-control": f"public, max-age={picture_route.DAY}"}
    headers["content-security-policy"] = picture_route.ALONE
    return Response(make_badge(model.config, model.name), media_type="image/svg+xml", headers=headers)


async def home_scene(request: Request) -> Response:
    """Answer with the picture of Home for a frame, without a session; the query names its model as on the page."""
    try:
        query = picture_route.read_query(request)
        contents = read_address.stored_contents(home.PAGE, query)
    except UnknownError as error:
        return picture_route.respond(410, str(error))
    except ValueError as error:
        return picture_route.refuse(error)
    drawing = picture_route.draw_scene(query, contents, picture_route.visitor_of(request))
    work = await picture_route.await_or_disconnect(request, drawing)
    if work is None or work.cancelled():
        return Response(status_code=499)
    if (problem := work.exception()) is not None:
        return picture_route.error_response(problem, "scene/home")
    content = work.result()
    return Response(content, media_type="text/html", headers={"cache-control": "no-cache"})


def policy(host: str) -> str:
    """Return the content security policy of a page requested at `host`.

    Not every browser counts a WebSocket to the page's own host as 'self', so it is named. Only the hosts in
    ROPE_VIZ_FRAMED_BY may frame the app.
    """
    sockets = f" ws://{host} wss://{host}" if HOST.fullmatch(host) else ""
    framed = [each for each in os.environ.get("ROPE_VIZ_FRAMED_BY", "").split() if ORIGIN.fullmatch(each)]
    return POLICY.format(sockets=sockets, frames="".join(f" {each}" for each in framed))


class Guard:
    """Middleware that adds the security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", policy(Headers(scope=scope).get("host", "")))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # A WebSocket has no headers to add, and every message of a run would pass through `guarded`.
        await self.app(scope, receive, guarded if scope["type"] == "http" else send)


@contextlib.asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """Prepare the server: import everything before the first request, and send responses without delay.

    Streamlit's socket lacks TCP_NODELAY. A response is written in two parts, and the second would wait for the browser
    to acknowledge the first, which a browser delays by about 40 ms. A connection whose client takes nothing for
    `ANSWER_IDLE_SECONDS` is closed.
    """
    keep_messages_out_of_logs()
    app_shell.warm()
    BORDER.open()
    loop = asyncio.get_running_loop()
    create = loop.create_server

    def prompt(make_protocol: Any, *args: Any, sock: socket.socket | None = None, **options: Any) -> Any:
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; every accepted connection inherits both options
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * ANSWER_IDLE_SECONDS)
        return create(limit_messages(make_protocol), *args, sock=sock, **options)

    loop.create_server = prompt  # type: ignore[method-assign, assignment]
    ahead = asyncio.create_task(app_shell.ahead())
    memory = asyncio.create_task(keep_memory_small())
    yield
    ahead.cancel()
    memory.cancel()
    BORDER.close()
    picture_route.GALLERY.shut_down()


def limit_messages(make_protocol: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes uvicorn's protocols with a limit for messages that arrive.

    Streamlit 1.67 gives uvicorn one limit for both directions, and the app sends contents of 40 MiB to a page. uvicorn
    0.52 reads `ws_max_size` from the protocol's `config` when a WebSocket opens.
    """

    def make(*args: Any, **options: Any) -> Any:
        protocol = make_protocol(*args, **options)
        if hasattr(protocol, "config"):
            protocol.config.ws_max_size = MESSAGE_BYTES
            connections.watch(protocol)
        if issubclass(getattr(protocol, "ws_protocol_class", object) or object, WebSocketsSansIOProtocol):
            protocol.ws_protocol_class = CountedWebSocket
        return protocol

    return make


def settle() -> None:
    """Apply the settings of `rope-viz app --workers`, because uvicorn's workers do not receive Streamlit's flags."""
    # Without it, uvicorn believes X-Forwarded-For from every program on this machine.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
    if base := os.environ.get("ROPE_VIZ_BASE_PATH"):
        config.set_option("server.baseUrlPath", base)
    few_arenas()
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    whole_callbacks()
    install()
    page_runs.install()
    sent_values.install(MESSAGE_BYTES)


def whole_callbacks() -> None:
    """Let every callback run to its end before another run starts.

    Streamlit may switch to a newer run whenever a script touches the session, even within a callback. The user's action
    would then be half done and never repeated.
    """
    check = ScriptRunner._maybe_handle_execution_control_request
    if hasattr(check, "__wrapped__"):
        return

    @functools.wraps(check)
    def later(runner: ScriptRunner) -> None:
        here = runner._execing and runner._is_in_script_thread()
        if not here or ThreadState.get().run_location is not RunLocation.CALLBACK:
            check(runner)

    ScriptRunner._maybe_handle_execution_control_request = later  # type: ignore[assignment, method-assign]


M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # of glibc's malloc.h


def few_arenas() -> None:
    """Limit glibc to two heaps for all threads, without large blocks, unless MALLOC_ARENA_MAX is set.

    Each run of a page is a thread, and threads may use up to eight heaps per core, whose free memory is not returned.
    With another C library this does nothing.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(OSError, TypeError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def routes(base: str | None = None) -> list[Route]:
    """Return the app's own routes. `st.App` does not add its base path to them, so they include it.

    `base` defaults to `server.baseUrlPath`.
    """
    base = (st.get_option("server.baseUrlPath") if base is None else base).strip("/")
    under = f"/{base}{PREFIX}" if base else PREFIX
    return [
        Route(f"{under}/picture/{{page}}/{{name}}", picture_route.answer, methods=["GET", "POST"]),
        Route(f"{under}/badge/{{model}}", badge),
        Route(f"{under}/{{version}}/{{name}}", script),
        Route(f"{under.removesuffix(PREFIX)}/scene/home", home_scene),
        Route(f"{under.removesuffix(PREFIX)}/scene/{{number}}", scene),
    ]


def middleware() -> list[Middleware]:
    """Return the app's own middleware for `st.App`."""
    return [
        Middleware(Languages),
        Middleware(ResponseParts),
        Middleware(Guard),
        Middleware(OpenPages, reader=BORDER),
        Middleware(RequestBodies),
        Middleware(Packing),
    ]


async def failed(request: Request, error: Exception) -> Response:
    """Answer an error that no route expects. Starlette sends this answer outside of all middleware, so it is guarded.

    uvicorn logs the traceback.
    """
    headers = {"content-security-policy": policy(request.headers.get("host", "")), **HEADERS}
    return PlainTextResponse(TEXTS("server.unexpected"), 500, headers)
