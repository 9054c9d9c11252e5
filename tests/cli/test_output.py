"""Output is readable in any terminal, and the exit code is right even after a broken pipe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from tests.configs import FAULTY_QWEN3, yarn

ROOT = Path(__file__).parents[2]
COMMANDS = {"check": "check {}", "table": "table {}", "runtimes": "runtimes {}", "export": "export {} --to vllm"}


def run(capsys, *arguments):
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", ["{", '{"head_dim": 64}', '{"hidden_size": 64, "rope_theta": 0}', ""], ids=repr)
def test_an_error_names_the_file_once(capsys, tmp_path, command, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, out, err = run(capsys, *COMMANDS[command].format(path).split())
    said = [line for line in (out + err).splitlines() if "bad.json" in line]
    assert code == (3 if command == "check" and len(text) < 2 else 2)
    assert said
    assert all(line.count("bad.json") == 1 for line in said)


def test_unreadable_path_error_has_no_errno(capsys, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in (tmp_path / "loop" / "x", tmp_path / ("x" * 300), "/dev/zero", "no\0name"):
        code, out, _ = run(capsys, "check", str(name))
        assert code == 3
        assert "Errno" not in out
        assert len(out.splitlines()) == 1
        code, _, err = run(capsys, "table", str(name))
        assert code == 2
        assert "Errno" not in err
        assert len(err.splitlines()) == 1


CLOSING = "import sys, subprocess; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE); p.stdout.{}; "
CLOSING += "p.stdout.close(); print(p.wait())"


@pytest.mark.parametrize(
    ("reader", "name", "expected"), [("readline()", "bad.json", "2"), ("read(0)", "warned.json", "1")]
)
def test_exit_code_is_right_after_a_broken_pipe(tmp_path, reader, name, expected):
    (tmp_path / "bad.json").write_text(json.dumps(FAULTY_QWEN3))
    rope = yarn(10240, 8.0)
    (tmp_path / "warned.json").write_text(json.dumps({**FAULTY_QWEN3, "rope_scaling": rope}))
    # The same file often enough that the pipe is full before the last of it is written.
    command = [sys.executable, "-m", "rope_viz", "check", "--json", *[str(tmp_path / name)] * 60]
    done = subprocess.run(
        [sys.executable, "-c", CLOSING.format(reader), *command], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def test_ascii_terminal_gets_printable_output():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "rope_viz", "check", "nowhere/θ.json"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 3
    assert b"\\u03b8.json: error: no such file" in done.stdout
