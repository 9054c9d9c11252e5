"""JSON from outside is checked at one border: what cannot be read is a sentence, never a traceback."""

import ast
import contextlib
import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.verify.identify_rotation import read_values
from rope_viz.cli.main import main
from rope_viz.cli.verify import read_numbers
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.evaluation.search_results import read_search
from rope_viz.figures.files.redraw_json import from_json
from rope_viz.kernels.report import parse_report
from rope_viz.models.formats.argument_text import parse_yaml, read_value
from rope_viz.models.read_upload import read_upload
from rope_viz.own_files.configs import spec_of, upload_of
from rope_viz.pages import registry
from rope_viz.pages.kernels import pack_report
from rope_viz.pages.registry import PAGES
from rope_viz.picture.choices import StoredChoice, filed
from rope_viz.real_models.measured_file import read_measured
from rope_viz.real_models.text_results import read_found_keys, read_text_losses
from rope_viz.storage.decode_json import ContentError, decode_content, decode_json
from rope_viz.storage.limits import JSON_LEVELS
from rope_viz.studies.capture_file import read_capture
from rope_viz.studies.tensors import encode_tensors
from tests.figures.reports import make_report, make_way

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[" * 300_000, b"1" * 9000, b"[" * 150 + b"]" * 150, b'{"a":' * 150 + b"1" + b"}" * 150],
    ids=["empty", "cut", "no text", "deep", "long number", "deep lists", "deep objects"],
)
def test_unreadable_json_is_one_sentence(content):
    with pytest.raises(ContentError, match=r"^the sentence$"):
        decode_json(content, "the sentence")


def test_readable_json_is_returned():
    assert decode_json(b'{"a": [1, null]}', "") == {"a": [1, None]}
    decode_json(b"[" * JSON_LEVELS + b"]" * JSON_LEVELS, "")


PLAIN = (
    "1",
    "-1.5",
    "1e999",
    "NaN",
    "true",
    "null",
    '"x"',
    "[]",
    "[1]",
    "[[]]",
    "[null]",
    "{}",
    '{"a": 1}',
    '{"": []}',
)
"""Whole JSON values that are none of our files."""


@pytest.mark.parametrize("content", PLAIN)
def test_any_json_value_is_returned(content):
    assert repr(decode_json(content, "")) == repr(json.loads(content))


def list_decoders():
    """Return every function that reads JSON from outside, by name, as a function of the content."""
    held = [each for page in PAGES for each in registry.page(page).choices if isinstance(each, StoredChoice)]
    # A stored file is its name and its data; text fields have no name.
    files = {each.key: lambda content, each=each: each.decode(filed("a.json", content)) for each in held}
    texts = {f"{each.key} text": each.decode for each in held}
    capture = {"tensor q": np.zeros((1, 2, 4), np.float32)}
    return {
        **files,
        **texts,
        "own": upload_of,
        "spec": spec_of,
        "upload": read_upload,
        "evaluation": read_evaluation,
        "measured": read_measured,
        "search": read_search,
        "losses": read_text_losses,
        "keys": read_found_keys,
        "report": lambda content: parse_report(content, "no measurement"),
        "capture": lambda content: read_capture(b"".join(encode_tensors(capture, {"rope_viz": content.decode()}))),
        "values": lambda content: read_values("a.json", content),
        "numbers": lambda content: read_numbers(content, "the file"),
        "figure": from_json,
        "argument": lambda content: read_value(content.decode()),
        "yaml": lambda content: parse_yaml(f"a: {content.decode()}"),
    }


@pytest.mark.parametrize("content", PLAIN)
@pytest.mark.parametrize("name", list_decoders())
def test_decoders_read_any_json_or_raise_value_error(name, content):
    with contextlib.suppress(ValueError):
        list_decoders()[name](content.encode())


COMMANDS = (
    "evaluate --show FILE",
    "figure recall/yours --file FILE -o OUT",
    "figure recall/searched --search FILE -o OUT",
    "figure kernels/speeds --report FILE -o OUT",
    "figure heads/uses --measured FILE -o OUT",
    "figure heads/attention --file FILE -o OUT",
    "figure decay/curves --source file --file FILE -o OUT",
    "figure FILE -o OUT",
    "check FILE",
    "check --hf-overrides TEXT llama-3.1-8b",
    "extend FILE --to 128k",
    "compare FILE",
    "memory FILE --length 4k",
    "runtimes FILE",
    "report FILE -o OUT",
    "match FILE --trainer megatron",
    "match llama-3.1-8b --trainer megatron --trainer-args TEXT",
    "verify llama-3.1-8b --from FILE",
)


@pytest.mark.parametrize("content", ["1", "true", "null", '"x"', "[1]", "{}"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_answer_any_json_with_a_sentence(tmp_path, capsys, command, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    words = {"FILE": str(path), "OUT": str(tmp_path / "a.svg"), "TEXT": content}
    try:
        code = main([words.get(word, word) for word in command.split()])
    except SystemExit as stop:  # argparse
        code = stop.code
    said = capsys.readouterr()
    assert code in (0, 1, 2, 3), said
    assert said.out or said.err
    assert "Traceback" not in said.err


def test_a_decoders_refusal_is_a_content_error():
    def decode(content):
        raise ValueError("it is too short")

    with pytest.raises(ContentError, match="it is too short"):
        decode_content(decode, b"")


# Files of the package itself, and the browser's or another process of ours.
OUR_OWN = {
    "models/architecture.py",
    "models/parameter_formulas.py",
    "models/catalog/__init__.py",
    "models/formats/json_source.py",
    "multi_axis/catalog/__init__.py",
    "tiny_lm/numpy_model.py",
    "tiny_lm/checkpoints.py",
    "storage/decode_json.py",
    "studies/real_model.py",
    "studies/tensors.py",
    "serving/static_middleware.py",
    "ui/configs.py",
    "ui/components/sent_values.py",  # small texts with few parts, with limits of its own
    "advice/plan/runtime_instructions.py",
    "kernels/card_files.py",
    "probe/transformers_worker.py",
    "probe/engines/run_llama_cpp.py",
    "probe/engines/run_mlx_lm.py",
    "probe/engines/run_transformers.py",
    "probe/engines/run_vllm.py",
    "advice/verify/check_rope.py",  # a file that works without this package
    "real_models/measure_model.py",  # a description that it wrote itself
    "advice/lint/contradictions.py",  # a number that the check found as text
}


def test_json_from_outside_passes_the_border():
    found = set()
    for path in (ROOT / "rope_viz").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load"):
                found.add(path.relative_to(ROOT / "rope_viz").as_posix())
    assert found == OUR_OWN


@pytest.mark.parametrize(
    "report",
    [make_report(), make_report(gpu=True), make_report(make_way("exact", 0.2, error=0.0))],
    ids=["cpu", "gpu", "exact"],
)
def test_a_saved_measurement_is_read_back(report):
    assert parse_report(pack_report(report), "") == report


def test_a_stopped_measurement_is_read_back():
    report = make_report()
    for way in report.ways.values():
        way.update(dict.fromkeys(("median_s", "best_s", "bytes_per_second", "fraction_of_copy", "error")))
    for stopped in (report, dataclasses.replace(report, ways={}), dataclasses.replace(report, ways={}, machine={})):
        assert parse_report(pack_report(stopped), "") == stopped


WRONG = (None, [], {}, "x", -1, 1e400, True, {"a": 1}, [[1]])


def damaged(report):
    """Every way to put one wrong value into a measurement, as (path, JSON text)."""

    def places(part, path=()):
        yield from ((*path, key) for key in part)
        for key, inner in part.items() if isinstance(part, dict) else ():
            if isinstance(inner, dict):
                yield from places(inner, (*path, key))

    whole = dataclasses.asdict(report)
    for path in places(whole):
        for value in WRONG:
            changed = copy.deepcopy(whole)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            yield path, json.dumps(changed).encode()


def test_a_damaged_measurement_draws_or_is_refused():
    from rope_viz.pages.kernels import figures as kernels
    from rope_viz.pages.kernels import words

    drawn = refused = 0
    for path, content in damaged(make_report()):
        try:
            report = parse_report(content, "no measurement")
        except ValueError:
            refused += 1
            continue
        try:
            kernels.speeds(report), kernels.ways_table(report), kernels.agreement_table(report)
            words.describe_speed(report), words.list_left_out(report)
        except Exception as error:
            pytest.fail(f"{path}: {error!r} from {content[:300]!r}")
        drawn += 1
    assert refused > 200
    assert drawn > 20


@pytest.mark.parametrize("content", ['{"workload":{},"ways":{"a":1}}', "[" * 300_000, "[]", "{}", '"x"'])
def test_figure_of_a_broken_measurement_is_a_sentence(tmp_path, capsys, content):
    path = tmp_path / "report.json"
    path.write_text(content)
    assert main(["figure", "kernels/speeds", "--report", str(path), "-o", str(tmp_path / "a.svg")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_deeply_nested_vectors_are_a_sentence(tmp_path, capsys):
    from rope_viz.pages import decay

    choice = next(each for each in decay.PAGE.choices if each.key == "decay.typed")
    with pytest.raises(ValueError, match="must hold texts of numbers by name"):
        choice.decode(b"[" * 300_000)
