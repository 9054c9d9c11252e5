"""Slow request bodies are ended, and each visitor has a limited share of memory and places."""

import asyncio
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from rope_viz.cli.app import environment, proxy_of
from rope_viz.serving import request_bodies
from rope_viz.serving.request_bodies import RequestBodies
from rope_viz.storage.limits import SMALL_BODY_BYTES


async def count_bytes(scope, receive, send):
    """An app that answers with the size of the body."""
    request = Request(scope, receive)
    size = 0
    async for part in request.stream():
        size += len(part)
    await PlainTextResponse(str(size))(scope, receive, send)


async def post(app, parts, visitor="192.0.2.1", method="POST", length=None):
    """Send a body; after `None` in the parts nothing arrives any more. Return status, headers and text."""
    sent, left = [], list(parts)
    headers = [] if length is None else [(b"content-length", str(length).encode())]

    async def receive():
        part = left.pop(0) if left else b""
        if part is None:
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": method, "headers": headers, "client": (visitor, 1)}, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert not sent[-1].get("more_body"), "the answer is complete"
    return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:]).decode()


def test_body_that_stops_arriving_is_ended():
    app = RequestBodies(count_bytes, pause=0.0, linger=0.0)
    status, headers, text = asyncio.run(post(app, [b"begin", None]))
    assert (status, headers["connection"]) == (408, "close")
    assert text == "The content arrived too slowly."
    assert not app._bodies
    assert app._bytes.count_visitors() == 0


def test_body_below_the_least_rate_is_ended():
    app = RequestBodies(count_bytes, pause=600.0, grace=0.0, linger=0.0)
    assert asyncio.run(post(app, [bytes(10), None]))[0] == 408


def test_body_beyond_the_total_time_is_ended_at_any_speed():
    app = RequestBodies(count_bytes, pause=600.0, grace=600.0, total=0.0, linger=0.0)
    assert asyncio.run(post(app, [bytes(1 << 20), None]))[0] == 408


def hold(app, visitor, count, **options):
    """Send bodies that begin and then stop."""
    return [asyncio.ensure_future(post(app, [b"begin", None], visitor, **options)) for _ in range(count)]


async def let_begin():
    for _ in range(5):
        await asyncio.sleep(0)


def test_four_visitors_with_all_places_keep_no_other_out():
    """The slowest body of the visitor with the most of them is ended, and sees the sentence."""
    app = RequestBodies(count_bytes, most=8, linger=0.0)

    async def send_many():
        dripping = [each for number in range(4) for each in hold(app, f"192.0.2.{number}", 2)]
        await let_begin()
        assert app._places.total == 8
        assert (await post(app, [bytes(1000), b""], "198.51.100.7"))[0] == 200
        await let_begin()
        ended = [each for each in dripping if each.done()]
        assert [each.result()[::2] for each in ended] == [(408, "The content arrived too slowly.")]
        for each in dripping:
            each.cancel()
        await asyncio.gather(*dripping, return_exceptions=True)
        assert not app._bodies
        assert app._places.count_visitors() == 0

    asyncio.run(send_many())


def test_small_bodies_have_places_of_their_own():
    app = RequestBodies(count_bytes, most=4, most_small=4, linger=0.0)

    async def send_many():
        large = hold(app, "192.0.2.1", 1)
        await let_begin()
        assert (await post(app, [b"x"], "192.0.2.1"))[0] == 503, "its share is one, and that one is not slow yet"
        assert (await post(app, [b"x"], "192.0.2.1", length=1))[::2] == (200, "1")
        assert (await post(app, [b"x"], "192.0.2.1", length=SMALL_BODY_BYTES))[0] == 503
        for each in large:
            each.cancel()
        await asyncio.gather(*large, return_exceptions=True)

    asyncio.run(send_many())


def test_many_that_arrive_together_do_not_end_each_other(monkeypatch):
    app = RequestBodies(count_bytes, most=4, linger=0.0)

    async def send_many():
        first = hold(app, "192.0.2.1", 1)
        await let_begin()
        assert (await post(app, [b"x"], "192.0.2.1"))[0] == 503
        monkeypatch.setattr(request_bodies, "SLOW_BODY_SECONDS", 0.0)
        assert (await post(app, [b"x"], "192.0.2.1"))[0] == 200, "the first one is slow by now"
        assert (await first[0])[0] == 408

    asyncio.run(send_many())


def test_bytes_of_the_largest_visitor_give_way():
    app = RequestBodies(count_bytes, most_bytes=4000, linger=0.0)

    async def send_many():
        held = [asyncio.ensure_future(post(app, [bytes(1900), None], f"192.0.2.{number}")) for number in range(2)]
        await let_begin()
        assert (await post(app, [bytes(1000), b""], "198.51.100.7"))[::2] == (200, "1000")
        await let_begin()
        assert sorted(each.done() for each in held) == [False, True]
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        assert app._bytes.count_visitors() == 0

    asyncio.run(send_many())


@pytest.mark.parametrize("status", [499, 400])
def test_sentence_takes_the_place_of_what_the_app_answers(status):
    """A route answers a disconnect, which it is told of for a body that is ended."""

    async def answer(scope, receive, send):
        with contextlib.suppress(ClientDisconnect):
            await Request(scope, receive).body()
        await Response(status_code=status)(scope, receive, send)

    app = RequestBodies(answer, pause=0.0, linger=0.0)
    assert asyncio.run(post(app, [b"begin", None]))[::2] == (408, "The content arrived too slowly.")


def test_error_of_an_app_whose_body_was_ended_is_the_sentence():
    async def fail(scope, receive, send):
        with contextlib.suppress(ClientDisconnect):
            await Request(scope, receive).body()
        raise RuntimeError("no file")

    assert asyncio.run(post(RequestBodies(fail, pause=0.0, linger=0.0), [b"begin", None]))[0] == 408
    with pytest.raises(RuntimeError, match="no file"):
        asyncio.run(post(RequestBodies(fail), [b"whole"]))


def test_the_rest_of_a_refused_body_is_read_first():
    """A connection that closes with unread bytes is reset, and the client loses the sentence."""
    app = RequestBodies(count_bytes, most=0)
    left, events = [bytes(1000)] * 5, []

    async def receive():
        part = left.pop()
        events.append("read")
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        events.append((message.get("body"), message.get("more_body")))

    scope = {"type": "http", "method": "POST", "headers": [], "client": ("192.0.2.1", 1)}
    asyncio.run(app(scope, receive, send))
    sentence = b"The server is receiving too many contents at once. Try again in a moment."
    assert events[1:] == [(sentence, True), *["read"] * 5, (b"", None)]


def test_refused_client_that_sends_on_reads_the_sentence():
    """Over a real connection, with a body that is larger than the buffers of the system."""

    async def send_much():
        config = uvicorn.Config(RequestBodies(count_bytes, most=0), log_config=None, lifespan="off")
        config.load()
        served = uvicorn.Server(config)
        served.lifespan = config.lifespan_class(config)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            await served.startup(sockets=[listener])
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8000000\r\n\r\n")
            for _ in range(8):
                writer.write(bytes(1_000_000))
                await writer.drain()
            answer = await reader.read()
            writer.close()
            await served.shutdown(sockets=[listener])
            return answer

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: asyncio.run(send_much())).result()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"Try again in a moment.")


def test_quick_bodies_pass_in_any_number_of_parts():
    app = RequestBodies(count_bytes)
    assert asyncio.run(post(app, [b"12", b"345", b""]))[::2] == (200, "5")
    assert asyncio.run(post(app, []))[::2] == (200, "0")
    assert app._bytes.count_visitors() == 0


def test_bytes_of_one_visitor_are_limited_to_three_quarters():
    app = RequestBodies(count_bytes, most_bytes=4000)
    assert asyncio.run(post(app, [bytes(1000)]))[0] == 200
    status, headers, text = asyncio.run(post(app, [bytes(1600), bytes(1600), b""]))
    assert (status, headers["retry-after"]) == (503, "5")
    assert text == "The server is receiving too many contents at once. Try again in a moment."
    assert app._bytes.count_visitors() == 0


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
