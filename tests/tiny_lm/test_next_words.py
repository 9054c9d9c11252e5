"""`benchmarks/real_model/next_words.py` writes the same words again, and goes on where it was interrupted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_lm.gguf_writer import write_small_model

pytestmark = [pytest.mark.slow, pytest.mark.float32_products]
pytest.importorskip("torch")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real_model" / "next_words.py"


def test_a_second_run_and_one_that_goes_on_write_the_same_words(tmp_path):
    write_small_model(tmp_path / "small.gguf")
    (tmp_path / "novel.txt").write_text("the thin 12 in the a " * 40)

    def run(name):
        flags = ["--texts", str(tmp_path), "--novel", "novel", "--positions", "20,50", "-o", str(tmp_path / name)]
        subprocess.run([sys.executable, str(SCRIPT), str(tmp_path / "small.gguf"), *flags], check=True)
        return (tmp_path / name).read_text()

    first = run("first.json")
    assert run("second.json") == first
    found = json.loads(first)
    assert len(found["rows"]) == 8
    for key in list(found["rows"])[3:]:
        del found["rows"][key]
    (tmp_path / "cut.json").write_text(json.dumps(found))
    assert json.loads(run("cut.json"))["rows"] == json.loads(first)["rows"]
