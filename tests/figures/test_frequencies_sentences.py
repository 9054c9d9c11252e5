"""The numbers in the sentences of the Frequencies page, against float64 mathematics computed here."""

import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.figures import words
from rope_viz.models.catalog import model_specs
from rope_viz.pages.frequencies import words as frequencies
from tests.figures.specs import SPECS, TAU, every, near, plain, scaled, turning_share
from tests.offenders import for_each

YARN = {name: spec for name, spec in SPECS.items() if isinstance(spec.scaling, Yarn)}


def in_training(spec):
    """Frequencies in training: unscaled, but zero where scaling sets zero."""
    return [0.0 if request == 0.0 else was for request, was in zip(scaled(spec), plain(spec), strict=True)]


def changes_frequencies(spec):
    return any(share and abs(share - 1.0) > 1e-9 for share in turning_share(spec))


@every
def test_wavelengths_are_those_of_the_first_and_last_pair(spec):
    before, after = in_training(spec), scaled(spec)
    sentence = frequencies.describe_frequencies(spec)
    turning = [pair for pair, frequency in enumerate(before) if frequency]
    if not turning:
        assert sentence.entries == ("wavelengths.zero",)
        return
    first, last = turning[0], turning[-1]
    values = sentence.values
    assert (values["first"], values["last"]) == (first, last)
    assert (values["shortest"], values["longest"]) == (near(TAU / before[first]), near(TAU / before[last]))
    assert ("scaled_shortest" in values) == changes_frequencies(spec)
    if changes_frequencies(spec):
        assert values["scaled_shortest"] == near(TAU / after[first])
        assert values["scaled_longest"] == near(TAU / after[last])
    assert any(entry.endswith("_single") for entry in sentence.entries) == (first == last)


@every
def test_pairs_without_a_full_turn_are_counted(spec):
    before = in_training(spec)
    zero, slow = before.count(0.0), sum(0.0 < spec.context * each < TAU for each in before)
    sentence = words.count_unturned(spec)
    values = sentence.values
    assert (values["zero"], values["slow"], values["pairs"]) == (zero, slow, spec.pairs)
    assert (values["context"], values["length_name"]) == (spec.context, spec.length_name)
    assert ("training.zero" in sentence.entries) == (zero > 0)
    how_many = "all" if slow == 0 else "none" if slow == spec.pairs - zero else "some"
    assert f"training.{'others_' if zero else ''}{how_many}" in sentence.entries


def test_unscaled_llama_2_has_18_pairs_without_a_full_turn():
    sentence = frequencies.describe_frequencies(model_specs("llama-2-7b")[""])
    assert "**18 of 64 pairs** did not complete a turn within the trained length of 4k tokens." in sentence


@every
def test_the_critical_dimension_counts_completed_turns(spec):
    sentence = frequencies.describe_ranges(spec)
    completed = sum(spec.context * each >= TAU for each in plain(spec))
    assert sentence.values["critical"] == min(2 * completed, spec.rotary_dim)
    assert sentence.values["rotary_dim"] == spec.rotary_dim
    assert ("critical.all" in sentence.entries) == (completed == spec.pairs)
    if completed < spec.pairs:
        assert sentence.values["pair"] == completed
    zero = scaled(spec).index(0.0) if 0.0 in scaled(spec) else None
    assert sentence.values.get("zero_from") == zero
    assert any(entry.startswith("ramp.") for entry in sentence.entries) == isinstance(spec.scaling, Yarn)


@for_each(YARN)
def test_the_ramp_leads_from_start_to_end(spec):
    """Before the first pair it has one value, after the last another; in between, neither."""
    share = [(each - 1.0 / spec.scaling.factor) / (1.0 - 1.0 / spec.scaling.factor) for each in turning_share(spec)]
    sentence = frequencies.describe_ramp(spec)
    if {"ramp.kept", "ramp.divided"} & set(sentence.entries):
        assert max(share) - min(share) < 1e-6
        assert ("ramp.kept" in sentence.entries) == (share[0] > 0.5)
        return
    start, end = sentence.values["start"], sentence.values["end"]
    before, after = (0.0, 1.0) if "ramp.rises" in sentence.entries else (1.0, 0.0)
    for pair, each in enumerate(share):
        if pair <= start:
            assert each == pytest.approx(before, abs=1e-6)
        elif pair >= end + 1e-2:
            assert each == pytest.approx(after, abs=1e-6)
        elif pair < end:
            assert 0.0 < each < 1.0
    assert ("ramp.drop" in sentence.entries) == (start == end)
    assert ("ramp.beyond" in sentence.entries) == (end > spec.pairs - 1)
