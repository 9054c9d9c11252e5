"""The figure of a search for frequencies: what was found, and YaRN's for the same length."""

from __future__ import annotations

import dataclasses

import plotly.graph_objects as go

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import line_styles, scaling
from rope_viz.figures.compared import Compared
from rope_viz.figures.recall import TEXTS
from rope_viz.figures.scaling import short_label
from rope_viz.texts import Sentence
from rope_viz.tiny_lm.search_results import SearchResult


def make_title(found: SearchResult) -> Sentence:
    """Return the figure's title."""
    return TEXTS("search.title", length=found.length)


def compare_with_yarn(found: RopeSpec) -> go.Figure:
    """Draw θ′/θ per pair of a found embedding, and of YaRN with the factor that just reaches its target."""
    yarn = dataclasses.replace(found, scaling=Yarn(factor=found.target / found.context))
    curves = [
        Compared(TEXTS("search.found"), found, *line_styles.CURRENT),
        Compared(short_label("yarn"), yarn, *line_styles.METHODS["yarn"]),
    ]
    return scaling.ratios(curves)
