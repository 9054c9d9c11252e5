"""Requests as addresses: every choice as text and back, one key per content, and hostile queries."""

import dataclasses
import inspect
import re

import pytest
from hypothesis import given, settings, strategies

from rope_viz.embedding.scaling import METHODS, LongRope, NtkByParts, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.files import Style
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.spec_url import Subject
from rope_viz.own_files import blob_store, configs
from rope_viz.pages import axes, decay, frequencies, registry, scaling
from rope_viz.picture import read_address, wire_format, write_address
from rope_viz.picture.choices import Number, StoredChoice
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.storage.limits import CONTENT_OVERHEAD_BYTES
from tests.example_models import HAVING
from tests.offenders import for_each

PICTURES = registry.pictures()
IDS = [picture.address for picture in PICTURES]
CHOICES = [choice for name in registry.PAGES for choice in registry.page(name).choices]


def read(picture, **query):
    return read_address.read_request(
        registry.page(picture.page), {key.replace("__", "."): text for key, text in query.items()}
    )


@for_each(PICTURES, lambda picture: picture.address)
def test_a_picture_is_a_function_at_module_level(picture):
    module = inspect.getmodule(picture.draw)
    assert getattr(module, picture.name) is picture
    # A page with many pictures has several modules; that of the page imports the others.
    assert picture is registry.picture(picture.page, picture.name)
    assert module.__name__.startswith(("rope_viz.pages.", "rope_viz.picture."))
    assert picture.about.endswith(".")


@for_each(CHOICES, lambda choice: choice.key)
def test_choice_belongs_to_one_page_and_survives_as_text(choice):
    page = registry.page(choice.key.partition(".")[0])
    assert [each.key for each in page.choices].count(choice.key) == 1
    request = PictureRequest(Subject(RopeSpec()), given={})
    value = request[choice]
    if not isinstance(choice, StoredChoice):
        assert choice.parse(choice.text(value)) == value
    assert choice.resolve(value, request) == value


def test_each_example_model_belongs_to_a_picture():
    assert set(HAVING) <= {picture.address for picture in PICTURES}
    assert set(HAVING.values()) <= set(catalog())


def test_a_picture_depends_on_what_its_choices_need():
    doubled = Number(
        key="axes.doubled", knob=axes.REACH.knob, usual=lambda request: request[axes.REACH], needs=(axes.REACH,)
    )
    assert Picture("axes", lambda request: None, (doubled,)).depends == {"axes.doubled", "axes.reach"}
    assert PictureRequest(Subject(RopeSpec()), given={"axes.reach": 20})[doubled] == 20


@pytest.mark.parametrize("picture", PICTURES, ids=IDS)
@settings(max_examples=15, deadline=None)
@given(data=strategies.data())
def test_the_address_of_a_picture_leads_back_to_it(picture, data):
    page = registry.page(picture.page)
    model = data.draw(strategies.sampled_from(list(catalog())))
    given = {}
    for choice in page.choices:
        value = drawn(choice, data)
        if value is not None:
            given[choice.key] = value
    pin = data.draw(strategies.sampled_from([None, 0, 3]))
    request = PictureRequest(
        Subject(spec_url.model_spec(model), model, spec_url.main_layer_of(model)), pin=pin, given=given
    )
    query = write_address.query(request, picture)
    again = read_address.read_request(page, query)
    assert picture.cache_key(again) == picture.cache_key(request)
    assert write_address.query(again, picture) == query, "the shortest query is its own"


def drawn(choice, data):
    """A value of the choice, or None for its default."""
    if isinstance(choice, StoredChoice) or data.draw(strategies.booleans()):
        return None
    if isinstance(choice, Number):
        share = data.draw(strategies.floats(0, 1))
        knob = choice.knob
        value = knob.low * (knob.high / knob.low) ** share if knob.log else knob.low + share * (knob.high - knob.low)
        return round(value) if knob.integer else value
    options = getattr(choice, "options", None)
    if options is None:
        return None
    name = data.draw(strategies.sampled_from(list(options)))
    return name if isinstance(choice.default(PictureRequest(Subject(RopeSpec()))), str) else (name,)


def test_order_and_spelling_do_not_change_the_key():
    one = read(scaling.comparison, model="qwen3-8b-yarn", base="1e6", target="128k", scaling__show="paper")
    two = read(scaling.comparison, scaling__show="paper", target="131072", model="qwen3-8b-yarn")
    assert scaling.comparison.cache_key(one) == scaling.comparison.cache_key(two)


def test_unused_choices_are_not_in_the_key():
    one = read(decay.bases, decay__at="77", pin="3", view="0,2")
    assert decay.bases.cache_key(one) == decay.bases.cache_key(read(decay.bases))


def test_dependent_choice_adds_its_dependency_to_the_key():
    request = read(decay.pairs, decay__length="128")
    assert request[decay.AT] == 127
    assert write_address.query(request, decay.pairs) == {"decay.length": "128"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"model": "none of them"}, "Unknown model 'none of them'"),
        ({"model": "<script>alert(1)</script>"}, "Unknown model"),
        ({"dim": "201"}, "dim = 201"),
        ({"base": "NaN"}, "base"),
        ({"base": "-1"}, "base"),
        ({"base": "1e300"}, "base"),
        ({"target": "9" * 400}, "target"),
        ({"method": "yarn", "factor": "inf"}, "factor"),
        ({"modle": "llama-2-7b"}, "no choice 'modle'"),
        ({"__class__": "1"}, "no choice"),
        ({"decay.length": "4096"}, "no choice 'decay.length'"),
        ({"scaling.show": "<b>"}, "scaling.show must be one of"),
        ({"scaling.with": "yarn,../../etc"}, "scaling.with may hold"),
        ({"pin": "64"}, "pin must be a pair from 0 to 63"),
        ({"pin": "²"}, "pin must be"),
        ({"view": "1,nan"}, "view must be"),
        ({"view": "1"}, "view must be"),
        ({"view": "-1e999,1e999"}, "view must be"),
        ({"knob": "base", "value": "nan"}, "not a number"),
        ({"knob": "base", "value": ""}, "not a number"),
        ({"knob": "head_dim", "value": "127.5"}, "Head dimension"),
        ({"knob": "pairing", "value": "1"}, "no knob 'pairing'"),
        ({"own": "guessed"}, "no longer stores"),
        ({"spec": "guessed"}, "no longer stores"),
    ],
)
def test_hostile_query_raises_a_clear_error(query, said):
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        read_address.read_request(scaling.PAGE, query)
    assert len(str(refused.value)) < 400


def test_moving_knob_gives_the_value_of_its_release():
    on_its_way = read(frequencies.heatmap, model="llama-2-7b", pin="60", knob="head_dim", value="64", coarse="1")
    assert on_its_way.spec == RopeSpec(head_dim=64, base=1e4, context=4096)
    assert on_its_way.pin is None
    assert on_its_way.coarse
    of_the_page = read(frequencies.heatmap, knob="frequencies.length", value="1000")
    assert of_the_page[frequencies.LENGTH] == 1000


SPECS = [
    RopeSpec(scaling=Yarn(4.0, beta_fast=33.0, truncate=False), target=16384),
    RopeSpec(scaling=LongRope(short_factor=(1.25,) * 64, long_factor=tuple(float(i) for i in range(1, 65)))),
    RopeSpec(scaling=NtkByParts(2.0)),
    RopeSpec(base=1.0000001, context=1),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.scaling.name)
def test_stored_spec_is_loaded_unchanged(spec):
    assert configs.spec_of(configs.spec_bytes(spec)) == spec


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_stored(method):
    spec = spec_url.with_method(RopeSpec(target=32768), method)
    assert configs.spec_of(configs.spec_bytes(spec)) == spec


def test_spec_too_precise_for_a_link_is_stored_by_name():
    spec = RopeSpec(base=1.0000001, context=1)
    assert not write_address.fits_in_url(Subject(spec))
    name = blob_store.STORE.keep(blob_store.salt() + configs.spec_bytes(spec))
    request = PictureRequest(Subject(spec), held={"spec": name})
    query = write_address.query(request, scaling.comparison)
    assert query == {"model": "custom", "spec": name}
    again = read_address.read_request(scaling.PAGE, query)
    assert again.spec == spec
    assert scaling.comparison.cache_key(again) == scaling.comparison.cache_key(request)


def test_store_evicts_the_least_recently_used_content():
    store = blob_store.Store(most=3 * (1000 + CONTENT_OVERHEAD_BYTES))
    names = [store.keep(blob_store.salt() + bytes([index]) * 984) for index in range(3)]
    store.load(names[0], len)
    names.append(store.keep(blob_store.salt() + b"x" * 984))
    assert [store.salted(name) is not None for name in names] == [True, False, True, True]
    with pytest.raises(blob_store.UnknownError):
        store.load(names[1], len)


def test_blob_name_reveals_nothing_about_its_content():
    content = b"1, 2, 3"
    assert blob_store.name_of(blob_store.salt() + content) != blob_store.name_of(blob_store.salt() + content)
    assert len(blob_store.name_of(blob_store.salt() + content)) == 43


def test_page_clamps_values_that_an_address_would_refuse():
    given = read_address.lenient(frequencies.PAGE.choices, {"frequencies.length": "1e300", "frequencies.show": "<b>"})
    assert given == {"frequencies.length": 10_000_000}


def test_picture_declares_its_kind_without_rendering():
    assert all(isinstance(picture, Picture) and picture.kind for picture in PICTURES)
    assert dataclasses.is_dataclass(scaling.comparison.kind)


def test_file_name_holds_the_shown_range():
    def named(address, look, **query):
        page, _, name = address.partition("/")
        picture = registry.picture(page, name)
        return wire_format.file(picture, read(picture, model="qwen3-8b", **query), look=Style.read(look))

    zoomed = named("frequencies/heatmap", {}, target="10000000", view="1000000,5000000")
    assert "_zoom1000000-5000000_" in f"{zoomed}_"
    ends = {"xmin": "10", "xmax": "100"}
    assert named("decay/curves", {}).endswith("_0-40k")
    assert named("decay/curves", ends).endswith("_x10-100")
    assert named("scaling/comparison", ends | {"ymin": "0.5"}).endswith("_x10-100_yfrom0.5")
    assert named("decay/curves", ends, view="1,2") == named("decay/curves", ends)
