"""Figures over the pairs: wavelengths against the lengths, and the heatmap of the θᵢ bands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import cell_text, theme
from rope_viz.figures.line_styles import length_rules, pin_rule
from rope_viz.figures.words import BANDS, name_band
from rope_viz.texts import Texts

TEXTS = Texts("frequencies")
QUANTITIES = TEXTS.group("quantities")
MAX_POSITION = 10_000_000


def pairs(spec: RopeSpec) -> dict[str, Any]:
    """Return every pair's dimensions, frequencies, wavelengths, turns and band as table columns."""
    scaled = spec.inv_freq(spec.target)
    first = np.arange(spec.pairs)
    names = [name_band(kind) for kind in BANDS]
    both = (first, first + spec.pairs) if spec.pairing == "half" else (2 * first, 2 * first + 1)
    return {
        TEXTS("columns.pair"): first,
        TEXTS("columns.dimensions"): [f"{a}, {b}" for a, b in zip(*both, strict=True)],
        TEXTS("columns.plain"): spec.plain_inv_freq,
        TEXTS("columns.scaled"): scaled,
        TEXTS("columns.ratio"): spectrum.ratio(spec, length=spec.target),
        TEXTS("columns.plain_wavelength"): spectrum.wavelength(spec.plain_inv_freq),
        TEXTS("columns.scaled_wavelength"): spectrum.wavelength(scaled),
        TEXTS("columns.turns"): spec.context * spectrum.trained_inv_freq(spec) / spectrum.TAU,
        TEXTS("columns.band"): [names[kind] for kind in spectrum.bands(spec, length=spec.target).kind],
    }


def heatmap(
    spec: RopeSpec,
    *,
    stop: int,
    view: tuple[float, float] | None = None,
    quantity: str = "cos",
    bins: int = 800,
    pin: int | None = None,
) -> go.Figure:
    """Draw cos, sin or angle of every pair over the positions 0 … stop − 1: the exact mean of each bin, not a sample.

    `view` is the visible range of positions. Only that range is computed, so that a zoom resolves single positions.
    """
    first, end = (0, stop) if view is None else _clipped(view, stop)
    edges = spectrum.bin_edges(first, end, bins)
    mean = spectrum.bin_mean(spec.inv_freq(stop), edges)
    middle = (edges[:-1] + edges[1:] - 1) / 2.0
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": middle,
        "y": np.arange(spec.pairs),
        "zsmooth": False,
        "hoverongaps": False,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "len": 1.0, "x": 1.01, "xpad": 4},
    }
    if quantity == "angle":
        # A bin that spans more than about a third of a turn has no meaningful angle: leave it blank.
        share = np.where(np.abs(mean) > 0.8, np.angle(mean) / (2 * math.pi) % 1.0, np.nan)
        shown = share
        trace |= {"z": share.astype(np.float32), "zmin": 0, "zmax": 1, "colorscale": theme.CYCLIC}
        trace["colorbar"] |= {"tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": TEXTS("map.turn"), "side": "top"}}
        trace["hovertemplate"] = TEXTS("map.angle_hover")
    else:
        shown = mean.real if quantity == "cos" else mean.imag
        trace |= {"z": shown.astype(np.float32), "zmin": -1, "zmax": 1, "colorscale": theme.DIVERGING}
        trace["colorbar"] |= {"tickvals": [-1, 0, 1], "title": {"text": quantity, "side": "top"}}
        key = "map.hover" if end - first <= bins else "map.mean_hover"
        trace["hovertemplate"] = TEXTS(key, quantity=quantity, positions=(end - first) / (len(edges) - 1))
    fig = theme.figure(
        [trace],
        x={
            "title": TEXTS("map.position"),
            "range": [-0.5, stop - 0.5],
            **theme.length_ticks(0, stop, log=False),
            "showspikes": False,
            "showgrid": False,
            "minallowed": -0.5,
            "maxallowed": stop,
        },
        y={
            "title": theme.TEXTS("axes.pair"),
            "range": [spec.pairs - 0.5, -0.5],
            "tickvals": theme.thin_ticks(spec.pairs),
            "showgrid": False,
            "fixedrange": True,
        },
        height=theme.SIDE_HEIGHT + 40,
        shapes=[*pin_rule(pin, spec), *length_rules(spec, axis="x", stop=stop)],
        hovermode="closest",
        margin={"l": 68, "r": 76, "t": 26, "b": 48},
    )
    kind = "angle (turn)" if quantity == "angle" else f"{quantity} of the angle"
    each = kind if np.all(np.diff(edges) == 1) else f"mean of {kind}"
    fig.table = lambda: cell_text.binned_table(edges, shown.T.astype(np.float32), each)
    return fig


def _clipped(view: tuple[float, float], stop: int) -> tuple[int, int]:
    first = max(0, min(math.floor(view[0] + 0.5), stop - 1))
    return first, max(first + 1, min(math.ceil(view[1] + 0.5), stop))
