"""Pictures of the page Precision: the position at which rounding starts to matter for this model."""

from __future__ import annotations

from rope_viz.pages.precision import figures, words
from rope_viz.pages.precision.figures import TEXTS
from rope_viz.picture.choices import Pick, Several, length
from rope_viz.picture.outputs import Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Now

WHERE = Pick(key="precision.where", label=TEXTS("choices.where"), options=figures.PLACES, menu=330)
POSITION = length("precision.position", TEXTS("choices.position"), lambda now: now.spec.target, least=1)
SHOW = Pick(key="precision.show", label=TEXTS("choices.show"), options=figures.VIEWS)
COMPARE = Several(
    key="precision.with", label=TEXTS("choices.compare"), options=figures.SHORT, usual=lambda now: figures.OTHERS
)
PAGE = Page("precision", (WHERE, POSITION, SHOW, COMPARE))


@PAGE.picture(WHERE, POSITION, pin=True)
def errors(now: Now) -> Figure:
    """The error of every pair by position."""
    where, position = now[WHERE], now[POSITION]
    return Figure(
        figures.heatmap(now.spec, where, position=position, live=now.coarse, pin=now.pin),
        TEXTS("errors_title", rounding=figures.PLACES[where]),
        words.describe_errors(now.spec, where, position, live=now.coarse),
        pins="y",
    )


@PAGE.picture(WHERE, SHOW, COMPARE, height=400)
def scores(now: Now) -> Figure:
    """The score of two tokens at a fixed distance, by their position."""
    names = now[COMPARE]
    return Figure(
        figures.scores(now.spec, now[WHERE], shown=now[SHOW], names=list(names), live=now.coarse),
        TEXTS("scores_title"),
        words.describe_score(now.spec, now[WHERE], live=now.coarse),
        variant=f"scores-{now[SHOW]}",
    )


@PAGE.picture(height=424, still=True)
def roundings(now: Now) -> Table:
    """Every rounding for this model, up to its target length."""
    return Table(figures.summary(now.spec), TEXTS("table_title"), TEXTS("table"))
