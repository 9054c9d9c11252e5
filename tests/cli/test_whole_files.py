"""Commands write files whole or not at all, and `-o -` writes to standard output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.pages import registry

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OLD = b"old content"
COMMANDS = {
    "figure": ["figure", "frequencies/pairs", "-o", "out.svg"],
    "redrawn": ["figure", "saved.json", "-o", "out.svg"],
    "html report": ["report", "llama-2-7b", "-o", "out.html"],
    "markdown report": ["report", "llama-2-7b", "-o", "out.md"],
    "extend": ["extend", "llama-2-7b", "--to", "8k", "--runtime", "transformers", "-o", "out.json"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder, with one page in a report."""
    pictures = [picture for picture in registry.pictures() if picture.page == "frequencies"]
    monkeypatch.setattr(registry, "pictures", lambda: pictures)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_failed_write_leaves_the_old_file(folder, monkeypatch, capsys, command):
    if command == "redrawn":
        assert main(["figure", "frequencies/pairs", "-o", "saved.json"]) == 0
    path = folder / COMMANDS[command][-1]
    path.write_bytes(OLD)

    def full_disk(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    assert main(COMMANDS[command]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert path.read_bytes() == OLD
    assert [each.name for each in folder.rglob("*.tmp")] == []


# Runs a command that waits in its last write, for a kill; a report gets one page's pictures.
WAITING = """
import os, sys
from rope_viz.cli.main import main
from rope_viz.pages import registry
pictures = [each for each in registry.pictures() if each.page == "frequencies"]
registry.pictures = lambda: pictures
real, last = os.fsync, sys.argv.pop(1)
def fsync(number):
    real(number)
    if os.path.dirname(os.readlink(f"/proc/self/fd/{number}")) == last:
        print("written", flush=True)
        sys.stdin.read()
os.fsync = fsync
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("command", ["figure", "html report", "markdown report"])
def test_a_killed_command_leaves_the_old_file(tmp_path, command):
    path = tmp_path / COMMANDS[command][-1]
    path.write_bytes(OLD)
    line = [sys.executable, "-c", WAITING, str(tmp_path), *COMMANDS[command]]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(line, cwd=tmp_path, env=environment, **pipes) as process:
        assert process.stdout.readline() == b"written\n"
        process.kill()
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("name", ["figure", "extend", "html report"])
def test_minus_is_standard_output(folder, capfdbinary, name):
    command = COMMANDS[name]
    assert main(command) == 0
    capfdbinary.readouterr()
    ending = command[-1].partition(".")[2]
    formats = [] if name == "extend" else ["--format", ending]
    assert main([*command[:-1], "-", *formats]) == 0
    assert capfdbinary.readouterr().out == (folder / command[-1]).read_bytes()
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["figure", "frequencies/pairs", "-o", "-"], "needs a format: --format"),
        (["figure", "frequencies/pairs", "-o", "-", "--format", "exe"], "--format must be one of"),
        (["report", "llama-2-7b", "-o", "-"], "needs a format: --format html"),
        (["report", "llama-2-7b", "-o", "-", "--format", "md"], "folder of picture files"),
    ],
    ids=str,
)
def test_standard_output_needs_a_format(folder, capsys, command, problem):
    assert main(command) == 2
    assert problem in capsys.readouterr().err


def test_a_report_leaves_a_folder_of_others_alone(folder, capsys):
    theirs = folder / "out_files" / "frequencies-pairs.svg"
    theirs.parent.mkdir()
    assert main(COMMANDS["markdown report"]) == 0  # the folder is empty
    assert main(COMMANDS["markdown report"]) == 0  # the folder is from a report
    for each in theirs.parent.iterdir():
        each.unlink()
    theirs.write_bytes(OLD)
    (folder / "out.md").write_bytes(OLD)
    assert main(COMMANDS["markdown report"]) == 2
    assert "out_files has other files" in capsys.readouterr().err
    assert theirs.read_bytes() == (folder / "out.md").read_bytes() == OLD


def test_a_broken_pipe_after_minus_ends_quietly():
    script = "import sys, subprocess; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=-1); "
    script += "p.stdout.read(10); p.stdout.close(); print(p.wait(), p.stderr.read())"
    command = [sys.executable, "-m", "rope_viz", "figure", "frequencies/heatmap", "-o", "-", "--format", "json"]
    done = subprocess.run([sys.executable, "-c", script, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "b''"], done
