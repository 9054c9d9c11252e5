"""Commands with texts that no terminal should obey: no traceback, and nothing hidden in what is printed."""

import json
import os
import random
import sys

import pytest

from rope_viz.cli.broken_pipe import show_line
from rope_viz.cli.main import main
from rope_viz.texts.outside_text import HIDDEN
from tests.configs import QWEN3_8B
from tests.hostile_text import LETTERS, NO_TEXT, make_config, soil, write_json

COMMANDS = (
    "check FILE",
    "check FILE --json",
    "check FILE --repair -o OUT",
    "table FILE",
    "table FILE --json",
    "runtimes FILE",
    "compare FILE",
    "compare FILE llama-3.1-8b",
    "export FILE --to vllm",
    "extend FILE --to 131072",
    "memory FILE",
    "badge FILE -o OUT.svg",
    "figure frequencies/wavelengths FILE -o OUT.svg",
    "figure frequencies/wavelengths FILE -o OUT.csv",
    "figure frequencies/wavelengths FILE -o OUT.json",
    "report FILE -o OUT.md",
)


def run(capfd, arguments):
    """Return the exit code of a command, and what it wrote."""
    try:
        code = main(arguments)
    except SystemExit as end:  # argparse
        code = end.code
    out, err = capfd.readouterr()
    return code, out + err


def check_command(capfd, tmp_path, command, config, name):
    """Run a command with a config in a file of this name, and check all that it writes."""
    folder = tmp_path / "made"
    folder.mkdir(exist_ok=True)
    path = tmp_path / name
    path.write_bytes(config)
    words = [word.replace("FILE", str(path)).replace("OUT", str(folder / "out")) for word in command.split()]
    code, written = run(capfd, words)
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in written
    assert HIDDEN.search(written) is None, written
    for made in folder.rglob("*"):
        if made.is_file():
            text = made.read_text(encoding="utf-8")
            assert HIDDEN.search(text) is None, made
            made.unlink()


@pytest.mark.parametrize("command", COMMANDS[:8])
def test_a_config_with_bad_letters_is_read_by_every_command(capfd, tmp_path, command):
    config = QWEN3_8B | {"model_type": "qwen3\ud800\x1b[31m", "\u202ekey\0": "\x7f", "rope_scalling": {"\x9b": 1}}
    check_command(capfd, tmp_path, command, json.dumps(config).encode(), "a\x1b[31m\u202e.json")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_configs_are_read_by_every_command(capfd, tmp_path, command):
    for number in range(12):
        chance = random.Random(f"{command} {number}")
        config = write_json(make_config(chance), chance)
        name = soil("config.json", chance).replace("/", "").replace("\0", "")
        name = name.encode("utf-8", "replace").decode()[:60] or "x"
        check_command(capfd, tmp_path, command, config, name)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no file names of arbitrary bytes")
def test_a_file_whose_name_is_no_text_is_opened(capfd, tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\x1b[31m.json"
    with open(name, "wb") as file:
        file.write(json.dumps(QWEN3_8B).encode())
    code, written = run(capfd, ["check", os.fsdecode(name)])
    assert code == 0
    assert "\ufffd\ufffd[31m.json" in written
    assert HIDDEN.search(written) is None


@pytest.mark.parametrize("letter", [letter for letter in (*NO_TEXT, *LETTERS) if letter not in ("\n", "\t", "θ", "😀")])
def test_hostile_arguments_are_refused_in_printable_words(capfd, letter):
    for words in (
        ["check", f"x{letter}"],
        [f"x{letter}"],
        ["figure", f"decay/{letter}"],
        ["figure", "rotation/frequency", f"--style.{letter}", "x", "-o", "-"],
        ["table", "llama-3.1-8b", f"--base={letter}"],
        ["models", f"--{letter}"],
        ["export", "llama-3.1-8b", "--to", letter],
        ["runtimes", "llama-3.1-8b", "--override", json.dumps({letter: letter})],
    ):
        code, written = run(capfd, words)
        assert code in (0, 1, 2, 3)
        assert HIDDEN.search(written) is None, (words, written)


def test_a_progress_bar_still_replaces_its_line():
    assert show_line("\r[##..] 2 of 4") == "\r[##..] 2 of 4"
    assert show_line("name\rrope-viz: no problems") == "name\ufffdrope-viz: no problems"
    assert show_line("a\r\nb\x1b[2J") == "a\nb\ufffd[2J"
