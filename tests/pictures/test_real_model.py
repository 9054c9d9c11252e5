"""The real model's measurements on Recall are those of the files, averaged and compared as said."""

import html
import json
import re

import numpy as np
import pytest

from rope_viz.pages import registry
from rope_viz.pages.learn.figures import write_words
from rope_viz.pages.recall import real_model
from rope_viz.picture import read_address
from rope_viz.studies.real_model import FOLDER, compare_losses, load_losses, load_next_words, load_pass_keys

pytestmark = pytest.mark.float32_products

NOVELS = ("northangerabbey", "persuasion")
NOW = read_address.read_request(registry.page("recall"), {"model": "llama-3.1-8b"})


def rows(name):
    return json.loads((FOLDER / f"smollm2_{name}.json").read_text(encoding="utf-8"))["rows"]


def test_lines_are_means_of_1024_tokens_over_all_texts():
    found, texts = rows("loss_by_position"), NOVELS
    drawn = {trace.name: trace.y for trace in real_model.real_loss(NOW).fig.data}
    blocks = np.mean([found[f"{text}/16384/yarn"]["loss"] for text in texts], axis=0)
    np.testing.assert_allclose(drawn["YaRN"], [blocks[first : first + 8].mean() for first in range(0, 128, 8)])
    assert len(drawn) == 6


def test_scaling_keeps_the_loss_that_is_lost_without_it():
    # The rows of a first, independent measurement: above 5.5 nats without scaling, below 3.5 with YaRN by 2.
    last = {name: values[:, -2:].mean() for name, values in load_losses().items()}
    assert last["none"] > 5.5
    assert last["yarn"] < 3.5


def test_differences_are_paired_with_two_standard_errors():
    rng = np.random.default_rng(0)
    plain = rng.normal(5.0, 1.0, (2, 8))
    found = compare_losses(plain + np.array([0.1, 0.3] * 4), plain)
    np.testing.assert_allclose(found, (0.2, 2 * np.sqrt(16 * 0.01 / 15 / 16)))
    columns = real_model.real_cost(NOW).columns
    yarn = columns["Method"].index("YaRN")
    assert re.fullmatch(r"−1\.\d\d ± 0\.\d\d", columns["8k–16k, difference"][yarn])


def test_pass_keys_are_counted_by_length_and_method():
    found = rows("passkey")
    right = sum(found[f"2048/{depth}/yarn"]["right"] for depth in (0.1, 0.3, 0.5, 0.7, 0.9))
    assert load_pass_keys()[2048]["yarn"] == (right, 5)
    columns = real_model.real_keys(NOW).columns
    assert columns["2k tokens"][columns["Method"].index("YaRN")] == f"{right} of 5"
    assert columns["12k tokens"][columns["Method"].index("plain")] == "0 of 5"


def test_next_words_follow_the_text_whose_loss_was_measured():
    found, losses = (
        json.loads((FOLDER / f"smollm2_{name}.json").read_text()) for name in ("next_words", "loss_by_position")
    )
    assert set(found["rows"]) == {
        f"northangerabbey/{position}/{method}"
        for position in (6000, 10000, 14000)
        for method in ("none", "linear", "ntk", "yarn")
    }
    novel = found["about"]["text_sha256"]["northangerabbey"]
    assert novel == losses["about"]["text_sha256"]["northangerabbey"]
    assert (found["about"]["seed"], found["about"]["choice"], found["about"]["tokens"]) == (0, "greedy", 28)


def test_scene_6_shows_words_and_loss_of_each_position():
    blocks = rows("loss_by_position")
    for position, words in load_next_words().items():
        shown = html.unescape(write_words(position))
        first = position // 1024 * 8
        for method, text in words.items():
            losses = [blocks[f"{novel}/16384/{method}"]["loss"][first : first + 8] for novel in NOVELS]
            assert f", loss {np.mean(losses):.2f}</dt><dd>{text} …</dd>" in shown
    # What the remarks say: only without scaling, and only beyond the trained length, does a word repeat at once.
    assert "the day, the day, the day" in load_next_words()[14000]["none"]
    assert not any("the day, the day" in text for text in load_next_words()[10000].values())


def test_every_file_names_its_model_versions_and_commit():
    for path in sorted(FOLDER.glob("*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))["about"]
        assert about["model"]["sha256"] == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        assert about["versions"]["numpy"]
        assert len(about["commit"]) == 40
        assert "texts" in about or path.stem.endswith("sentence")


def test_cost_of_short_texts_is_the_mean_paired_difference():
    found = rows("short_texts")
    novels = {name.split("/")[0] for name in found}
    assert len(novels) == 6
    drawn = {trace.name: trace for trace in real_model.short_cost(NOW).fig.data}
    for name, key in (("YaRN by 2", "16384/yarn"), ("YaRN by 4", "32768/yarn")):
        # 1,024 tokens are the first 8 blocks.
        added = [
            np.mean(found[f"{novel}/{key}"]["loss"][:8]) - np.mean(found[f"{novel}/8192/none"]["loss"][:8])
            for novel in sorted(novels)
        ]
        at = list(drawn[name].x).index(1024)
        error = 2 * np.std(added, ddof=1) / np.sqrt(6)
        np.testing.assert_allclose(drawn[name].y[at], np.mean(added))
        np.testing.assert_allclose(drawn[name].customdata[at], [np.mean(added) - error, np.mean(added) + error])


def test_short_texts_repeat_the_start_of_the_long_ones():
    # The same novels, read to 16,384 tokens in another run: a later token changes nothing of an earlier loss.
    short, long = rows("short_texts"), rows("loss_by_position")
    for name in ("northangerabbey", "persuasion"):
        for mine, theirs in (("8192/none", "16384/none"), ("16384/yarn", "16384/yarn")):
            first = np.mean(short[f"{name}/{mine}"]["loss"][:64])
            assert abs(first - np.mean(long[f"{name}/{theirs}"]["loss"][:64])) < 0.01
