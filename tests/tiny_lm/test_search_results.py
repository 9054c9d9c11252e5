"""A search in a process of its own, its reports, and the file of a search: read back, or refused with a sentence."""

import copy
import json

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.score_divisors import GgufScorer, TinyScorer
from rope_viz.evaluation.search_divisors import start_divisors
from rope_viz.evaluation.search_process import STARTS, SearchRun, has_optuna
from rope_viz.evaluation.search_results import read_search
from rope_viz.kernels.measurement_process import BusyError
from rope_viz.models.identity.local_models import FOLDER_VARIABLE, MODELS
from rope_viz.real_models.gguf_model import load_gguf
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model
from rope_viz.tiny_lm.passkey import WORDINGS
from tests.tiny_lm.gguf_writer import write_small_model

pytestmark = pytest.mark.float32_products

EXAMPLE = json.loads((checkpoints.FOLDER / "searched.json").read_text(encoding="utf-8"))
needs_optuna = pytest.mark.skipif(not has_optuna(), reason="needs optuna")


def encode(found):
    return json.dumps(found).encode()


@pytest.fixture
def start():
    """start(…) -> SearchRun; ended with the test, whatever happens in it."""
    runs = []

    def begin(*arguments):
        runs.append(SearchRun(*arguments))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()
        assert run.wait(30)


@needs_optuna
def test_process_reports_each_trial_and_the_held_out_scores(start):
    run = start(512, 4, 2)
    with pytest.raises(BusyError):
        SearchRun()
    seen = []
    while not run.wait(0.02):
        if run.report.found:
            seen.append(read_search(run.report.pack()))
    assert (run.problem, run.fraction) == ("", 1.0)
    assert any(each.gain is None and each.trials < 4 for each in seen), "no report while the search ran"
    found = read_search(run.report.pack())
    assert (found.trials, found.length, found.trained) == (4, 512, 256)
    assert set(found.starts) == set(STARTS)
    # The start's score is that of the demo models under plain RoPE.
    models = [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]
    scores = TinyScorer(models).score(Turning(models[0].spec.plain_inv_freq), 512, range(1_000_000, 1_000_002))
    assert found.starts["none"].right == pytest.approx(scores.right.mean())
    assert found.starts["none"].loss == pytest.approx(scores.loss.mean(), rel=1e-4)


@needs_optuna
def test_stopped_search_ends_and_keeps_what_it_found(start):
    run = start(512, 1000, 2)
    while not run.report.found:
        assert not run.wait(0.05), run.problem
    run.stop()
    assert run.wait(30)
    assert run.problem == "The measurement was stopped."
    assert read_search(run.report.pack()).gain is None


@needs_optuna
def test_search_that_cannot_run_says_why(start):
    run = start(128, 4, 2)
    assert run.wait(60)
    assert run.problem == ("The search could not run: the target must be longer than the trained 256 tokens, got 128.")


def test_shipped_search_has_the_numbers_of_the_documents():
    found = read_search(encode(EXAMPLE))
    assert (found.length, found.trained, found.trials, set(found.starts)) == (4096, 256, 60, {"none", "linear", "ntk"})
    text = (checkpoints.FOLDER.parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    (low, high), (over, gain, *ends) = found.best.interval, found.gain
    row = f"| 0 | {found.best.right:.2f} ({low:.2f} to {high:.2f}) | {found.starts[over].right:.2f} | {gain:+.2f} "
    assert row + "({:+.2f} to {:+.2f}) |".format(*ends) in text


def test_embedding_of_a_file_has_the_divisors_found():
    spec = read_search(encode(EXAMPLE)).spec
    np.testing.assert_allclose(spec.plain_inv_freq / spec.inv_freq(4096), EXAMPLE["best"]["divisors"], rtol=1e-9)


WRONG = [
    ("version", 2), ("version", None), ("plan", None), ("plan.length", 128), ("plan.length", "4k"),
    ("plan.length", 8192), ("plan.model", 1), ("plan.held_out", 10**9), ("trials", 0), ("trained_length", 4096),
    ("best", []),
    ("best.divisors", [1.0] * 16), ("best.divisors", None), ("best.held_out", {}), ("best.held_out.right", 1.5),
    ("best.held_out.loss", "x"), ("best.held_out.loss", float("nan")), ("starts", [{}]), ("starts", None),
    ("gain", {"over": "wonder"}), ("gain.right", float("inf")), ("config", {}), ("config", None),
    ("config.rope_parameters.rope_type", "yarn"), ("config.rope_parameters.long_factor", [2.0] * 16),
    ("config.head_dim", 64), ("config.rope_parameters", 3),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_damaged_file_is_refused_with_a_sentence(path, value):
    damaged = copy.deepcopy(EXAMPLE)
    *outer, last = path.split(".")
    inner = damaged
    for key in outer:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(ValueError, match=r"\w") as error:
        read_search(encode(damaged))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"answers": []}', b"[" * 200_000])
def test_other_file_is_not_a_search(content):
    with pytest.raises(ValueError, match="not the result of a search"):
        read_search(content)


@pytest.fixture
def small_model(tmp_path, monkeypatch):
    """Write a random model where SmolLM2 would be."""
    pytest.importorskip("tokenizers")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    path = MODELS["smollm2"].weights
    path.parent.mkdir(parents=True)
    write_small_model(path)
    return path


def test_gguf_model_is_scored_by_pytorchs_cross_entropy(small_model):
    torch = pytest.importorskip("torch")

    scorer, model = GgufScorer(small_model), load_gguf(small_model)
    turn = Turning(model.spec.plain_inv_freq / start_divisors(model.spec, "yarn", 2048)[0])
    found = scorer.score(turn, 2048, range(3))
    for seed in range(3):
        # The most filler with which the question and the 12 tokens of an answer fit into 2,048.
        make = WORDINGS["english"].make
        pieces = next(count for count in range(1, 99) if len(scorer.encode(make(count + 1, 0.5, 0).text)) > 2036)
        question = make(pieces, seed * 0.618 % 1.0, seed)
        whole = scorer.encode(f"{question.text} {question.answer}")
        count = len(whole) - len(scorer.encode(question.text))
        logits = torch.from_numpy(numpy_model.logits(model, np.array(whole), turn)).double()[-count - 1 : -1]
        wanted = torch.tensor(whole[-count:])
        assert found.loss[0, seed] == pytest.approx(torch.nn.functional.cross_entropy(logits, wanted).item(), abs=1e-4)
        assert found.right[0, seed] == bool((logits.argmax(dim=1) == wanted).all())


@needs_optuna
def test_command_searches_with_the_installed_model(small_model, tmp_path, capsys):
    output = tmp_path / "search.json"
    words = ["search", "smollm2", "--to", "2k", "--trials", "2", "--starts", "none,yarn", "--knots", "3"]
    assert (
        main([*words, "--texts", "1", "--held-out", "2", "-o", str(output), "--picture", str(tmp_path / "found.svg")])
        == 0
    )
    found = read_search(output.read_bytes())
    assert (found.model, found.trained, found.length, found.trials) == ("smollm2", 64, 2048, 2)
    assert "Frequencies found for 2k tokens" in (tmp_path / "found.svg").read_text(encoding="utf-8")
    assert "start yarn" in capsys.readouterr().out


def test_command_names_the_way_to_the_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    assert main(["search", "smollm2", "--to", "12k", "-o", str(tmp_path / "search.json")]) == 2
    assert capsys.readouterr().err == "rope-viz: SmolLM2 135M (real) is not installed: rope-viz get-model smollm2\n"
