"""Slow request bodies are ended, and each visitor has a limited share of memory and places."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from rope_viz.cli.app import environment, proxy_of
from rope_viz.ui.request_bodies import RequestBodies


async def count_bytes(scope, receive, send):
    """An app that answers with the size of the body."""
    request = Request(scope, receive)
    size = 0
    async for part in request.stream():
        size += len(part)
    await PlainTextResponse(str(size))(scope, receive, send)


async def post(app, parts, visitor="192.0.2.1", method="POST"):
    """Send a body; after `None` in the parts nothing arrives any more. Return status, headers and text."""
    sent, left = [], list(parts)

    async def receive():
        part = left.pop(0) if left else b""
        if part is None:
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": method, "headers": [], "client": (visitor, 1)}, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:]).decode()


def test_body_that_stops_arriving_is_ended():
    app = RequestBodies(count_bytes, pause=0.0)
    status, headers, text = asyncio.run(post(app, [b"begin", None]))
    assert (status, headers["connection"]) == (408, "close")
    assert text == "The content arrived too slowly."
    assert not app._bodies
    assert not app._bytes


def test_body_below_the_least_rate_is_ended():
    app = RequestBodies(count_bytes, pause=600.0, grace=0.0)
    assert asyncio.run(post(app, [bytes(10), None]))[0] == 408


def test_quick_bodies_pass_in_any_number_of_parts():
    app = RequestBodies(count_bytes)
    assert asyncio.run(post(app, [b"12", b"345", b""]))[::2] == (200, "5")
    assert asyncio.run(post(app, []))[::2] == (200, "0")
    assert not app._bytes


def test_bytes_of_one_visitor_are_limited_to_three_quarters():
    app = RequestBodies(count_bytes, most_bytes=4000)
    assert asyncio.run(post(app, [bytes(1000)]))[0] == 200
    status, headers, text = asyncio.run(post(app, [bytes(1600), bytes(1600), b""]))
    assert (status, headers["retry-after"]) == (503, "5")
    assert text == "The server is receiving too many contents at once. Try again in a moment."
    assert not app._bytes


def test_half_sent_bodies_leave_room_for_other_visitors():
    app = RequestBodies(count_bytes, most=8)

    async def send_many():
        half = [asyncio.ensure_future(post(app, [b"begin", None], "192.0.2.1")) for _ in range(2)]
        await asyncio.sleep(0)
        assert (await post(app, [b"x"], "192.0.2.1"))[0] == 503
        assert (await post(app, [b"x"], "192.0.2.2"))[0] == 200
        assert (await post(app, [b"x"], "192.0.2.1", "GET"))[0] == 200
        for each in half:
            each.cancel()
        await asyncio.gather(*half, return_exceptions=True)
        assert (await post(app, [b"x"], "192.0.2.1"))[0] == 200

    asyncio.run(send_many())


def test_disconnect_during_a_body_is_no_error():
    async def send_half(scope, receive, send):
        left = [{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}]

        async def receive_disconnect():
            return left.pop(0)

        await RequestBodies(count_bytes)(scope, receive_disconnect, send)

    asyncio.run(send_half({"type": "http", "method": "POST", "headers": [], "client": ("192.0.2.1", 1)}, None, None))


@pytest.mark.parametrize("written", ["localhost", "", "10.0.0.0/33", "*", "10.0.0.1,10.0.0.2"])
def test_trusted_proxy_must_be_an_address_or_network(written):
    with pytest.raises(ValueError, match="--trusted-proxy must be an address or a network"):
        proxy_of(written)


@pytest.mark.parametrize(
    ("proxies", "peer", "client"),
    [
        ([], "127.0.0.1", "127.0.0.1"),
        (["127.0.0.1"], "127.0.0.1", "198.51.100.7"),
        (["10.0.0.0/8"], "10.1.2.3", "198.51.100.7"),
        (["10.0.0.0/8"], "127.0.0.1", "127.0.0.1"),
    ],
)
def test_forwarded_address_counts_from_named_proxies_only(monkeypatch, proxies, peer, client):
    import uvicorn

    seen = []

    async def app(scope, receive, send):
        seen.append(scope["client"][0])

    trusted = environment("", [proxy_of(each) for each in proxies])["FORWARDED_ALLOW_IPS"]
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    config = uvicorn.Config(app, log_config=None)
    config.load()
    headers = [(b"x-forwarded-for", b"203.0.113.9, 198.51.100.7")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (peer, 1), "scheme": "http"}
    asyncio.run(config.loaded_app(scope | {"asgi": {"version": "3.0"}}, None, None))
    assert seen == [client]
