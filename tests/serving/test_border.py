"""What comes from outside is read in processes with limits, in a queue with one place for each visitor."""

import asyncio
import base64
import contextlib
import gc
import io
import json
import pickle
import re
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.own_files import blob_store, config_link, configs, outside, own_file
from rope_viz.own_files.outside import SentContent
from rope_viz.pages import home, registry
from rope_viz.pages.model import extend, runtimes
from rope_viz.picture import public_address, read_address, write_address
from rope_viz.serving import border, link_preview, picture_route, render_process, server
from rope_viz.serving.border import Border, Turns
from rope_viz.serving.long_jobs import LongJobs
from rope_viz.serving.render_process import RenderResult
from rope_viz.serving.render_queue import QueueFullError
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import SMALL_READING_BYTES
from rope_viz.texts import languages
from rope_viz.ui import state as ui_state
from rope_viz.ui import upload
from rope_viz.ui.components import navigation
from rope_viz.ui.session import Chosen, session
from tests.configs import llama
from tests.serving.test_long_jobs import needs_proc, wait_for
from tests.serving.test_picture_route import APP, send_requests
from tests.serving.test_render_workers import is_running


def make_link(**changes):
    """Return the value of a link to a config, as an attacker writes it: with keys that nothing reads."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(llama(**changes)).encode(), 9)).decode().rstrip("=")


def in_loop(work):
    """Return what a coroutine returns, on a loop of its own: browser tests keep one running in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


class Held:
    """Processes that hold each reading until the test lets it go, and count them."""

    def __init__(self):
        self.begun, self.gate, self.pids = [], None, []

    async def do(self, reading):
        self.begun.append(reading.arguments)
        await self.gate.wait()
        return RenderResult(b"\x80\x04N.", size=1)

    def start(self):
        pass

    def shut_down(self):
        pass


@pytest.fixture
def real():
    """real(**limits) makes a border with processes that end with the test."""
    made = []

    def make(**limits):
        options = {"seconds": 5, "memory": 256 << 20, "reads": True, **limits}
        made.append(Border(processes=LongJobs(2, **options), grace=0.0))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def recorded(monkeypatch):
    """The functions with which contents from outside were read."""
    functions = []

    def read(function, arguments):
        functions.append(function)
        return call_here(function, arguments)

    call_here = outside.call_here
    monkeypatch.setattr(outside, "call_here", read)
    monkeypatch.setattr(config_link, "LINKS", config_link.Links())
    return functions


def test_a_callback_of_a_chinese_page_gets_its_error_in_chinese(monkeypatch, real):
    """A callback has its language from the session alone: another thread, the event loop and the process have not."""
    monkeypatch.setattr(languages, "FALLBACK", lambda: "zh" if threading.current_thread().name == "callback" else "")

    async def read_from_a_callback():
        one = real()
        one.open()
        found = []

        def drop():
            with pytest.raises(ValueError) as refused:  # noqa: PT011
                one.read_outside(SentContent(read_upload, b"{"))
            found.append(str(refused.value))

        callback = threading.Thread(target=drop, name="callback")
        callback.start()
        while callback.is_alive():
            await asyncio.sleep(0.01)
        assert re.search("[\u4e00-\u9fff]", found[0]), found

    in_loop(read_from_a_callback)


def test_each_visitor_has_one_reading_at_a_time():
    async def readings():
        held = Held()
        held.gate = asyncio.Event()
        one = Border(Turns(2), held)
        flood = [asyncio.ensure_future(one.read_content(SentContent(len, str(i)), "attacker")) for i in range(40)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        other = asyncio.ensure_future(one.read_content(SentContent(len, "mine"), "second"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert held.begun == [("0",), ("mine",)]
        assert one.turns.waits == 39
        for each in flood[1:]:
            each.cancel()
        await asyncio.sleep(0)
        held.gate.set()
        await other
        await flood[0]
        for _ in range(5):
            await asyncio.sleep(0)
        assert (one.turns.waits, one.turns.running, len(held.begun)) == (0, 0, 2), "those who left were never read"

    in_loop(readings)


def test_a_class_behind_one_address_waits_and_more_are_refused():
    async def readings():
        held = Held()
        held.gate = asyncio.Event()
        one = Border(Turns(2, waiting=100), held)
        members = [asyncio.ensure_future(one.read_content(SentContent(len, str(i)), "school")) for i in range(101)]
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await one.read_content(SentContent(len, "one more"), "school")
        held.gate.set()
        assert len(await asyncio.gather(*members)) == 101

    in_loop(readings)


def test_reading_whose_client_left_is_passed_over():
    """Its future is cancelled before its task takes it out of the queue: the next one must not fail."""

    async def readings():
        turns = Turns(1)
        async with turns.turn("a"):
            waiting = [asyncio.ensure_future(take(turns, name)) for name in "bc"]
            await asyncio.sleep(0)
            waiting[0].cancel()
        assert await waiting[1] == "c"
        assert turns.running == turns.waits == 0

    async def take(turns, name):
        async with turns.turn(name):
            return name

    in_loop(readings)


def test_visitors_take_turns():
    async def readings():
        turns, order = Turns(1), []

        async def read(visitor):
            async with turns.turn(visitor):
                order.append(visitor)
                await asyncio.sleep(0)

        await asyncio.gather(*(read(visitor) for visitor in "aaaab"))
        assert order.index("b") < 3

    in_loop(readings)


def test_large_contents_leave_a_place_for_small_ones():
    async def readings():
        held = Held()
        held.gate = asyncio.Event()
        one = Border(Turns(2), held)
        large = [asyncio.ensure_future(one.read_content(SentContent(len, b"0" * 100_000), str(i))) for i in range(5)]
        small = asyncio.ensure_future(one.read_content(SentContent(len, b"small"), "second"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [len(content) for (content,) in held.begun] == [100_000, 5]
        held.gate.set()
        await asyncio.gather(small, *large)

    in_loop(readings)


@needs_proc
def test_reading_whose_client_left_ends(real):
    async def leave():
        one = real()
        waiting = asyncio.ensure_future(one.read_content(SentContent(sum, range(10**12)), "a"))
        await wait_for(lambda: one.processes.pids)
        (pid,) = one.processes.pids
        waiting.cancel()
        await wait_for(lambda: not is_running(pid))
        await wait_for(lambda: not one.turns.running)

    in_loop(leave)


@needs_proc
@pytest.mark.parametrize(
    ("function", "argument", "seconds", "sentence"),
    [
        (sum, range(10**12), 1, "reading it takes more than 1 seconds of processor time"),
        (bytes, 10**9, 5, "reading it takes more memory than one file may"),
        (list, range(2_000_000), 5, "it holds more than 1,048,576 values"),
    ],
)
def test_limits_of_a_reading_are_sentences(function, argument, seconds, sentence, real):
    with pytest.raises(ContentError, match=sentence):
        in_loop(lambda: real(seconds=seconds).read_content(SentContent(function, argument), "a"))


@needs_proc
def test_link_is_read_once_in_a_process_off_the_shared_threads(real, monkeypatch):
    monkeypatch.setattr(config_link, "LINKS", config_link.Links())
    monkeypatch.setattr(outside, "call_here", lambda *_: pytest.fail("read in the server"))
    threads, text = [], make_link(rope_theta=77_000)
    read_request = read_address.read_request

    def note(page, query, reader):
        threads.append(threading.current_thread().name)
        return read_request(page, query, reader=reader)

    monkeypatch.setattr(read_address, "read_request", note)

    async def twice():
        one = real()
        one.open()
        monkeypatch.setattr(picture_route, "BORDER", one)
        picture = registry.picture("scaling", "comparison")
        query = {"model": "custom", "config": text}
        for _ in range(2):
            asked = await picture_route.read_asked(picture, "packed", picture_route.Style.read({}), query, "a")
        return asked

    assert in_loop(twice).key
    assert set(name.rpartition("_")[0] for name in threads) == {"border"}
    assert len(threads) == 2, "no query is read before its config is"
    assert config_link.LINKS.get(text).specs[""].base == 77_000


@pytest.mark.parametrize("path", ["scene/home", "rope-viz/picture/home/turning.packed"])
def test_every_route_reads_contents_behind_the_border(path, recorded, monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    name = blob_store.STORE.keep(blob_store.salt() + configs.upload_bytes(read_upload(json.dumps(llama()))))
    threads = []
    monkeypatch.setattr(home.hands, "message", _noting(threads, home.hands.message))
    read_request = read_address.read_request
    monkeypatch.setattr(read_address, "read_request", _noting(threads, read_request))
    answer = TestClient(APP).get(f"/{path}?model=custom&own={name}")
    assert answer.status_code == 200
    assert recorded == [configs.upload_of]
    assert threads[0].startswith("border")


def _noting(threads, function):
    def noted(*arguments, **options):
        threads.append(threading.current_thread().name)
        return function(*arguments, **options)

    return noted


def test_unknown_content_of_home_is_410(monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    assert TestClient(APP).get(f"/scene/home?model=custom&own={'a' * 43}").status_code == 410


def test_busy_border_answers_503(monkeypatch):
    class Full(Border):
        async def read_query(self, visitor, contents, make, *, size=0):
            raise QueueFullError

    for module in (picture_route, server):
        monkeypatch.setattr(module, "BORDER", Full())
    query = f"model=custom&config={make_link()}"
    assert send_requests({"path": "scaling/comparison.packed", "query": query})[0].status == 503
    assert TestClient(APP).get(f"/scene/home?{query}").status_code == 503


@pytest.mark.parametrize(
    "query",
    [{"model": "custom", "config": make_link()}, {"heads.measured": "a" * 43}, {"model": "custom", "own": "b" * 43}],
    ids=lambda query: list(query)[-1],
)
def test_preview_of_a_link_reads_nothing_and_passes_its_keys_on(query, recorded, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, "https://example.org")
    monkeypatch.setattr(read_address, "read_request", lambda *_, **__: pytest.fail("read on the event loop"))
    page = "heads" if "heads.measured" in query else "scaling"
    picture = next(iter(registry.page(page).pictures.values()))
    tags = link_preview.tags(page, "&".join(f"{key}={value}" for key, value in query.items()), picture)
    assert all(f"{key}={value}" in tags for key, value in query.items())
    assert recorded == []


def test_preview_of_a_second_model_reads_nothing(recorded, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, "https://example.org")
    picture = next(iter(registry.page("compare").pictures.values()))
    text = make_link()
    assert f"compare.with={text}" in link_preview.tags("compare", f"compare.with={text}", picture)
    assert recorded == []


# No other test has such a base, whose configs may be alive.
FIRST_BASE = 7_654_321


def test_hundreds_of_links_do_not_fill_the_memory(recorded, monkeypatch):
    monkeypatch.setattr(config_link, "LINKS", config_link.Links(most=4 << 20))
    for number in range(120):
        query = {"model": "custom", "config": make_link(rope_theta=FIRST_BASE + number, unread_lists=[[]] * 5000)}
        request = read_address.read_request(extend.PAGE, query)
        assert "unread_lists" not in request.own.config
        write_address.query(request, next(iter(extend.PAGE.pictures.values())))
        if number < 40:
            extend.problem(request)
            runtimes._several(request.subject)
    assert config_link.LINKS.size <= 4 << 20
    del request
    gc.collect()
    alive_configs = [each for each in gc.get_objects() if isinstance(each, Upload) and "rope_theta" in each.config]
    links = [each for each in alive_configs if 0 <= each.config["rope_theta"] - FIRST_BASE < 120]
    assert len(links) <= len(config_link.LINKS) <= 16


def test_link_holds_at_most_32_kib():
    with pytest.raises(ValueError, match="larger than 32 KiB"):
        config_link.read_config(make_link(model_type="a" * 200_000))


def test_session_reads_its_contents_behind_the_border(recorded, enter_session):
    enter_session()
    typed = registry.kept_choices()["decay.typed"]
    ui_state.store_readable(typed, b'{"q": "1", "k": "2"}')
    assert recorded == [typed.decode]
    file = registry.kept_choices()["recall.search"]
    with pytest.raises(ValueError, match="at most 4 MiB can be stored"):
        ui_state.store_readable(file, b"a.json\0" + b"[" + b"1," * (3 << 20))
    with pytest.raises(ValueError, match=r"."):
        ui_state.store_readable(file, b"a.json\0{}")
    assert ui_state.blob("recall.search") is None
    enter_session()
    salted = blob_store.salt() + b'{"q": "3", "k": "2"}'
    navigation.bring_back({"decay.typed": base64.b64encode(salted).decode()})
    assert recorded[-1] == typed.decode
    assert session().texts["decay.typed"] == {"q": "3", "k": "2"}


def test_dropped_config_and_its_diagnosis_come_from_one_reading(recorded, monkeypatch):
    taken, rejected = [], []
    state = SimpleNamespace(
        current_choice=lambda: Chosen(Subject(RopeSpec())),
        adopt=lambda upload, size: taken.append(upload),
        frame_too=lambda: None,
    )
    monkeypatch.setattr(upload, "state", state)
    monkeypatch.setattr(upload, "reject", lambda name, diagnosis, repair: rejected.append(diagnosis))
    assert upload._take(json.dumps(llama()), "config.json")
    assert not upload._take('{"model_type": "llama",}', "config.json")
    assert recorded == [own_file.read_file] * 2
    assert taken[0].specs[""].head_dim == 128
    assert "comma" in rejected[0].problems[0].reason


def test_limit_of_a_dropped_config_is_a_problem_on_the_card(monkeypatch):
    rejected = []

    def read(function, arguments):
        raise ContentError("reading it takes more than 5 seconds of processor time")

    state = SimpleNamespace(current_choice=lambda: Chosen(Subject(RopeSpec())), frame_too=lambda: None)
    monkeypatch.setattr(outside, "call_here", read)
    monkeypatch.setattr(upload, "state", state)
    monkeypatch.setattr(upload, "reject", lambda name, diagnosis, repair: rejected.append(diagnosis))
    assert not upload._take("{}", "config.json")
    assert "processor time" in rejected[0].problems[0].reason


@needs_proc
def test_session_waits_for_its_place_on_its_own_thread(real, monkeypatch):
    monkeypatch.setattr(config_link, "LINKS", config_link.Links())
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    texts, typed = (
        [make_link(rope_theta=50_000 + number) for number in range(3)],
        registry.kept_choices()["decay.typed"],
    )
    name = blob_store.STORE.keep(blob_store.salt() + b'{"q": "1", "k": "2"}')

    async def sessions():
        one = real()
        one.open()
        found = await asyncio.gather(*(asyncio.to_thread(config_link.read_config, text, one) for text in texts))
        assert [own.specs[""].base for own in found] == [50_000, 50_001, 50_002]
        assert await asyncio.to_thread(blob_store.STORE.load, name, typed.decode, one) == {"q": "1", "k": "2"}
        with pytest.raises(ValueError, match="damaged or cut off"):
            await asyncio.to_thread(config_link.read_config, "AAAA", one)

    in_loop(sessions)


def test_event_loop_never_reads():
    async def on_loop():
        one = Border(processes=Held())
        one.open()
        try:
            with pytest.raises(AssertionError, match="not read on the event loop"):
                config_link.read_config(make_link(rope_theta=99_000), one)
        finally:
            one.close()

    in_loop(on_loop)


def test_every_choice_with_a_content_is_known_to_other_processes():
    for key, choice in registry.kept_choices().items():
        reading = pickle.loads(pickle.dumps(render_process.Reading(choice.decode, (b"",))))
        with contextlib.suppress(ValueError):
            reading.function(b"")
        assert type(reading.function) is type(choice.decode), key


def make_vectors(numbers):
    """Return a small file of many numbers."""
    file = io.BytesIO()
    np.savez_compressed(file, q=np.zeros((numbers // 64, 64), dtype=np.int8))
    return b"a.npz\0" + file.getvalue()


@needs_proc
def test_value_that_unpacks_large_is_rendered_where_it_was_read(real, monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    monkeypatch.setattr(border, "LARGE_VALUE_BYTES", 1_000_000)
    salted = blob_store.salt() + make_vectors(2 << 20)
    name = blob_store.STORE.keep(salted)
    query = {"decay.show": "own", "decay.source": "file", "decay.file": name}
    picture, read = registry.picture("decay", "curves"), []

    async def ask_twice():
        one = real()
        one.open()
        monkeypatch.setattr(picture_route, "BORDER", one)
        do = one.processes.do

        async def count(reading):
            read.append(reading)
            return await do(reading)

        monkeypatch.setattr(one.processes, "do", count)
        style = picture_route.Style.read({})
        return [await picture_route.read_asked(picture, "packed", style, query, "a") for _ in range(2)]

    first, second = in_loop(ask_twice)
    assert len(salted) < SMALL_READING_BYTES
    assert first == second
    assert first.long.contents == (salted,)
    assert len(read) == 1, "the second picture need not find out again"
    assert not blob_store.STORE._blobs.peek(name).values


def test_archive_of_large_members_takes_no_small_place(monkeypatch):
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    monkeypatch.setattr(picture_route, "BORDER", None)
    salted = blob_store.salt() + make_vectors(8 << 20)
    query = {"decay.show": "own", "decay.source": "file", "decay.file": blob_store.STORE.keep(salted)}
    picture, style = registry.picture("decay", "curves"), picture_route.Style.read({})
    asked = asyncio.run(picture_route.read_asked(picture, "packed", style, query, "a"))
    assert asked.long.contents == (salted,)
    assert picture_route.unpacked_size(salted) == (8 << 20) + 128, "the numbers and the header of their file"
    assert picture_route.unpacked_size(b"PK\x01\x02") == picture_route.unpacked_size(b"") == 0


def test_large_value_of_home_is_drawn_in_a_process(monkeypatch):
    class Large(Border):
        async def read_query(self, visitor, contents, make, *, size=0):
            raise border.LargeValueError(content)

    jobs, content = [], configs.upload_bytes(read_upload(json.dumps(llama())))

    class Drawn:
        async def drawn(self, tag, make, **options):
            jobs.append(options["long"])
            return b"\0<html>"

    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    monkeypatch.setattr(picture_route, "BORDER", Large())
    monkeypatch.setattr(picture_route, "GALLERY", Drawn())
    name = blob_store.STORE.keep(blob_store.salt() + content)
    for _ in range(2):
        assert TestClient(APP).get(f"/scene/home?model=custom&own={name}").text == "<html>"
        monkeypatch.setattr(picture_route, "BORDER", None)
    assert [job.form for job in jobs] == [render_process.SCENE] * 2
    drawn = render_process.render(jobs[0])
    assert drawn.content.startswith(b"<!DOCTYPE html>"), drawn.problem
