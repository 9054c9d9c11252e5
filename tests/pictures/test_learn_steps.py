"""Each step of the tour begins where its task is not done, and the number it claims is right."""

import math
import re

import numpy as np
import pytest

from rope_viz.pictures import learn, registry, rotation
from rope_viz.pictures.learn_steps import STEPS, beyond, unfinished

INDEX = {step.title: step for step in STEPS}
LLAMA = 10_000.0 ** -(np.arange(64) / 64)


def test_the_choice_of_a_step_counts_the_steps():
    assert learn.STEP.knob.high == len(STEPS)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_a_step_begins_undone_with_a_picture_and_a_sentence(step):
    start = step.start
    assert not step.done(start, start)
    assert step.picture(start).title
    assert 40 < len(step.says(start)) < 420
    assert step.says(start).count("**") % 2 == 0
    assert step.praise(start)
    assert registry.page(step.page).pictures[step.picture.name] is step.picture


def said(title, **changes):
    step = INDEX[title]
    now = registry.read_request(registry.page(step.page), {**step.query, **changes})
    return step.says(now), step.done(step.start, now)


def test_one_pair_turns_by_three_radians():
    sentence, done = said("One pair, turned", **{"learn.m": "3"})
    assert done
    assert f"({math.cos(3):.2f}, {math.sin(3):.2f})" in sentence


def test_frequencies_of_the_small_head_are_exact():
    sentence, _ = said("Every pair at its own frequency")
    numbers = [float(text) for text in re.findall(r"\d*\.?\d+", sentence.split("θᵢ: ")[1].split(" radians")[0])]
    np.testing.assert_allclose(numbers, 100.0 ** -(np.arange(4) / 4), rtol=5e-4)


def test_moving_both_together_completes_the_step():
    m, n = rotation.AT.default(INDEX["Only the distance stays"].start)
    assert said("Only the distance stays", **{"rotation.at": f"{m + 500},{n + 500}"})[1]
    assert not said("Only the distance stays", **{"rotation.at": f"{m + 500},{n}"})[1]


def test_moving_the_sentence_names_both_changes():
    sentence, done = said("Move the whole sentence", **{"attention.offset": "4096"})
    assert done
    rope, sinusoidal = re.findall(r"by \*\*([^*]+)\*\*", sentence)
    assert "10⁻¹" in rope or "e-1" in rope
    assert 0.1 < float(sinusoidal) < 100


def test_hands_of_llama_2_are_exact():
    sentence, _ = said("A real head")
    assert f"{2 * math.pi / LLAMA[-1]:,.0f}" in sentence
    assert "**64 hands**" in sentence


def test_eighteen_pairs_of_llama_2_never_finish_a_turn():
    never = int(np.sum(2 * math.pi > 4096 * LLAMA))
    assert never == 18
    assert unfinished(INDEX["Some pairs never complete a turn"].start.spec) == never
    assert f"**{never} of 64 pairs**" in said("Some pairs never complete a turn")[0]
    assert f"**{never} of 64 pairs**" in said("Beyond the trained length")[0]
    assert beyond(INDEX["Beyond the trained length"].start.spec, 4096) == 0
    assert said("Beyond the trained length", **{"rotation.at": "4000,0"})[1]


def test_steps_give_the_first_and_last_pair_of_each_method():
    assert "**0.25**" in said("Divide every frequency: linear")[0]
    assert "divided by **4**" in said("Change the base: NTK")[0]
    low = math.floor(128 * math.log(4096 / (32 * 2 * math.pi)) / (2 * math.log(10_000)))
    high = math.ceil(128 * math.log(4096 / (1 * 2 * math.pi)) / (2 * math.log(10_000)))
    sentence, _ = said("YaRN: keep the high frequencies, divide the low")
    kept, blended, divided = (int(text) for text in re.findall(r"\*\*(\d+)\*\*", sentence)[:3])
    assert (kept, divided) == (low + 1, 64 - high)
    assert kept + blended + divided == 64
    assert f"**{(0.1 * math.log(4) + 1) ** 2:.4g}**" in sentence
