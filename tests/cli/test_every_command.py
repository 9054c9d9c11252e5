"""Every module can be imported, and every command runs once."""

import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.cli.main import COMMANDS, main
from rope_viz.models.identity.local_models import FOLDER_VARIABLE
from tests.tiny_lm.gguf_writer import write_small_model

ROOT = Path(__file__).parents[2]
TINY_LM = ROOT / "rope_viz" / "tiny_lm" / "checkpoints" / "seed-0"

# {command: (its arguments, the exit code, a part of what it prints or writes)}.
RUNS = {
    "table": ("llama-3.1-8b", 0, "wavelength"),
    "app": ("--health --port 9", 1, "does not answer"),
    "figure": ("scaling/comparison qwen3-8b -o out.csv", 0, "pair i"),
    "report": ("llama-2-7b -o out.md", 0, "Llama 2 7B"),
    "site": ("nowhere -o out", 2, "nowhere: no such file"),
    "learn": ("-o out.html", 0, "<html"),
    "widget": ("-o out.js", 0, "export default { render }"),
    "capture": ("small.gguf --text text.txt --tokens 9 -o capture", 0, "2 layers"),
    "measure": ("small.gguf --text text.txt --tokens 256 --sequences 1 -o out.json", 0, "pieces of"),
    "get-model": ("smollm2 --from nowhere", 2, "nowhere"),
    "evaluate": (f"{TINY_LM} --words reader --lengths 256 --depths 2 --repeats 1 -o out.json", 0, "256"),
    "search": ("tiny --to 512 --trials 1 --starts none --texts 1 --held-out 2 -o out.json", 0, "longrope"),
    "check": ("qwen3-8b", 0, "qwen3-8b"),
    "badge": ("qwen3-8b -o out.svg", 0, "5 runtimes executed, all agree; 1 by rule, agrees"),
    "compare": ("qwen3-8b llama-3-8b", 0, "base"),
    "runtimes": ("qwen3-8b-yarn", 0, "transformers"),
    "match": ("llama-2-7b --trainer torchtitan", 0, "torchtitan"),
    "positions": ("--lengths 512,300,4096 -o out.svg", 0, "half of the pairs within"),
    "conformance": ("-o kit", 0, "check_rope.py"),
    "export": ("qwen3-8b-yarn --to llama.cpp", 0, "--rope-scaling yarn"),
    "extend": ("qwen3-8b --to 128k --runtime vllm", 0, "yarn"),
    "memory": ("qwen3-8b --length 8k", 0, "KV cache"),
    "verify": (f"{TINY_LM} --from {TINY_LM}", 0, ""),
    "probe": ("make llama-3.1-8b -o probe", 0, "a probe of llama with 1 layer"),
    "models": ("", 0, "llama-3.1-8b"),
}


def test_every_module_can_be_imported():
    script = (
        "import importlib, pkgutil, rope_viz\n"
        "for module in pkgutil.walk_packages(rope_viz.__path__, 'rope_viz.'):\n"
        "    if module.name != 'rope_viz.__main__':\n"
        "        importlib.import_module(module.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_list_has_every_command():
    assert RUNS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("command", RUNS)
def test_command_runs(command, tmp_path, monkeypatch, capsys):
    arguments, code, expected = RUNS[command]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    if "small.gguf" in arguments:
        write_small_model(tmp_path / "small.gguf")
        (tmp_path / "text.txt").write_text("the thin 12 in the a " * 100)
    assert main([command, *arguments.split()]) == code
    written = [path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.glob("out.*")]
    assert expected in "".join([*capsys.readouterr(), *written])
