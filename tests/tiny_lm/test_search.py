"""A search for divisors: its curves, that it goes on after an interruption, and what it writes."""

import json
import math

import numpy as np
import pytest

from rope_viz import RopeSpec
from rope_viz.cli.main import main
from rope_viz.evaluation.score_divisors import DEPTH_STEP, Scores, TransformersScorer, rate_answers
from rope_viz.evaluation.search_divisors import (
    STARTS,
    DivisorCurve,
    SearchPlan,
    difference_interval,
    longrope_spec,
    search,
    start_divisors,
)
from rope_viz.models.model_config import ModelConfig
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model, passkey
from rope_viz.tiny_lm.passkey import WORDINGS

pytestmark = pytest.mark.float32_products

SPEC = RopeSpec(64, base=10_000.0, context=1024)
PLAN = SearchPlan("model", 8192, by="perplexity", starts=("none", "linear"), texts=2, held_out=4)


class ScoreByDistance:
    """A model whose loss is the distance of the log divisors from those of YaRN by 8."""

    spec = SPEC

    def __init__(self, stop_at=math.inf):
        self.seeds, self.stop_at = [], stop_at

    def score(self, turn, length, seeds):
        self.seeds.append(tuple(seeds))
        if len(self.seeds) > self.stop_at:
            raise KeyboardInterrupt
        off = float(np.abs(np.log(turn.inv_freq) - np.log(YARN)).mean())
        loss = np.full((1, len(seeds)), off)
        return Scores(np.exp(-loss), loss)


YARN = SPEC.plain_inv_freq / start_divisors(SPEC, "yarn", 8192)[0]


def storage(folder):
    return f"sqlite:///{folder}/search.db"


@pytest.mark.parametrize("shares", [np.zeros(6), np.ones(6), np.random.default_rng(1).uniform(size=6)])
def test_every_point_is_a_monotone_curve_within_its_limits(shares):
    divisors = DivisorCurve(32, 6, 16.0).divisors(shares)
    assert (np.diff(divisors) >= -1e-12).all()
    assert divisors[0] >= 1
    assert divisors[-1] <= 16.0 * (1 + 1e-12)


@pytest.mark.parametrize("method", STARTS)
def test_a_start_is_met_at_the_knots(method):
    curve = DivisorCurve(SPEC.pairs, SPEC.pairs, 16.0)
    divisors, _ = start_divisors(SPEC, method, 8192)
    assert curve.divisors(curve.shares(divisors)) == pytest.approx(divisors)


def test_answers_are_rated_as_log_softmax_does():
    logits = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    right, loss = rate_answers(logits, np.array([1, 2]))
    each = [-math.log(math.exp(2) / (1 + math.exp(2) + math.e)), -math.log(1 / (math.exp(3) + 2))]
    assert (right, loss) == (0.5, pytest.approx(np.mean(each)))


def test_the_interval_of_a_gain_is_students():
    """Of 1, 2, 3, 4: mean 2.5, deviation 1.29099, quantile 3.18245 of 3 degrees of freedom (table)."""
    low, high = difference_interval(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert (low, high) == (pytest.approx(2.5 - 2.0543, abs=1e-3), pytest.approx(2.5 + 2.0543, abs=1e-3))


def test_a_search_beats_its_starts_on_held_out_texts(tmp_path):
    scorer = ScoreByDistance()
    found = search(PLAN, scorer, storage(tmp_path), trials=40)
    assert found["trials"] == 40
    assert [each["start"] for each in found["starts"]] == ["none", "linear"]
    assert found["best"]["held_out"]["loss"] < 0.7 * min(each["held_out"]["loss"] for each in found["starts"])
    assert found["gain"]["low"] > 0
    searched, held_out = set(scorer.seeds[:40]), set(scorer.seeds[40:])
    assert searched == {(0, 1)}
    assert len(held_out) == 1
    assert not {*held_out.pop()} & {0, 1}


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(PLAN, ScoreByDistance(stop_at=10), storage(tmp_path), trials=20)
    lines = []
    found = search(PLAN, scorer := ScoreByDistance(), storage(tmp_path), trials=20, say=lines.append)
    assert lines[0] == "10 of 20 trials are done already"
    assert found["trials"] == 20
    assert len(scorer.seeds) == 10 + 3


def test_a_database_of_another_search_is_refused(tmp_path):
    search(PLAN, ScoreByDistance(), storage(tmp_path), trials=3)
    other = SearchPlan("model", 4096, by="perplexity", starts=("none", "linear"), texts=2, held_out=4)
    with pytest.raises(ValueError, match=r"holds another search \(length differs\)"):
        search(other, ScoreByDistance(), storage(tmp_path), trials=3)


def test_the_config_gives_the_divisors_that_were_found(tmp_path):
    found = search(PLAN, ScoreByDistance(), storage(tmp_path), trials=5)
    spec = longrope_spec(SPEC, np.array(found["best"]["divisors"]), 1.0, 8192)
    whole = {"model_type": "phi3", "hidden_size": 256, "num_attention_heads": 4, **found["config"]}
    read = ModelConfig.read(whole).specs[""]
    assert read.inv_freq(8192) == pytest.approx(spec.inv_freq(8192), rel=1e-6)
    assert read.attention_factor(8192) == pytest.approx(1.0)


def test_the_command_searches_with_the_demo_models(tmp_path, capsys):
    """Two trials only; the search of docs/scaling.md has sixty."""
    output = tmp_path / "search.json"
    words = ["search", "tiny", "--to", "512", "--trials", "2", "--starts", "none,yarn", "--texts", "1"]
    assert main([*words, "--held-out", "2", "-o", str(output), "--picture", str(tmp_path / "divisors.svg")]) == 0
    found = json.loads(output.read_text())
    assert found["config"]["rope_parameters"]["rope_type"] == "longrope"
    assert "<svg" in (tmp_path / "divisors.svg").read_text()
    assert "start yarn" in capsys.readouterr().out


def test_a_folder_is_scored_as_the_demo_model_in_it():
    """Transformers and our NumPy model answer the same questions with the same frequencies alike."""
    folder = checkpoints.FOLDER / "seed-0"
    model, wording = checkpoints.load_tiny_lm("seed-0"), WORDINGS["reader"]
    turn = Turning.from_spec(checkpoints.scaled(model.spec, "yarn", 512))
    scorer = TransformersScorer(folder, model.spec, words="reader")
    found = scorer.score(turn, 512, range(3))
    for seed in range(3):
        question = wording.make(scorer.pieces[512], seed * DEPTH_STEP % 1.0, seed)
        tokens = passkey.parse(question.text)
        ours = numpy_model.logits(model, tokens, turn, rows=[len(tokens) - 1]).astype(np.float64)
        right, loss = rate_answers(ours, np.array([passkey.WORDS.index(question.answer)]))
        assert (found.right[0, seed], found.loss[0, seed]) == (right, pytest.approx(loss, abs=1e-3))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("tiny --to 128", "the target must be longer than the trained 256 tokens, got 128"),
        (
            "tiny --to 4096 --starts wonder",
            "a start must be one of none, linear, ntk, ntk-by-parts, yarn, got 'wonder'",
        ),
        ("tiny --to 4096 --trials 2", "the trials must be from 5, one for each start, to 100,000"),
        ("tiny --to 4096 --knots 40", "the knots must be from 2 to the model's 16 pairs, got 40"),
        ("nowhere --to 4096", "nowhere is not a folder with a config.json"),
        ("tiny --to 4096 --storage wonder://x", "the database wonder://x cannot be used"),
        ("tiny --to 4096 --attention-factor 0", "an attention factor must be a number above 0, or search: '0'"),
    ],
)
def test_a_search_that_cannot_run_says_why(words, reason, tmp_path, capsys):
    try:
        code = main(["search", *words.split(), "-o", str(tmp_path / "s.json")])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "s.json").exists()
