"""The numbers in the sentences of Runtimes, computed here anew."""

import math
import re

import numpy as np
import pytest

from rope_viz.advice.plan import extend, runtime_matrix
from rope_viz.advice.plan.export import TARGETS, export
from rope_viz.embedding.scaling import DynamicNtk, Linear, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig
from rope_viz.pages.model.runtimes import figures as drawn
from rope_viz.pages.model.runtimes import words as runtimes
from tests.offenders import for_each

pytestmark = pytest.mark.float32_products

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
every = for_each(SPECS)


SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"\d(?:[\d.,]*\d)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"


def number(text):
    mantissa, _, exponent = text.replace(",", "").partition("·10")
    return float(mantissa) * 10.0 ** int(exponent.translate(SUPERSCRIPT) or 0)


def test_the_list_of_models_is_counted_right():
    text = runtimes.model_list()
    apart, count = (int(each) for each in re.search(r"\*\*(\d+) of (\d+) models\*\*", text).groups())
    rows = drawn.model_list(everything=True)
    assert count == len(rows) == len(catalog())
    served = [{key: cell for key, cell in row.items() if key not in ("model", "the YaRN paper")} for row in rows]
    assert apart == sum(any("×" in cell for cell in row.values()) for row in served)
    assert apart == len(drawn.model_list())
    example = re.search(r"(×\S+ · \d+): off", text)[1]
    assert any(example in cell for row in rows for cell in row.values())
    reference = [answers.rows[0].name for _, answers in runtime_matrix.compare_catalog()]
    assert set(reference) == {"transformers 5.24.0"}


@for_each(list(catalog()))
def test_runtimes_that_agree_are_counted_right(model):
    specs = model_specs(model)
    layer = main_layer(catalog()[model], specs)
    config = ModelConfig.read(catalog()[model].config)
    answers = runtime_matrix.compare_runtimes(runtime_matrix.RuntimeCase(config, layer, specs[layer], model))
    text = runtimes.agreement(answers)
    rows = [row for row in answers.rows if row.runtime]
    reference = answers.rows[0].comparison.emulation
    same = 0
    for row in rows:
        one = row.comparison.emulation
        if row.comparison.how == "not known":
            assert row.name in text
        elif one.supported and not one.remote:
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
        text = runtimes.extension(spec, target, "trained length")
        factor = float(re.search(r"s = ([\d.]+)\. ", text)[1])
        assert factor == pytest.approx(max(1.0, target / spec.context), rel=5e-4)
        assert all(option.factor == pytest.approx(factor, rel=5e-4) for option in extend.measure_methods(spec, target))


@pytest.mark.parametrize("to", TARGETS)
def test_an_export_that_is_off_says_by_how_much(to):
    spec = RopeSpec(head_dim=32, context=512, target=2048, scaling=Proportional(0.5, 4.0))
    made = export(spec, to=to)
    text = runtimes.faithful(made, to)
    assert ("Faithful" in text) == made.faithful
    if not made.faithful and made.effect:
        assert f"at pair {made.effect.pair}" in text
        assert float(re.search(r"×([\d.,]+),", text)[1].replace(",", "")) == pytest.approx(made.effect.ratio, rel=5e-4)
