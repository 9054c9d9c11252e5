"""The scripts of benchmarks/real_model run on a small model, continue their files, and measure what they say."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from rope_viz.real_models.gguf_model import load_gguf  # noqa: E402
from rope_viz.real_models.head_jobs import right_tokens  # noqa: E402
from rope_viz.studies.real_model import JOBS, read_heads  # noqa: E402
from rope_viz.tiny_lm import numpy_model  # noqa: E402
from tests.tiny_lm.gguf_writer import write_small_model  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.float32_products]

FOLDER = Path(__file__).parents[2] / "benchmarks" / "real_model"
NOVELS = ("northangerabbey", "persuasion", "prideprejudice", "emma", "mansfieldpark", "sensesensibility")
LETTERS = np.array(list("abcdefgh the in"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a script on the small model and return its results."""
    monkeypatch.syspath_prepend(FOLDER)
    write_small_model(tmp_path / "small.gguf")
    rng = np.random.default_rng(0)
    for name in NOVELS:
        (tmp_path / f"{name}.txt").write_text("".join(rng.choice(LETTERS, 9000)))

    def start(script, *flags):
        output = tmp_path / f"{script}.json"
        words = [str(tmp_path / "small.gguf"), "--texts", str(tmp_path), "-o", str(output), *flags]
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *words])
        threads = torch.get_num_threads()
        try:
            importlib.import_module(script).main()
        finally:
            torch.set_num_threads(threads)
        return json.loads(output.read_text())

    return start


def test_loss_is_the_mean_of_each_block(run, tmp_path):
    found = run("loss_by_position", "--factor", "4", "--methods", "none,yarn")
    assert list(found["rows"]) == ["northangerabbey/256/none", "northangerabbey/256/yarn"]
    assert found["about"]["versions"]["torch"] == torch.__version__
    model = load_gguf(tmp_path / "small.gguf")
    from common import make_tokenizer, read_header

    text = (tmp_path / "northangerabbey.txt").read_text()
    ids = np.array(make_tokenizer(read_header(tmp_path / "small.gguf", long_arrays=True)).encode(text).ids[:256])
    logits = numpy_model.logits(model, ids)[:-1].astype(float)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(255), ids[1:]]
    wanted = [losses[:127].mean(), losses[127:].mean()]
    np.testing.assert_allclose(found["rows"]["northangerabbey/256/none"]["loss"], wanted, atol=1e-3)


def test_an_interrupted_script_continues_its_file(run, tmp_path):
    first = run("ablation", "--lengths", "64", "--pieces", "1")
    path = tmp_path / "ablation.json"
    kept = first | {"rows": {"64/none": {"novel": [9.0]}}}
    path.write_text(json.dumps(kept))
    again = run("ablation", "--lengths", "64", "--pieces", "1")
    assert again["rows"].pop("64/none") == {"novel": [9.0]}
    for name, row in again["rows"].items():
        assert row["novel"] == first["rows"][name]["novel"]
    # Pairs 4 to 7 do not exist here: that row is the model as it is.
    assert again["rows"]["64/4-7"]["copying"] == first["rows"]["64/none"]["copying"]
    assert again["rows"]["64/all"]["novel"] != first["rows"]["64/none"]["novel"]
    with pytest.raises(SystemExit, match="made with other settings"):
        run("ablation", "--lengths", "64", "--pieces", "2")


def test_passkey_asks_for_every_length_depth_and_method(run):
    rows = run("passkey", "--lengths", "256", "--methods", "none,linear")["rows"]
    assert len(rows) == 10
    assert all(len(row["key"]) == 5 and 0 <= row["digits"] <= 5 for row in rows.values())


def test_heads_have_scores_strengths_and_margins(run):
    found = read_heads(run("heads", "--tokens", "64", "--sequences", "2"))
    assert found.shape == (2, 4)
    for job in JOBS:
        assert (found.scores(job) >= 0).all()
        assert (found.scores(job) <= 1).all()
    head = found.heads[1, 2]
    assert head.strength.shape == head.margin.shape == (3,)
    assert (head.strength > 0).all()


def test_right_tokens_are_those_of_the_job():
    ids = torch.tensor([*range(20), *range(20)])
    for job, row, wanted in (
        ("previous token", 30, [29]),
        ("first token", 30, [0]),
        ("same token", 30, [10]),
        ("induction", 30, [11]),
        ("induction", 39, [20]),
    ):
        assert right_tokens(job, ids)[row].nonzero()[:, 0].tolist() == wanted
    assert not right_tokens("same token", ids)[:20].any()
