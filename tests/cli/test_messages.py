"""Messages: long names are cut, a full disk is named by its folder, and Matplotlib adds no lines of its own."""

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.cli.broken_pipe import LONGEST_NAME, shorten_name, shorten_words
from rope_viz.cli.main import main

LONG = 5000 * "a"
ROOT = Path(__file__).parents[2]


def test_a_name_is_cut_in_the_middle():
    assert shorten_name("short/name") == "short/name"
    name = "".join(chr(97 + number % 26) for number in range(5000))
    cut = shorten_name(name)
    assert len(cut) <= LONGEST_NAME
    begin, end = cut.split("…")
    assert name.startswith(begin)
    assert name.endswith(end)
    assert shorten_words(f"no such file: {name} or {name}\n") == f"no such file: {cut} or {cut}\n"


COMMANDS = (
    ("check",),
    ("table",),
    ("memory", "--length", "8k"),
    ("runtimes",),
    ("extend", "--to", "1m"),
    ("badge", "-o", "x.svg"),
    ("report", "-o", "x.html"),
    ("compare", "llama-3.1-8b"),
    ("verify", "llama-3.1-8b", "--from"),
    ("verify", "llama-3.1-8b", "--from", f"gguf:{LONG}"),
    ("figure", "--suite"),
    ("figure", "decay/curves", "--report"),
    ("figure", "-o", "x.svg"),
    ("positions",),
    ("evaluate", "--show"),
    ("evaluate", "--timeout"),
    ("probe", "ask", "http://127.0.0.1:1", "--config"),
    ("probe", "make", "-o", "x"),
    ("match", "llama-3.1-8b", "--trainer"),
    ("learn", "--language"),
    ("site", "-o"),
    (),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_message_does_not_repeat_a_long_name(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # argparse ends the process, our own refusals return.
    with contextlib.suppress(SystemExit):
        main([*words, LONG])
    out, err = capsys.readouterr()
    assert "aaa" in out + err
    assert LONG[: LONGEST_NAME + 1] not in out + err


def test_a_full_disk_is_named_by_the_file_that_was_written(capsys, tmp_path, monkeypatch):
    def refuse(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("rope_viz.probe.make_probe.write_file", refuse)
    assert main(["probe", "make", "llama-2-7b", "-o", str(tmp_path / "probe")]) == 2
    assert capsys.readouterr().err == f"rope-viz: {tmp_path / 'probe' / 'config.json'}: No space left on device\n"


@pytest.mark.slow
def test_a_home_folder_that_cannot_be_written_adds_no_lines(tmp_path):
    # A file in the place of the folder cannot be written to by any user.
    (tmp_path / "home").touch()
    own = {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    environment = {key: value for key, value in os.environ.items() if key != "MPLCONFIGDIR"} | own
    command = [sys.executable, "-m", "rope_viz", "figure", "decay/curves", "-o", str(tmp_path / "o.svg")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
