"""What benchmarks compare: two checkouts by their pages, turns and ratios, and hostile kinds with their limits."""

import dataclasses
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.abuse_kinds import Outcome, list_errors
from benchmarks.checkouts import ROOT, Checkout, find_same_page, format_ratios, in_turns, match_pages, read_checkout
from benchmarks.host_time import compare_commits
from benchmarks.hostile_texts import DOORS, change, list_places
from benchmarks.visitor import Visitor
from rope_viz.pages import registry
from rope_viz.pages.registry import titles

pytestmark = pytest.mark.slow

OURS = Checkout(ROOT, {"home": ["turning"], "scaling": ["comparison", "methods"], "extend": ["ways"], "lab": ["index"]})
# Extend and Runtimes became one page, Scaling was renamed, and the gallery is new.
OTHER = Checkout(
    Path("other"),
    {
        "start": ["turning"],
        "methods": ["comparison", "methods", "table"],
        "my-model": ["ways", "matrix"],
        "gallery": ["all"],
    },
)


def test_a_checkout_lists_its_own_pages():
    found = read_checkout(ROOT)
    assert list(found.pages) == list(titles())
    assert {name: set(pictures) for name, pictures in found.pages.items()} == {
        name: set(registry.page(name).pictures) if name in registry.PAGES else set() for name in titles()
    }
    assert (found.path("home"), found.path("scaling")) == ("/", "/scaling")


def test_a_folder_without_the_app_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"it has no app\.py"):
        read_checkout(tmp_path)
    (tmp_path / "app.py").write_text("")
    with pytest.raises(ValueError, match="does not list its pages"):
        read_checkout(tmp_path)


def test_a_renamed_page_is_found_by_its_pictures(capsys):
    assert find_same_page("scaling", OURS, OTHER) == "methods"
    assert find_same_page("lab", OURS, OTHER) is None
    assert match_pages(["home", "scaling", "extend", "lab"], OURS, OTHER) == {
        "home": "start",
        "scaling": "methods",
        "extend": "my-model",
    }
    assert capsys.readouterr().out.splitlines() == [
        "lab: a page of this checkout only",
        "gallery: a page of other only",
    ]
    # A page of the same name is the same page, whatever it shows.
    assert find_same_page("scaling", OURS, Checkout(Path("other"), {"scaling": [], "x": ["comparison"]})) == "scaling"


def test_checkouts_take_turns_and_ratios_are_by_round():
    assert [in_turns(["a", "b"], turn) for turn in range(3)] == [["a", "b"], ["b", "a"], ["a", "b"]]
    assert format_ratios([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == "2.00 (2.00 1.50 4.00)"


def test_load_compares_two_checkouts_in_one_run():
    smallest = ["--users", "1", "--seconds", "2", "--rounds", "1", "--pages", "scaling"]
    command = [sys.executable, "benchmarks/load.py", "--beside", ".", *smallest]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert {"this checkout:", ".:"} <= set(lines)
    assert any(line.startswith("first runs") and "÷ .: median (by round)" in line for line in lines)


@pytest.mark.parametrize("script", ["first_picture.py", "load.py", "page_latency.py"])
def test_each_benchmark_names_what_is_no_checkout(script, tmp_path):
    command = [sys.executable, f"benchmarks/{script}", "--beside", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert f"there is no checkout at {tmp_path}" in done.stderr


def test_host_times_come_from_both_checkouts():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    found = compare_commits("", ROOT, rounds=1)
    assert len(found) == 5
    assert all(min(times) > 0 for times in found.values())


def make_outcome(**changes):
    """Return what was measured of a kind during which nothing went wrong, with changes."""
    visitor = Visitor(server=None, source="127.0.0.2")
    visitor.times = {"health": [0.1], "picture": [0.2], "own config": [0.3], "page": [9.0]}
    log = "WebSocketDisconnected: a client has left"
    outcome = Outcome(visitor, Counter({"200": 5}), start=130.0, peak=400.0, after=300.0, log=log)
    return dataclasses.replace(outcome, **changes)


def test_a_hostile_kind_passes_only_if_every_bound_holds():
    assert make_outcome().list_problems() == []
    assert make_outcome(peak=501.0).list_problems() == ["peak 501 MB"]
    assert make_outcome(after=331.0).list_problems() == ["201 MB more than at the start"]
    assert make_outcome(answers=Counter({"500": 2})).list_problems() == ["2 x 500"]
    for kind, seconds in (("health", 1.0), ("picture", 2.0), ("own config", 4.0)):
        outcome = make_outcome()
        outcome.visitor.times[kind].append(seconds)
        assert outcome.list_problems() == [f"{kind} {seconds:.1f} s"]


def test_a_visitor_whose_page_does_not_open_is_a_problem():
    outcome = make_outcome()
    outcome.visitor.problems["page: status 503"] += 1
    assert outcome.list_problems() == ["1 x page: status 503"]
    outcome.visitor.times["page"].clear()
    assert "page inf s" in outcome.list_problems()


def test_tracebacks_count_but_those_of_clients_that_leave():
    lines = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\n'
    assert list_errors(f"{lines}ValueError: no\n{lines}starlette.websockets.WebSocketDisconnected: gone\n") == {
        "ValueError: no": 1
    }
    assert list_errors("a warning\n") == {}


def test_hostile_texts_reach_every_field_of_a_config():
    config = {"a": "x", "b": [1, {"c": 2}]}
    paths = list(list_places(config))
    assert paths == [("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "c")]
    assert change(config, ("b", 1, "c"), "\ud800", is_key=False) == {"a": "x", "b": [1, {"c": "\ud800"}]}
    assert change(config, ("b", 1, "c"), "\0", is_key=True) == {"a": "x", "b": [1, {"\0": 2}]}
    assert config == {"a": "x", "b": [1, {"c": 2}]}


def test_every_door_makes_requests_with_hostile_texts():
    chance = random.Random(0)
    for door in DOORS:
        for _ in range(50):
            method, path, body = door(chance)
            assert path.isascii()
            assert path.startswith("/")
            assert (method == "POST") == bool(body)
