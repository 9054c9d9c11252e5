"""Clients that have left cost nothing, and those that take too little are disconnected."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.responses import Response

from rope_viz.serving import connections, request_bodies, server
from rope_viz.serving.request_bodies import ResponseParts, UnreadAnswers
from rope_viz.storage.limits import ANSWER_PART_BYTES

CONTENT = bytes(40 * ANSWER_PART_BYTES)
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
linux = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the state of a connection is known on Linux")


def serve(app, use):
    """Return what `use(address)` returns while uvicorn serves an app with our protocols."""

    async def serve_once():
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        made = config.http_protocol_class
        config.http_protocol_class = server.limit_messages(made)
        served = uvicorn.Server(config)
        served.lifespan = config.lifespan_class(config)
        with socket.socket() as listener:
            # Small buffers, so that little of an answer is in the system.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            listener.bind(("127.0.0.1", 0))
            await served.startup(sockets=[listener])
            try:
                return await use(listener.getsockname())
            finally:
                await served.shutdown(sockets=[listener])

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(serve_once())).result()


def connect(address, request=GET):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    client.sendall(request)
    client.setblocking(False)
    return client


@linux
def test_requests_of_clients_that_left_reach_no_app():
    paths = []

    async def app(scope, receive, send):
        paths.append(scope["path"])
        await Response("here")(scope, receive, send)

    async def leave(address):
        # The loop does not run meanwhile: all have left before the server sees them.
        for _ in range(20):
            connect(address, b"GET /left HTTP/1.1\r\nhost: a\r\n\r\n").close()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /stayed HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    assert serve(app, leave).endswith(b"here")
    assert paths == ["/stayed"]


@pytest.mark.parametrize("size", [len(CONTENT), 300_000])
def test_client_that_takes_too_little_is_disconnected(size, monkeypatch):
    """Also one that takes a byte now and then, and one that has not taken the last part."""
    monkeypatch.setattr(request_bodies, "ANSWER_RATE", 1 << 40)
    ended = []

    async def app(scope, receive, send):
        await ResponseParts(Response(CONTENT[:size]), grace=0.1, idle=0.1)(scope, receive, send)
        ended.append(scope)

    async def drip(address):
        client = connect(address)
        loop = asyncio.get_running_loop()
        taken = 0
        try:
            for _ in range(10):
                await asyncio.sleep(0.05)
                taken += len(await loop.sock_recv(client, 1))
            # Then the rest of what is in the system.
            while part := await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 10):
                taken += len(part)
        except ConnectionError:
            pass
        finally:
            client.close()
        return taken

    assert serve(app, drip) < size
    assert ended, "nothing waits for this client any more"


def test_client_that_reads_gets_everything():
    async def app(scope, receive, send):
        await ResponseParts(Response(CONTENT, headers={"connection": "close"}))(scope, receive, send)

    async def read(address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(GET)
        answer = await reader.read()
        writer.close()
        return answer

    assert serve(app, read).endswith(CONTENT)


def make_scope(aborted, name):
    transport = SimpleNamespace(abort=lambda: aborted.append(name))
    return {connections.KEY: SimpleNamespace(transport=transport)}


def test_clients_of_one_answer_count_it_once():
    async def read():
        unread, aborted = UnreadAnswers(most=250, reading=0.0), []
        bodies = [bytes(100 + number) for number in range(3)]
        with unread.hold(make_scope(aborted, "a"), bodies[0]), unread.hold(make_scope(aborted, "b"), bodies[0]):
            assert unread.size == 100
            with unread.hold(make_scope(aborted, "c"), memoryview(bodies[1])):
                assert not aborted
                with unread.hold(make_scope(aborted, "d"), bodies[2]):
                    assert aborted == ["a", "b"]
        assert unread.size == 0

    asyncio.run(read())


def test_new_and_single_answers_are_not_given_up():
    async def read():
        aborted = []
        for unread in (UnreadAnswers(most=50, reading=60.0), UnreadAnswers(most=50, reading=0.0)):
            with unread.hold(make_scope(aborted, "a"), bytes(100)):
                assert not aborted
        unread = UnreadAnswers(most=50, reading=60.0)
        with unread.hold(make_scope(aborted, "a"), bytes(100)), unread.hold(make_scope(aborted, "b"), bytes(101)):
            assert not aborted

    asyncio.run(read())


def test_parts_of_many_clients_are_sent_in_turn():
    order = []

    async def read(name):
        async def send(message):
            order.append(name)

        await ResponseParts(Response(CONTENT[: 3 * ANSWER_PART_BYTES]))({"type": "http"}, None, send)

    async def read_both():
        await asyncio.gather(read("a"), read("b"))

    asyncio.run(read_both())
    assert order[2:] != sorted(order[2:])
    assert request_bodies.UNREAD.size == 0
