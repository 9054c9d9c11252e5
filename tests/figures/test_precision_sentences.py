"""The numbers in the sentences of the Precision page, against float64 mathematics computed here."""

import math

import numpy as np
import pytest

from rope_viz.embedding.scaling import DynamicNtk, Linear, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.precision import words as precision
from rope_viz.studies.precision import PRACTICES, ROUNDINGS
from rope_viz.texts import Texts
from tests.figures.specs import to_bf16
from tests.offenders import for_each

SMALL = RopeSpec(head_dim=32, context=512)
SPECS = {
    "plain": SMALL,
    "partly": RopeSpec(head_dim=32, rotary_dim=16, context=512, target=2048, scaling=Yarn(4.0)),
    "one pair": RopeSpec(head_dim=8, rotary_dim=2, context=512),
    "all at zero frequency": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.0)),
    "some at zero frequency": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.25)),
    "higher frequencies": RopeSpec(head_dim=32, context=512, scaling=Linear(0.5)),
    "dynamic": RopeSpec(head_dim=32, context=512, target=4096, scaling=DynamicNtk(2.0)),
    "factor 0": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=0.0)),
    "negative factor": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=-2.0)),
    "factor too large": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=1e9)),
}
every = for_each(SPECS)
END = 512


@every
@pytest.mark.parametrize("where", ["bf16-positions", "bf16-inv-freq"])
def test_growing_errors_give_the_worst_pair_and_position(spec, where):
    values = precision.describe_errors(spec, where, END).values
    inv_freq, places = spec.inv_freq(spec.target), np.arange(END + 1.0)
    used = (to_bf16(places), inv_freq) if where == "bf16-positions" else (places, to_bf16(inv_freq))
    off = np.abs(np.outer(*used) - np.outer(places, inv_freq))
    assert values.get("angle", 0.0) == pytest.approx(off.max(), rel=1e-12)
    if off.any():
        assert off[values["position"], values["pair"]] == pytest.approx(off.max(), rel=1e-12)
    beyond = off > 0.2 * math.pi
    assert values.get("count", 0) == beyond.any(axis=0).sum()
    if beyond.any():
        assert values["pairs"] == spec.pairs
        assert values["first_at"] == np.flatnonzero(beyond.any(axis=1))[0]
        assert beyond[values["first_at"], values["first"]]


@every
@pytest.mark.parametrize("where", [name for name, each in ROUNDINGS.items() if each.stage != "angle"])
def test_fixed_errors_are_within_the_step_of_their_format(spec, where):
    sentence = precision.describe_errors(spec, where, END, live=True)
    factor = spec.attention_factor(spec.target)
    assert ("errors.zero_factor" in sentence.entries) == (factor == 0.0)
    assert ("errors.overflow" in sentence.entries) == (factor == 1e9 and where in ("fp16-table", "fp8-e5m2-table"))
    if "errors.fixed" in sentence.entries and factor in (1.0, -2.0):
        # One rounding of cos and sin turns by no more than the format's step does: an eighth for fp8 with two bits.
        steps = {"phase64": 2e-7, "bf16-table": 2**-8, "fp16-table": 2**-11, "fp8-e4m3-table": 2**-4}
        step = steps.get(where, 2**-7 if where == "bf16-products" else 2**-3)
        assert sentence.values["angle"] <= 1.5 * step
        assert sentence.values["length_percent"] <= 150.0 * step


@every
@pytest.mark.parametrize("where", ROUNDINGS)
def test_every_number_in_a_sentence_is_finite(spec, where):
    texts = (precision.describe_errors(spec, where, END, live=True), precision.describe_score(spec, where, live=True))
    for sentence in texts:
        numbers = [value for value in sentence.values.values() if isinstance(value, (int, float))]
        assert np.isfinite(numbers).all()


@every
def test_a_rounded_inv_freq_changes_no_score_with_the_position(spec):
    sentence = precision.describe_score(spec, "bf16-inv-freq", live=True)
    size = max(1.0, spec.attention_factor(spec.target) ** 2)
    assert sentence.values["shift"] <= 1e-12 * size
    assert "scores.relative" in sentence.entries
    # A distance of 10 times the frequencies' rounding bounds the error: q and k have about 1 per dimension.
    inv_freq = spec.inv_freq(spec.target)
    turned = 10.0 * np.abs(to_bf16(inv_freq) - inv_freq).max()
    assert sentence.values["error"] <= 10.0 * spec.head_dim * size * turned + 1e-12 * size


@pytest.mark.parametrize("where", ROUNDINGS)
def test_implementations_of_a_rounding_are_listed(where):
    sentence = precision.list_implementations(where)
    libraries = [each.library for each in PRACTICES if where in each.roundings]
    assert ("practices.none" in sentence.entries) == (not libraries)
    assert all(f"**{library}**" in sentence for library in libraries)


def test_every_rounding_and_implementation_has_its_texts():
    texts = Texts("precision")
    for group in ("roundings", "short", "phrases"):
        assert texts.group(group).keys() == ROUNDINGS.keys()
    assert list(texts.group("implementations")) == [each.key for each in PRACTICES]
