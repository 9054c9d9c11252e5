"""Jobs in processes: results, limits, errors and messages; and no process is left behind."""

import asyncio
import concurrent.futures
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from rope_viz.storage import processes
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.processes import (
    EndedError,
    FailedError,
    Job,
    Limits,
    OutOfMemoryError,
    OutOfTimeError,
    Pool,
    Process,
)
from rope_viz.texts import use_language
from tests.storage import process_jobs as jobs
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are found in Linux's /proc")
needs_limits = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of processes")


def is_running(pid):
    """Return True if a process runs; an ended one is a zombie until its parent waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def start():
    """start(limits, **options) -> Process; ended with the test."""
    started = []

    def begin(*arguments, **options):
        started.append(Process(*arguments, **options))
        return started[-1]

    yield begin
    for process in started:
        process.close()


@pytest.fixture
def pool():
    """pool(places, limits, **options) -> Pool; shut down with the test."""
    made = []

    def make(*arguments, **options):
        made.append(Pool(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.shut_down()


def test_process_does_one_job_after_another(start):
    process = start(prepare=Job(jobs.prepare, ("a",)))
    pid, prepared = process.do(Job(jobs.read_prepared))
    assert (pid, prepared) == (process.pid, ["a"])
    assert process.do(Job(jobs.add, (bytes(1 << 20), b"b"))) == bytes(1 << 20) + b"b"
    assert process.do(Job("tests.storage.process_jobs:add", (1, 2))) == 3
    assert process.is_alive


def test_errors_of_a_function(start):
    process = start()
    with pytest.raises(ContentError, match="too short"):
        process.do(Job(jobs.refuse, ("it is too short",)))
    with pytest.raises(ValueError, match="1 and 2"):
        process.do(Job(jobs.refuse_oddly))
    with pytest.raises(FileNotFoundError, match="none"):
        process.do(Job(os.stat, ("/none/such",)))
    for job in (Job(jobs.fail), Job(jobs.return_a_function), Job("tests.storage.process_jobs:none"), Job("no.such:a")):
        with pytest.raises(FailedError):
            process.do(job)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        process.do(Job(jobs.add, (lambda: None, 1)))
    assert process.do(Job(jobs.add, (1, 2))) == 3, "the process goes on"


def test_language_crosses_to_all_threads_of_a_job(start):
    process = start()
    with use_language("zh"):
        job = Job(jobs.read_language)
    assert process.do(job) == ["zh", "zh"]
    assert process.do(Job(jobs.read_language)) == ["en", "en"]


def test_messages_of_a_job(start):
    process, numbers = start(), []
    assert process.do(Job(jobs.count, (3,)), listen=lambda message: numbers.append(message["number"])) == "done"
    assert numbers == [0, 1, 2]
    assert process.do(Job(jobs.add, (1, 2))) == 3


def test_error_of_the_listener_ends_the_process(start):
    process = start()
    with pytest.raises(ZeroDivisionError):
        process.do(Job(jobs.count, (3,)), listen=lambda message: 1 // message["number"])
    assert not process.is_alive, "another job would get the messages of this one"


def test_prints_do_not_mix_with_results(start, tmp_path):
    with (tmp_path / "errors").open("wb") as errors:
        assert start(errors=errors).do(Job(jobs.print_and_read)) == ""
    printed = (tmp_path / "errors").read_text()
    assert all(each in printed for each in ("printed", "written", "by a child"))


@pytest.mark.slow
@needs_limits
def test_job_beyond_its_processor_time(start):
    process = start(Limits(processor_seconds=1))
    with pytest.raises(OutOfTimeError) as caught:
        process.do(Job(jobs.work_for, (60,)))
    assert caught.value.seconds == 1
    assert not process.is_alive


@pytest.mark.slow
@needs_limits
def test_processor_time_of_one_job_is_none_of_the_next(start):
    process = start(Limits(processor_seconds=1))
    for _ in range(4):
        process.do(Job(jobs.work_for, (0.6,)))


def test_job_beyond_its_time(start):
    process = start(Limits(wall_seconds=0.3))
    begun = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"0\.3 seconds"):
        process.do(Job(jobs.sleep, (60,)))
    assert time.monotonic() - begun < 30
    assert not process.is_alive


@needs_proc
def test_job_beyond_its_memory(start):
    process = start(Limits(memory=100 << 20))
    assert process.do(Job(jobs.allocate, (50 << 20,))) == 50 << 20
    with pytest.raises(OutOfMemoryError):
        process.do(Job(jobs.allocate, (200 << 20,)))
    assert not process.is_alive


@needs_proc
def test_arguments_and_results_beyond_the_memory(start):
    with pytest.raises(OutOfMemoryError):
        start(Limits(memory=20 << 20)).do(Job(jobs.add, (bytes(64 << 20), b"")))
    with pytest.raises(OutOfMemoryError):
        start(Limits(memory=50 << 20)).do(Job(bytes, (40 << 20,)))


@needs_proc
def test_process_that_grew_ends_after_its_job(start):
    process = start(Limits(rest=32 << 20))
    process.do(Job(jobs.keep, (1 << 20,)))
    assert process.is_alive
    process.do(Job(jobs.keep, (64 << 20,)))
    assert not process.is_alive
    wait_until(lambda: not is_running(process.pid), 10, "end of the process")


@needs_limits
def test_process_that_ends_within_a_job(start):
    for job, code in ((Job(jobs.end, (3,)), 3), (Job(jobs.kill_itself), -signal.SIGKILL), (Job(sys.exit, (4,)), 4)):
        process = start()
        with pytest.raises(EndedError) as caught:
            process.do(job)
        assert caught.value.code == code
        assert not process.is_alive
        with pytest.raises(EndedError):
            process.do(Job(jobs.add, (1, 2)))


def test_preparation_that_fails(start):
    with pytest.raises(EndedError) as caught:
        start(prepare=Job(jobs.fail)).do(Job(jobs.add, (1, 2)))
    assert caught.value.code == 1


def test_interpreter_that_cannot_be_started():
    with pytest.raises(OSError, match="none"):
        Process(python="/none/such")


@needs_limits
def test_niceness_and_variables(start, monkeypatch):
    monkeypatch.setenv("ROPE_A", "parent")
    monkeypatch.setenv("ROPE_B", "parent")
    process = start(Limits(niceness=3), variables={"ROPE_A": None, "ROPE_B": "own", "ROPE_C": "new"})
    assert process.do(Job(jobs.read_niceness)) == os.nice(0) + 3
    assert process.do(Job(jobs.read_variables, ("ROPE_A", "ROPE_B", "ROPE_C"))) == [None, "own", "new"]


def test_files_of_the_working_directory_are_not_imported(start, tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')")
    monkeypatch.chdir(tmp_path)
    folder, working = start().do(Job(jobs.read_path))
    assert (folder, working) == (str(ROOT), str(tmp_path))


@needs_proc
def test_kill_ends_what_a_job_has_started(start):
    process, told = start(), []
    asking = threading.Thread(target=lambda: told.append(find_error(process, told)))
    asking.start()
    pids = wait_until(lambda: told and told[0], 30, "the numbers of the processes")
    process.kill()
    asking.join(30)
    assert isinstance(told[1], EndedError)
    wait_until(lambda: not any(map(is_running, pids)), 2, "end of both processes")


def find_error(process, told):
    """Return the error of a job that works until it is ended."""
    with pytest.raises(EndedError) as caught:
        process.do(Job(jobs.start_child_and_tell), listen=told.append)
    return caught.value


PARENT = """
from rope_viz.storage.processes import Job, Limits, Pool, Process
from tests.storage import process_jobs as jobs
if __name__ == "__main__":
    pool = Pool(1)
    pool.start()
    idle = pool.pids
    Process().do(Job(jobs.start_child_and_tell), listen=lambda pids: print(*pids, *idle, flush=True))
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_their_parent(number):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        pids = [int(each) for each in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(is_running, pids))
        parent.send_signal(number)
        wait_until(lambda: not any(map(is_running, pids)), 2, "end of a busy process, of its child, and of an idle one")


def test_pool_does_so_many_jobs_at_once(pool):
    few = pool(2)
    futures = [few.submit(Job(jobs.read_prepared)) for _ in range(6)]
    pids = {future.result(30)[0] for future in futures}
    assert len(pids) <= 2
    assert pids <= set(few.pids)


def test_pool_in_a_command():
    """A job that ends its process is told so, and the others have their results."""
    with Pool(2) as few:
        futures = {few.submit(Job(jobs.add, (number, 1))): number for number in range(5)}
        futures[few.submit(Job(jobs.end, (3,)))] = "ended"
        results = {}
        for future in concurrent.futures.as_completed(futures, timeout=60):
            error = future.exception()
            results[futures[future]] = type(error) if error is not None else future.result()
    assert results == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, "ended": EndedError}
    assert not few.pids


@needs_proc
def test_idle_processes_end_and_one_stays(pool):
    first = pool(2, idle_seconds=0.0)
    assert first.submit(Job(jobs.add, (1, 2))).result(30) == 3
    wait_until(lambda: not first.pids, 10, "end of the idle process")
    second = pool(2, idle_seconds=0.0, one_stays=True)
    second.start(2)
    pids = second.pids
    wait_until(lambda: len(second.pids) == 1, 10, "end of one of two idle processes")
    assert second.pids[0] in pids
    wait_until(lambda: sum(map(is_running, pids)) == 1, 10, "end of the process")
    assert second.submit(Job(jobs.read_prepared)).result(30)[0] == second.pids[0]


@needs_proc
def test_process_that_stays_is_replaced(pool):
    own = pool(1, one_stays=True)
    own.start()
    (pid,) = own.pids
    with pytest.raises(EndedError):
        own.submit(Job(jobs.end, (3,))).result(30)
    new = wait_until(lambda: own.pids, 10, "another process")
    assert new != [pid]
    os.kill(new[0], signal.SIGKILL)
    wait_until(lambda: not is_running(new[0]), 10, "end of the process")
    assert own.submit(Job(jobs.add, (1, 2))).result(30) == 3, "one killed while idle fails no job"


@needs_proc
def test_cancelled_job_ends_its_process_or_never_starts(pool):
    own = pool(1)

    async def cancel():
        first, second = (asyncio.ensure_future(own.do(Job(jobs.work_for, (60,)))) for _ in range(2))
        while not own._busy:
            await asyncio.sleep(0.01)
        (pid,) = own.pids
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert first.cancelled()
        assert second.cancelled()
        assert await own.do(Job(jobs.add, (1, 2))) == 3, "the place is free again"
        return pid

    pid = asyncio.run(cancel())
    wait_until(lambda: not is_running(pid), 10, "end of the process")


@pytest.mark.parametrize("name", ["end_with", "refuse_with"])
def test_contents_of_a_job_without_result_are_freed_without_gc(pool, name):
    own = pool(1)

    async def fail():
        content = jobs.Content()
        left = weakref.ref(content)
        job = Job(f"tests.storage.process_jobs:{name}", (content, 3))
        try:
            await own.do(job)
        except (EndedError, ContentError):
            pass
        else:
            raise AssertionError("the job has a result")
        del job, content
        # The thread and the loop drop their references a moment after the result is there.
        for _ in range(500):
            await asyncio.sleep(0.01)
            if left() is None:
                return
        raise AssertionError("the content is still there")

    gc.collect()
    gc.disable()
    try:
        asyncio.run(fail())
    finally:
        gc.enable()


def test_shut_down_ends_jobs_and_those_that_wait(pool):
    own = pool(1)
    futures = [own.submit(Job(jobs.sleep, (60,))) for _ in range(3)]
    wait_until(lambda: own._busy, 10, "a job in a process")
    own.shut_down()
    for future in futures:
        assert isinstance(future.exception(30), EndedError)
    assert own.submit(Job(jobs.add, (1, 2))).result(30) == 3, "a server that starts later in this process"


def test_pool_without_processes(pool, monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "/none/such")
    with pytest.raises(EndedError) as caught:
        pool(1).submit(Job(jobs.add, (1, 2))).result(30)
    assert caught.value.code is None
    with pytest.raises(OSError, match="none"):
        pool(1).start()
