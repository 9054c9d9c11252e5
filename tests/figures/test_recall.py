"""Bars of the recall figure stay below the names of the bands."""

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import bands
from rope_viz.figures import head_curves, theme
from rope_viz.pages.recall import figures as recall

KINDS = bands(RopeSpec(head_dim=32, base=10_000.0, context=256, target=1024))
PIXELS = 20
"""What a name takes from the upper edge."""


@pytest.mark.parametrize(
    "figure",
    [
        recall.carried(np.ones(16), 1.0, KINDS),
        head_curves.parts(np.linspace(-3.0, 4.0, 16), KINDS, before=np.linspace(5.0, -2.0, 16)),
        head_curves.parts(np.linspace(0.0, 1e-3, 16), KINDS),
    ],
)
def test_bars_do_not_reach_the_band_names(figure):
    low, high = figure.layout.yaxis.range
    inside = theme.SIDE_HEIGHT - figure.layout.margin.t - figure.layout.margin.b
    top = max(float(np.max(trace.y)) for trace in figure.data)
    assert (high - top) / (high - low) * inside >= PIXELS
