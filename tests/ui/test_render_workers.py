"""Worker processes start when pictures are often late, and the server renders whenever a worker fails."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from rope_viz.pictures import export, registry
from rope_viz.ui import picture_route, render_queue, render_workers

pytestmark = pytest.mark.slow

QUERY = {"model": "qwen3-8b-yarn", "base": "77000", "coarse": "1"}
AWAY = ("scaling", "comparison", QUERY)


@contextlib.contextmanager
def running_worker():
    """Run one worker process, which is ready."""
    found = render_workers.RenderWorkers(1)
    found.start()
    try:
        found._started.result(timeout=300)
        assert found.ready
        yield found
    finally:
        found.shut_down()


@pytest.fixture(scope="module")
def there():
    with running_worker() as found:
        yield found


def here():
    """The same picture drawn by this process."""
    page = registry.page("scaling")
    return export.compressed(page.pictures["comparison"], registry.read_request(page, QUERY), "packed")


def forbidden():
    raise AssertionError("drawn by the server")


def test_worker_process_renders_the_same_bytes(there):
    drawn = asyncio.run(picture_route.Gallery(workers=there).drawn("a", forbidden, away=AWAY))
    assert drawn == here()


class Waiting:
    """Workers that are ready and never finish."""

    count, ready = 2, True

    def __init__(self):
        self.given = []

    def submit(self, page, name, query):
        self.given.append(name)
        return Future()

    def record_wait(self, waited):
        pass


def test_workers_have_a_queue_with_room_for_a_moving_knob():
    there = Waiting()

    async def crowd():
        one = picture_route.Gallery(workers=there)

        def ask(name, rank):
            return asyncio.ensure_future(one.drawn(name, forbidden, rank=rank, away=("scaling", name, {})))

        tasks = [ask(f"resting {n}", picture_route.SHOWN) for n in range(9)]
        await asyncio.sleep(0)
        assert len(there.given) == render_queue.PLACES * there.count - 1
        tasks.append(ask("moving", picture_route.MOVING))
        await asyncio.sleep(0)
        assert there.given[-1] == "moving"
        assert await one.drawn("file", lambda: b"drawn here", rank=picture_route.FILES) == b"drawn here"
        for task in tasks:
            task.cancel()

    asyncio.run(crowd())


def test_error_of_a_worker_is_returned_as_its_sentence(there):
    away = ("scaling", "comparison", {"model": "nobody"})
    with pytest.raises(ValueError, match="Unknown model"):
        asyncio.run(picture_route.Gallery(workers=there).drawn("a", forbidden, away=away))


def test_pictures_without_an_address_are_rendered_by_the_server(there):
    assert asyncio.run(picture_route.Gallery(workers=there).drawn("a", lambda: b"here")) == b"here"


def test_workers_start_only_after_many_late_pictures(monkeypatch):
    taken = []
    found = render_workers.RenderWorkers(1)
    monkeypatch.setattr(found, "start", lambda: taken.append(True))
    for _ in range(render_workers.OFTEN - 1):
        found.record_wait(1.0)
    for _ in range(100):
        found.record_wait(render_workers.LATE / 2)
    assert not taken
    found.record_wait(1.0)
    assert taken


def test_pictures_late_long_ago_do_not_count(monkeypatch):
    clock = iter(range(0, 1000 * int(render_workers.WITHIN), int(render_workers.WITHIN)))
    monkeypatch.setattr(render_workers.time, "monotonic", lambda: next(clock))
    found = render_workers.RenderWorkers(1)
    monkeypatch.setattr(found, "start", forbidden)
    for _ in range(3 * render_workers.OFTEN):
        found.record_wait(1.0)


def test_machine_with_one_core_starts_no_worker(monkeypatch):
    monkeypatch.setattr(render_workers, "cores", lambda: 1)
    found = render_workers.RenderWorkers()
    found.start()
    assert found.submit(*AWAY) is None


def test_failed_worker_start_is_retried_only_later(monkeypatch):
    def refuses(*args, **options):
        raise OSError("no shared memory")

    monkeypatch.setattr(render_workers, "ProcessPoolExecutor", refuses)
    found = render_workers.RenderWorkers(1)
    for _ in range(render_workers.OFTEN):
        found.record_wait(1.0)
    assert found.submit(*AWAY) is None
    monkeypatch.setattr(found, "start", forbidden)
    found.record_wait(1.0)


def test_gallery_reports_waiting_times_to_its_workers():
    waited = []
    one = picture_route.Gallery(at_once=1, workers=render_workers.RenderWorkers(0))
    one.workers.record_wait = waited.append

    async def two():
        await asyncio.gather(*(one.drawn(str(i), lambda: time.sleep(0.1) or b"") for i in range(2)))

    asyncio.run(two())
    assert waited[0] < 0.05 < waited[1]


def test_picture_of_a_killed_worker_is_rendered_by_the_server():
    async def killed(workers):
        own = picture_route.Gallery(workers=workers)
        first = asyncio.ensure_future(own.drawn("a", lambda: b"here", away=("decay", "bases", {"base": "31000"})))
        await asyncio.sleep(0)
        for process in list(workers._pool._processes.values()):
            os.kill(process.pid, signal.SIGKILL)
        return await first, await own.drawn("b", lambda: b"here too", away=AWAY)

    with running_worker() as workers:
        assert asyncio.run(killed(workers)) == (b"here", b"here too")
        assert workers.submit(*AWAY) is None


def test_worker_ends_with_a_killed_server():
    script = (
        "from rope_viz.ui import render_workers; import sys, time\n"
        "if __name__ == '__main__':\n"
        "    found = render_workers.RenderWorkers(1); found.start()\n"
        "    while not found.ready: time.sleep(0.05)\n"
        "    print(*found._pool._processes, flush=True); time.sleep(600)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True) as server:
        drawing = int(server.stdout.readline())
        server.kill()
    end = time.monotonic() + 30
    while alive(drawing) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(drawing)


def alive(pid):
    """Whether it runs: a process that has ended may stand in the table until somebody asks for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
