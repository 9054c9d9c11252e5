"""The pairs that never completed a turn in training are shaded where their wavelength passes the trained length."""

import itertools
import math

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import wavelengths
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.pages.frequencies import figures as frequencies
from tests.offenders import for_each


def shaded(spec):
    shapes = wavelengths.wavelengths(spec).layout.shapes
    return [shape for shape in shapes if shape.type == "rect" and shape.y0 == spec.context and shape.fillcolor]


def test_plain_llama_2_shades_its_18_pairs():
    spec = RopeSpec(head_dim=128, base=10_000.0, context=4096, target=4096)
    (shape,) = shaded(spec)
    assert (shape.x0, shape.x1) == (45.5, 63.5)
    texts = [shape.label.text for shape in wavelengths.wavelengths(spec).layout.shapes]
    assert texts.count("never a whole turn in training: 18") == 1


def test_no_label_is_below_the_grid():
    for spec in model_specs("llama-3.1-8b").values():
        shapes = wavelengths.wavelengths(spec).layout.shapes
        assert any(shape.label.text for shape in shapes)
        assert not [shape for shape in shapes if shape.label.text and shape.layer == "below"]


def test_ticks_of_the_heatmap_are_steps_of_a_power_of_two():
    for stop, last in ((131_072, "128k"), (4096, "4k"), (100, "96")):
        axis = frequencies.heatmap(RopeSpec(), stop=stop, quantity="cos").layout.xaxis
        steps = {later - earlier for earlier, later in itertools.pairwise(axis.tickvals)}
        assert len(steps) == 1
        assert math.log2(steps.pop()).is_integer()
        assert axis.ticktext[-1] == last


@for_each(list(catalog()))
def test_pairs_with_a_turn_longer_than_training_are_shaded(model):
    for spec in model_specs(model).values():
        lit = {pair for shape in shaded(spec) for pair in range(math.ceil(shape.x0), math.floor(shape.x1) + 1)}
        still = spec.inv_freq(spec.target) == 0.0
        plain = [spec.base ** (-2 * pair / spec.rotary_dim) for pair in range(spec.pairs)]
        assert lit == {i for i, f in enumerate(plain) if spec.context * f < 2 * math.pi and not still[i]}


@for_each(list(catalog()))
def test_shading_label_avoids_the_curve_on_a_narrow_screen(model):
    for spec in model_specs(model).values():
        figure = wavelengths.wavelengths(spec)
        wide = [shape for shape in figure.layout.shapes if "whole turn" in (shape.label.text or "")]
        shapes = figure.layout.meta["narrow"]["shapes"]
        narrow = [shape for shape in shapes if "<br>" in shape.get("label", {}).get("text", "")]
        assert len(shapes) == len(figure.layout.shapes)
        assert [shape["label"]["text"].replace("<br>", " ") for shape in narrow] == [f"↑ {s.label.text}" for s in wide]
        for shape in narrow:
            inside = slice(math.ceil(shape["x0"]), math.floor(shape["x1"]) + 1)
            for trace in figure.data:
                values = [y for y in trace.y[inside] if y is not None and math.isfinite(y)]
                assert min(values, default=math.inf) >= shape["y1"]
