"""The comparison of two checkouts in one benchmark: their pages, their turns, and their ratios."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.checkouts import ROOT, Checkout, find_same_page, format_ratios, in_turns, match_pages, read_checkout
from benchmarks.host_time import compare_commits
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
