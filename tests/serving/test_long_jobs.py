"""Long jobs end without waiters, have limits, and do not block other visitors."""

import asyncio
import functools
import gc
import io
import json
import os
import signal
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from rope_viz.figures.files import Style
from rope_viz.own_files import blob_store
from rope_viz.serving import long_jobs, picture_route, render_queue
from rope_viz.serving.render_process import FileJob
from rope_viz.ui import visitors
from tests.serving.test_picture_route import send_requests
from tests.serving.test_render_workers import is_running
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SLOW = FileJob("recall", "needle", "png", Style(), {"recall.length": "16384", "method": "yarn"})
QUICK = FileJob("scaling", "comparison", "svg", Style(), {})
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are found in Linux's /proc")


async def wait_for(holds, seconds=60):
    """Wait until a condition holds."""
    for _ in range(seconds * 20):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not after {seconds} s")


@pytest.fixture
def jobs():
    """jobs(**options) makes long jobs whose processes end with the test."""
    made = []

    def make(**options):
        made.append(long_jobs.LongJobs(**options))
        return made[-1]

    yield make
    for each in made:
        each.shut_down()


@needs_proc
def test_job_without_waiters_ends(jobs):
    async def cancel():
        gallery = picture_route.Gallery(long_jobs=jobs())
        waiting = asyncio.ensure_future(gallery.drawn("a", pytest.fail, long=SLOW, rank=render_queue.FILES))
        await wait_for(lambda: gallery.long_jobs.pids)
        (pid,) = gallery.long_jobs.pids
        waiting.cancel()
        await wait_for(lambda: not is_running(pid))
        assert not gallery.long_jobs.pids
        assert await gallery.drawn("a", pytest.fail, long=QUICK), "the place is free again"

    asyncio.run(cancel())


def test_job_beyond_its_processor_time_reports_a_problem(jobs):
    result = asyncio.run(jobs(seconds=1).render(SLOW))
    assert result.problem.startswith("This picture takes more than 1 seconds of processor time.")
    assert not result.content


@needs_proc
def test_job_beyond_its_memory_reports_a_problem(jobs):
    large = FileJob("frequencies", "heatmap", "png", Style(width="4800px", height="4800px"), {})

    async def render_both():
        small = jobs(memory=150 << 20)
        return await small.render(large), await small.render(QUICK)

    refused, drawn = asyncio.run(render_both())
    assert refused.problem.startswith("This picture takes more memory than one picture may.")
    assert drawn.content


@needs_proc
def test_idle_process_ends(jobs):
    async def wait_for_end():
        found = jobs(idle_seconds=0.0)
        await found.render(QUICK)
        pids = found.pids
        await wait_for(lambda: not found.pids)
        await wait_for(lambda: not any(map(is_running, pids)))

    asyncio.run(wait_for_end())


def test_killed_process_fails_only_its_own_request(jobs):
    async def kill_process():
        gallery = picture_route.Gallery(long_jobs=jobs())
        first = asyncio.ensure_future(gallery.drawn("a", pytest.fail, long=SLOW))
        await wait_for(lambda: gallery.long_jobs.pids)
        for pid in gallery.long_jobs.pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(long_jobs.NoProcessError, match="ended early"):
            await first
        assert (await gallery.drawn("b", pytest.fail, long=QUICK)).startswith(b"rope-scaling-comparison")

    asyncio.run(kill_process())


class Endless:
    """Long jobs that never end."""

    places, pids = 2, ()

    def __init__(self):
        self.jobs = []

    async def render(self, job):
        self.jobs.append(job)
        await asyncio.get_running_loop().create_future()


def test_visitor_has_one_of_two_places_for_long_jobs():
    async def send_many():
        endless = Endless()
        gallery = picture_route.Gallery(long_jobs=endless)
        tasks = [
            asyncio.ensure_future(gallery.drawn(f"{visitor} {n}", pytest.fail, long=visitor, visitor=visitor))
            for visitor, count in (("a", 20), ("b", 2), ("c", 2))
            for n in range(count)
        ]
        await asyncio.sleep(0)
        await wait_for(lambda: endless.jobs == ["a", "b"])
        for task in tasks[:20]:
            task.cancel()
        await wait_for(lambda: len(endless.jobs) == 3)
        assert endless.jobs[-1] == "c"
        for task in tasks:
            task.cancel()

    asyncio.run(send_many())


def test_slow_pages_of_one_visitor_leave_a_thread_for_others():
    go_on = threading.Event()

    async def send_many():
        gallery = picture_route.Gallery()
        slow = [
            asyncio.ensure_future(gallery.drawn(f"slow {n}", lambda: go_on.wait(60) and b"", visitor="a"))
            for n in range(20)
        ]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(gallery.drawn("quick", lambda: b"drawn", visitor="b"), 30) == b"drawn"
        go_on.set()
        await asyncio.gather(*slow)

    asyncio.run(send_many())


def test_full_queue_of_one_visitor_refuses_no_other():
    async def send_many():
        gallery = picture_route.Gallery(long_jobs=Endless(), waiting=5)
        put = functools.partial(gallery.drawn, make=pytest.fail, long=QUICK)
        tasks = [asyncio.ensure_future(put(f"a {n}", visitor="a")) for n in range(6)]
        await asyncio.sleep(0)
        with pytest.raises(render_queue.QueueFullError):
            await put("one more", visitor="a")
        tasks.append(asyncio.ensure_future(put("b", visitor="b")))
        await asyncio.sleep(0)
        assert not tasks[-1].done()
        for task in tasks:
            task.cancel()

    asyncio.run(send_many())


@pytest.mark.parametrize(
    ("host", "visitor"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_visitor_is_an_address_or_a_network(host, visitor):
    assert visitors.visitor_name(host) == visitor


def test_large_bodies_are_decoded_in_another_process(monkeypatch, jobs):
    gallery = picture_route.Gallery(long_jobs=jobs())
    monkeypatch.setattr(picture_route, "GALLERY", gallery)
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    answers = [
        {"method": f"m{n % 7}", "length": 100 * (1 + n % 9), "depth": 0.5, "repeat": n, "right": True}
        for n in range(3000)
    ]
    content = b"a.json\0" + json.dumps({"version": 1, "answers": answers}).encode()
    drawn = post("recall/yours.packed", "recall.file={name}", content)
    assert drawn.status == 200
    assert b"3,000" in drawn.body
    (entry,) = blob_store.STORE._blobs._entries.values()
    assert not entry.value.values
    assert entry.visitor == "192.0.2.1"
    file = io.BytesIO()
    np.savez_compressed(file, q=np.zeros(1 << 24, dtype=bool))
    query = "decay.show=own&decay.source=file&decay.file={name}"
    refused = post("decay/curves.csv", query, b"a.npz\0" + file.getvalue())
    assert (refused.status, b"at most 8,388,608 numbers" in refused.body) == (422, True)


def test_refused_contents_are_freed_without_gc(monkeypatch, jobs):
    made = []

    def make(*arguments):
        job = FileJob(*arguments)
        made.append(weakref.ref(job))
        return job

    monkeypatch.setattr(picture_route, "FileJob", make)
    monkeypatch.setattr(picture_route, "GALLERY", picture_route.Gallery(long_jobs=jobs()))
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    gc.collect()
    gc.disable()
    try:
        refused = post("decay/curves.packed", "decay.show=own&decay.source=file&decay.file={name}", bytes(100_000))
        # The thread that read them drops its reference a moment after its answer.
        wait_until(lambda: not any(each() for each in made), 30, "released jobs")
    finally:
        gc.enable()
    assert refused.status == 422
    assert [each() for each in made] == [None]


def test_body_is_released_while_its_contents_are_split():
    contents = [bytes([n]) * 1000 for n in range(3)]
    body = bytearray(b"".join(len(each).to_bytes(4, "little") + each for each in contents))
    left = {each[0]: len(body) for each in picture_route.split_contents(body)}
    assert left == {2: 2012, 1: 1008, 0: 4}, "body and contents together would take twice the memory"


def post(path, query, content):
    salted = blob_store.salt() + content
    body = len(salted).to_bytes(4, "little") + salted
    query = query.format(name=blob_store.name_of(salted))
    return send_requests({"path": path, "query": query, "method": "POST", "body": body, "rope_viz": "kept"})[0]
