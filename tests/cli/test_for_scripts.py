"""What scripts and agents are told works: each command of SKILL.md and llms.txt, and the steps of action.yml."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rope_viz.cli.main import main
from tests.gguf_files import write_gguf

ROOT = Path(__file__).parents[2]
QWEN3 = {"model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
QWEN3 |= {"num_hidden_layers": 36, "head_dim": 128, "vocab_size": 151936, "intermediate_size": 12288}
QWEN3 |= {"max_position_embeddings": 40960, "rope_theta": 1_000_000, "tie_word_embeddings": False}
GGUF = {"block_count": 36, "context_length": 40960, "embedding_length": 4096, "attention.head_count": 32}
GGUF |= {"attention.head_count_kv": 8, "attention.key_length": 128, "rope.freq_base": 1_000_000.0}


def read_commands():
    """Return {command: its documented exit codes}; a command of llms.txt has those of the same one in SKILL.md."""
    rows = re.findall(r"^   `(rope-viz [^`]+ --json)`\n   (.*)$", (ROOT / "SKILL.md").read_text(), re.MULTILINE)
    found = {command: [int(each) for each in re.findall(r"\b\d\b", codes)] for command, codes in rows}
    listed = re.findall(r"`(rope-viz [^`]+ --json)`", (ROOT / "docs" / "llms.txt").read_text())
    return found | {command: found.get(command, [0]) for command in listed}


COMMANDS = read_commands()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(json.dumps(QWEN3))
    write_gguf(tmp_path / "model.gguf", "qwen3", GGUF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command, capsys):
    """Run a command in this process and return its exit code and output."""
    code = main(command.split()[1:])
    return code, capsys.readouterr()


def test_ten_questions_have_a_command():
    text = (ROOT / "SKILL.md").read_text()
    assert len(re.findall(r"^\d+\. .*\?$", text, re.MULTILINE)) == 10
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_json_and_a_documented_code(folder, capsys, command):
    code, output = run(command, capsys)
    assert code in COMMANDS[command]
    assert code < 2, output.err
    assert json.loads(output.out)


@pytest.mark.parametrize("command", [each for each in COMMANDS if "config.json" in each])
def test_an_unreadable_config_has_a_documented_code(folder, capsys, command):
    (folder / "config.json").write_text('{"model_type": ')
    code, output = run(command, capsys)
    assert code == COMMANDS[command][-1]
    assert "Traceback" not in output.err


ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WRONG = QWEN3 | {"rope_scaling": {"rope_type": "yarn", "factor": -4}}


@pytest.mark.parametrize(
    ("config", "inputs", "code"),
    [
        (QWEN3, {}, 0),
        (WRONG, {}, 2),
        (QWEN3, {"fail-on": "note"}, 1),
        (QWEN3, {"fail-on": "note", "ignore": "base-too-small scaled-window"}, 0),
    ],
)
def test_the_steps_of_the_action_check_and_report(tmp_path, config, inputs, code):
    """The steps with a script, each in a shell; the installed command is this one."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    given = {name: each["default"] for name, each in ACTION["inputs"].items()} | inputs
    values = {f"inputs.{name}": text for name, text in given.items()}
    output, command = tmp_path / "output", tmp_path / "bin" / "rope-viz"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rope_viz "$@"\n')
    command.chmod(0o755)
    env = os.environ | {"GITHUB_OUTPUT": str(output), "PYTHONPATH": str(ROOT)}
    env["PATH"] = f"{command.parent}:{env['PATH']}"
    codes = {}
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install":
            continue
        own = {
            key: re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], each) for key, each in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=env | own, capture_output=True, text=True
        )
        codes[step["name"]] = done.returncode
        if step["name"] == "Check":
            name, found = output.read_text().strip().split("=")
            values[f"steps.check.outputs.{name}"] = found
    assert codes == {"Check": 0, "Result": code}
    sarif = json.loads((tmp_path / "rope-viz.sarif").read_text())
    assert sarif["version"] == "2.1.0"
    levels = [each["level"] for each in sarif["runs"][0]["results"]]
    assert ("error" in levels) == (code == 2)
    assert bool(levels) != ("ignore" in inputs)


def test_no_input_is_part_of_a_script():
    assert not [step for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]
