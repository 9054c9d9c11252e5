"""A GGUF model reads a user's text in its own process: its losses, its pass keys, and every refusal."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from rope_viz.kernels.measurement_process import BusyError  # noqa: E402
from rope_viz.models.formats.gguf import read_header  # noqa: E402
from rope_viz.models.identity.local_models import MODELS  # noqa: E402
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer  # noqa: E402
from rope_viz.real_models.measure_text import TextRun, right_digits, text_losses  # noqa: E402
from rope_viz.real_models.text_results import DEPTHS, LEAST, read_found_keys, read_text_losses  # noqa: E402
from rope_viz.studies.heads import Turning  # noqa: E402
from rope_viz.tiny_lm import numpy_model  # noqa: E402
from rope_viz.tiny_lm.checkpoints import scaled  # noqa: E402
from tests.tiny_lm.gguf_writer import write_small_model  # noqa: E402

pytestmark = pytest.mark.float32_products

TEXT = "in the tin 12 " * 60


@pytest.fixture
def model(tmp_path):
    """Write a random model with a tokenizer."""
    write_small_model(tmp_path / "m.gguf")
    return tmp_path / "m.gguf"


@pytest.fixture
def start():
    """start(…) -> TextRun; ended with the test, whatever happens in it."""
    runs = []

    def begin(*arguments, **keys):
        runs.append(TextRun(*arguments, **keys))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()
        assert run.wait(30)


def read_ids(path, text=TEXT):
    header = read_header(path, long_arrays=True)
    return np.array(make_tokenizer(header).encode(text, add_special_tokens=False).ids)


def cross_entropy(model, ids, turn):
    logits = torch.from_numpy(numpy_model.logits(model, ids, turn)[:-1]).double()
    return torch.nn.functional.cross_entropy(logits, torch.from_numpy(ids[1:]), reduction="none").numpy()


def test_process_gives_the_cross_entropy_of_each_method(model, start):
    run = start(model, TEXT, ["none", "linear"])
    with pytest.raises(BusyError):
        TextRun(model, TEXT, ["none"])
    assert run.wait(60)
    assert (run.problem, run.fraction) == ("", 1.0)
    found, lm = read_text_losses(run.report.pack()), load_gguf(model)
    ids = read_ids(model)[: found.tokens]
    assert LEAST <= found.tokens <= len(ids)
    for method, factor in (("none", 1.0), ("linear", 2.0)):
        wanted = cross_entropy(lm, ids, Turning(lm.spec.inv_freq() / factor))
        np.testing.assert_allclose(found.losses[method], wanted, atol=2e-3)


def test_losses_do_not_depend_on_the_rows_at_once(model, monkeypatch):
    lm, ids = load_gguf(model), read_ids(model)[:50]
    turn = Turning.from_spec(scaled(lm.spec, "yarn", 2 * lm.spec.context), 50)
    monkeypatch.setattr("rope_viz.real_models.measure_text.ROWS", 7)
    np.testing.assert_allclose(text_losses(lm, ids, turn), cross_entropy(lm, ids, turn), atol=1e-4)


def test_right_digits_are_first_choices(model):
    lm, ids = load_gguf(model), read_ids(model)[:40]
    turn = Turning.from_spec(lm.spec)
    choice = numpy_model.logits(lm, ids, turn)[-2].argmax()
    assert right_digits(lm, np.append(ids[:-1], choice), 1, turn) == 1
    assert right_digits(lm, np.append(ids[:-1], (choice + 1) % len(lm.embedding)), 1, turn) == 0


def test_text_that_is_too_short_says_how_long_it_must_be(model, start):
    run = start(model, "in the", ["none"])
    assert run.wait(60)
    assert str(LEAST) in run.problem


def test_wrong_key_and_missing_file_are_sentences(model, start, tmp_path):
    run = start(model, TEXT, ["none"], "12a")
    assert run.wait(60)
    assert "one to 8 digits" in run.problem
    run = start(tmp_path / "none.gguf", TEXT, ["none"])
    assert run.wait(60)
    assert "could not be read" in run.problem


def test_stopped_reading_ends_its_process(model, start):
    run = start(model, TEXT, ["none"])
    run.stop()
    assert run.wait(30)
    assert run._process.running.poll() is not None
    assert run.problem == "The measurement was stopped."


GOOD = {"model": "m", "tokens": 256, "factor": 2.0, "losses": {"none": [1.0] * 255}}
KEYS = {"model": "m", "tokens": 256, "factor": 2.0, "key": "12", "right": {"none": [0, 1, 2]}}


@pytest.mark.parametrize(
    "changed",
    [
        {"losses": {}}, {"losses": {"none": [1.0]}}, {"losses": {"none": [1.0] * 254 + ["x"]}}, {"tokens": 10**9},
        {"losses": {"none": [1.0] * 255, "other": [1.0] * 255}}, {"model": 1}, {"factor": 0.5}, {"more": 1},
    ],
)  # fmt: skip
def test_another_result_is_refused(changed):
    assert read_text_losses(json.dumps(GOOD).encode()).tokens == 256
    with pytest.raises(ValueError, match=r"\w"):
        read_text_losses(json.dumps(GOOD | changed).encode())


@pytest.mark.parametrize(
    "changed", [{"key": "1x"}, {"key": ""}, {"right": {"none": [0, 1]}}, {"right": {"none": [3] * 3}}]
)
def test_other_pass_keys_are_refused(changed):
    assert len(read_found_keys(json.dumps(KEYS).encode()).right["none"]) == len(DEPTHS)
    with pytest.raises(ValueError, match=r"\w"):
        read_found_keys(json.dumps(KEYS | changed).encode())


@pytest.mark.real_model
def test_smollm2_finds_a_key_in_a_short_text(start):
    path = MODELS["smollm2"].weights
    run = start(path, "The weather was fine and they walked along the river. " * 40, ["none"], "48213")
    assert run.wait(120)
    assert run.problem == ""
    assert sum(count == 5 for count in read_found_keys(run.report.pack()).right["none"]) >= 2
