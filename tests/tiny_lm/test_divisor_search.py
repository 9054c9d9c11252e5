"""A search goes on after a kill, and agrees with PyTorch, transformers and the published formulas."""

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.cli.main import main
from rope_viz.embedding.scaling import NtkAware
from rope_viz.evaluation.score_divisors import Scores, TinyScorer, rate_answers
from rope_viz.evaluation.search_divisors import STARTS, DivisorCurve, SearchPlan, longrope_spec, search, start_divisors
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.recall import recall

pytestmark = [pytest.mark.slow, pytest.mark.float32_products]

pytest.importorskip("optuna")

ROOT = Path(__file__).parents[2]
FOLDER = checkpoints.FOLDER / "seed-0"
MODEL = checkpoints.load_tiny_lm("seed-0")
SPEC, LENGTH = MODEL.spec, 4096
HIDDEN = np.geomspace(1.0, 20.0, SPEC.pairs) ** 0.7


class Hidden:
    """A scorer whose loss is the distance of the log divisors from hidden ones. It counts how often it is called."""

    spec = SPEC

    def __init__(self):
        self.calls = 0

    def score(self, turn, length, seeds):
        self.calls += 1
        loss = float(np.abs(np.log(SPEC.plain_inv_freq / turn.inv_freq / HIDDEN)).mean())
        loss += abs(math.log(turn.attention_factor / 1.2))
        noise = np.array(seeds) % 3 * 0.001
        return Scores(np.full((1, len(seeds)), math.exp(-loss)) - noise, np.full((1, len(seeds)), loss) + noise)


def store(folder):
    """Return the address of a database in a folder."""
    return f"sqlite:///{folder}/search.db"


shares = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6)


@given(shares)
def test_curve_of_divisors_meets_them_again(point):
    curve = DivisorCurve(16, 6, 32.0)
    divisors = curve.divisors(point)
    np.testing.assert_allclose(curve.divisors(curve.shares(divisors)), divisors, rtol=1e-9)


@pytest.mark.parametrize("knots", [2, 5, 16])
def test_linear_and_ntk_starts_are_curves_themselves(knots):
    """Both are straight lines in the logarithm. NTK's are s^(2i/(d-2)) with d = 32, its author's formula."""
    curve = DivisorCurve(SPEC.pairs, knots, 32.0)
    expected = {
        "none": np.ones(16),
        "linear": np.full(16, 16.0),
        "ntk": 16.0 ** (2 * np.arange(16) / 30),
    }
    for method, divisors in expected.items():
        start, attention = start_divisors(SPEC, method, LENGTH)
        np.testing.assert_allclose(start, divisors, rtol=1e-9)
        np.testing.assert_allclose(curve.divisors(curve.shares(start)), divisors, rtol=1e-9)
        assert attention == 1.0


def test_search_finds_hidden_divisors_and_the_factor(tmp_path):
    plan = SearchPlan("m", LENGTH, knots=3, starts=("none", "ntk"), attention_factor=None)
    found = search(plan, Hidden(), store(tmp_path), trials=60)
    assert found["best"]["loss"] < 0.2 < min(start["loss"] for start in found["starts"])
    assert np.all(np.diff(found["best"]["divisors"]) >= 0)
    assert found["gain"]["over"] == "ntk"
    assert found["gain"]["low"] > 0
    assert len(found["history"]) == found["trials"] == 60


KILLED = """
import os, sys
from tests.tiny_lm.test_divisor_search import *
class Killed(Hidden):
    def score(self, turn, length, seeds):
        if self.calls == 5:
            os._exit(9)
        return super().score(turn, length, seeds)
search(SearchPlan("m", LENGTH), Killed(), sys.argv[1], trials=12)
"""


def test_killed_search_goes_on_with_its_trials(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, store(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    lines, scorer = [], Hidden()
    found = search(SearchPlan("m", LENGTH), scorer, store(tmp_path), trials=12, say=lines.append)
    assert lines[0] == "5 of 12 trials are done already"
    assert found["trials"] == 12
    assert scorer.calls == 7 + 1 + len(STARTS)  # the trials that were left; the best and the starts on held-out texts
    assert sorted(start["start"] for start in found["starts"]) == sorted(STARTS)
    again = search(SearchPlan("m", LENGTH), Hidden(), store(tmp_path), trials=12)
    assert again == found


def test_restarted_search_draws_new_samples(tmp_path):
    search(SearchPlan("m", LENGTH, starts=("none",)), Hidden(), store(tmp_path), trials=3)
    found = search(SearchPlan("m", LENGTH, starts=("none",)), Hidden(), store(tmp_path), trials=6)
    losses = [trial["loss"] for trial in found["history"]]
    assert len(set(losses)) == len(losses) == 6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": 1}, "seed differs"),
    ],
)
def test_search_that_cannot_be_is_refused(change, sentence, tmp_path):
    plan = SearchPlan("m", LENGTH)
    search(plan, Hidden(), store(tmp_path), trials=5)
    with pytest.raises(ValueError, match=sentence):
        search(dataclasses.replace(plan, **change), Hidden(), store(tmp_path), trials=5)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"starts": ("nkt",)}, "a start must be one of none, linear"),
        ({"by": "loss"}, "the goal"),
        ({"texts": 0}, "texts must"),
    ],
)
def test_impossible_plan_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        SearchPlan("m", LENGTH, **wrong)


def test_loss_is_the_cross_entropy_of_pytorch():
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(0).normal(size=(7, 11))
    answers = np.array([0, 1, 2, 3, 4, 5, logits[6].argmax()])
    right, loss = rate_answers(logits, answers)
    assert loss == pytest.approx(torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(answers)).item())
    assert right == np.mean(logits.argmax(axis=1) == answers)


def test_demo_model_scores_as_on_the_page_recall():
    spec = dataclasses.replace(SPEC, scaling=NtkAware(factor=4.0), target=1024)
    scores = TinyScorer([MODEL]).score(Turning.from_spec(spec, 1024), 1024, range(2))
    assert scores.right.mean() == recall([MODEL], spec, 1024, sequences=2).share
    assert 0.0 < scores.right.mean() < 1.0


def test_transformers_reads_the_config_as_found():
    """The parameters give the found divisors and factor in transformers' own initialisation of longrope."""
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    from rope_viz.models.rope_config import to_config

    written = to_config(longrope_spec(SPEC, HIDDEN, 1.0, LENGTH))
    config = LlamaConfig(hidden_size=64, num_attention_heads=2, **written)
    inv_freq, attention = ROPE_INIT_FUNCTIONS["longrope"](config, "cpu", seq_len=LENGTH)
    np.testing.assert_allclose(SPEC.plain_inv_freq / inv_freq.numpy(), HIDDEN, rtol=1e-5)
    assert attention == 1.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("tiny --to 512 -o no/such/file.json", "is not a folder"),
        ("tiny --to 512 -o f.json --picture f.bmp", "f.bmp: the file must end in .svg, .png"),
        ("tiny --to 64k -o f.json --trials 5", "at most, got 65,536"),
    ],
)
def test_wrong_words_get_a_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["search", *words.split()]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1
