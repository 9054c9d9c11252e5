"""The picture of the page Heads that shows what a real model loses by groups of pairs, for some sets of heads."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from rope_viz.figures import line_styles, theme
from rope_viz.figures.band_words import (
    TEXTS,
    count_gaps,
    describe_claims,
    list_ends,
    name_change,
    name_heads,
    name_pairs,
)
from rope_viz.figures.intervals import Points, draw_points, tabulate_points
from rope_viz.real_models.band_table import BandTable, Condition, Estimate
from rope_viz.studies.real_model import real_spec
from rope_viz.texts import Sentence, join


def list_groups(table: BandTable, how: str) -> list[str]:
    """Return the groups of pairs with this change, measured or planned, from high to low frequency."""
    return list(dict.fromkeys(each.pairs for each in table.planned if each.how == how))


def read_measure(table: BandTable, measure: str, condition: Condition) -> Estimate:
    """Return the added loss or the share of needles found, each (1,)."""
    return table.added_loss(condition) if measure == "loss" else table.found(condition)


def draw_groups(table: BandTable, how: str, measure: str) -> go.Figure:
    """Draw what a change of each group of pairs does, for each choice of heads, against the model as it is."""
    groups = list_groups(table, how)
    names = list(dict.fromkeys(each.heads for each in table.conditions if each.how == how))
    looks = [line_styles.CURRENT, *line_styles.take_slots(len(names) - 1)]
    sets = []
    for heads, look in zip(names, looks, strict=True):
        rows = np.full((len(groups), 3), np.nan)
        for index, pairs in enumerate(groups):
            condition = Condition(pairs, how, heads)
            if condition in table.conditions:
                rows[index] = list(list_ends(read_measure(table, measure, condition)).values())
        sets.append(Points(name_heads(table, heads), look, *rows.T))
    measured = {each.pairs for each in table.conditions if each.how == how}
    labels = [each.replace("-", "–") for each in groups]
    ticks = [
        label if pairs in measured else str(TEXTS("open.group", pairs=label))
        for pairs, label in zip(groups, labels, strict=True)
    ]
    x, is_loss = np.arange(len(groups), dtype=float), measure == "loss"
    before = 0.0 if is_loss else float(table.found(None).mean[0])
    fig = theme.figure(
        draw_points(sets, x, 0.16, TEXTS(f"groups.{measure}_hover"), lines=False),
        x={"title": TEXTS("groups.axis"), "tickvals": x, "ticktext": ticks}
        | {"range": [-0.6, len(groups) - 0.4], "showspikes": False},
        y={"title": TEXTS(f"{measure}.axis")} | ({} if is_loss else {"range": [-0.03, 1.05], "tickformat": ".0%"}),
        shapes=[theme.rule(before, TEXTS("unchanged"), dash="dot")],
        hovermode="closest",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 68, "r": 24, "t": 26, "b": 48},
    )
    fig.table = lambda: tabulate_points(str(TEXTS("groups.axis")), groups, sets)
    return fig


def describe_groups(table: BandTable, how: str, model: str) -> Sentence:
    """Say which pairs matter most and how that was measured, without a `model` also what it says of two claims."""
    found = [each for each in table.conditions if each.how == how]
    most = max(found, key=lambda each: float(table.added_loss(each).mean[0]))
    words = {"pairs": name_pairs(most.pairs), "heads": name_heads(table, most.heads)}
    return join(
        TEXTS("groups.largest", change=name_change(how, "changed"), **words, **list_ends(table.added_loss(most)))
        if len(found) > 1
        else "",
        "" if model else describe_claims(table, real_spec()),
        count_gaps(table),
        TEXTS(
            "groups.measured",
            model=model or TEXTS("model"),
            tokens=table.tokens,
            needle=table.needle_tokens,
            count=table.texts,
        ),
    )
