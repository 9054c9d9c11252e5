"""What the app serves beside Streamlit: its own JavaScript, plotly.js, and headers that keep a page to itself."""

from __future__ import annotations

import functools
import gzip
import hashlib
from pathlib import Path

import plotly
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/rope-viz"
HERE = Path(__file__).parent
SCRIPTS = {
    "knob.js": HERE / "knob.js",
    "chart.js": HERE / "chart.js",
    "chart_files.js": HERE / "chart_files.js",
    "copy.js": HERE / "copy.js",
    "clocks.js": HERE / "clocks.js",
    "dials.js": HERE / "dials.js",
    "clocks_files.js": HERE / "clocks_files.js",
    "plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js",
}

# Streamlit imports a component's JavaScript from a blob: address, has one inline script in its page and styles made at
# run time; everything else is forbidden, other hosts first of all.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "media-src 'self' blob:",
        "connect-src 'self' ws: wss: data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


@functools.cache
def packed(name: str) -> tuple[bytes, bytes, str]:
    """A script, its gzip form and its tag; read and compressed once per process."""
    content = SCRIPTS[name].read_bytes()
    return content, gzip.compress(content, compresslevel=6), hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def version() -> str:
    """One tag for all scripts together: it stands in their address, so that a browser may keep them for good."""
    return hashlib.sha256("".join(packed(name)[2] for name in SCRIPTS).encode()).hexdigest()[:12]


def script(request: Request) -> Response:
    """A script by name, compressed where the browser takes it."""
    name = request.path_params["name"]
    if name not in SCRIPTS:
        return Response("Not found", status_code=404)
    content, compressed, tag = packed(name)
    headers = {"cache-control": "public, max-age=31536000, immutable", "etag": f'"{tag}"', "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        content = compressed
    return Response(content, media_type="text/javascript", headers=headers)


class Guard:
    """Middleware that adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, guarded)


def routes() -> list[Route]:
    """The routes of our own, for `st.App`."""
    return [Route(f"{PREFIX}/{{version}}/{{name}}", script)]


def middleware() -> list[Middleware]:
    """The middleware of our own, for `st.App`."""
    return [Middleware(Guard)]
