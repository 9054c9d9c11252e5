"""Evaluation asks each question once, through failures and kills; real engines answer as we compute."""

import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.completion_clients import Answer, Local, Server, UnavailableError
from rope_viz.evaluation.dispatch import Worker
from rope_viz.evaluation.evaluation_plan import AnswerRow, Evaluation, read_evaluation
from rope_viz.evaluation.run_evaluation import EvaluationPlan, evaluate, span
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import passkey
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "rope_viz" / "tiny_lm" / "checkpoints" / "seed-0"
PLAN = EvaluationPlan(methods=("none", "yarn"), lengths=(400, 800), depths=(0.0, 0.5, 1.0), repeats=2, model="m")


class Fake:
    """An engine that finds every key of one digit sum parity, and writes down what it was asked."""

    def __init__(self, fail=()):
        self.asked, self.fail = [], set(fail)

    def ask(self, text, most):
        self.asked.append(text)
        if len(self.asked) in self.fail:
            raise ValueError("no")
        key = text.split("The pass key is ")[1].split(".")[0]
        return Answer(f" {key}." if int(key) % 2 else " nothing", len(text.split()))

    def count(self, text):
        return len(text.split())


def workers_of(engines, slots=4):
    """Return one worker for the engine of each method."""
    return [Worker(method, {method: engine}, slots) for method, engine in engines.items()]


@pytest.fixture
def server():
    """A server of the OpenAI protocol that does as `handler.plan` says: codes and bodies in turn, then answers."""

    class Handler(BaseHTTPRequestHandler):
        plan, seen, hold = [], [], threading.Event()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            Handler.seen.append((self.path, body, dict(self.headers)))
            step = Handler.plan.pop(0) if Handler.plan else (200, None, {})
            if step == "hold":
                Handler.hold.wait(30)
                return
            code, said, headers = step
            text = body.get("prompt") or body["messages"][0]["content"]
            key = text.split("The pass key is ")[1].split(".")[0] if "The pass key is " in text else "x"
            answer = {"message": {"content": key}} if "messages" in body else {"text": key}
            usage = {"prompt_tokens": len(text.split())}
            data = json.dumps({"choices": [answer], "usage": usage}) if said is None else said
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data.encode())

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": [{"id": "first"}, {"id": "second"}]}).encode())

        def log_message(self, *_):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    made.handler, made.url = Handler, f"http://127.0.0.1:{made.server_port}/v1"
    yield made
    Handler.hold.set()
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize("name", passkey.WORDINGS)
def test_question_hides_its_answer_at_the_stated_depth(name):
    wording = passkey.WORDINGS[name]
    for depth in (0.0, 0.3, 1.0):
        question = wording.make(200, depth, 7)
        words = question.text.split()
        place = next(i for i, word in enumerate(words) if word.strip(".") == question.answer) / len(words)
        assert place == pytest.approx(depth, abs=0.09)
        assert wording.make(200, depth, 7) == question
        assert wording.make(200, depth, 8) != question
        assert wording.right(question, f" {question.answer}.")
        assert not wording.right(question, f"1{question.answer}")
        assert not wording.right(question, "")


@pytest.mark.parametrize("name", passkey.WORDINGS)
@pytest.mark.parametrize("length", [300, 1000, 4096])
def test_text_fills_exactly_its_length(name, length):
    wording = passkey.WORDINGS[name]
    pieces = passkey.pieces_for(wording, length, lambda text: len(text.split()))
    count = len(wording.make(pieces, 0.5, 1).text.split()) + wording.answer_tokens
    assert length - 40 <= count <= length


def test_too_short_length_is_refused():
    with pytest.raises(ValueError, match="20 tokens cannot hold the question"):
        passkey.pieces_for(passkey.WORDINGS["english"], 20, lambda text: len(text.split()))
    with pytest.raises(ValueError, match="cannot be counted"):
        passkey.pieces_for(passkey.WORDINGS["english"], 900, lambda text: 5)


def test_every_question_is_asked_once_and_saved(tmp_path):
    engines, out = {"none": Fake(), "yarn": Fake()}, tmp_path / "out.json"
    evaluate(PLAN, workers_of(engines), out)
    assert [len(set(engine.asked)) for engine in engines.values()] == [12, 12]
    found = read_evaluation(out)
    assert (found.methods, found.lengths, found.depths) == (("none", "yarn"), (400, 800), (0.0, 0.5, 1.0))
    assert len(found.rows) == PLAN.size == 24
    assert {row.cell for row in found.rows} == set(PLAN.cells())
    assert not list(tmp_path.glob("*.journal"))
    again = {"none": Fake(), "yarn": Fake()}
    evaluate(PLAN, workers_of(again), out)
    assert not any(engine.asked for engine in again.values())


def test_added_lengths_and_repeats_ask_only_new_questions(tmp_path):
    out = tmp_path / "out.json"
    evaluate(PLAN, workers_of({"none": Fake(), "yarn": Fake()}), out)
    more = EvaluationPlan(methods=("yarn",), lengths=(400, 800, 1200), depths=PLAN.depths, repeats=2, model="m")
    engine = Fake()
    evaluate(more, workers_of({"yarn": engine}), out)
    assert len(engine.asked) == 6


def test_refusal_is_saved_with_its_reason_and_retried(tmp_path):
    out, engine = tmp_path / "out.json", Fake(fail=[3])
    plan = EvaluationPlan(methods=("none",), lengths=(400,), depths=(0.0, 0.5, 1.0), repeats=1)
    evaluate(plan, workers_of({"none": engine}, slots=1), out)
    refused = [row for row in read_evaluation(out).rows if row.right is None]
    assert [row.answer for row in refused] == ["no"]
    again = Fake()
    evaluate(plan, workers_of({"none": again}), out)
    assert len(again.asked) == 1
    assert all(row.right is not None for row in read_evaluation(out).rows)


def test_answers_of_different_setups_are_not_mixed(tmp_path):
    out = tmp_path / "out.json"
    plan = EvaluationPlan(("yarn",), (400,), (0.5,), about={"yarn": {"config": "factor 4", "url": "http://a"}})
    evaluate(plan, workers_of({"yarn": Fake()}), out)
    evaluate(
        EvaluationPlan(("yarn",), (400,), (0.5,), about={"yarn": {"config": "factor 4", "url": "http://b"}}), [], out
    )
    other = EvaluationPlan(("yarn",), (400,), (0.5,), about={"yarn": {"config": "factor 8"}})
    with pytest.raises(ValueError, match="answers of another yarn already"):
        evaluate(other, workers_of({"yarn": Fake()}), out)


def test_killed_run_resumes_without_repeating_questions(tmp_path, server):
    out = tmp_path / "out.json"
    words = [sys.executable, "-m", "rope_viz", "evaluate", "--server", f"none={server.url}", "--lengths", "400,800"]
    words += ["--depths", "4", "--repeats", "2", "--concurrency", "1", "-o", str(out), "--retries", "0"]
    server.handler.plan = [(200, None, {})] * 9 + ["hold"]  # two counts, seven answers, and one that never comes
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(server.handler.seen) >= 10, 90, "ten requests")
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = [body["prompt"] for _, body, _ in server.handler.seen if body["max_tokens"] > 1]
    assert len(first) == 8
    journal = tmp_path / "out.json.journal"
    journal.write_text(journal.read_text() + '\n{"method": "none", "len')  # what a kill leaves of a line
    server.handler.seen.clear()
    assert main(words[3:]) == 0
    second = [body["prompt"] for _, body, _ in server.handler.seen if body["max_tokens"] > 1]
    assert len(second) == 16 - 7
    assert not set(first[:7]) & set(second)
    assert len(read_evaluation(out).rows) == 16
    assert server.handler.seen[0][1]["model"] == "first"


@pytest.mark.parametrize(
    ("headers", "pause"), [({}, None), ({"Retry-After": "7"}, 7.0), ({"Retry-After": "soon"}, None)]
)
@pytest.mark.parametrize("code", [408, 429, 500, 502, 503])
def test_a_temporary_failure_names_its_pause(code, headers, pause, server):
    server.handler.plan = [(code, "busy", headers)]
    with pytest.raises(UnavailableError, match=f"refused: {code} 'busy'") as caught:
        Server(server.url, "m").ask("hello", 3)
    assert (caught.value.is_reached, caught.value.pause) == (True, pause)


def test_a_server_is_asked_by_the_openai_protocol(server):
    engine = Server(server.url, "m", key="secret")
    assert engine.ask("The pass key is 12345. hello", 3) == Answer("12345", 6)
    path, body, headers = server.handler.seen[-1]
    assert (path, headers["Authorization"]) == ("/v1/completions", "Bearer secret")
    assert body["temperature"] == 0
    assert Server(server.url, "m", chat=True).ask("The pass key is 12345. hello", 3).text == "12345"
    assert server.handler.seen[-1][0] == "/v1/chat/completions"
    assert engine.models() == ["first", "second"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ((400, "the prompt is too long", {}), "refused: 400 'the prompt is too long'"),
        ((401, "", {}), "refused: 401"),
        ((200, "<html>", {}), "not JSON"),
        ((200, "{}", {}), "without a choice"),
        ((200, "[1]", {}), "without a choice"),
        ((200, '{"choices": []}', {}), "without a choice"),
        ((200, '{"choices": [{"text": "a"}]}', {}), "does not report usage"),
        ((200, "x" * (5 << 20), {}), "more than 4 MiB"),
    ],
)
def test_server_error_raises_a_clear_error(step, said, server):
    server.handler.plan = [step] * 3
    with pytest.raises(ValueError, match=said) as caught:
        Server(server.url, "m").count("hello")
    assert "\n" not in str(caught.value)


def test_unreachable_server_is_reported():
    engine = Server("http://127.0.0.1:9", "m")
    with pytest.raises(UnavailableError, match="cannot be reached") as caught:
        engine.ask("hello", 1)
    assert not caught.value.is_reached
    with pytest.raises(ValueError, match="name one"):
        engine.models()
    for url in ("localhost:8000", "file:///etc/passwd", "ftp://a", "http://"):
        with pytest.raises(ValueError, match="an address such as"):
            Server(url, "m")


def test_maps_and_lines_are_shares_of_the_answers():
    rows = tuple(
        AnswerRow("none", length, depth, repeat, right, "")
        for length, depth, repeat, right in [
            (100, 0.0, 0, True),
            (100, 0.0, 1, False),
            (100, 1.0, 0, True),
            (200, 0.0, 0, None),
            (200, 1.0, 0, False),
        ]
    )
    found = Evaluation("m", "english", {}, rows)
    np.testing.assert_array_equal(found.map("none"), [[0.5, np.nan], [1.0, 0.0]])
    mean, low, high = found.over_lengths("none")
    np.testing.assert_allclose(mean, [2 / 3, 0.0])
    # Wilson's interval of 2 in 3 and of 0 in 1, from its formula.
    np.testing.assert_allclose([low[0], high[0]], [0.2077, 0.9385], atol=1e-4)
    np.testing.assert_allclose([low[1], high[1]], [0.0, 0.7935], atol=1e-4)


class CountedPasses(tuple):
    """Rows that count how often somebody goes through all of them."""

    passes = 0

    def __iter__(self):
        CountedPasses.passes += 1
        return super().__iter__()


def test_summaries_read_the_answers_a_few_times_only(monkeypatch):
    monkeypatch.setattr(CountedPasses, "passes", 0)
    rows = CountedPasses(AnswerRow(f"m{i % 40}", 100 + i, i / 400, 0, True, "") for i in range(400))
    found = Evaluation("m", "english", {}, rows)
    for method in found.methods:
        assert found.map(method).shape == (400, 400)
        assert np.nansum(found.over_lengths(method)[0]) == 10
    assert CountedPasses.passes <= 4


@pytest.mark.parametrize(("name", "most"), [("method", 50), ("length", 1000), ("depth", 10_001)])
def test_evaluation_with_too_many_values_is_refused(name, most):
    values = {"method": str, "length": lambda i: i + 1, "depth": lambda i: i / 20_000}[name]
    answers = [{**GOOD["answers"][0], name: values(i)} for i in range(most + 1)]
    with pytest.raises(ValueError, match=rf"at most {most:,} {name}s, got {most + 1:,}"):
        read_evaluation(json.dumps({**GOOD, "answers": answers}).encode())
    assert len(read_evaluation(json.dumps({**GOOD, "answers": answers[1:]}).encode()).rows) == most


GOOD = {"version": 1, "answers": [{"method": "a", "length": 9, "depth": 0.5, "repeat": 0, "right": True}]}
LIES = {
    "nothing": b"",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "no answers": json.dumps({"version": 1}).encode(),
    "empty": json.dumps({**GOOD, "answers": []}).encode(),
    "version": json.dumps({**GOOD, "version": 2}).encode(),
    **{
        f"{key} {value!r}": json.dumps({**GOOD, "answers": [{**GOOD["answers"][0], key: value}]}).encode()
        for key, value in (
            ("method", 3),
            ("method", ""),
            ("length", 0),
            ("length", "9"),
            ("depth", 1.5),
            ("depth", float("nan")),
            ("repeat", -1),
            ("right", "yes"),
            ("right", 7),
        )
    },
}


@pytest.mark.parametrize("name", LIES)
def test_file_that_is_no_evaluation_raises_a_clear_error(name):
    with pytest.raises(ValueError, match=r"file|answer|evaluation|length|depth|repeat") as caught:
        read_evaluation(LIES[name])
    assert "\n" not in str(caught.value)


def test_dry_run_prints_the_cost_and_asks_nothing(capsys, server):
    words = ["evaluate", "--server", f"none={server.url}", "--server", f"yarn={server.url}", "--lengths", "1k,4k"]
    words += ["--depths", "5", "--repeats", "3", "--dry-run", "--tokens-per-second", "20"]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "60 questions (2 methods, 2 lengths, 5 depths, 3 times), at most 153,600 tokens" in said
    assert "2.1 hours of one machine" in said
    assert not server.handler.seen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name either a folder"),
        (["x", "--server", "a=http://b"], "name either a folder"),
        (["nowhere"], "nowhere is not a folder with a config.json"),
        (["--server", "localhost:8000"], "a server must be METHOD=URL"),
        (["--server", "http://b/v1"], "names no method: such as none=http://b/v1"),
        (["--server", "a=http://b", "http://c"], "'http://c' names no method"),
        (["--server", "a=http://b", "--server", "a=http://b/"], "each server of a method must be named once"),
        (["--servers", "nowhere.txt"], "nowhere.txt"),
        (["--server", "a=http://b", "--shard", "3/3"], "I from 0 to N − 1"),
        (["x", "y"], "name one model, got 2: x, y"),
        (["merge", "-o", "x.json"], "name the files of the shards"),
        (["merge", "a.json"], "name a file for the answers"),
        (["--server", "a=b"], "an address such as"),
        (["--server", "a=http://b", "--lengths", "1k,x"], "x"),
        (["--server", "a=http://b"], "name a file for the answers"),
        ([str(FOLDER), "--methods", "magic", "--dry-run"], "a method must be one of"),
        ([str(FOLDER), "--lengths", "256,256", "--dry-run"], "at least one length, and each once"),
        (["--flags", "vllm"], "name the model's config.json"),
        (["--show", "nothing.json"], "nothing.json"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(words, said, capsys):
    assert main(["evaluate", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_server_flags_match_the_export(capsys):
    assert main(["evaluate", "qwen3-8b", "--flags", "vllm", "--lengths", "128k", "--methods", "linear,yarn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# linear", "# yarn"]
    words = ["--scaling", "yarn", "--factor", "4", "--target", "128k"]
    assert main(["export", "--to", "vllm", "qwen3-8b", *words]) == 0
    assert capsys.readouterr().out.splitlines()[0] == lines[3]


def test_local_model_answers_match_our_computation(tmp_path, capsys):
    pytest.importorskip("transformers")
    out = tmp_path / "out.json"
    words = [str(FOLDER), "--words", "reader", "--lengths", "256,512", "--depths", "3", "--methods", "linear,yarn"]
    assert main(["evaluate", *words, "-o", str(out)]) == 0
    found = read_evaluation(out)
    assert found.model == "seed-0"
    assert all(row.tokens is not None and row.length - 40 <= row.tokens < row.length for row in found.rows)
    share = {method: found.over_lengths(method)[0] for method in found.methods}
    assert share["linear"].mean() <= 0.25
    assert share["yarn"].min() >= 0.75
    assert "0.00" in capsys.readouterr().out
    # Each answer is the one that our own forward pass gives.
    from rope_viz.tiny_lm import checkpoints, numpy_model

    reader = checkpoints.load_tiny_lm("seed-0")
    turn = Turning.from_spec(checkpoints.scaled(reader.spec, "yarn", 512))
    wording = passkey.WORDINGS["reader"]
    pieces = passkey.pieces_for(wording, 512, lambda text: len(text.split()))
    for row in found.rows:
        if (row.method, row.length) == ("yarn", 512):
            tokens = passkey.parse(wording.make(pieces, row.depth, row.repeat).text)
            ours = numpy_model.logits(reader, tokens, turn, rows=[len(tokens) - 1])[0].argmax()
            assert row.answer == passkey.WORDS[ours]


def test_folder_without_a_model_is_refused(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises((ValueError, OSError)):
        Local(tmp_path).ask("hello", 1)


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_local_model_without_its_libraries_names_the_extra(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ValueError, match=r"pip install 'rope-viz\[transformers\]'"):
        Local(tmp_path).count("hello")


def test_durations_are_formatted_for_people():
    assert [span(s) for s in (5, 200, 9000)] == ["5 s", "3 min", "2.5 h"]
