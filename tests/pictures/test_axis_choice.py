"""Frequencies, Scaling and Decay along one axis of a model that has several."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import THW, along_axis, interleave_sections, shared_ladder
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog
from rope_viz.models.config_reader import has_one_axis
from rope_viz.multi_axis.image_layouts import own_scenes
from rope_viz.pages import decay, frequencies, registry, scaling
from rope_viz.picture import read_address
from rope_viz.studies.scores import even_parts
from tests.mean_cosines import mean_cosine
from tests.offenders import for_each

PLAIN = RopeSpec(head_dim=128, base=5e6, context=32_768, target=131_072)
OWNER = interleave_sections([24, 20, 20], 64)


@pytest.mark.parametrize("spec", [PLAIN, dataclasses.replace(PLAIN, scaling=Yarn(factor=4.0))], ids=["plain", "yarn"])
@pytest.mark.parametrize("axis", THW)
def test_single_axis_spec_has_the_frequencies_of_that_axis(spec, axis):
    several = shared_ladder(spec, OWNER, THW)
    one = along_axis(spec, np.flatnonzero(np.array(OWNER) == THW.index(axis)))
    np.testing.assert_array_equal(one.inv_freq(), several.along(axis))
    assert one != spec
    assert dataclasses.replace(one, base=1e6).listens == one.listens


def test_single_axis_score_equals_a_move_along_the_axis():
    several = shared_ladder(PLAIN, OWNER, THW)
    one = along_axis(PLAIN, np.flatnonzero(np.array(OWNER) == 1))
    a, _, unrotated = even_parts(one)
    found = np.cos(np.outer(np.arange(200), one.inv_freq())) @ a + unrotated
    np.testing.assert_allclose(found, mean_cosine(several, "h", np.arange(200)), atol=1e-12)


def read(picture, **query):
    page = registry.page(picture.page)
    return read_address.read_request(page, {key.replace("__", "."): text for key, text in query.items()})


@pytest.mark.parametrize(
    "picture", [frequencies.wavelengths, scaling.comparison, decay.curves], ids=lambda p: p.address
)
def test_page_names_its_axis_and_offers_the_others(picture):
    key = f"{picture.page}__axis"
    text = picture(read(picture, model="qwen3.5-9b")).sentence
    assert text.entries[0] == "text"
    assert [text.values[role] for role in ("time", "row", "column")] == [11, 11, 10]
    row = picture(read(picture, model="qwen3.5-9b", **{key: "row"})).sentence
    assert row.entries[0] == "one"
    assert row.startswith("Along the axis **row**, only 11 of 32 pairs turn. ")
    assert "axis" not in picture(read(picture, model="llama-3.1-8b", **{key: "row"})).sentence.values


def test_columns_of_the_chosen_axis_alone_are_drawn():
    drawn = frequencies.wavelengths(read(frequencies.wavelengths, model="qwen3.5-9b", frequencies__axis="column")).fig
    points = [np.isfinite(np.asarray(trace.y, dtype=float)).sum() for trace in drawn.data]
    assert 10 in points


def test_method_lines_continue_over_pairs_of_other_axes():
    drawn = scaling.comparison(read(scaling.comparison, model="qwen3.5-9b", method="yarn", scaling__axis="row")).fig
    lines = [trace for trace in drawn.data if trace.type == "scatter"]
    assert lines
    assert all(trace.connectgaps and "markers" in trace.mode for trace in lines)
    assert all(np.isfinite(np.asarray(trace.y, dtype=float)).sum() == 11 for trace in lines)


@for_each(list(catalog()))
def test_single_axis_models_have_no_multi_axis_part(model):
    """Pages do not look for axes there, which takes time in every run."""
    config = catalog()[model].config
    if has_one_axis(config):
        assert all(len(scene.spec.axes) == 1 for scene in own_scenes(config, model).values())
