"""Every script that a document names runs as it is written there, with its smallest workload."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.processes import find_browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["README.md", "benchmarks/NOTES.md", "docs/pages.md", "docs/recall.md", "docs/speed.md"]
TEXTS = [ROOT / name for name in DOCUMENTS]
SCRIPTS = [*sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "assets").glob("*.py"))]

# The least that each can be asked for, after what is written; scripts that are not here take --smallest.
SMALLEST = {
    "rotate.py": "--tokens 16 --heads 2 --rounds 1",
    "score_curve.py": "--longest 4096 --repeats 1",
    "heads.py": "--tokens 512 --repeats 1",
    "recall.py": "--lengths 64 --sequences 1",
    "gpu_check.py": "",
    "memory_peers.py": "parameters defaults llama",
    "load.py": "--users 1 --seconds 2 --pages scaling",
}
# A variable that all descendants of a script inherit, by which they are found.
MARK = "ROPE_VIZ_TEST_MARK"
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in Linux's /proc")
NO_GPU = re.compile("needs? a GPU, and torch finds none here")
ON_GPU = ("--device cuda", "--cases", "gpu_check.py")


def commands() -> list[str]:
    """Every command that a text writes, and every script that a text only names or whose own first lines say how."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
    named = {path.name for path in SCRIPTS if re.search(rf"\b{re.escape(path.name)}\b", text)}
    written = re.findall(r"`(python [^`]*?\b(?:benchmarks|assets)/\w+\.py[^`]*)`", text)
    written = [" ".join(command.split()) for command in written]
    known = {re.search(r"(\w+\.py)", command)[1] for command in written}
    found = written + [f"python {path.relative_to(ROOT)}" for path in SCRIPTS if path.name in named - known]
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def starting(command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command with its smallest workload; its own temporary folder goes when the block ends."""
    words = command.split()
    name = next(Path(word).name for word in words if word.endswith(".py"))
    # Chromium's socket in the temporary folder may have a path of at most 107 bytes: pytest's own folder is too long.
    with tempfile.TemporaryDirectory(prefix="rv-", ignore_cleanup_errors=True) as folder:
        # As after the installation that CONTRIBUTING.md describes: only the current folder leads to the project.
        given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with subprocess.Popen(
            [sys.executable, *words[1:], *SMALLEST.get(name, "--smallest").split()],
            cwd=ROOT,
            env=given | {"TMPDIR": folder} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def run(command: str) -> tuple[int, str, str]:
    """Run a command with its smallest workload; return its exit code, output and error output."""
    with starting(command) as process:
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


def needs_browser(command: str) -> bool:
    path = next(ROOT / word for word in command.split() if word.endswith(".py"))
    return re.search(r"playwright|\b(running|require)_browser\b", path.read_text(encoding="utf-8")) is not None


WITH_BROWSER = [command for command in commands() if needs_browser(command)]


@pytest.mark.parametrize("command", [command for command in commands() if command not in WITH_BROWSER])
def test_script_runs_as_documented(command):
    code, out, err = run(command)
    if any(word in command for word in ON_GPU) and NO_GPU.search(err):
        assert code == 2
        return
    assert code == 0, err[-2000:]
    assert out.strip()


@pytest.mark.browser
@pytest.mark.flaky(reruns=1)
@pytest.mark.parametrize("command", WITH_BROWSER)
def test_browser_script_runs_as_documented(command):
    if find_browser() is None:
        pytest.skip("no Chrome or Chromium found")
    code, out, err = run(command)
    assert code == 0, err[-2000:]
    assert out.strip()


@pytest.fixture
def fake_browser(tmp_path):
    """fake_browser("exit 1") gives the environment in which a shell script is the browser that scripts find."""

    def install(text):
        path = tmp_path / "chromium"
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", MARK: str(tmp_path)}

    return install


def wait_until(holds: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until a condition holds. Raises `AssertionError` after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not after {seconds:.0f} s"
        time.sleep(0.05)


def list_processes(mark: str, word: str = "") -> list[str]:
    """Return the command lines that contain a word, of running processes whose environment has this mark (Linux)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [line for line in found if word in line]


@needs_proc
@pytest.mark.parametrize("command", WITH_BROWSER)
def test_failed_browser_start_leaves_no_process(command, fake_browser, tmp_path):
    started = tmp_path / "started"
    with starting(command, **fake_browser(f"touch '{started}'; exit 1")) as process:
        _, err = process.communicate(timeout=300)
    assert process.returncode == 1, err[-2000:]
    assert started.exists(), err[-2000:]
    wait_until(lambda: not list_processes(str(tmp_path)))


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_signalled_script_leaves_no_server(number, fake_browser, tmp_path):
    started = tmp_path / "started"
    with starting("python assets/make_screenshots.py", **fake_browser(f"touch '{started}'; exec sleep 4")) as process:
        wait_until(started.exists)
        assert list_processes(str(tmp_path), "streamlit")
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(timeout=60) != 0
        wait_until(lambda: not list_processes(str(tmp_path), "streamlit"))


def test_scripts_named_in_documents_exist():
    """A name in the texts that is no file would be run by nobody."""
    for path in TEXTS:
        for name in re.findall(r"\b(?:benchmarks|assets|tests)/[\w/]+\.py\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{path.name} names {name}"
    assert len(commands()) >= 6
