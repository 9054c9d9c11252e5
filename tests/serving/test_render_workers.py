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

from rope_viz.pages import registry
from rope_viz.picture import export, read_address
from rope_viz.serving import picture_route, render_workers
from rope_viz.storage import processes
from rope_viz.storage.limits import LATE_PICTURE_SECONDS, LATE_PICTURES, LATE_PICTURES_SECONDS, PICTURES_OF_WORKER
from rope_viz.texts import use_language

pytestmark = pytest.mark.slow

QUERY = {"model": "qwen3-8b-yarn", "base": "77000", "coarse": "1"}
WORKER_JOB = ("scaling", "comparison", QUERY)


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
def ready_workers():
    with running_worker() as found:
        yield found


def render_here():
    """Render the same picture in this process."""
    page = registry.page("scaling")
    return export.compressed(page.pictures["comparison"], read_address.read_request(page, QUERY), "packed")


def fail_if_called():
    raise AssertionError("rendered by the server")


def test_worker_process_renders_the_same_bytes(ready_workers):
    drawn = asyncio.run(picture_route.Gallery(workers=ready_workers).drawn("a", fail_if_called, away=WORKER_JOB))
    assert drawn == render_here()


def test_language_of_a_worker_is_that_of_the_address(ready_workers):
    with use_language("zh"):
        drawn = ready_workers.submit(*WORKER_JOB).result(60)
    assert drawn == render_here()


class StuckWorkers:
    """Workers that are ready and never finish."""

    count, ready = 2, True

    def __init__(self):
        self.submitted = []

    def submit(self, page, name, query):
        self.submitted.append(name)
        return Future()

    def record_wait(self, waited):
        pass


def test_worker_queue_reserves_a_place_for_moving_knobs():
    ready_workers = StuckWorkers()

    async def fill_queue():
        one = picture_route.Gallery(workers=ready_workers)

        def ask(name, rank):
            return asyncio.ensure_future(one.drawn(name, fail_if_called, rank=rank, away=("scaling", name, {})))

        tasks = [ask(f"resting {n}", picture_route.SHOWN) for n in range(9)]
        await asyncio.sleep(0)
        assert len(ready_workers.submitted) == PICTURES_OF_WORKER * ready_workers.count - 1
        tasks.append(ask("moving", picture_route.MOVING))
        await asyncio.sleep(0)
        assert ready_workers.submitted[-1] == "moving"
        assert await one.drawn("file", lambda: b"drawn here", rank=picture_route.FILES) == b"drawn here"
        for task in tasks:
            task.cancel()

    asyncio.run(fill_queue())


def test_error_in_a_worker_keeps_its_message(ready_workers):
    away = ("scaling", "comparison", {"model": "unknown"})
    with pytest.raises(ValueError, match="Unknown model"):
        asyncio.run(picture_route.Gallery(workers=ready_workers).drawn("a", fail_if_called, away=away))


def test_pictures_without_an_address_are_rendered_by_the_server(ready_workers):
    assert asyncio.run(picture_route.Gallery(workers=ready_workers).drawn("a", lambda: b"here")) == b"here"


def test_workers_start_only_after_many_late_pictures(monkeypatch):
    started = []
    found = render_workers.RenderWorkers(1)
    monkeypatch.setattr(found, "start", lambda: started.append(True))
    for _ in range(LATE_PICTURES - 1):
        found.record_wait(1.0)
    for _ in range(100):
        found.record_wait(LATE_PICTURE_SECONDS / 2)
    assert not started
    found.record_wait(1.0)
    assert started


def test_old_late_pictures_do_not_start_workers(monkeypatch):
    clock = iter(range(0, 1000 * int(LATE_PICTURES_SECONDS), int(LATE_PICTURES_SECONDS)))
    monkeypatch.setattr(render_workers.time, "monotonic", lambda: next(clock))
    found = render_workers.RenderWorkers(1)
    monkeypatch.setattr(found, "start", fail_if_called)
    for _ in range(3 * LATE_PICTURES):
        found.record_wait(1.0)


def test_machine_with_one_core_starts_no_worker(monkeypatch):
    monkeypatch.setattr(render_workers, "cores", lambda: 1)
    found = render_workers.RenderWorkers()
    found.start()
    assert found.submit(*WORKER_JOB) is None


def test_failed_worker_start_is_retried_only_later(monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "/none/such")
    found = render_workers.RenderWorkers(1)
    for _ in range(LATE_PICTURES):
        found.record_wait(1.0)
    assert found.submit(*WORKER_JOB) is None
    monkeypatch.setattr(found, "start", fail_if_called)
    found.record_wait(1.0)


def test_workers_that_end_early_are_started_again_later():
    found = render_workers.RenderWorkers(1)
    found.start()
    for pid in found.pids:
        os.kill(pid, signal.SIGKILL)
    assert found._started.exception(60) is not None
    assert found.submit(*WORKER_JOB) is None
    found.start()
    assert found.pids == []
    assert found._restart_at > time.monotonic()


def test_gallery_reports_waiting_times_to_its_workers():
    waited = []
    one = picture_route.Gallery(at_once=1, workers=render_workers.RenderWorkers(0))
    one.workers.record_wait = waited.append

    async def send_two():
        await asyncio.gather(*(one.drawn(str(i), lambda: time.sleep(0.1) or b"") for i in range(2)))

    asyncio.run(send_two())
    assert waited[0] < 0.05 < waited[1]


def test_picture_of_a_killed_worker_is_rendered_by_the_server():
    async def kill_and_render(workers):
        own = picture_route.Gallery(workers=workers)
        first = asyncio.ensure_future(own.drawn("a", lambda: b"here", away=("decay", "bases", {"base": "31000"})))
        await asyncio.sleep(0)
        for pid in workers.pids:
            os.kill(pid, signal.SIGKILL)
        return await first, await own.drawn("b", lambda: b"here too", away=WORKER_JOB)

    with running_worker() as workers:
        assert asyncio.run(kill_and_render(workers)) == (b"here", b"here too")
        assert workers.submit(*WORKER_JOB) is None


def test_worker_ends_with_a_killed_server():
    script = (
        "from rope_viz.serving import render_workers; import sys, time\n"
        "if __name__ == '__main__':\n"
        "    found = render_workers.RenderWorkers(1); found.start()\n"
        "    while not found.ready: time.sleep(0.05)\n"
        "    print(*found.pids, flush=True); time.sleep(600)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True) as server:
        worker_pid = int(server.stdout.readline())
        server.kill()
    end = time.monotonic() + 30
    while is_running(worker_pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(worker_pid)


def is_running(pid):
    """Return True if a process runs; an ended one is a zombie until its parent waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
