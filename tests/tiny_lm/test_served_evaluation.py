"""A real server, `transformers serve` with the demo model, answers `rope-viz evaluate` as we compute."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.models.rope_config import to_config
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model, passkey
from tests.browser.processes import find_free_port, running_process, wait_for_answer

pytestmark = pytest.mark.slow

LENGTH = 512
READER = checkpoints.load_tiny_lm("seed-0")


@pytest.fixture
def served(tmp_path):
    """The address of a server that runs the reader with YaRN in its config, and the folder's name."""
    folder = tmp_path / "reader-yarn"
    shutil.copytree(checkpoints.FOLDER / "seed-0", folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    scaled = to_config(checkpoints.scaled(READER.spec, "yarn", LENGTH))
    (folder / "config.json").write_text(json.dumps(config | scaled), encoding="utf-8")
    port = find_free_port()
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(folder), "--device", "cpu"]
    url = f"http://127.0.0.1:{port}"
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    with running_process([*command, "--host", "127.0.0.1", "--port", str(port)], env=environment) as process:
        wait_for_answer(process, f"{url}/health", seconds=120)
        yield f"{url}/v1", str(folder)


def test_real_server_answers_match_our_computation(served, tmp_path, capsys):
    url, name = served
    out = tmp_path / "out.json"
    words = ["evaluate", "--server", f"yarn={url}", "--served-model", name, "--words", "reader", "--depths", "4"]
    assert main([*words, "--lengths", f"256,{LENGTH}", "-o", str(out)]) == 0
    rows = read_evaluation(out).rows
    assert len(rows) == 8
    assert sum(row.right for row in rows) >= 6
    wording = passkey.WORDINGS["reader"]
    turn = Turning.from_spec(checkpoints.scaled(READER.spec, "yarn", LENGTH))
    for row in rows:
        pieces = passkey.pieces_for(wording, row.length, lambda text: len(text.split()))
        tokens = passkey.parse(wording.make(pieces, row.depth, row.repeat).text)
        ours = numpy_model.logits(READER, tokens, turn, rows=[len(tokens) - 1])[0].argmax()
        assert row.answer == passkey.WORDS[ours], (row.length, row.depth)
    assert "8 of 8 asked" in capsys.readouterr().err
    # It is not asked again for what it has answered: so it may be gone.
    assert main([*words, "--lengths", f"256,{LENGTH}", "-o", str(out), "--retries", "0"]) == 0
