"""One visitor's pages, messages and uploads leave room for others; what a closed session held is given back."""

import asyncio
import inspect
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import memory_session_storage, memory_uploaded_file_manager
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.state import SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from rope_viz.models.read_upload import read_upload
from rope_viz.own_files import blob_store
from rope_viz.serving import (
    page_messages,
    session_limits,
)
from rope_viz.serving.session_limits import LostSessions, OpenPages, Uploads
from rope_viz.storage.limits import (
    ALL_MESSAGE_BYTES,
    ARRIVING_BYTES,
    COMPONENT_VALUE,
    CONFIG_BYTES,
    CONTENT_BYTES,
    MESSAGE_BURST,
    MESSAGE_BURST_OF_VISITOR,
    MESSAGE_BYTES,
    OPEN_PAGES,
    REQUEST_BYTES,
    SESSION_CONTENT_BYTES,
    SHARE_OF_BODIES,
    SHARE_OF_PAGES,
    TEXT_FIELD_BYTES,
    UPLOAD_BYTES_OF_VISITOR,
)
from rope_viz.storage.shares import Holdings, Shares
from rope_viz.ui import own_config, state, visitors
from rope_viz.ui import session as own_session

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
    assert uploads.bytes.shares.total == 0
    assert not uploads.file_storage


def test_same_file_again_counts_once(names):
    uploads = Uploads("", most=1000, share=500)
    for size in (400, 500, 300):
        uploads.add_file("1", file(size))
    assert uploads.bytes.shares.total == 300


def test_taken_file_leaves_no_bytes(names, enter_session):
    context = enter_session()
    context.uploaded_file_mgr = Uploads("", most=1000, share=500)
    for turn in range(5):
        record = file(400, str(turn))
        context.uploaded_file_mgr.add_file(context.session_id, record)
        dropped = UploadedFile(record, None)
        assert visitors.take_upload(dropped) == bytes(400)
        assert dropped.getvalue() == b""
    assert context.uploaded_file_mgr.bytes.shares.total == 0
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
    for _ in range(30):
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
        await asyncio.sleep(0.01)
        assert (await get(app, "192.0.2.1", "/"))[0] == 200
        others = [await connect(app, f"192.0.2.{number}") for number in range(2, 8)]
        assert [sent[0]["type"] for _, sent in others] == ["websocket.accept"] * 4 + ["websocket.close"] * 2
        for task, _ in (*pages, *others):
            task.cancel()
        await asyncio.sleep(0.01)
        assert app.places.total == 0
        assert app.bytes.shares.total == 0

    asyncio.run(crowd())


def test_a_classroom_has_one_address():
    assert OPEN_PAGES // SHARE_OF_PAGES >= 100


def message(size=0, *, field="x", kind="string_value", page="scaling"):
    """A message that asks for a run, with a widget's value of so many bytes."""
    found = BackMsg()
    found.rerun_script.page_name = page
    if size:
        state = found.rerun_script.widget_states.widgets.add(id=f"$$ID-0-{field}")
        setattr(state, kind, "x" * size)
    return found.SerializeToString()


def values_of(content):
    found = BackMsg()
    found.ParseFromString(content)
    return {state.id.rpartition("-")[2]: state for state in found.rerun_script.widget_states.widgets}


async def collect(app, visitor, messages):
    """Send messages as a page; return what the app received of them, and the page."""
    received = []

    async def keep(scope, receive, send):
        while (got := await receive())["type"] != "websocket.disconnect":
            received.append(got["bytes"])

    app.app = keep
    task, _ = await connect(app, visitor, messages)
    page = max((page for page in app._pages if page.visitor == visitor), key=lambda page: page.opened)
    return received, page, task


def test_values_that_are_too_large_are_left_out():
    async def crowd():
        app = OpenPages(talk)
        large = message(COMPONENT_VALUE + 1, field="shell", kind="json_value")
        text = message(TEXT_FIELD_BYTES + 1, field="choice.q")
        config = message(CONFIG_BYTES, field="upload.text.0")
        restored = message(4 << 20, field="shell__events", kind="json_trigger_value")
        received, page, task = await collect(app, "192.0.2.1", [large])
        assert values_of(received[0])["shell"].WhichOneof("value") is None
        assert page.refusal == "messages.too_large"
        task.cancel()
        received, page, task = await collect(app, "192.0.2.2", [text])
        assert values_of(received[0])["choice.q"].string_value == ""
        task.cancel()
        for visitor, whole in (("192.0.2.3", config), ("192.0.2.4", restored)):
            received, page, task = await collect(app, visitor, [whole])
            assert received == [whole]
            assert page.refusal == ""
            task.cancel()

    asyncio.run(crowd())


def test_what_sessions_of_one_visitor_keep_takes_half():
    async def crowd():
        most = 3 * COMPONENT_VALUE
        app = OpenPages(talk, messages=Holdings(Shares(most, most // 2)))
        large = message(COMPONENT_VALUE + 1000, field="choice.q")
        received, first, task = await collect(app, "192.0.2.1", [large, message()])
        assert received == [large, message()]
        assert app.bytes.shares.amount_of("192.0.2.1") < 100, "the state of the last message, until a run tells more"
        assert first.keep(len(large)), "the run has kept the text of the first message"
        received, second, other = await collect(app, "192.0.2.1", [large])
        assert values_of(received[0])["choice.q"].WhichOneof("value") is None
        assert second.refusal == "messages.full"
        assert app.bytes.shares.amount_of("192.0.2.1") == len(large), "the refused one does not count"
        task.cancel()
        other.cancel()
        await asyncio.sleep(0.01)
        assert app.bytes.shares.total == 0

    asyncio.run(crowd())


def test_texts_that_a_session_keeps_are_counted_after_a_run():
    class Page:
        refusal, kept, room = "", [], True

        def keep(self, size):
            self.kept.append(size)
            return self.room

    page, streamlit_state = Page(), SessionState()
    visitors.CONNECTION.set(page)
    try:
        streamlit_state._new_widget_state.set_from_value("$$ID-0-a", "x" * 5000)
        streamlit_state._old_state["$$ID-0-b"] = "x" * 7000
        own = streamlit_state._new_session_state[own_session.KEY] = own_session.Session()
        own.texts["decay.typed"] = {"q": "x" * 3000}
        page_messages.count_state(streamlit_state)
        assert 15_000 <= page.kept[0] <= 16_000
        page.room = False
        page_messages.count_state(streamlit_state)
        assert page.refusal == "messages.full"
        page.room = True
        page_messages.count_state(streamlit_state)
        assert page.kept[-1] < 4000
        assert "no room for more texts" in visitors.take_refusal()
        assert visitors.take_refusal() == ""
    finally:
        visitors.CONNECTION.set(None)


def test_pace_is_a_burst_and_then_a_rate():
    now = 0.0
    pace = page_messages.Pace(10, 5, lambda: now)
    assert [pace.take(1) for _ in range(12)] == [0.0] * 10 + [0.2, 0.4]
    now = 1.4
    assert not pace.is_rested
    assert pace.take(1) == 0.0
    now = 60.0
    assert pace.is_rested
    assert page_messages.cost_of(100) < 1.1
    assert page_messages.cost_of(COMPONENT_VALUE) > 30
    # A paste of the largest config does not wait.
    assert page_messages.cost_of(CONFIG_BYTES) < MESSAGE_BURST


def test_page_that_sends_too_much_waits_and_loses_nothing(monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def crowd():
        app = OpenPages(talk)
        sent = [message(page=str(number)) for number in range(200)]
        left, received = list(sent), []

        async def receive():
            return {"type": "websocket.receive", "bytes": left.pop(0)}

        page = session_limits.OpenPage(app, "192.0.2.1", receive, None)
        monkeypatch.setattr(session_limits.asyncio, "sleep", sleep)
        while left:
            received.append((await page.receive())["bytes"])
        assert received == sent

    asyncio.run(crowd())
    assert 50 < len(waits) < 100
    assert waits[-1] > 1


def test_new_pages_bring_no_new_burst():
    app = OpenPages(talk)
    app.pace_of("a").take(MESSAGE_BURST_OF_VISITOR)
    app.pace_of("b")
    assert app.pace_of("a").take(1) > 0
    for number in range(100):
        app.pace_of(f"{number}")
    assert len(app._paces) < 5, "rested visitors are forgotten"


def test_page_that_asks_for_no_run_is_closed():
    async def crowd():
        app = OpenPages(talk, patience=0.02)
        _, silent = await connect(app, "192.0.2.1")
        _, idle = await connect(app, "192.0.2.2", [BackMsg(load_git_info=True).SerializeToString()])
        task, used = await connect(app, "192.0.2.3", [message()])
        await asyncio.sleep(0.1)
        closed = {"type": "websocket.close", "code": session_limits.SLEEP}
        assert silent[-1] == idle[-1] == closed
        assert used[-1]["type"] == "websocket.accept"
        assert app.places.total == 1
        task.cancel()

    asyncio.run(crowd())


def test_quietest_page_of_many_goes_for_a_newcomer(monkeypatch):
    monkeypatch.setattr(session_limits, "RESERVED_PAGES", 0)

    async def crowd():
        app = OpenPages(talk, most=20)
        many = [await connect(app, "192.0.2.1", [message()]) for _ in range(10)]
        few = [await connect(app, f"192.0.2.{number}", [message()]) for number in range(2, 12)]
        quietest = min((page for page in app._pages if page.visitor == "192.0.2.1"), key=lambda page: page.used)
        assert app.places.total == 20
        assert (await get(app, "192.0.2.99", "/"))[0] == 200, "the page itself opens, too"
        _, accepted = await connect(app, "192.0.2.99", [message()])
        assert accepted == [{"type": "websocket.accept"}]
        assert quietest.is_closed
        assert app.places.total == 20
        assert [sent[-1].get("code") for _, sent in many].count(session_limits.SLEEP) == 1
        with pytest.raises(OSError, match="make room"):
            await quietest.send({"type": "websocket.send"})
        _, refused = await connect(app, "192.0.2.1", [message()])
        assert refused[-1]["code"] == 1013, "not for one with many pages"
        for task, _ in (*many, *few):
            task.cancel()

    asyncio.run(crowd())


def test_last_places_are_for_visitors_with_few_pages():
    async def crowd():
        app = OpenPages(talk, most=60)
        tasks = [await connect(app, "192.0.2.1", [message()]) for _ in range(30)]
        tasks += [await connect(app, "192.0.2.2", [message()]) for _ in range(14)]
        assert app.is_full("192.0.2.2")
        assert app.is_closed("192.0.2.2")
        assert not app.is_full("192.0.2.3")
        for task, _ in tasks:
            task.cancel()

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


def make_config(number):
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}
    return read_upload(json.dumps(config | {"rope_theta": 10_000 + number}))


def test_configs_that_sessions_remember_are_counted(enter_session, monkeypatch):
    held = Holdings(Shares(1000, 500))
    monkeypatch.setattr(own_config, "HELD", held)
    enter_session().session_id = "first"
    for number in range(4):
        own_config.remember_upload(make_config(number), 150)
    assert len(own_config.session().uploads) == 3, "the oldest made room"
    assert held.shares.total == 450
    assert own_config.has_room(500)
    assert not own_config.has_room(501)
    enter_session().session_id = "second"
    assert not own_config.has_room(100)
    with pytest.raises(ValueError, match="no room for more texts"):
        own_config.remember_upload(make_config(9), 100)
    Uploads("").remove_session_files("first")
    assert held.shares.total == 0
    own_config.remember_upload(make_config(9), 100)
    own_config.forget()
    assert held.shares.total == 0


def test_session_itself_holds_no_large_content(enter_session, monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    enter_session()
    content = b"a.npz\0" + bytes(2 * SESSION_CONTENT_BYTES)
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


def test_largest_file_passes_every_limit_of_one_visitor():
    assert REQUEST_BYTES <= ARRIVING_BYTES * 3 // SHARE_OF_BODIES
    assert CONTENT_BYTES < REQUEST_BYTES
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["server"]
    assert settings["maxUploadSize"] << 20 <= UPLOAD_BYTES_OF_VISITOR < CONTENT_BYTES
    # A pasted config of the largest size, and the values of the other controls.
    assert CONFIG_BYTES < settings["maxWidgetStateSize"] * 10**6 <= MESSAGE_BYTES
    assert MESSAGE_BYTES <= ALL_MESSAGE_BYTES // SHARE_OF_PAGES
