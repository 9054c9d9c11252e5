"""The numbers in the sentences of Attention and Runtimes, computed here anew."""

import math
import re

import numpy as np
import pytest

from rope_viz.advice import extend, runtime_matrix
from rope_viz.advice.export import TARGETS, export
from rope_viz.embedding.scaling import DynamicNtk, Linear, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import runtimes as drawn
from rope_viz.figures.words import attention, runtimes
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig
from rope_viz.pictures.runtimes import APART
from rope_viz.studies.attention import DEFAULT_SENTENCE
from rope_viz.studies.linear_attention import operations

SMALL = RopeSpec(head_dim=32, context=512)
SPECS = {
    "plain": SMALL,
    "partly": RopeSpec(head_dim=32, rotary_dim=16, context=512, target=2048, scaling=Yarn(4.0)),
    "one pair": RopeSpec(head_dim=8, rotary_dim=2, context=512),
    "no pair turns": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.0)),
    "some stand still": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.25)),
    "sped up": RopeSpec(head_dim=32, context=512, scaling=Linear(0.5)),
    "dynamic": RopeSpec(head_dim=32, context=512, target=4096, scaling=DynamicNtk(2.0)),
    "no factor": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=0.0)),
    "turned": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=-2.0)),
    "too large": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=1e9)),
}
every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"\d(?:[\d.,]*\d)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"


def number(text):
    mantissa, _, exponent = text.replace(",", "").partition("·10")
    return float(mantissa) * 10.0 ** int(exponent.translate(SUPERSCRIPT) or 0)


@every
@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_linear_attention_are_counted_right(spec, causal):
    from rope_viz.figures.attention import linear

    for spacing in (1, 700):
        text = attention.linear_maps(spec, DEFAULT_SENTENCE, spacing=spacing, causal=causal)
        found = linear(spec, DEFAULT_SENTENCE, spacing, causal)
        seen = np.tri(len(found.weights), dtype=bool) if causal else np.ones_like(found.weights, dtype=bool)
        negative = 100.0 * np.count_nonzero(found.weights[seen] < 0.0) / np.count_nonzero(seen)
        assert ("**None** of the weights" in text) == (negative == 0.0)
        if negative:
            assert float(re.search(r"\*\*([\d.]+) %\*\*", text)[1]) == pytest.approx(negative, rel=0.051, abs=0.51)
        sums = found.weights.sum(axis=1)
        if "every row still adds up" in text:
            assert np.ptp(sums) < 0.01
            assert float(re.search(r"adds up to ([\d.-]+\d)", text)[1]) == pytest.approx(sums[0], abs=0.0051)
        else:
            low, high = re.search(r"adds up to ([\d.-]+) to ([\d.-]+) instead of 1", text).groups()
            assert (float(low), float(high)) == pytest.approx((sums.min(), sums.max()), abs=0.0051)


@every
def test_sinusoidal_products_are_so_many_times_the_mean(spec):
    text = attention.added_or_multiplied(spec, offset=100)
    times = float(re.search(r"pₘ·pₙ is (\d+) times the mean", text)[1])
    plain = [spec.base ** (-2.0 * i / spec.rotary_dim) for i in range(spec.pairs)]
    product = sum(math.sin(103 * w) * math.sin(100 * w) + math.cos(103 * w) * math.cos(100 * w) for w in plain)
    assert times * sum(math.cos(3 * w) for w in plain) / spec.pairs == pytest.approx(product, abs=1e-9)


@pytest.mark.parametrize("head_dim", [2, 64, 512])
@pytest.mark.parametrize("causal", [False, True])
def test_from_the_named_length_on_the_state_is_less_work(head_dim, causal):
    spec = RopeSpec(head_dim=head_dim)
    text = attention.costs(spec, causal=causal, shown="operations", live=False)
    cross = int(re.search(r"from ([\d,]+) tokens", text)[1].replace(",", ""))
    before, after = (operations(n, head_dim, head_dim, causal=causal) for n in (cross - 1, cross))
    assert after.state < after.pairs
    assert cross == 1 or before.state >= before.pairs


@every
def test_what_a_move_of_the_sentence_changes(spec):
    text = attention.maps(spec, DEFAULT_SENTENCE, offset=4096, causal=False)
    rope, added = map(number, re.search(r"change by \*\*(.+?)\*\*, .* by \*\*(.+?)\*\*", text).groups())
    assert rope < 1e-8 < 1e-3 < added
    assert number(re.search(r"up to (\S+) apart", text)[1]) > 0.0


def test_the_list_of_models_is_counted_right():
    text = runtimes.model_list()
    apart, count = (int(each) for each in re.search(r"\*\*(\d+) of (\d+) models\*\*", text).groups())
    rows = drawn.model_list(everything=True)
    assert count == len(rows) == len(catalog())
    served = [{key: cell for key, cell in row.items() if key not in ("model", "the YaRN paper")} for row in rows]
    assert apart == sum(any("×" in cell for cell in row.values()) for row in served)
    assert apart == APART, "the table's room is not that of its rows"
    example = re.search(r"(×\S+ · \d+): off", text)[1]
    assert any(example in cell for row in rows for cell in row.values())
    reference = [answers.rows[0].name for _, answers in runtime_matrix.models()]
    assert set(reference) == {"transformers 5.23.0"}


@pytest.mark.parametrize("model", catalog())
def test_runtimes_that_agree_are_counted_right(model):
    specs = model_specs(model)
    layer = main_layer(catalog()[model], specs)
    config = ModelConfig.read(catalog()[model].config)
    answers = runtime_matrix.board(runtime_matrix.Asked(config, layer, specs[layer], model))
    text = runtimes.agreement(answers)
    rows = [row for row in answers.rows if row.runtime]
    reference = answers.rows[0].comparison.emulation
    same = 0
    for row in rows:
        one = row.comparison.emulation
        if one.supported and not one.remote:
            equal = len(one.inv_freq) == len(reference.inv_freq) and np.allclose(
                one.inv_freq, reference.inv_freq, rtol=2e-6, atol=0.0
            )
            factor = math.isclose(one.attention_factor, reference.attention_factor, rel_tol=2e-6)
            both = (one.softmax_multiplier, reference.softmax_multiplier)
            same += equal and factor and (None in both or math.isclose(*both, rel_tol=2e-6))
        else:
            assert row.name in text
        for ratio, pair in re.findall(rf"{re.escape(row.name)}[^;]*? off by \*\*×([\d.e+]+) at pair (\d+)", text):
            if row.comparison.effect and int(pair) == row.comparison.effect.pair and one.supported:
                theirs = one.inv_freq[int(pair)] / reference.inv_freq[int(pair)]
                assert float(ratio) == pytest.approx(max(theirs, 1.0 / theirs), rel=0.0051)
    if same == len(rows):
        assert f"**All {len(rows)} runtimes agree**" in text
    else:
        assert f"**{same} of {len(rows)} runtimes agree**" in text


@every
def test_the_wanted_length_over_the_trained_one(spec):
    for target in (100, spec.context, 4 * spec.context):
        text = runtimes.extension(spec, target)
        factor = float(re.search(r"s = ([\d.]+)\. ", text)[1])
        assert factor == pytest.approx(max(1.0, target / spec.context), rel=5e-4)
        assert all(option.factor == pytest.approx(factor, rel=5e-4) for option in extend.options(spec, target))


@pytest.mark.parametrize("to", TARGETS)
def test_an_export_that_is_off_says_by_how_much(to):
    spec = RopeSpec(head_dim=32, context=512, target=2048, scaling=Proportional(0.5, 4.0))
    made = export(spec, to=to)
    text = runtimes.faithful(made, to)
    assert ("Faithful" in text) == made.faithful
    if not made.faithful and made.effect:
        assert f"at pair {made.effect.pair}" in text
        assert float(re.search(r"×([\d.,]+),", text)[1].replace(",", "")) == pytest.approx(made.effect.ratio, rel=5e-4)
