"""Middleware that sends large responses in parts, so that a client that reads slowly holds little memory."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
