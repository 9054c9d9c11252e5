"""Pictures of the page Recall that show what a real model loses when some pairs of some heads change."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import line_styles, theme
from rope_viz.figures.band_words import (
    TEXTS,
    describe_gaps,
    explain_no_change,
    list_ends,
    name_change,
    name_heads,
    name_pairs,
)
from rope_viz.figures.intervals import Points
from rope_viz.figures.line_styles import LineStyle
from rope_viz.pages.recall import choices, figures
from rope_viz.pages.recall.choices import CHANGE, GROUP, MEASURED, PAGE, band_table
from rope_viz.pages.recall.figures import RecallCurve
from rope_viz.picture.outputs import Figure
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.band_table import FIRST, SECOND, BandTable, Condition, Estimate
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_list


def chosen_conditions(request: PictureRequest) -> list[Condition]:
    """Return the changes of the chosen pairs, one for each choice of heads."""
    wanted = request[GROUP], request[CHANGE]
    return [each for each in band_table(request).conditions if (each.pairs, each.how) == wanted]


def vary(request: PictureRequest) -> str:
    """Return the name of the stored file, "" for the shipped table."""
    held = request[MEASURED]
    return "" if held is None else held.name


def list_curves(table: BandTable, found: list[tuple[str, Estimate]], x: FloatArray) -> list[RecallCurve]:
    """Return a curve per choice of heads, the first in the colour of the current model."""
    looks = [line_styles.CURRENT, *line_styles.take_slots(len(found) - 1)]
    return [
        RecallCurve(name_heads(table, heads), *look, x, each.mean, each.low, each.high)
        for (heads, each), look in zip(found, looks, strict=True)
    ]


def explain_gap(request: PictureRequest) -> str:
    """Return why the pictures cannot be drawn, "" if they can."""
    return explain_no_change(band_table(request), request[CHANGE], request[GROUP])


@PAGE.picture(GROUP, CHANGE, MEASURED, query="recall.tab=pairs", refuses=explain_gap)
def band_loss(request: PictureRequest) -> Figure:
    """What a change of some pairs adds to the loss of a real model by position, for some sets of heads."""
    table, model = band_table(request), choices.name_band_model(request)
    conditions = chosen_conditions(request)
    plain = table.losses[FIRST, None].mean(axis=0)
    x: FloatArray = np.arange(0.5, len(plain)) * float(table.block)
    curves = list_curves(table, [(each.heads, table.added_by_position(each)) for each in conditions], x)
    effects = [
        TEXTS("loss.effect", heads=name_heads(table, each.heads), **list_ends(table.added_loss(each)))
        for each in conditions
    ]
    sentence = join(
        TEXTS(
            "loss.sentence",
            pairs=name_pairs(request[GROUP]),
            change=name_change(request[CHANGE], "changed"),
            plain=float(plain.mean()),
            tokens=table.tokens,
            effects=join_list(effects),
        ),
        describe_second(table, request),
        describe_gaps(table, request[GROUP], request[CHANGE]),
        TEXTS("loss.measured", model=model, count=table.texts, tokens=table.tokens),
    )
    fig = figures.added_losses(curves, plain, table.tokens)
    return Figure(fig, TEXTS("loss.title", model=model), sentence, variant=vary(request))


def describe_second(table: BandTable, request: PictureRequest) -> Sentence:
    """Return what the second set of texts says of the change in all heads, "" where it was not measured."""
    condition = Condition(request[GROUP], request[CHANGE], "all")
    if (SECOND, condition) not in table.losses:
        return Sentence()
    ends = list_ends(table.added_loss(condition, SECOND))
    return TEXTS("loss.second", count=len(table.losses[SECOND, None]), **ends)


@PAGE.picture(GROUP, CHANGE, MEASURED, query="recall.tab=pairs", height=theme.SIDE_HEIGHT, refuses=explain_gap)
def band_needle(request: PictureRequest) -> Figure:
    """The needles that a real model finds by depth, as it is and with some pairs changed, with intervals."""
    table, model = band_table(request), choices.name_band_model(request)
    conditions = chosen_conditions(request)
    states: list[tuple[str, LineStyle, Condition | None]] = [(TEXTS("unchanged"), line_styles.PLAIN, None)]
    looks = [line_styles.CURRENT, *line_styles.take_slots(len(conditions) - 1)]
    states += [(name_heads(table, each.heads), look, each) for each, look in zip(conditions, looks, strict=True)]
    sets = []
    for label, look, condition in states:
        found = table.found_by_depth(condition)
        sets.append(Points(str(label), look, found.mean, found.low, found.high))
    effects = [
        TEXTS("needle.effect", value=float(table.found(each).mean[0]), heads=name_heads(table, each.heads))
        for each in conditions
    ]
    answers = table.right[FIRST, None]
    sentence = join(
        TEXTS(
            "needle.sentence",
            pairs=name_pairs(request[GROUP]),
            change=name_change(request[CHANGE], "changed"),
            asked=answers.size,
            before=float(table.found(None).mean[0]),
            effects=join_list(effects),
        ),
        describe_gaps(table, request[GROUP], request[CHANGE]),
        TEXTS("needle.measured", model=model, tokens=table.needle_tokens, count=len(answers)),
    )
    return Figure(
        figures.found_by_depth(sets, np.array(table.depths)),
        TEXTS("needle.title", model=model),
        sentence,
        variant=vary(request),
    )
