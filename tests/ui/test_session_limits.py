"""One visitor's pages, messages and uploads leave room for others; what a closed session held is given back."""

import asyncio
import inspect
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from streamlit.runtime import memory_session_storage, memory_uploaded_file_manager
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from rope_viz.models.user_config import LARGEST as LARGEST_CONFIG
from rope_viz.picture import blob_store, config_link
from rope_viz.ui import (
    picture_route,
    render_queue,
    request_bodies,
    session_limits,
    state,
    static_middleware,
    visitors,
)
from rope_viz.ui import session as own_session
from rope_viz.ui.request_bodies import IDLE_SECONDS
from rope_viz.ui.session_limits import LostSessions, OpenPages, Uploads, take_upload

ROOT = Path(__file__).parents[2]


def file(size, name="a"):
    return UploadedFileRec(name, f"{name}.json", "application/json", bytes(size))


@pytest.fixture
def names(monkeypatch):
    """The visitor of a session, by its id; any other session has its id as its visitor."""
    found = {}
    monkeypatch.setattr(session_limits, "find_visitor", lambda session: found.get(session, session))
    return found


def test_uploads_of_one_visitor_leave_room_for_others(names):
    names |= {"1": "a", "2": "a"}
    uploads = Uploads("", most=1000, share=500)
    uploads.add_file("1", file(300))
    uploads.add_file("2", file(200))
    with pytest.raises(HTTPException) as refused:
        uploads.add_file("2", file(1, "b"))
    assert refused.value.status_code == 413
    assert "Try again" in refused.value.detail
    uploads.add_file("3", file(400))
    with pytest.raises(HTTPException):
        uploads.add_file("4", file(200))  # beyond the sum of all
    uploads.remove_file("1", "a")
    uploads.add_file("2", file(250, "b"))
    for session in "1234":
        uploads.remove_session_files(session)
    assert not +uploads._bytes
    assert not uploads._sizes
    assert not uploads._visitors
    assert not uploads.file_storage


def test_same_file_again_counts_once(names):
    uploads = Uploads("", most=1000, share=500)
    for size in (400, 500, 300):
        uploads.add_file("1", file(size))
    assert uploads._bytes.total() == 300


def test_taken_file_leaves_no_bytes(names, enter_session):
    context = enter_session()
    context.uploaded_file_mgr = Uploads("", most=1000, share=500)
    for turn in range(5):
        record = file(400, str(turn))
        context.uploaded_file_mgr.add_file(context.session_id, record)
        dropped = UploadedFile(record, None)
        assert take_upload(dropped) == bytes(400)
        assert dropped.getvalue() == b""
    assert context.uploaded_file_mgr._bytes.total() == 0
    (shown,) = context.uploaded_file_mgr.get_files(context.session_id, ["4"])
    assert (shown.name, shown.data) == ("4.json", b"")


async def connect(app, visitor, messages=(), path="/_stcore/stream"):
    """Open a page's connection, which sends these messages and stays; return what the server sent."""
    sent, left = [], list(messages)

    async def receive():
        if left:
            return {"type": "websocket.receive", "bytes": left.pop(0)}
        return await asyncio.get_running_loop().create_future()

    async def send(message):
        sent.append(message)

    task = asyncio.create_task(app({"type": "websocket", "path": path, "client": (visitor, 1)}, receive, send))
    for _ in range(5):
        await asyncio.sleep(0)
    return task, sent


async def get(app, visitor, path):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": (visitor, 1)}
    await app(scope, None, send)
    return sent[0]["status"], sent[1]["body"].decode()


async def talk(scope, receive, send):
    """An app whose pages stay open until they disconnect."""
    if scope["type"] == "http":
        return await PlainTextResponse("the page")(scope, receive, send)
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass
    return None


def test_visitor_with_too_many_open_pages_reads_a_sentence():
    async def crowd():
        app = OpenPages(talk, most=6)
        pages = [await connect(app, "192.0.2.1") for _ in range(3)]
        assert all(sent == [{"type": "websocket.accept"}] for _, sent in pages)
        _, refused = await connect(app, "192.0.2.1")
        assert refused == [{"type": "websocket.close", "code": 1013}]
        assert not any(task.done() for task, _ in pages), "open pages go on"
        for path in ("/", "/scaling"):
            status, text = await get(app, "192.0.2.1", path)
            assert status == 503
            assert "has 3 pages of RoPE Viz open" in text
            assert await get(app, "192.0.2.2", path) == (200, "the page")
        assert await get(app, "192.0.2.1", "/_stcore/health") == (200, "the page")
        assert await get(app, "192.0.2.1", "/rope-viz/picture/scaling/comparison.packed") == (200, "the page")
        pages[0][0].cancel()
        await asyncio.sleep(0)
        assert (await get(app, "192.0.2.1", "/"))[0] == 200
        others = [await connect(app, f"192.0.2.{number}") for number in range(2, 8)]
        assert [sent[0]["type"] for _, sent in others] == ["websocket.accept"] * 4 + ["websocket.close"] * 2
        for task, _ in (*pages, *others):
            task.cancel()
        await asyncio.sleep(0)
        assert not app._open
        assert not app._bytes

    asyncio.run(crowd())


def test_a_classroom_has_one_address():
    assert session_limits.MOST // session_limits.SHARE >= 100


def test_last_messages_of_one_visitor_take_half():
    async def crowd():
        app = OpenPages(talk, most_bytes=1000)
        task, _ = await connect(app, "192.0.2.1", [bytes(400), bytes(10), bytes(400)])
        assert app._bytes["192.0.2.1"] == 400, "Streamlit keeps the state of the last message"
        _, sent = await connect(app, "192.0.2.1", [bytes(200)])
        assert sent[-1] == {"type": "websocket.close", "code": 1009}
        other, sent = await connect(app, "192.0.2.2", [bytes(400)])
        assert len(sent) == 1
        task.cancel()
        other.cancel()
        await asyncio.sleep(0)
        assert not app._bytes

    asyncio.run(crowd())


class Session:
    def __init__(self, id):
        self.id, self.ended = id, 0

    def shutdown(self):
        self.ended += 1


def test_lost_session_ends_by_itself():
    async def lose():
        lost, session = LostSessions(seconds=0.0), Session("1")
        lost.save(SessionInfo(None, session))
        assert lost.get("1").session is session
        await asyncio.sleep(0.01)
        assert session.ended == 1
        assert lost.get("1") is None
        assert lost.list() == []

    asyncio.run(lose())


def test_session_whose_page_returns_goes_on():
    async def lose():
        lost, session = LostSessions(seconds=0.0), Session("1")
        lost.save(SessionInfo(None, session))
        lost.delete("1")
        lost.delete("unknown")
        await asyncio.sleep(0.01)
        assert session.ended == 0

    asyncio.run(lose())


def test_lost_sessions_are_few():
    async def lose():
        lost, sessions = LostSessions(seconds=60.0, most=3), [Session(str(n)) for n in range(5)]
        for session in sessions:
            lost.save(SessionInfo(None, session))
        assert [session.ended for session in sessions] == [1, 1, 0, 0, 0]
        assert len(lost.list()) == 3
        for session in sessions:
            lost.delete(session.id)

    asyncio.run(lose())


def test_ended_session_gives_back_what_only_it_named(enter_session, monkeypatch, names):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    monkeypatch.setattr(state, "_SESSIONS", {})
    context = enter_session()
    context.session_id = "first"
    alone = state.store_blob("decay.typed", b"{}")
    shared = state.make_stored(blob_store.salt() + b"shared")
    enter_session().session_id = "second"
    assert state.make_stored(blob_store.STORE.salted(shared.name)).name == shared.name
    uploads = Uploads("")
    uploads.remove_session_files("first")
    assert blob_store.STORE.salted(alone) is None
    assert blob_store.STORE.salted(shared.name) is not None
    uploads.remove_session_files("second")
    assert blob_store.STORE.size == 0


def test_session_itself_holds_no_large_content(enter_session, monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    enter_session()
    content = b"a.npz\0" + bytes(2 * state.SMALL)
    name = state.store_blob("decay.file", content)
    held = own_session.session().stored["decay.file"]
    assert not [part for part in held if isinstance(part, bytes) and len(part) > 100]
    assert state.blob("decay.file") == content
    assert state.store_blob("decay.file", content) == name
    blob_store.STORE.forget([name])
    assert state.blob("decay.file") is None
    assert state.contents() == []
    assert state.store_blob("decay.file", content) == name, "dropped again"
    assert state.blob("decay.file") == content


def test_streamlit_makes_the_storages_that_install_puts_there(monkeypatch):
    """Fails if Streamlit takes its storages from other modules, or does not tell them that a session has ended."""
    for module, name in (
        (memory_uploaded_file_manager, "MemoryUploadedFileManager"),
        (memory_session_storage, "MemorySessionStorage"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    session_limits.install()
    made = []
    monkeypatch.setattr(streamlit.runtime, "Runtime", lambda config: made.append(config))
    streamlit.App(ROOT / "app.py")._create_runtime()
    (config,) = made
    assert isinstance(config.uploaded_file_manager, Uploads)
    assert isinstance(config.session_storage, LostSessions)
    assert "self._uploaded_file_mgr.remove_session_files(self.id)" in inspect.getsource(AppSession.shutdown)


def test_files_of_a_session_belong_to_its_address(monkeypatch):
    client = SimpleNamespace(client_context=SimpleNamespace(remote_ip="192.0.2.9"))
    running = SimpleNamespace(get_client=lambda session: client if session == "1" else None)
    monkeypatch.setattr(visitors.runtime, "exists", lambda: True)
    monkeypatch.setattr(visitors.runtime, "get_instance", lambda: running)
    assert visitors.find_visitor("1") == "192.0.2.9"
    assert visitors.find_visitor("2") == "127.0.0.1"


START = 135
"""MB of the server process after each page was opened once, as measured; it starts at about 115."""
SESSION = 0.12
"""MB of one session, as measured with 120 of them."""


def test_limits_in_the_documentation_add_up_to_500_mb():
    sizes = {
        "stored contents": blob_store.MOST,
        "rendered pictures": render_queue.MOST,
        "request bodies": request_bodies.MOST_BYTES,
        "uploaded files": session_limits.MOST_UPLOADS,
        "last messages": session_limits.MOST_MESSAGES,
        "static files": static_middleware.MOST,
        "configs of links": config_link.MOST_KEPT,
    }
    pages = session_limits.MOST + session_limits.MOST_LOST
    wanted = {"start": START, "sessions": round(SESSION * pages)}
    wanted |= {name: round(size / 1e6) for name, size in sizes.items()}
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    table = text.partition("### What it adds up to")[2].partition("\n#")[0]
    found = {name: int(size) for name, size in re.findall(r"^\| ([a-z ]+) \| (\d+) MB \|", table, re.MULTILINE)}
    total = found.pop("sum")
    assert found == wanted
    assert sum(found.values()) == total <= 500


def test_largest_file_passes_every_limit_of_one_visitor():
    assert picture_route.LARGEST_BODY <= request_bodies.MOST_BYTES * 3 // request_bodies.SHARE
    assert blob_store.LARGEST < picture_route.LARGEST_BODY
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["server"]
    assert settings["maxUploadSize"] << 20 <= session_limits.UPLOADS_OF_VISITOR < blob_store.LARGEST
    # A pasted config of the largest size, and the values of the other controls.
    assert LARGEST_CONFIG < settings["maxWidgetStateSize"] * 10**6 <= session_limits.LARGEST_MESSAGE
    assert session_limits.LARGEST_MESSAGE <= session_limits.MOST_MESSAGES // session_limits.SHARE


@pytest.mark.parametrize(
    "limit",
    [
        f"{picture_route.LARGEST_BODY >> 20} MiB, {picture_route.MOST_CONTENTS} contents",
        f"{request_bodies.MOST}, and {request_bodies.MOST_BYTES >> 20} MiB together",
        f"{blob_store.LARGEST >> 20} MiB",
        f"{blob_store.MOST >> 20} MiB",
        f"{render_queue.MOST >> 20} MiB",
        f"{session_limits.MOST}; {session_limits.MOST // session_limits.SHARE} of one user",
        f"{session_limits.LARGEST_MESSAGE >> 20} MiB; {session_limits.MOST_MESSAGES >> 20} MiB of all open pages",
        f"{session_limits.MOST_UPLOADS >> 20} MiB; {session_limits.UPLOADS_OF_VISITOR >> 20} MiB of one user",
        f"{session_limits.SECONDS:.0f} seconds; {session_limits.MOST_LOST} at once",
        f"{IDLE_SECONDS} seconds",
    ],
)
def test_documentation_names_the_limit_of_the_code(limit):
    assert f" | {limit} | " in (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
