"""Large responses are sent in parts, each after the client has taken the last one."""

import asyncio

from starlette.responses import Response

from rope_viz.serving.request_bodies import ResponseParts
from rope_viz.storage.limits import ANSWER_PART_BYTES

CONTENT = bytes(range(256)) * (5 * ANSWER_PART_BYTES // 256) + b"end"


def test_large_body_is_sent_in_parts():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(ResponseParts(Response(CONTENT))({"type": "http"}, None, send))
    start, *bodies = sent
    assert dict(start["headers"])[b"content-length"] == str(len(CONTENT)).encode()
    assert b"".join(each["body"] for each in bodies) == CONTENT
    assert [each["more_body"] for each in bodies] == [True] * 5 + [False]
    assert max(len(each["body"]) for each in bodies) == ANSWER_PART_BYTES


def test_client_that_takes_nothing_gets_one_part():
    sent = []

    async def send(message):
        sent.append(len(message.get("body", b"")))
        if message["type"] == "http.response.body":
            await asyncio.get_running_loop().create_future()

    async def unread():
        task = asyncio.create_task(ResponseParts(Response(CONTENT))({"type": "http"}, None, send))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(unread())
    assert sum(sent) == ANSWER_PART_BYTES


def test_small_bodies_and_streams_pass_unchanged():
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": bytes(ANSWER_PART_BYTES + 1), "more_body": True})
        await send({"type": "http.response.body"})

    async def send(message):
        sent.append(message)

    asyncio.run(ResponseParts(app)({"type": "http"}, None, send))
    assert [(len(each.get("body", b"")), each.get("more_body", False)) for each in sent[1:]] == [
        (1, True),
        (ANSWER_PART_BYTES, True),
        (1, True),
        (0, False),
    ]
