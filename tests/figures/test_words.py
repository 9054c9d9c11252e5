"""Every number in every sentence, over every model, every method and the edges, against float64 done here anew."""

import math
import re

import numpy as np
import pytest

from rope_viz.figures.words import rotation
from rope_viz.studies.conversion import conversion_mistakes
from rope_viz.texts.numbers import format_number, format_tokens
from tests.figures.wording import NUMBER, TAU, every, found, near, plain, scaled, turning_share, value


def test_a_sentence_is_read_as_it_is_written():
    for number in (6.28, 54_410, 131_072, 1 << 20, 45_120_000.0, 1e-9, 6.28e30, 0.5, 999_999):
        for text in (format_number(number), format_tokens(number)):
            assert value(re.fullmatch(NUMBER, text)[0]) == near(number)


def laps(spec, frequencies, verb):
    """A pattern for the first and the last pair, and the wavelengths that must stand there."""
    if not any(frequencies):
        return "no pair turns", []
    if spec.pairs == 1:
        return f"the only pair {verb} every # tokens", [TAU / frequencies[0]]
    first = f"the first pair {verb} every # tokens, the last "
    if not frequencies[-1]:
        return first + "stands still", [TAU / frequencies[0]]
    return first + "every #", [TAU / frequencies[0], TAU / frequencies[-1]]


def in_training(spec, never):
    """A pattern for what happened in training, and its numbers."""
    before = [0.0 if now == 0.0 else was for now, was in zip(scaled(spec), plain(spec), strict=True)]
    still = before.count(0.0)
    slow = sum(0.0 < spec.context * each < TAU for each in before)
    pairs = "pairs?"
    if not still:
        return rf"\*\*# of # {pairs}\*\* never {never}", [slow, spec.pairs]
    if still == spec.pairs:
        return rf"\*\*# of # {pairs}\*\* stands? still and never {never}", [still, spec.pairs]
    text = rf"\*\*# of # {pairs}\*\* stands? still, # of the other # never {never}"
    return text, [still, spec.pairs, slow, spec.pairs - still]


@every
def test_rotation(spec):
    first, expected = laps(spec, scaled(spec), "goes round")
    rest, numbers = in_training(spec, "went round")
    is_scaled = any(abs(share - 1.0) > 1e-9 and share for share in turning_share(spec))
    after, start = (" after scaling", "Before it, in") if is_scaled else ("", "In")
    length = f"the {spec.length_name} length of # tokens?"
    pattern = f"At position m, pair i is turned by mθᵢ: {first}{after}. {start} {length}, {rest}."
    expected = [*expected, spec.context, *numbers]
    assert found(pattern, rotation.rotation(spec)) == [near(each, 3) for each in expected]
    moves = np.count_nonzero(spec.inv_freq(spec.target))
    said = rotation.rotation(spec, "score")
    assert ("all do" in said) == (moves == spec.pairs)
    assert moves in (0, spec.pairs) or f"the {moves} that turn do" in said


@every
def test_matrix_and_forms(spec):
    size = spec.head_dim
    if size > 1024:
        assert "too large" in rotation.matrix(spec)
        return
    # At a position where no angle is a multiple of a quarter turn, what is not 0 there is what can differ from 0.
    numbers = found(r".*\*\*# of #\*\* entries can differ from 0\. .*", rotation.matrix(spec))
    turning = sum(each != 0.0 for each in scaled(spec))
    assert numbers == [4 * turning + (size - 2 * turning), size * size]
    assert found(r".*\*\*#\*\* multiplications.*\*\*#\*\*.", rotation.forms(spec)) == [size**2, 4 * spec.pairs]


@every
def test_what_a_wrong_conversion_costs(spec):
    distances = np.arange(64)
    text = rotation.mistakes(spec, conversion_mistakes(spec, distances, length=spec.target))
    assert ("nothing to convert" in text) == (spec.pairs == 1)
    assert ("all that rotates" in text) == (spec.pairs > 1 and spec.attention_factor(spec.target) == 0.0)
    if spec.pairs == 1 or "all that rotates" in text:
        return
    wrong = {each.name: each for each in conversion_mistakes(spec, distances, length=spec.target)}
    right = wrong["both"].scores
    size = math.sqrt(sum(each**2 for each in right)) or 1.0
    shares = {
        name: 100.0 * math.sqrt(sum((a - b) ** 2 for a, b in zip(each.scores, right, strict=True))) / size
        for name, each in wrong.items()
    }
    numbers = [value(each) for each in re.findall(rf"({NUMBER}) %", text)]
    names = ("none", "q", "k") if len(numbers) == 3 else ("q", "k")
    assert (shares["none"] == 0.0) == (len(numbers) == 2)
    for number, name in zip(numbers, names, strict=True):
        assert number == pytest.approx(shares[name], rel=0.051, abs=0.51 if shares[name] >= 1.0 else 0.0)
