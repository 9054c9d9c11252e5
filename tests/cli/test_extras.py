"""A command that needs an extra names it in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

READER = Path(__file__).parents[2] / "rope_viz" / "tiny_lm" / "checkpoints" / "seed-0"


@pytest.mark.parametrize(
    ("words", "missing", "line"),
    [
        ("figure --list", "plotly", "figure needs plotly: pip install 'rope-viz[pictures]'"),
        ("figure scaling/comparison x -o a.svg", "plotly", "figure needs plotly: pip install 'rope-viz[pictures]'"),
        ("search tiny --to 512 -o s.json", "optuna", "search needs optuna: pip install 'rope-viz[search]'"),
        (f"evaluate {READER} --ray auto -o r.json", "ray", "evaluate needs ray: pip install 'rope-viz[ray]'"),
        ("report llama-3-8b -o r.html", "plotly", "report needs plotly: pip install 'rope-viz[pictures]'"),
    ],
)
def test_missing_extra_is_named_in_one_line(words, missing, line, tmp_path):
    done = without(missing, words, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rope-viz: {line}\n"
    assert not list(tmp_path.iterdir())


def test_missing_module_outside_the_extras_raises(tmp_path):
    assert "ModuleNotFoundError" in without("rope_viz.runtimes", "runtimes llama-3-8b", tmp_path).stderr


WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
from rope_viz.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def without(missing, words, folder):
    """A command in a process that does not find a module."""
    command = [sys.executable, "-c", WITHOUT, missing, *words.split()]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
