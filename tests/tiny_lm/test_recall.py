"""Recall of the demo models: it depends on the embedding alone, and its numbers are correct shares."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.scaling import LongRope, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.rope_config import to_config
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model, tasks
from rope_viz.tiny_lm.recall import (
    LONGEST,
    UNSCALED_LENGTHS,
    PairChange,
    Recall,
    chain,
    chain_loss,
    find_right,
    find_unscaled,
    interval,
    needle_map,
    one_loss,
    recall,
    smoothed,
    switched,
    text,
)

pytestmark = pytest.mark.float32_products

READERS = [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]
TRAINED = READERS[0].spec


def share(method, length, **options):
    return recall(READERS, checkpoints.scaled(TRAINED, method, length), length, sequences=2, **options).share


def test_every_seed_recalls_within_its_trained_length():
    for length in (64, 128, 256):
        found = recall(READERS, TRAINED, length, sequences=8)
        assert found.by_tiny_lm.min() > 0.9


@pytest.mark.parametrize(("model", "length"), [(0, 3072), (1, 4096), (2, 6144), (0, LONGEST)])
def test_stored_results_are_the_computed_ones(model, length):
    turn = Turning.from_spec(TRAINED, length)
    found = find_unscaled(READERS[model], turn, length, 0)
    np.testing.assert_array_equal(found, find_right(READERS[model], turn, text(length, 0)))


def test_stored_results_answer_their_own_question_only():
    assert set(checkpoints.unscaled_recall()) == set(checkpoints.SEEDS)
    for found in checkpoints.unscaled_recall().values():
        assert list(map(int, found)) == list(UNSCALED_LENGTHS)
        assert {len(each) for each in found.values()} == {tasks.FACTS}
    turn = Turning.from_spec(TRAINED, 4096)
    assert find_unscaled(READERS[0], turn, 4096, 0) is not None
    others = [
        (checkpoints.load_tiny_lm("none-25"), turn, 4096, 0),
        (READERS[0], turn, 4096, 1),
        (READERS[0], turn, 2048, 0),
        (READERS[0], Turning(turn.inv_freq, 1.1), 4096, 0),
        (READERS[0], Turning.from_spec(checkpoints.scaled(TRAINED, "yarn", 4096), 4096), 4096, 0),
    ]
    assert [find_unscaled(*each) for each in others] == [None] * 5


def test_only_ramp_methods_recall_at_four_times_the_length():
    assert share("none", 1024) < 0.5
    assert share("linear", 1024) < 0.1
    assert min(share(method, 1024) for method in ("yarn", "llama3", "ntk-by-parts")) > 0.95
    assert share("none", 1024) < share("ntk", 1024) < 1.0


def test_attention_factor_decides_recall_at_sixteen_times():
    with_factor = share("yarn", 4096)
    spec = dataclasses.replace(TRAINED, scaling=Yarn(factor=16.0, attention=1.0), target=4096)
    without = recall(READERS, spec, 4096, sequences=2).share
    assert with_factor > 0.95
    assert without < with_factor


@pytest.mark.parametrize("method", ["none", "linear", "yarn", "llama3"])
def test_transformers_recalls_as_much_with_the_same_config(method):
    torch, transformers = (pytest.importorskip(name) for name in ("torch", "transformers"))
    folder, spec = checkpoints.FOLDER / READERS[0].name, checkpoints.scaled(TRAINED, method, 1024)
    config, said = transformers.AutoConfig.from_pretrained(folder), to_config(spec)
    config.max_position_embeddings, config.rope_parameters = said["max_position_embeddings"], said["rope_parameters"]
    llama = transformers.LlamaForCausalLM.from_pretrained(folder, config=config)
    right = []
    for seed in range(3):
        asked = text(1024, seed)
        with torch.inference_mode():
            found = llama(torch.from_numpy(asked.tokens)).logits[0, asked.rows].argmax(dim=1).numpy()
        right.append(found == asked.answers[0])
    low, high = interval(np.array([np.mean(right)]), 48)
    assert low - 1e-9 <= recall(READERS[:1], spec, 1024, sequences=3).share <= high + 1e-9


def test_answers_and_depths_match_the_questions():
    spec = checkpoints.scaled(TRAINED, "ntk", 512)
    found = recall(READERS[:1], spec, 512, sequences=3, seed=5)
    for one in range(3):
        asked = text(512, 5 + one)
        answers = numpy_model.logits(READERS[0], asked.tokens[0], Turning.from_spec(spec, 512), rows=asked.rows).argmax(
            axis=1
        )
        np.testing.assert_array_equal(found.right[0, one], answers == asked.answers[0])
        np.testing.assert_array_equal(found.depth[0, one], asked.depth[0])


def test_the_map_is_the_share_by_depth_and_length():
    right = np.array([[[True, False, True, True]]])
    found = [
        Recall(64, right, np.array([[[0.0, 0.1, 0.5, 1.0]]])),
        Recall(128, np.zeros((1, 1, 1), bool), np.zeros((1, 1, 1))),
    ]
    wanted = [[0.5, 0.0], [np.nan, np.nan], [1.0, np.nan], [1.0, np.nan]]
    np.testing.assert_array_equal(needle_map(found, rows=4), wanted)


def test_interval_is_the_wider_of_seeds_and_questions():
    # Student's: mean 0.5, standard error of (0.4, 0.5, 0.6) is 0.0577, times 4.303.
    low, high = interval(np.array([0.4, 0.5, 0.6]), 10_000)
    assert (low, high) == (pytest.approx(0.5 - 0.2484, abs=1e-3), pytest.approx(0.5 + 0.2484, abs=1e-3))
    # Wilson's for 20 of 20: 1 / (1 + 1.96² / 20).
    low, high = interval(np.array([1.0, 1.0, 1.0]), 20)
    assert (low, high) == (pytest.approx(0.8389, abs=1e-3), pytest.approx(1.0))
    assert interval(np.array([0.0]), 20)[0] == 0.0


def test_switching_pairs_changes_those_pairs_alone():
    spec = dataclasses.replace(TRAINED, scaling=Yarn(factor=4.0), target=1024)
    plain, factor = spec.plain_inv_freq, spec.attention_factor()
    for how, wanted in (("still", 0 * plain), ("plain", plain), ("divided", plain / 4)):
        turn = switched(spec, 1024, PairChange((0, 5, 15), how))
        np.testing.assert_array_equal(turn.inv_freq[[0, 5, 15]], wanted[[0, 5, 15]])
        rest = np.setdiff1d(np.arange(16), [0, 5, 15])
        np.testing.assert_array_equal(turn.inv_freq[rest], spec.inv_freq(1024)[rest])
        assert turn.attention_factor == factor
    np.testing.assert_array_equal(switched(spec, 1024, PairChange(())).inv_freq, spec.inv_freq(1024))
    with pytest.raises(ValueError, match="pairs must be from 0 to 15, got 0 to 16"):
        switched(spec, 64, PairChange((0, 16)))
    with pytest.raises(ValueError, match="how must be one of still, plain, divided"):
        switched(spec, 64, PairChange((0,), "backwards"))


def test_high_frequency_pairs_carry_recall():
    spec = TRAINED
    fast, slow = (recall(READERS, spec, 256, sequences=2, switch=PairChange(p)).share for p in ((0, 1, 2, 3), (14, 15)))
    assert fast < 0.2
    assert slow > 0.9


@pytest.mark.parametrize("length", [31, 16_385, 0])
def test_lengths_too_short_for_questions_are_refused(length):
    with pytest.raises(ValueError, match="length must be from 32 to 16,384"):
        recall(READERS, TRAINED, length)


def test_selected_model_supplies_its_method_and_factor():
    llama = model_specs("llama-3.1-8b")[""]
    lent = checkpoints.spec_for(llama, TRAINED)
    assert (lent.scaling, lent.context, lent.target, lent.base) == (llama.scaling, 256, 256 * 16, 10_000.0)
    own = dataclasses.replace(TRAINED, base=5000.0, target=512)
    assert checkpoints.spec_for(own, TRAINED) == own
    lists = dataclasses.replace(RopeSpec(), scaling=LongRope(long_factor=(2.0,) * 64))
    with pytest.raises(ValueError, match="one number per pair"):
        checkpoints.spec_for(lists, TRAINED)


def test_demo_model_is_in_the_catalog():
    entry = catalog()["rope-viz-reader"]
    specs = model_specs("rope-viz-reader")
    assert specs[main_layer(entry, specs)] == TRAINED
    assert entry.name == "RoPE Viz tiny_lm, trained to 256"
    assert f"{READERS[0].parameters:,} parameters" in entry.note


def test_chain_loss_is_close_to_the_best_and_never_below():
    found = chain_loss(READERS, TRAINED, 256, sequences=24)
    best = found.best[32:].mean()
    assert np.all(found.loss[:, 32:].mean(axis=1) > best)
    assert np.all(found.loss[:, 32:].mean(axis=1) < best + 0.05)
    tokens = chain(256, 3)
    logits = numpy_model.logits(READERS[1], tokens).astype(float)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    wanted = -logs[np.arange(255), tokens[1:]]
    np.testing.assert_allclose(one_loss(READERS[1], TRAINED, 256, 3), wanted, atol=1e-5)
    assert tokens.max() < tasks.VOCABULARY


def test_smoothing_preserves_the_mean_of_each_stretch():
    values = np.stack([np.arange(100.0), np.ones(100)])
    middle, mean = smoothed(values, columns=10)
    assert np.all(np.diff(middle) > 0)
    np.testing.assert_allclose(mean[1], 1.0)
    assert mean[0, 0] == pytest.approx(0.0)
    assert mean.shape == (2, len(middle))
