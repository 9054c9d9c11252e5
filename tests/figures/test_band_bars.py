"""Bands are thin bars above the plot, one per curve, with counts that `spectrum.bands` has; files show them too."""

import itertools

import numpy as np
import pytest

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import Llama3
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import compared, method_curves, theme, wavelengths
from rope_viz.pages.scaling import figures as scaling
from rope_viz.reports.draw import figure

SPEC = RopeSpec(head_dim=128, base=500_000.0, context=8192, target=131_072, scaling=Llama3(8.0))


def bars(fig):
    return [shape for shape in fig.layout.shapes if shape.name == "band" and shape.type == "rect"]


def test_each_curve_has_a_bar_that_covers_every_pair_once():
    curves = compared.compared(SPEC, compared.alternatives(SPEC, ["yarn", "linear"]))
    rows = {}
    for shape in bars(method_curves.ratios(curves)):
        rows.setdefault(shape.y0, []).append(shape)
    assert len(rows) == len(curves)
    for curve, (_, row) in zip(curves, sorted(rows.items(), reverse=True), strict=True):
        kinds = spectrum.bands(curve.spec, length=curve.spec.target).kind
        drawn = np.full(SPEC.pairs, -1)
        for shape in row:
            span = slice(int(shape.x0 + 0.5), int(shape.x1 + 0.5))
            drawn[span] = theme.BAND_COLOURS.index(shape.fillcolor)
            if shape.label.text:
                name = spectrum.BAND_NAMES[kinds[span][0]]
                assert shape.label.text == f"{name} {span.stop - span.start}"
        assert np.array_equal(drawn, kinds)


@pytest.mark.parametrize("draw", [wavelengths.wavelengths, scaling.paper_and_released])
def test_bars_are_above_the_plot_and_inside_the_figure(draw):
    fig = draw(SPEC)
    margin = fig.layout.margin
    plot = fig.layout.height - margin.t - margin.b
    for shape in bars(fig):
        assert 1 < shape.y0 < shape.y1
        assert (shape.y1 - 1) * plot + 15 <= margin.t  # with its label


def test_bars_of_neighbouring_curves_do_not_touch():
    curves = compared.compared(SPEC, compared.alternatives(SPEC, ["yarn", "linear", "ntk"]))
    heights = sorted({(shape.y0, shape.y1) for shape in bars(method_curves.ratios(curves))})
    assert all(below[1] < above[0] for below, above in itertools.pairwise(heights))


@pytest.mark.parametrize("size", ["", "&width=85mm&height=60mm", "&theme=dark"])
def test_files_show_the_bars_with_their_counts(size):
    drawn = figure(f"scaling/comparison?model=llama-3.1-8b{size}").decode()
    for name in ("kept 29", "divided 29", "divided 64"):
        assert name in drawn


@pytest.mark.parametrize("pin", [0, 36, 63])
def test_a_pinned_pair_is_named_inside_the_plot_where_bars_are(pin):
    fig = method_curves.ratios(compared.compared(SPEC, []), pin=pin)
    (rule,) = (shape for shape in fig.layout.shapes if shape.type == "line" and shape.x0 == pin)
    assert rule.label.text is None
    (note,) = (note for note in fig.layout.annotations if note.text == f"pair {pin}")
    assert (note.y, note.yanchor) == (0, "bottom")
    assert note.xanchor == ("left" if pin < 32 else "right")
