"""The picture of Recall of what static YaRN costs short texts, as measured on a real model."""

from __future__ import annotations

import numpy as np

from rope_viz.figures import real_model as figures
from rope_viz.figures import theme
from rope_viz.figures.line_styles import METHODS, take_slots
from rope_viz.figures.recall import TEXTS, Line
from rope_viz.figures.scaling import short_label
from rope_viz.figures.words import real_model as words
from rope_viz.pictures.outputs import Figure
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_choices import PAGE
from rope_viz.studies.real_model import compare_losses, load_short_losses

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
"""Lengths of texts, in tokens; the real model was trained on the last one."""


@PAGE.picture(height=theme.SIDE_HEIGHT)
def short_cost(now: Now) -> Figure:
    """The loss that static YaRN adds to texts within the trained length, by their length, with intervals."""
    block, losses = load_short_losses()
    plain = losses["none", 1.0]
    looks = [*take_slots(1, [METHODS["yarn"]]), METHODS["yarn"]]
    lines = []
    for (method, factor), look in zip(sorted(key for key in losses if key[0] == "yarn"), looks, strict=True):
        cut = [tokens // block for tokens in LENGTHS]
        means = [
            [values[:, :count].mean(axis=1, keepdims=True) for values in (losses[method, factor], plain)]
            for count in cut
        ]
        found = np.array([compare_losses(*each) for each in means])
        value, error = found[:, 0], found[:, 1]
        label = TEXTS("real.by", method=short_label(method), factor=factor)
        lines.append(Line(label, *look, np.array(LENGTHS, dtype=float), value, value - error, value + error))
    unscaled = np.array([plain[:, : tokens // block].mean() for tokens in LENGTHS])
    sentence = words.describe_short_cost(lines, float(unscaled[LENGTHS.index(1024)]), 1024, plain.shape[0])
    return Figure(figures.cost_of_short_texts(lines, unscaled), TEXTS("short_cost_title"), sentence)
