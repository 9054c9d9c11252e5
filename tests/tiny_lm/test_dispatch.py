"""Servers share questions: bounded requests each, retries on another one, nothing lost or asked twice."""

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.completion_clients import Server, UnavailableError
from rope_viz.evaluation.dispatch import Worker, count_tokens, dispatch
from rope_viz.evaluation.evaluation_plan import AnswerRow, read_evaluation
from rope_viz.evaluation.run_evaluation import EvaluationPlan, evaluate
from tests.tiny_lm.completion_servers import passkey_servers
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PLAN = EvaluationPlan(methods=("none",), lengths=(400, 800), depths=tuple(place / 10 for place in range(11)), repeats=2)


def workers_for(servers, slots=4, method="none"):
    """Return a worker for each server."""
    return [Worker(server.url, {method: Server(server.url, "m", timeout=30)}, slots) for server in servers]


def run(plan, servers, out, **options):
    """Evaluate over these servers and return the rows and what was printed."""
    lines = []
    evaluate(plan, workers_for(servers), out, wait=0.01, say=lines.append, **options)
    return read_evaluation(out).rows, lines


def test_two_servers_share_the_questions_and_answer_as_one(tmp_path):
    with passkey_servers(3, delay=0.05) as (one, first, second):
        alone, _ = run(PLAN, [one], tmp_path / "one.json")
        shared, lines = run(PLAN, [first, second], tmp_path / "two.json")
    assert shared == alone
    assert len(first.asked) + len(second.asked) == PLAN.size == 44
    assert min(len(first.asked), len(second.asked)) >= 12
    assert {server.most_at_once for server in (one, first, second)} == {4}
    for server in (first, second):
        assert any(line.startswith(f"{server.url}: {len(server.asked)} answers") for line in lines)


def test_long_questions_are_asked_first_within_a_repeat(tmp_path):
    with passkey_servers(1) as (server,):
        evaluate(PLAN, workers_for([server], slots=1), tmp_path / "out.json")
        lengths = [len(text.split()) for text in server.asked]
    for half in (lengths[:22], lengths[22:]):
        assert half == sorted(half, reverse=True)
        assert len(set(half)) == 2


def test_a_killed_and_restarted_server_loses_nothing(tmp_path):
    plan = EvaluationPlan(("none",), (400,), PLAN.depths, repeats=9)
    lost = []

    with passkey_servers(3, delay=0.02) as servers:
        victim = servers[1]

        def watch(line):
            if line.startswith("20 of") and victim.listener:
                victim.stop()
                lost.append(len(victim.asked) - len(victim.answered))
                threading.Timer(0.3, victim.start).start()

        workers = workers_for(servers)
        evaluate(plan, workers, tmp_path / "out.json", wait=0.05, say=watch)
        rows = read_evaluation(tmp_path / "out.json").rows
        asked = Counter(text for server in servers for text in server.asked)
    assert [row.right for row in rows] == [True] * plan.size
    assert len(asked) == plan.size
    assert lost
    assert sum(asked.values()) - plan.size <= workers[1].slots
    assert workers[1].failures


def test_a_failed_question_goes_to_another_server(tmp_path):
    plan = EvaluationPlan(("none",), (400,), PLAN.depths)
    with passkey_servers(1, step=lambda number: 500) as (broken,), passkey_servers(1, delay=0.01) as (good,):
        rows, _ = run(plan, [broken, good], tmp_path / "out.json")
    assert all(row.right for row in rows)
    assert len(good.answered) == plan.size
    assert max(Counter(broken.asked).values()) == 1


def test_a_question_is_given_up_after_its_retries(tmp_path):
    plan = EvaluationPlan(("none",), (400,), (0.0, 0.5, 1.0))
    with passkey_servers(1) as (server,):
        bad = []
        server.step = lambda number: 500 if server.asked[number - 1] == (bad or [server.asked[0]])[0] else None
        lines = []
        evaluate(plan, workers_for([server], slots=1), tmp_path / "out.json", retries=2, wait=0.01, say=lines.append)
        rows = read_evaluation(tmp_path / "out.json").rows
        asked = Counter(server.asked)
    assert [row.right for row in rows].count(None) == 1
    assert sorted(asked.values()) == [1, 1, 3]
    assert "refused: 500" in next(row.answer for row in rows if row.right is None)
    assert any("3 failed requests" in line for line in lines)


def test_a_method_without_servers_is_given_up_alone(tmp_path):
    plan = EvaluationPlan(("none", "yarn"), (400,), PLAN.depths)
    with passkey_servers(2) as (gone, good):
        workers = [*workers_for([gone]), *workers_for([good], method="yarn")]
        engine = workers[0].engines["none"]
        engine.count = workers[1].engines["yarn"].count
        gone.stop()
        evaluate(plan, workers, tmp_path / "out.json", retries=1, wait=0.01)
    rows = read_evaluation(tmp_path / "out.json").rows
    assert {(row.method, row.right) for row in rows} == {("none", None), ("yarn", True)}
    assert all("cannot be reached" in row.answer for row in rows if row.method == "none")


def test_a_worker_of_several_methods_answers_them_in_order():
    cells = [("a", 9, 0.0, 0), ("b", 9, 0.0, 0), ("a", 5, 0.0, 0)]
    seen = []
    worker = Worker("w", {"a": "engine a", "b": "engine b"})

    def answer(engine, cell):
        seen.append((engine, cell))
        return AnswerRow(*cell, right=True, answer="")

    written = []
    dispatch(cells, [worker], answer, None, written.append)
    assert seen == [(f"engine {cell[0]}", cell) for cell in cells]
    assert [row.cell for row in written] == cells


def test_a_question_that_failed_on_every_server_is_asked_again():
    """Both servers work again, so neither may leave the question to the other."""
    hard, failed, written = ("a", 9, 0.0, 0), [], []
    cells = [hard, *[("a", 5, 0.0, repeat) for repeat in range(6)]]

    def answer(engine, cell):
        if cell == hard and len(failed) < 2:
            failed.append(engine)
            raise UnavailableError("busy", is_reached=True)
        time.sleep(0.01)  # an answer takes a moment, so that both servers get questions
        return AnswerRow(*cell, right=True, answer="")

    workers = [Worker(name, {"a": name}) for name in ("first", "second")]
    run = threading.Thread(target=dispatch, args=(cells, workers, answer, None, written.append), kwargs={"wait": 0.01})
    run.daemon = True
    run.start()
    run.join(20)
    assert not run.is_alive()
    assert sorted(failed) == ["first", "second"]
    assert sorted(row.cell for row in written) == sorted(cells)


def test_an_unexpected_error_ends_the_run():
    def answer(engine, cell):
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        dispatch([("a", 9, 0.0, 0)], [Worker("w", {"a": None})], answer, None, None)


def test_pending_answers_are_written_after_an_interrupt():
    started, written = threading.Barrier(2), []

    def answer(engine, cell):
        if cell[1] > 1:
            started.wait(30)
        return AnswerRow(*cell, right=True, answer="")

    def write(row):
        written.append(row.length)
        raise KeyboardInterrupt

    cells = [("a", length, 0.0, 0) for length in (3, 2, 1, 1, 1, 1)]
    with pytest.raises(KeyboardInterrupt):
        dispatch(cells, [Worker("w", {"a": None}, slots=2)], answer, None, write)
    assert sorted(written) == [2, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_second_interrupt_ends_the_command_at_once(tmp_path):
    flags = ["--lengths", "400", "--depths", "4", "--concurrency", "1", "-o", str(tmp_path / "out.json")]
    with passkey_servers(1, delay=120.0) as (server,):
        command = [sys.executable, "-m", "rope_viz", "evaluate", "--server", f"none={server.url}", *flags]
        # A shell lets what it starts with "&" ignore SIGINT, and so it would be here.
        options = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, **options)
        wait_until(lambda: server.asked or process.poll() is not None, 120, "first question")
        process.send_signal(signal.SIGINT)
        lines = [process.stderr.readline()]
        while "press Ctrl-C again" not in lines[-1]:
            lines.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert rest == "rope-viz: interrupted: the same command continues with the questions that have no answer\n"
    assert not any("Traceback" in line for line in lines)


class Flaky:
    """An engine that counts tokens at its third try."""

    def __init__(self, *, fails):
        self.fails = fails

    def count(self, text):
        self.fails -= 1
        if self.fails >= 0:
            raise UnavailableError("down", is_reached=False, pause=None)
        return len(text)


def test_tokens_are_counted_by_the_first_server_that_answers():
    pauses = []
    assert count_tokens("four", [Flaky(fails=9), Flaky(fails=2)], wait=1.0, sleep=pauses.append) == 4
    assert pauses == [1.0, 2.0]
    with pytest.raises(UnavailableError, match="down"):
        count_tokens("four", [Flaky(fails=9)], retries=2, sleep=pauses.append)


def test_the_command_takes_several_servers_of_a_method(tmp_path, capsys):
    out, file = tmp_path / "out.json", tmp_path / "servers.txt"
    flags = ["--lengths", "400", "--depths", "4", "--repeats", "2"]
    with passkey_servers(3) as (first, second, third):
        file.write_text(f"# two of three\nnone={first.url},{second.url}\n\nnone={third.url}\n", encoding="utf-8")
        assert main(["evaluate", "--servers", str(file), *flags, "-o", str(out)]) == 0
        assert sum(len(server.asked) for server in (first, second, third)) == 8
        about = read_evaluation(out).about["none"]
        assert about["url"] == [first.url, second.url, third.url]
        assert about["served"] == "m"
    printed = capsys.readouterr().err
    assert all(f"none at {url}: " in printed for url in about["url"])


def test_servers_of_one_method_must_have_one_model(tmp_path, capsys):
    with passkey_servers(1, model="a") as (first,), passkey_servers(1, model="b") as (second,):
        words = ["evaluate", "--server", f"none={first.url},{second.url}", "-o", str(tmp_path / "out.json")]
        assert main(words) == 2
    assert f"different models (a at {first.url} and b at {second.url})" in capsys.readouterr().err


def test_a_server_that_is_down_at_the_start_does_not_matter(tmp_path, capsys):
    with passkey_servers(2) as (down, good):
        down.stop()
        words = ["evaluate", "--server", f"none={down.url},{good.url}", "-o", str(tmp_path / "out.json")]
        assert main([*words, "--lengths", "400", "--depths", "3"]) == 0
        assert len(good.answered) == 3
    assert "the other servers of none go on" in capsys.readouterr().err
