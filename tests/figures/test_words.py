"""Every number in every sentence, over every model, every method and the edges, against float64 done here anew."""

import cmath
import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

from rope_viz.configs.catalog import catalog, model_specs
from rope_viz.embedding.scaling import (
    METHODS,
    DynamicNtk,
    Linear,
    Llama3,
    LongRope,
    NtkAware,
    NtkByParts,
    PaperYarn,
    Proportional,
    Yarn,
)
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.scaling import alternative
from rope_viz.figures.words import common, decay, rotation
from rope_viz.studies import scores
from rope_viz.studies.conversion import conversion_mistakes
from rope_viz.studies.vectors import random_vectors

TAU = 2.0 * math.pi
BASE = RopeSpec(context=4096, target=32_768)
ONE_PAIR = RopeSpec(head_dim=16, rotary_dim=2, context=4096, target=32_768)


def with_scaling(spec, scaling):
    return dataclasses.replace(spec, scaling=scaling)


def every_spec():
    for model in catalog():
        for layer, spec in model_specs(model).items():
            yield f"{model} {layer}".strip(), spec
    for name in METHODS:
        yield name, alternative(BASE, name)
        one = alternative(ONE_PAIR, name)
        if one is not None:
            yield f"{name}, one pair", one
        yield f"{name}, target below trained", dataclasses.replace(alternative(BASE, name), target=1024)
        yield f"{name}, partly rotated", alternative(RopeSpec(96, 24, context=2048, target=16_384), name)
        odd = alternative(RopeSpec(96, 25, context=2048, target=16_384), name)
        if odd is not None:
            yield f"{name}, an odd part rotated", odd
    for kind in (Linear, NtkAware, DynamicNtk, NtkByParts, PaperYarn, Yarn, Llama3, Proportional):
        for factor in (0.5, 1e-9, 1e9):
            yield f"{kind.__name__} by {factor:g}", with_scaling(BASE, kind(factor=factor))
    for share in (0.0, 0.02, 0.25, 1.0):
        yield f"p = {share}", with_scaling(BASE, Proportional(share))
        yield f"p = {share} by 4", with_scaling(BASE, Proportional(share, 4.0))
    lists = (tuple(np.linspace(1.0, 2.0, 64).tolist()), tuple(np.geomspace(0.5, 64.8, 64).tolist()))
    yield "LongRoPE's long list", with_scaling(BASE, LongRope(*lists))
    yield "LongRoPE's short list", with_scaling(RopeSpec(), LongRope(*lists, factor=32.0))
    for low, high in ((32.0, 1.0), (1e-9, 1e9), (1e9, 1e-9), (4.0, 4.0), (1.0, 1.2), (0.1, 0.1)):
        for truncate in (True, False):
            yield f"β {high:g} {low:g} {truncate}", with_scaling(BASE, Yarn(4.0, high, low, truncate))
        yield f"α {high:g} {low:g}", with_scaling(BASE, PaperYarn(4.0, high, low))
        yield f"Llama {high:g} {low:g}", with_scaling(BASE, Llama3(4.0, high, low))
    for value in (0.0, -1e9, 1.0000001, 0.7, 1e9):
        yield f"attention {value:g}", with_scaling(BASE, Yarn(4.0, attention=value))
    yield "the largest base", RopeSpec(4096, base=1e30)
    yield "the smallest base", RopeSpec(64, base=1.0000001)
    yield "one token", RopeSpec(context=1, target=1, scaling=Yarn(4.0))
    yield "the longest", RopeSpec(context=1 << 31, scaling=Llama3(8.0))


SPECS = dict(every_spec())
every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"−?-?\d[\d,]*(?:\.\d+)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?:[kM](?!\w)| million)?"


def value(text):
    """A number as the sentences write it: 54,410, 128k, 45.12 million, 1.2·10⁻⁷."""
    text = text.replace(",", "").replace("−", "-")
    for unit, size in (("k", 1024.0), ("M", 1048576.0), (" million", 1e6)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    mantissa, _, exponent = text.partition("·10")
    return float(mantissa) * 10.0 ** int(exponent.translate(SUPERSCRIPT) or 0)


def found(pattern, text):
    """The numbers at each # of a pattern, which must fit all of the text."""
    match = re.fullmatch(pattern.replace("#", f"({NUMBER})"), text)
    assert match, f"{pattern!r} does not fit {text!r}"
    return [None if group is None else value(group) for group in match.groups()]


def near(expected, digits=4):
    return pytest.approx(expected, rel=0.51 * 10.0 ** (1 - digits), abs=1e-300)


def plain(spec):
    return [spec.base ** (-2.0 * i / spec.rotary_dim) for i in range(spec.pairs)]


def scaled(spec):
    return [float(each) for each in spec.inv_freq(spec.target)]


def turning_share(spec):
    return [now / before for now, before in zip(scaled(spec), plain(spec), strict=True)]


def kinds(spec):
    """How many keep their speed, are slowed, are sped up, stand still, and the shares of those that change."""
    share = turning_share(spec)
    kept = [each for each in share if abs(each - 1.0) <= 1e-9]
    slowed = [each for each in share if 0.0 < each < 1.0 - 1e-9]
    sped = [each for each in share if each > 1.0 + 1e-9]
    return len(kept), slowed, sped, share.count(0.0)


def test_a_sentence_is_read_as_it_is_written():
    for number in (6.28, 54_410, 131_072, 1 << 20, 45_120_000.0, 1e-9, 6.28e30, 0.5, 999_999):
        for text in (theme.digits(number), theme.tokens(number)):
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
            ends = sorted({theme.digits(min(shares)), theme.digits(max(shares))})
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
    pattern, expected = f"{first}: {rest} in # tokens? of training.", [*expected, *numbers, spec.context]
    if all(abs(share - 1.0) <= 1e-9 or share == 0.0 for share in turning_share(spec)):
        pattern = pattern[0].upper() + pattern[1:]
    else:
        after, more = laps(spec, scaled(spec), "turns")
        parts, last = joined(changed(spec))
        pattern = f"Before scaling {pattern} Scaled, {after}: {parts}."
        expected += more + last
    assert found(pattern, common.frequencies(spec)) == [near(each, 3) for each in expected]


@every
def test_rotation(spec):
    first, expected = laps(spec, scaled(spec), "goes round")
    rest, numbers = in_training(spec, "went round")
    is_scaled = any(abs(share - 1.0) > 1e-9 and share for share in turning_share(spec))
    after, start = (" after scaling", "Before it, in") if is_scaled else ("", "In")
    pattern = f"At position m, pair i is turned by mθᵢ: {first}{after}. {start} # tokens? of training, {rest}."
    expected = [*expected, spec.context, *numbers]
    assert found(pattern, rotation.rotation(spec)) == [near(each, 3) for each in expected]
    moves = np.count_nonzero(spec.inv_freq(spec.target))
    said = rotation.rotation(spec, "score")
    assert ("all do" in said) == (moves == spec.pairs)
    assert moves in (0, spec.pairs) or f"the {moves} that turn do" in said


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


# Enough of them for the sentences that take longer: those that differ in what the sentence speaks of.
SOME = {
    name: SPECS[name]
    for name in (
        *("llama-3.1-8b", "qwen3-8b-yarn", "glm-4-9b-0414", "phi-4-mini", "gemma-4-full full_attention", "gpt-j-6b"),
        *("gemma-3-12b-global full_attention", "none, one pair", "dynamic", "p = 0.0", "p = 0.25", "Linear by 0.5"),
        *("yarn, partly rotated", "Linear by 1e+09", "attention 0.7", "attention 0", "attention -1e+09", "one token"),
    )
}
some = pytest.mark.parametrize("spec", SOME.values(), ids=SOME)


def mean_cosine(spec, frequencies, apart):
    """Over the whole head: a dimension that does not rotate counts with 1."""
    return (sum(2.0 * math.cos(apart * each) for each in frequencies) + spec.head_dim - 2 * spec.pairs) / spec.head_dim


def first_below(spec, frequencies, limit):
    for apart in range(limit):
        if mean_cosine(spec, frequencies, apart) < -1e-12:
            return apart
    return None


@some
def test_where_the_mean_cosine_turns_negative(spec):
    limit = 1024
    expected = [first_below(spec, each, limit) for each in (plain(spec), scaled(spec))]
    text = decay.mean(spec, limit)
    same = np.array_equal(spec.plain_inv_freq, spec.inv_freq(spec.target))
    said = [
        None if match[1] is None else value(match[1])
        for match in re.finditer(rf"stays at or above 0 below 1k|first falls below 0 at \*\*({NUMBER})\*\*", text)
    ]
    assert said == (expected[1:] if same else expected)
    assert ("no longer preferred" in text) == (same and expected[1] is not None)
    assert ("count" in text) == (spec.head_dim > 2 * spec.pairs)


def turned(spec, x, position):
    half = spec.pairing == "half"
    out = list(x)
    for i, frequency in enumerate(scaled(spec)):
        a, b = (i, i + spec.pairs) if half else (2 * i, 2 * i + 1)
        z = complex(x[a], x[b]) * cmath.exp(1j * position * frequency)
        out[a], out[b] = z.real, z.imag
    return out


@some
def test_the_score_of_ones_own_vectors(spec):
    q, k = (side[0].tolist() for side in random_vectors(spec.head_dim, seed=1))
    own = scores.parts(spec, q, k)
    exact = sum(a * b for a, b in zip(turned(spec, q, 700), turned(spec, k, 0), strict=True))
    rest = sum(a * b for a, b in zip(q[2 * spec.pairs :], k[2 * spec.pairs :], strict=True))
    text = decay.score(spec, 700, own)
    score, most = found(r"The score .* At # it is \*\*#\*\*; RoFormer's bound allows # there.*", text)[1:]
    assert score == near(exact)
    # RoFormer's eq. 37 with h_i = q_i·conj(k_i), on what rotates; the rest adds its size.
    z = [complex(a, -b) for a, b in zip(*own[:2], strict=True)] + [0.0]
    step = max(abs(z[i + 1] - z[i]) for i in range(spec.pairs))
    partial = np.cumsum([cmath.exp(700j * each) for each in scaled(spec)])
    assert most == near(step * float(np.abs(partial).sum()) + abs(rest))
    assert abs(exact) <= most * (1.0 + 1e-3)
    if spec.head_dim > 2 * spec.pairs:
        assert value(re.search(rf"({NUMBER}) of it, at every distance", text)[1]) == near(rest)
    factor = spec.attention_factor(spec.target) ** 2
    times = re.search(rf"what rotates by ({NUMBER})\.", text)
    assert (times is None) == (theme.digits(factor) == "1")
    assert times is None or value(times[1]) == near(factor)
    sums = [value(each) for each in re.findall(rf"{NUMBER}", decay.pair_by_pair(spec, 700, own))]
    assert sums[-1] == pytest.approx(exact, abs=6e-5)
    if spec.head_dim > 2 * spec.pairs:
        assert [sums[2] if spec.pairs > 1 else sums[1], sums[-2]] == pytest.approx([exact - rest, rest], abs=6e-5)


@some
def test_roformers_bound_falls_where_it_is_said_to(spec):
    text = decay.bound(spec, 4096)

    def mean_s(apart):
        return float(np.abs(np.cumsum([cmath.exp(1j * apart * each) for each in scaled(spec)])).mean())

    every = [mean_s(apart) for apart in range(4096)] if spec.pairs <= 64 else [mean_s(d) for d in range(0, 4096, 16)]
    if "does not fall here" in text:
        assert max(every) - min(every) < 1e-3 * every[0]
        assert found(r".*mean \|S\| is # at every distance.*", text) == [near((spec.pairs + 1) / 2)]
        return
    start, low, where = found(r".*mean \|S\| is # at distance 0 and # at #\. .*", text)
    assert start == near(mean_s(0))
    assert low == near(mean_s(where))
    assert min(every) < every[0]
    if "not steadily" in text:
        assert any(later > sooner for sooner, later in itertools.pairwise(every))


@some
def test_entropy_says_what_the_attention_factor_does(spec):
    text, factor = decay.entropy(spec), spec.attention_factor(spec.target)
    assert ("sharper" in text) == (factor**2 > 1.0 + 1e-12 and any(scaled(spec)))
    assert ("flatter" in text) == (factor**2 < 1.0 - 1e-12 and any(scaled(spec)))
    assert ("so it is uniform" in text) == (not any(scaled(spec)))
    if "attention factor" in text:
        assert found(".*factor # makes.*", text) == [near(factor)]


@pytest.mark.parametrize("name", ["llama-3.1-8b", "glm-4-9b-0414", "none, one pair"])
@pytest.mark.parametrize("length", [2, 1024])
def test_bases(name, length):
    spec = SPECS[name]
    text = decay.bases(spec, length, quick=True)
    drawn = np.geomspace(1e3, 1e9, 61).tolist()
    holds = [first_below(spec, plain(dataclasses.replace(spec.plain(), base=base)), length) is None for base in drawn]
    switches = sum(a != b for a, b in itertools.pairwise(holds))
    assert ("**gaps**" in text) == (switches > 1)
    assert ("All bases" in text) == all(holds)
    assert ("None from" in text) == (not any(holds))
    if "All from" in text:
        assert found(r".*All from # on do\..*", text) == [near(drawn[holds.index(True)])]
    at = first_below(spec, plain(spec), length)
    assert ("holds it" in text) == (at is None)
    assert at is None or found(r".*turns negative at #\..*", text) == [at]
    assert found(r".*below #\. .*This model's base, #, .*", text) == [length, near(spec.base)]
