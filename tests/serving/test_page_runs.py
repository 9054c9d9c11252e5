"""Runs of pages wait for a turn on few threads, and a newer message waits for the run of its page."""

import inspect
import threading
import time
import tomllib
from pathlib import Path

import pytest
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

from rope_viz.serving import page_runs
from rope_viz.serving.page_runs import OneRunRequests, QueuedRunner, RunThreads
from rope_viz.storage.shares import Shares

ROOT = Path(__file__).parents[2]


class Tasks:
    """Tasks that run until they are released, and the order in which they began."""

    def __init__(self, turns):
        self.turns, self.began, self.most = turns, [], 0
        self._running, self._lock, self._end = 0, threading.Lock(), threading.Event()

    def add(self, *visitors):
        for visitor in visitors:
            self.turns.add(visitor, lambda visitor=visitor: self._run(visitor))

    def _run(self, visitor):
        with self._lock:
            self.began.append(visitor)
            self._running += 1
            self.most = max(self.most, self._running)
        self._end.wait(10)
        with self._lock:
            self._running -= 1

    def release(self):
        self._end.set()


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_few_runs_at_once_and_a_place_for_a_newcomer():
    tasks = Tasks(RunThreads(at_once=2))
    tasks.add(*"aaaaaa")
    wait_until(lambda: len(tasks.began) == 2)
    time.sleep(0.02)
    assert tasks.began == [*"aa"], "the last place is for a newcomer"
    tasks.add("b")
    wait_until(lambda: tasks.began == [*"aab"])
    tasks.add(*"cc")
    time.sleep(0.02)
    assert tasks.began == [*"aab"], "three run"
    tasks.release()
    wait_until(lambda: len(tasks.began) == 9)
    assert tasks.most == 3
    wait_until(lambda: tasks.turns.threads.total == 0)
    assert not tasks.turns.is_anyone_waiting


def test_visitors_take_turns():
    turns = RunThreads(at_once=0)  # only the place for a newcomer
    first = Tasks(turns)
    first.add("a")
    wait_until(lambda: first.began)
    later = Tasks(turns)
    later.release()
    later.add(*"aaabbc")
    first.release()
    wait_until(lambda: len(later.began) == 6)
    assert later.began == [*"abcaba"]


def test_run_that_does_not_end_gives_up_its_place():
    turns = RunThreads(at_once=1, threads=Shares(4, 3), stuck=0.01)
    tasks = Tasks(turns)
    tasks.add(*"aaaa")
    wait_until(lambda: len(tasks.began) == 3)
    tasks.add("b")
    wait_until(lambda: tasks.began[-1] == "b")
    assert tasks.began == [*"aaab"], "three threads of one visitor"
    assert turns._started <= 4
    tasks.release()
    wait_until(lambda: len(tasks.began) == 5)


def test_run_that_waits_for_a_reading_gives_up_its_place():
    turns = RunThreads(at_once=1)
    tasks, end = Tasks(turns), threading.Event()

    def read():
        with turns.without_place():
            end.wait(10)

    turns.add("a", read)
    tasks.add("a")
    wait_until(lambda: tasks.began)
    end.set()
    tasks.release()
    wait_until(lambda: not turns._running)


def test_thread_remembers_nothing_of_a_run():
    turns, seen = RunThreads(at_once=1), []

    def task():
        seen.append(dict(threading.current_thread().__dict__).get(page_runs.SCRIPT_RUN_CONTEXT_ATTR_NAME))
        setattr(threading.current_thread(), page_runs.SCRIPT_RUN_CONTEXT_ATTR_NAME, "a context")
        if len(seen) == 1:
            raise ValueError("the thread goes on")

    turns.add("a", task)
    turns.add("a", task)
    wait_until(lambda: len(seen) == 2)
    assert seen == [None, None]


def test_second_request_waits_and_joins_later_ones():
    requests = OneRunRequests()
    requests.request_rerun(RerunData(query_string="a"))
    assert requests.on_scriptrunner_ready().rerun_data.query_string == "a"
    requests.request_rerun(RerunData(query_string="b"))
    assert requests.on_scriptrunner_ready().type is ScriptRequestType.STOP
    assert requests.is_paused
    assert requests.request_rerun(RerunData(query_string="c")), "a paused page still takes requests"
    requests.has_run = requests.is_paused = False
    assert requests.on_scriptrunner_ready().rerun_data.query_string == "c"
    assert requests.on_scriptrunner_ready().type is ScriptRequestType.STOP
    assert not requests.is_paused
    assert not requests.request_rerun(RerunData()), "Streamlit makes a new runner"


def test_paused_runner_has_not_ended():
    requests, events = OneRunRequests(), []
    signal = page_runs.EventsOfTurns(requests)
    signal.connect(lambda sender, event: events.append(event), weak=False)
    requests.is_paused = True
    signal.send(None, event=page_runs.ScriptRunnerEvent.SHUTDOWN)
    signal.send(None, event=page_runs.ScriptRunnerEvent.SCRIPT_STARTED)
    requests.is_paused = False
    signal.send(None, event=page_runs.ScriptRunnerEvent.SHUTDOWN)
    assert [event.name for event in events] == ["SCRIPT_STARTED", "SHUTDOWN"]


YOUNG, OLD = (0.0, False, False), (9.0, False, True)
IN_THE_WAY = (9.0, True, False)


@pytest.mark.parametrize(("age", "waits", "interrupted"), [YOUNG, OLD, IN_THE_WAY])
def test_only_a_long_run_is_interrupted(monkeypatch, age, waits, interrupted):
    asked = []
    monkeypatch.setattr(ScriptRunner, "_maybe_handle_execution_control_request", lambda self: asked.append(1))
    monkeypatch.setattr(page_runs, "RUN_THREADS", RunThreads())
    if waits:
        page_runs.RUN_THREADS._waiting["a"] = []
    runner = object.__new__(QueuedRunner)
    runner._requests, runner._execing = OneRunRequests(), True
    runner._script_thread, runner._began = threading.current_thread(), time.monotonic() - age
    runner._requests.request_rerun(RerunData())
    runner._maybe_handle_execution_control_request()
    assert bool(asked) == interrupted
    runner._requests.request_stop()
    runner._maybe_handle_execution_control_request()
    assert len(asked) == interrupted + 1, "a stop is never put off"


def test_a_run_that_asks_for_another_one_ends_there(monkeypatch):
    """As `st.switch_page` and `st.rerun` do: the rest of the script must not run, however young the run is."""
    asked = []
    monkeypatch.setattr(ScriptRunner, "_maybe_handle_execution_control_request", lambda self: asked.append(1))
    runner = object.__new__(QueuedRunner)
    runner._requests, runner._execing = OneRunRequests(), True
    runner._script_thread, runner._began = threading.current_thread(), time.monotonic()
    runner._requests.script_thread = runner._script_thread
    runner._requests.request_rerun(RerunData())
    runner._maybe_handle_execution_control_request()
    assert asked
    assert runner._requests.on_scriptrunner_yield().type is ScriptRequestType.RERUN
    assert not runner._requests.is_of_script, "the next request may be a message"


def test_streamlit_makes_the_runners_that_install_puts_there(monkeypatch):
    """Fails if Streamlit makes its runners elsewhere, or if a setting lets it make one for each message."""
    monkeypatch.setattr(app_session, "ScriptRunner", app_session.ScriptRunner)
    page_runs.install()
    assert app_session.ScriptRunner is QueuedRunner
    source = inspect.getsource(AppSession._create_scriptrunner)
    assert "self._scriptrunner = ScriptRunner(" in source
    assert "self._scriptrunner.start()" in source
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["runner"]["fastReruns"] is False
