"""Every answer of a web server ends: in time, and up to a size, whatever the server does."""

import contextlib
import itertools
import socket
import threading
import time
import urllib.error

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.completion_clients import Server, UnavailableError
from rope_viz.probe.clients import NoAnswerError, open_server, read_served
from rope_viz.storage import fetch
from rope_viz.storage.decode_json import estimate_memory

BEGIN = b"HTTP/1.1 200 OK\r\n"
WHOLE = BEGIN + b"Content-Length: 2\r\n\r\n{}"
SOON = 0.4
"""Seconds that a request gets. No test waits for a time that could be too short: each server never ends."""


@pytest.fixture
def serve():
    """serve(make_parts) answers each connection with the parts that the function of its address makes."""
    listeners, stop = [], threading.Event()

    def start(make_parts):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def answer(connection):
            with contextlib.suppress(OSError), connection:
                connection.recv(1 << 16)
                for part in make_parts(address):
                    if stop.is_set():
                        return
                    connection.sendall(part)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return address

    yield start
    stop.set()
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def drip(part):
    """Yield a part for ever, slower than any limit of speed and faster than any limit of a single read."""
    while True:
        time.sleep(0.05)
        yield part


ENDLESS = {
    "nothing": lambda address: (b"" for _ in drip(b"")),
    "a head byte by byte": lambda address: itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], drip(b"x")),
    "a status byte by byte": lambda address: drip(b"H"),
    "a content byte by byte": lambda address: itertools.chain([BEGIN, b"Content-Length: 9999\r\n\r\n"], drip(b" ")),
    "a content without length": lambda address: itertools.chain([BEGIN, b"\r\n"], drip(b" ")),
    "chunks": lambda address: itertools.chain([BEGIN, b"Transfer-Encoding: chunked\r\n\r\n"], drip(b"1\r\n \r\n")),
    "the size of a chunk": lambda address: itertools.chain([BEGIN, b"Transfer-Encoding: chunked\r\n\r\n"], drip(b"0")),
    "trailers": lambda address: itertools.chain(
        [BEGIN, b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n"], drip(b"X: y\r\n")
    ),
    "100 Continue": lambda address: drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "100 Continue, fast": lambda address: itertools.repeat(100 * b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the head of a redirect": lambda address: itertools.chain(
        [f"HTTP/1.1 302 Found\r\nLocation: {address}/next\r\n".encode()], drip(b"X")
    ),
    "the content of a refusal": lambda address: itertools.chain(
        [b"HTTP/1.1 500 Error\r\nContent-Length: 9999\r\n\r\n"], drip(b" ")
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_answer_ends_in_time(serve, name):
    address = serve(ENDLESS[name])
    with pytest.raises(fetch.LateError, match=r"no whole answer within 0\.4 seconds"):
        fetch.fetch(address, seconds=SOON)


def test_a_connection_that_was_given_up_is_closed(serve):
    ended = threading.Event()

    def make_parts(address):
        yield BEGIN + b"\r\n"
        try:
            yield from drip(b" ")
        finally:
            ended.set()

    with pytest.raises(fetch.LateError):
        fetch.fetch(serve(make_parts), seconds=SOON)
    assert ended.wait(30)


def test_a_handshake_that_never_ends_ends_in_time(serve):
    address = serve(ENDLESS["nothing"]).replace("http", "https")
    with pytest.raises(fetch.LateError):
        fetch.fetch(address, seconds=SOON)


def test_a_name_that_is_never_found_ends_in_time(monkeypatch):
    waits = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: waits.wait(60))
    with pytest.raises(fetch.LateError):
        fetch.fetch("http://never.example", seconds=SOON)
    waits.set()


def test_redirects_in_a_circle_and_endless_headers_end(serve):
    circle = serve(lambda address: [f"HTTP/1.1 302 Found\r\nLocation: {address}/\r\n\r\n".encode()])
    with pytest.raises(urllib.error.HTTPError, match="infinite loop"):
        fetch.fetch(circle, seconds=60.0)
    headers = serve(lambda address: itertools.chain([BEGIN], itertools.repeat(b"X: y\r\n")))
    with pytest.raises(Exception, match="more than 100 headers"):
        fetch.fetch(headers, seconds=60.0)


def test_the_content_of_a_redirect_is_not_read(serve):
    def make_parts(address):
        if next(requests) == 0:
            yield f"HTTP/1.1 302 Found\r\nLocation: {address}/next\r\n\r\n".encode()
            yield from itertools.repeat(bytes(1 << 20))
        yield WHOLE

    requests = itertools.count()
    assert fetch.fetch(serve(make_parts), seconds=60.0).content == b"{}"


def test_an_answer_has_a_size_by_its_kind(serve):
    large = serve(lambda address: itertools.chain([BEGIN + b"\r\n"], itertools.repeat(bytes(1 << 16))))
    with pytest.raises(fetch.LargeError, match="answered with more than 4 MiB"):
        fetch.fetch(large, seconds=60.0)
    with pytest.raises(NoAnswerError, match="answered with more than 4 MiB"):
        read_served(open_server(large, 60.0))
    with pytest.raises(ValueError, match="answered with more than 4 MiB"):
        Server(f"{large}/v1", "m").ask("text", 1)


def test_an_answer_that_is_small_but_has_many_values_is_refused(serve):
    lists = b"[" + b"[]," * 1_000_000 + b"0]"
    address = serve(lambda address: [BEGIN + b"\r\n", lists])
    with pytest.raises(NoAnswerError, match="more values than any answer"):
        read_served(open_server(address, 60.0))
    assert estimate_memory(lists) > 10**8


@pytest.mark.parametrize("name", ["a head byte by byte", "a content byte by byte", "100 Continue"])
def test_each_command_ends_with_a_sentence(serve, capsys, monkeypatch, tmp_path, name):
    address = serve(ENDLESS[name])
    late = "no whole answer within 0.4 seconds"
    output = str(tmp_path / "recall.json")
    assert main(["evaluate", "--server", f"none={address}/v1", "-o", output, "--timeout", "0.4"]) == 2
    assert f"does not list its models ({late}) (--timeout)" in capsys.readouterr().err
    assert main(["probe", "ask", address, "--config", "llama-3.1-8b", "--timeout", "0.4"]) == 3
    assert f"{address}/v1/models gave {late} (--timeout)" in capsys.readouterr().err
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # another test may have started transformers offline
    monkeypatch.setattr("rope_viz.cli.fetch_config.TIMEOUT", SOON)
    assert main(["table", "acme/other", "--hub"]) == 2
    assert f"127.0.0.1 cannot be reached ({late})" in capsys.readouterr().err
    with pytest.raises(UnavailableError, match="gave no whole answer"):
        Server(f"{address}/v1", "m", timeout=SOON).ask("text", 1)


@pytest.mark.parametrize("written", ["0", "-1", "nan", "inf", "1e300", "soon"])
def test_a_time_that_is_none_is_refused(capsys, written):
    for words in (["evaluate", "--timeout", written], ["probe", "ask", "x", "--timeout", written]):
        with pytest.raises(SystemExit):
            main(words)
        assert "is not a number of seconds above 0 and up to a week" in capsys.readouterr().err
