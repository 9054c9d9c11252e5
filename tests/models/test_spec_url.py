"""A link restores the choice, and no link can break the app."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz import RopeSpec
from rope_viz.embedding.scaling import METHODS, LongRope, Yarn
from rope_viz.embedding.spec import knobs
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import read_catalog_model
from rope_viz.models.spec_url import Subject
from tests.offenders import for_each


@for_each(list(catalog()))
def test_link_of_a_catalog_model_holds_only_its_id(model):
    for layer, spec in read_catalog_model(model).start_specs.items():
        written = spec_url.write_query(Subject(spec, model, layer))
        assert set(written) <= {"model", "layer"}
        assert spec_url.read_query(written) == (Subject(spec, model, layer), ())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["llama-2-7b", "qwen3-8b-yarn", "phi-4-mini", "gpt-neox-20b"])
def test_every_method_survives_a_link(method, model):
    start = spec_url.model_spec(model)
    spec = spec_url.with_method(dataclasses.replace(start, base=77_000.0, target=262_144), method)
    subject, problems = spec_url.read_query(spec_url.write_query(Subject(spec, model)))
    assert subject.spec == spec
    assert problems == ()


@given(st.data())
def test_every_knob_survives_a_link(data):
    method = data.draw(st.sampled_from(sorted(METHODS)))
    spec = RopeSpec(
        head_dim=2 * data.draw(st.integers(2, 256)),
        base=data.draw(st.floats(100.0, 1e9)),
        context=data.draw(st.integers(128, 4_194_304)),
        target=data.draw(st.integers(128, 16_777_216)),
    )
    spec = spec_url.with_method(spec, method)
    chosen = {
        name: data.draw(
            st.one_of(st.none(), st.floats(knob.low, knob.high))
            if field.default is None
            else st.floats(knob.low, knob.high)
        )
        for name, knob in knobs(spec.scaling).items()
        for field in dataclasses.fields(spec.scaling)
        if field.name == name
    }
    try:
        spec = dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **chosen))
    except ValueError:
        return
    subject, problems = spec_url.read_query(spec_url.write_query(Subject(spec)))
    assert subject.spec == spec
    assert problems == ()


def test_switches_and_lists_survive_a_link():
    yarn = RopeSpec(64, scaling=Yarn(4.0, truncate=False, attention=1.1))
    assert spec_url.read_query(spec_url.write_query(Subject(yarn)))[0].spec == yarn
    listed = RopeSpec(8, scaling=LongRope((1.0, 1.1, 1.25, 2.0), (1.5, 3.0, 1e-3, 64.0)))
    assert spec_url.read_query(spec_url.write_query(Subject(listed)))[0].spec == listed


def test_out_of_range_values_are_clamped_and_reported():
    (spec, *_), problems = spec_url.read_query({"dim": "201", "base": "1e30", "target": "64"})
    assert (spec.head_dim, spec.base, spec.target) == (200, 1e9, 128)
    assert len(problems) == 3


def test_numbers_with_units_and_separators_are_read():
    assert spec_url.read_query({"target": "128k"})[0].spec.target == 131_072
    assert spec_url.read_query({"base": "1e6"})[0].spec.base == 1_000_000
    assert spec_url.read_query({"trained": "4_096"})[0].spec.context == 4096


@pytest.mark.parametrize(
    "params",
    [
        {"model": "'; drop table"},
        {"method": "magic"},
        {"base": "NaN"},
        {"base": "-1"},
        {"dim": ""},
        {"factor": "1e999"},
        {"factor": "nan", "method": "yarn"},
        {"short": "1,2,x", "method": "longrope"},
        {"long": "1,2", "method": "longrope"},
        {"pairing": "both"},
        {"layer": "sideways"},
        {"truncate": "perhaps", "method": "yarn"},
        {"rot": "4096"},
        {"dim": "4", "rot": "2", "method": "ntk"},
        {"target": "9" * 400},
    ],
)
def test_hostile_link_gives_a_message_and_a_working_spec(params):
    (spec, *_), problems = spec_url.read_query(params)
    assert problems or spec == spec_url.model_spec(spec_url.DEFAULT_MODEL)
    assert spec.inv_freq(spec.target).shape == (spec.pairs,)
    assert all("Traceback" not in problem and len(problem) < 200 for problem in problems)


@given(
    st.dictionaries(
        st.sampled_from(spec_url.KEYS), st.text(max_size=60) | st.floats().map(str) | st.integers().map(str)
    )
)
def test_reading_a_link_never_raises(params):
    (spec, *_), _ = spec_url.read_query(params)
    assert spec.inv_freq(spec.target).shape == (spec.pairs,)


def test_resizing_preserves_the_rotated_share():
    half = RopeSpec(128, rotary_dim=64)
    assert spec_url.resize(half, 256).rotary_dim == 128
    assert spec_url.resize(half, 4).rotary_dim == 2


def test_layer_of_a_user_config_is_in_its_link():
    spec = RopeSpec(64, base=1e6, scaling=Yarn(4.0))
    subject = Subject(spec, layer="sliding_attention")
    assert spec_url.read_query(spec_url.write_query(subject))[0] == subject
    assert spec_url.read_query({"model": spec_url.CUSTOM, "layer": "<b>x</b>"})[1]


def test_k_is_binary_for_lengths_and_decimal_for_all_else():
    spec = spec_url.read_query({"model": "custom", "base": "500k", "trained": "8k", "target": "128k"})[0].spec
    assert (spec.base, spec.context, spec.target) == (500_000.0, 8192, 131_072)
