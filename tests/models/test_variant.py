"""A pinned curve is one value of an address: read as a change, written so that it means the same next to any other."""

import dataclasses

import pytest

from rope_viz.embedding.scaling import METHODS, LongRope
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.models.spec_url import Subject
from rope_viz.models.variant import KEYS, from_compared_models, make_variant, read_variant, write_variant
from tests.offenders import for_each

LLAMA = make_variant(Subject(model_specs("llama-3.1-8b")[""], "llama-3.1-8b"))
QWEN = make_variant(Subject(model_specs("qwen3-8b")[""], "qwen3-8b"))


@for_each(list(catalog()))
def test_every_model_changed_or_not_is_read_as_written(model):
    for layer, spec in model_specs(model).items():
        for each in (spec, dataclasses.replace(spec, base=123456.0)):
            variant = make_variant(Subject(each, model, layer))
            assert read_variant(write_variant(variant), LLAMA) == variant


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_read_as_written(method):
    longer = dataclasses.replace(QWEN.subject.spec, target=65536)
    variant = make_variant(QWEN.subject._replace(spec=spec_url.with_method(longer, method)))
    assert read_variant(write_variant(variant), LLAMA) == variant


def test_a_list_of_divisors_may_contain_commas():
    lists = {"short_factor": tuple([1.0] * 32), "long_factor": tuple(1 + i / 8 for i in range(32))}
    own = RopeSpec(head_dim=64, context=4096, target=32768, scaling=LongRope(**lists))
    variant = make_variant(Subject(own), "mine, = <b>")
    assert variant.name == "mine b"
    assert read_variant(write_variant(variant), LLAMA) == variant


def test_a_variant_without_model_changes_the_current_curve():
    current = make_variant(LLAMA.subject._replace(spec=dataclasses.replace(LLAMA.subject.spec, base=1e6)))
    changed = read_variant("scaling=yarn,factor=4", current).subject
    assert changed.spec.base == 1e6
    assert (changed.spec.scaling.name, changed.spec.scaling.factor) == ("yarn", 4.0)
    assert read_variant("model=llama-3.1-8b,scaling=yarn,factor=4", current).subject.spec.base == 500_000
    assert read_variant("head-dim=64", current).subject.spec.rotary_dim == 64


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("base", "is a list such as base=5e5"),
        ("", "is a list such as base=5e5"),
        ("colour=3", "no key 'colour'"),
        ("base=0", r"^base = 0 is out of range\.$"),
        ("base=1e4,base=2e4", "has base twice"),
        ("model=gpt-9", "no model 'gpt-9'"),
        ("layer=sliding_attention", "no layers named"),
        ("scaling=linear,beta_fast=3", "linear has no beta_fast"),
        ("scaling=foo", "Unknown scaling method"),
    ],
)
def test_an_unusable_variant_is_refused_with_a_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_variant(text, LLAMA)


def test_numbers_outside_the_sliders_cannot_be_pinned():
    far = make_variant(Subject(RopeSpec(base=3.0)), "mine")
    with pytest.raises(ValueError, match="outside the ranges"):
        write_variant(far)


def test_compared_models_of_an_older_address_become_variants():
    assert from_compared_models("qwen3-8b,llama-2-7b") == {"variant1": "model=qwen3-8b", "variant2": "model=llama-2-7b"}
    assert list(from_compared_models("a,b,c,d,e,f")) == list(KEYS)
