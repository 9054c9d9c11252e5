"""The pictures of attention: four maps on one scale, distinct words on the axes, hostile words without effect."""

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import model_specs
from rope_viz.pages.attention import figures as attention
from rope_viz.pages.attention import words
from rope_viz.studies import attention as core

SPEC = RopeSpec(head_dim=64, context=1024, target=4096, scaling=Yarn(4.0))
JANE = core.DEFAULT_SENTENCE
HOSTILE = '<b>x</b> <a href="https://a.example">y [z](https://a.example) $x$ `x` =1+1 <b>x</b>'


def test_all_four_maps_match_the_core_on_one_scale():
    fig = attention.maps(SPEC, JANE, offset=7, causal=False)
    expected = core.attention_maps(SPEC, JANE, offset=7, length=4096)
    for trace, (name, each) in zip(fig.data, expected.items(), strict=True):
        np.testing.assert_allclose(trace.z, each.weights, atol=1e-7, err_msg=name)
        assert trace.coloraxis == "coloraxis"
    assert fig.layout.coloraxis.cmax >= max(each.weights.max() for each in expected.values())


def test_causal_weights_are_empty_ahead_but_scores_are_complete():
    weights = attention.maps(SPEC, JANE, offset=0, causal=True).data[2].z
    assert np.array_equal(np.isnan(weights), np.triu(np.ones((12, 12), dtype=bool), 1))
    scores = attention.maps(SPEC, JANE, offset=0, causal=True, shown="scores").data[0].z
    np.testing.assert_array_equal(scores[0], scores[8])


@pytest.mark.parametrize(
    "sentence", [JANE, HOSTILE, "Jane Jane Jane₁ Jane₂ jane, Jane", "a" * 200 + " " + "a" * 199 + "b"]
)
def test_words_have_distinct_places_on_the_axis(sentence):
    labels = attention.word_labels(sentence)
    assert len(set(labels)) == len(labels) == len(core.split_words(sentence))
    assert max(map(len, labels)) < 60


def test_typed_words_are_never_markup():
    assert not any(set("<>") & set(label) for label in attention.word_labels(HOSTILE))
    assert words.maps(SPEC, HOSTILE, offset=0, causal=False).values["word"] == "`$x$`"
    assert words.quote_word("`**`[a](b)") == "`′**′[a](b)`"


def test_dots_and_mean_cosine_are_one_map():
    dots, cosine = attention.added_or_multiplied(SPEC, offset=5000).data
    np.testing.assert_allclose(dots.z, cosine.z, atol=1e-6)


def test_only_negative_weights_carry_a_minus_sign():
    spec = model_specs("llama-2-7b")[""]
    trace = attention.linear_weights(spec, JANE, spacing=1000, causal=False).data[0]
    marked = np.array(trace.text) == "−"
    assert marked.sum() > 20
    np.testing.assert_array_equal(marked, attention.linear(spec, JANE, 1000, False).weights < 0)


def test_costs_cross_at_the_vertical_line():
    fig = attention.costs(SPEC, causal=True)
    cross = fig.layout.shapes[0].x0
    pairs, state = (np.interp(np.log(cross), np.log(t.x.astype(float)), np.log(t.y)) for t in fig.data)
    assert abs(pairs - state) < 0.05
    assert attention.costs(SPEC, causal=True, shown="time", live=True).data[0].x.size == 0


def test_measured_times_are_there_for_every_length():
    traces = attention.costs(RopeSpec(head_dim=8), causal=True, shown="time").data
    assert all(list(trace.x) == list(attention.TIMED) and (trace.y > 0).all() for trace in traces)
