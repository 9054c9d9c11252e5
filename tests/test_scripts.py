"""Every script that README or NOTES names runs as it is written there, with its smallest workload."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import find_browser

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", ROOT / "benchmarks" / "NOTES.md"]
SCRIPTS = [*sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "assets").glob("*.py"))]

# The least that each can be asked for, after what is written; scripts that are not here take --smallest.
SMALLEST = {
    "rotate.py": "--tokens 16 --heads 2 --rounds 1",
    "rotate_parallel.py": "--tokens 8 --heads 2 --rounds 1",
    "score_curve.py": "--longest 4096 --repeats 1",
    "heads.py": "--tokens 512 --repeats 1",
    "recall.py": "--lengths 64 --sequences 1",
    "load.py": "--readers 1 --seconds 2 --pages scaling",
}
NO_GPU = "--device cuda needs a GPU, and torch finds none here"


def commands() -> list[str]:
    """Every command that a text writes, and every script that a text only names or whose own first lines say how."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
    named = {path.name for path in SCRIPTS if re.search(rf"\b{re.escape(path.name)}\b", text)}
    written = re.findall(r"`((?:python|torchrun) [^`]*?\b(?:benchmarks|assets)/\w+\.py[^`]*)`", text)
    written = [" ".join(command.split()) for command in written]
    known = {re.search(r"(\w+\.py)", command)[1] for command in written}
    found = written + [f"python {path.relative_to(ROOT)}" for path in SCRIPTS if path.name in named - known]
    return list(dict.fromkeys(found))


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = command.split()
    name = next(Path(word).name for word in words if word.endswith(".py"))
    program = {"python": [sys.executable], "torchrun": [sys.executable, "-m", "torch.distributed.run"]}[words[0]]
    # As after the installation that CONTRIBUTING.md tells: nothing points to the project but the folder one stands in.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"TMPDIR": str(folder)}
    return subprocess.run(
        [*program, *words[1:], *SMALLEST.get(name, "--smallest").split()],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def needs_browser(command: str) -> bool:
    path = next(ROOT / word for word in command.split() if word.endswith(".py"))
    return re.search("playwright|find_browser", path.read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("command", [command for command in commands() if not needs_browser(command)])
def test_a_script_runs_as_it_is_written(command, tmp_path):
    done = run(command, tmp_path)
    if "--device cuda" in command and NO_GPU in done.stderr:
        assert done.returncode == 2
        return
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


@pytest.mark.browser
@pytest.mark.flaky(reruns=1)
@pytest.mark.parametrize("command", [command for command in commands() if needs_browser(command)])
def test_a_script_with_a_browser_runs_as_it_is_written(command, tmp_path):
    if find_browser() is None:
        reason = "no Chrome or Chromium found"
        pytest.fail(reason) if os.environ.get("ROPE_VIZ_NO_SKIP") else pytest.skip(reason)
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


def test_what_is_named_is_there():
    """A name in the texts that is no file would be run by nobody."""
    for path in TEXTS:
        for name in re.findall(r"\b(?:benchmarks|assets|tests)/[\w/]+\.py\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{path.name} names {name}"
    assert len(commands()) >= 6
