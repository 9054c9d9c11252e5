"""Text from outside is text: lone surrogates, NUL and control characters by every door give an answer that is text."""

import asyncio
import json
import logging
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers

from rope_viz.own_files import blob_store
from rope_viz.pages import registry
from rope_viz.serving import long_jobs, picture_route, server
from rope_viz.ui.components.component import clean_message
from rope_viz.ui.components.scripts import PREFIX
from tests.hostile_text import check_answer, make_address, make_content, quote_hostile

APP = Starlette(routes=server.routes(""), middleware=server.middleware())


@pytest.fixture(scope="module")
def processes():
    """Processes for long jobs."""
    found = long_jobs.LongJobs()
    yield found
    found.shut_down()


@pytest.fixture(autouse=True)
def gallery(monkeypatch, processes):
    """The gallery and the store of a new server."""
    monkeypatch.setattr(picture_route, "GALLERY", picture_route.Gallery(long_jobs=processes))
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())


def ask(path, query="", body=None):
    """Return status, headers and body of one answer."""

    async def send_request():
        sent, parts = [], [body or b""]
        raw_path = f"{PREFIX}/{path}"
        scope = {"type": "http", "method": "GET" if body is None else "POST", "headers": [(b"rope-viz", b"kept")]}
        # As uvicorn decodes it.
        scope |= {"path": server_path(raw_path), "raw_path": raw_path.encode(), "client": ("192.0.2.1", 50_000)}

        async def receive():
            if parts:
                return {"type": "http.request", "body": parts.pop(), "more_body": False}
            await asyncio.get_running_loop().create_future()

        async def send(message):
            sent.append(message)

        await APP(scope | {"query_string": query.encode()}, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], Headers(raw=sent[0]["headers"]), content

    # In another thread, since Playwright runs an event loop in the main thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(send_request())).result()


def server_path(raw):
    """Return a path as a server decodes it."""
    return unquote(raw)


def post(page, key, content, form="json"):
    """Return the answer to a picture of a page that gets this content."""
    salted = blob_store.salt() + content
    name = blob_store.name_of(salted)
    picture = next(iter(registry.page(page).pictures.values()))
    query = f"{key}={name}" + ("&model=custom" if key == "own" else "")
    return ask(f"picture/{picture.address}.{form}", query, struct.pack("<I", len(salted)) + salted)


def find_faults(address_count, content_count, seed, caplog):
    """Return what is wrong with the answers to hostile addresses and contents."""
    faults = []
    caplog.set_level(logging.WARNING)
    for number in range(address_count):
        path, query = make_address(random.Random(f"{seed} address {number}"))
        faults += [(number, path, query[:300], each) for each in check_answer(*ask(path, query))]
    for number in range(content_count):
        page, key, content = make_content(random.Random(f"{seed} content {number}"))
        form = random.Random(number).choice(("packed", "json", "csv", "svg"))
        faults += [(number, page, key, content[:300], each) for each in check_answer(*post(page, key, content, form))]
    faults += [record.getMessage() for record in caplog.records]
    return faults


def test_hostile_addresses_are_answered_with_text():
    # Files are rendered in another process, whose start is for slow tests.
    found = [make_address(random.Random(f"quick {number}")) for number in range(40)]
    for path, query in [each for each in found if not each[0].endswith((".svg", ".csv", ".html", ".json"))][:8]:
        assert check_answer(*ask(path, query)) == [], (path, query)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_hostile_addresses_and_contents_are_answered_with_text(seed, caplog):
    assert find_faults(100, 50, seed, caplog) == []


SURROGATES = (
    {"_class_name": "\ud800"},
    {"gguf": {"keys": {"general.architecture": "\ud800"}}},
)


@pytest.mark.parametrize("config", SURROGATES, ids=["class", "gguf"])
@pytest.mark.parametrize("form", ["packed", "svg", "csv"])
def test_a_lone_surrogate_in_a_content_gets_a_sentence(config, form):
    status, headers, body = post("scaling", "own", json.dumps(config).encode(), form)
    assert status == 422
    assert check_answer(status, headers, body) == []


def test_a_path_with_control_characters_gets_a_sentence():
    for path in ("picture/scaling/comparison.\x1b[31m", "picture/scaling/\x1b.svg", "picture/\x00/x.svg"):
        status, headers, body = ask(quote_hostile(path).replace("%2F", "/"))
        assert status == 404
        assert check_answer(status, headers, body) == []


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"name": "\ud800", "value": ["a\0b", 1]}, {"name": "\ufffd", "value": ["a\ufffdb", 1]}),
        ({"\udfff": {"x": "θ😀\t\n"}}, {"\ufffd": {"x": "θ😀\t\n"}}),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        (None, None),
        (1.5, 1.5),
    ],
)
def test_messages_of_scripts_are_cleaned(sent, read):
    assert clean_message(sent) == read


def test_a_message_that_is_nested_too_deeply_is_no_message():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert clean_message({"value": deep}) is None
