"""Every number in every sentence, over every model, every method and the edges, against float64 done here anew."""

import re

import pytest

from rope_viz.embedding.scaling import (
    DynamicNtk,
    LongRope,
    Proportional,
    Yarn,
)
from rope_viz.figures.words import common
from rope_viz.texts.numbers import format_number, format_tokens
from tests.figures.wording import NUMBER, TAU, every, found, kinds, near, plain, scaled, turning_share, value


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


def changed(spec):
    """Patterns for what becomes of the pairs, and their numbers."""
    kept, slowed, sped, still = kinds(spec)
    ramped = not isinstance(spec.scaling, LongRope)
    whole = common.spectrum.whole_factor(spec, length=spec.target)
    divided = [each for each in slowed if not ramped or each <= (1.0 + 1e-9) / max(whole, 1.0)]
    out = [("# keeps? (?:its|their) speed", [kept]) if kept else ("no pair keeps its speed", [])]
    if len(slowed) > len(divided):
        out.append(("# (?:is|are) blended", [len(slowed) - len(divided)]))
    for shares, what in (([1.0 / each for each in divided], "slowed"), (sped, "sped up")):
        if shares:
            ends = sorted({format_number(min(shares)), format_number(max(shares))})
            pattern = "# (?:is|are) " + what + (" by #" if len(ends) == 1 else " by # to #")
            out.append((pattern, [len(shares), min(shares), max(shares)][: 1 + len(ends)]))
    return [*out, ("# stands? still", [still])] if still else out


def joined(parts, last=" and "):
    patterns = [pattern for pattern, _ in parts]
    text = ", ".join(patterns[:-1]) + last + patterns[-1] if len(patterns) > 1 else patterns[0]
    return text, [number for _, numbers in parts for number in numbers]


@every
def test_frequencies(spec):
    before = [0.0 if now == 0.0 else was for now, was in zip(scaled(spec), plain(spec), strict=True)]
    first, expected = laps(spec, before, "turns")
    rest, numbers = in_training(spec, "completed a turn")
    pattern = f"{first}: {rest} in the {spec.length_name} length of # tokens?."
    expected = [*expected, *numbers, spec.context]
    if all(abs(share - 1.0) <= 1e-9 or share == 0.0 for share in turning_share(spec)):
        pattern = pattern[0].upper() + pattern[1:]
    else:
        after, more = laps(spec, scaled(spec), "turns")
        parts, last = joined(changed(spec))
        pattern = f"Before scaling {pattern} Scaled, {after}: {parts}."
        expected += more + last
    assert found(pattern, common.frequencies(spec)) == [near(each, 3) for each in expected]


@every
def test_scaling(spec):
    text = common.scaling(spec)
    if spec.scaling.name == "none":
        wanted = spec.target / spec.context
        assert "**not scaled**" in text
        assert found(".*s = #. Choose.*", text) == [near(wanted if wanted > 1.0 else 4.0)]
        return
    (kept, numbers), *others = changed(spec)
    first = kept.replace("# ", "# of # pairs? ", 1)
    numbers = [*numbers, spec.pairs] if numbers else []
    parts, expected = joined([(rf"\*\*{first}\*\*", numbers), *others], ", ")
    head, factors = r"LongRoPE with a divisor for each pair", []
    if not isinstance(spec.scaling, LongRope):
        factors = [spec.scaling.factor_for(spec)]
        head = r"[\w &-]+ with s = #"
        if isinstance(spec.scaling, Proportional):
            head, factors = r"Proportional with p = #, s = #", [spec.scaling.share, *factors]
        if isinstance(spec.scaling, DynamicNtk) and (real := growth(spec)) != near(spec.scaling.factor):
            head, factors = f"{head}, which is # at # tokens", [*factors, real, spec.target]
    logits = spec.attention_factor(spec.target) ** 2
    tail = "logits × #" if abs(logits - 1.0) > 1e-9 else "logits are left as they are"
    expected = [*factors, *expected, *([logits] if "#" in tail else [])]
    assert found(f"{head}: {parts}; {tail}.", text) == [near(each) for each in expected]


def growth(spec):
    """The g of dynamic NTK's base·g^(d/(d−2)), from the frequency of pair 1."""
    return (plain(spec)[1] / scaled(spec)[1]) ** ((spec.rotary_dim - 2) / 2)


@every
def test_attention(spec):
    factor = spec.attention_factor(spec.target)
    numbers = found(r".*here \(?#\)?² = \*\*#\*\*.", common.attention(spec))
    assert numbers == [near(factor), near(factor**2)]
    assert "·10²" not in common.attention(spec).split("=")[0]
    assert not re.search("[⁻⁰¹³⁴⁵⁶⁷⁸⁹]²", common.attention(spec))


@every
def test_ranges(spec):
    text = common.ranges(spec)
    numbers = found(r"Critical dimension \*\*#\*\* of #: .*", text)
    completed = sum(spec.context * each >= TAU for each in plain(spec))
    assert numbers == [min(2 * completed, spec.rotary_dim), spec.rotary_dim]
    assert ("every pair completed" in text) == (completed == spec.pairs)
    assert ("from there on no pair completed" in text) == (completed < spec.pairs)
    still = scaled(spec).index(0.0) if 0.0 in scaled(spec) else None
    assert ("stand still" in text) == (still is not None)
    if still is not None:
        assert found(r".*Pairs from \*\*#\*\* on stand still.", text) == [still]
    if isinstance(spec.scaling, Yarn):
        ramp(spec, common.ramp(spec))


def ramp(spec, text):
    """Before the first number one value, after the last another; between, neither."""
    share = [(each - 1.0 / spec.scaling.factor) / (1.0 - 1.0 / spec.scaling.factor) for each in turning_share(spec)]
    numbers = [value(each) for each in re.findall(rf"\*\*({NUMBER})\*\*", text)]
    if "alike" in text:
        assert max(share) - min(share) < 1e-6
        assert ("keeps" in text) == (share[0] > 0.5)
        return
    start, end = (numbers[0], numbers[0]) if "drops right after" in text else numbers
    before, after = (0.0, 1.0) if "rises" in text else (1.0, 0.0)
    slack = 2e-3 * (1.0 + abs(end))
    for pair, each in enumerate(share):
        if pair <= start - slack:
            assert each == pytest.approx(before, abs=1e-6)
        elif pair >= end + 1e-2 + slack:
            assert each == pytest.approx(after, abs=1e-6)
        elif start + slack < pair < end - slack:
            assert 0.0 < each < 1.0
    assert ("past the last pair" in text) == (end > spec.pairs - 1)
