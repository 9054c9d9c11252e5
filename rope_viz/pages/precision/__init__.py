"""Pictures of the page Precision: the position at which rounding starts to matter for this model."""

from __future__ import annotations

from rope_viz.pages.precision import figures, words
from rope_viz.pages.precision.figures import TEXTS
from rope_viz.picture.choices import Pick, Several, length
from rope_viz.picture.outputs import Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest

WHERE = Pick(key="precision.where", label=TEXTS("choices.where"), options=figures.PLACES, menu=330)
POSITION = length("precision.position", TEXTS("choices.position"), lambda request: request.spec.target, least=1)
SHOW = Pick(key="precision.show", label=TEXTS("choices.show"), options=figures.VIEWS)
COMPARE = Several(
    key="precision.with", label=TEXTS("choices.compare"), options=figures.SHORT, usual=lambda request: figures.OTHERS
)
PAGE = Page("precision", (WHERE, POSITION, SHOW, COMPARE), door="lab")


@PAGE.picture(WHERE, POSITION, pin=True)
def errors(request: PictureRequest) -> Figure:
    """The error of every pair by position."""
    where, position = request[WHERE], request[POSITION]
    return Figure(
        figures.heatmap(request.spec, where, position=position, live=request.coarse, pin=request.pin),
        TEXTS("errors_title", rounding=figures.PLACES[where]),
        words.describe_errors(request.spec, where, position, live=request.coarse),
        pins="y",
    )


@PAGE.picture(WHERE, SHOW, COMPARE, height=400)
def scores(request: PictureRequest) -> Figure:
    """The score of two tokens at a fixed distance, by their position."""
    names = request[COMPARE]
    return Figure(
        figures.scores(request.spec, request[WHERE], shown=request[SHOW], names=list(names), live=request.coarse),
        TEXTS("scores_title"),
        words.describe_score(request.spec, request[WHERE], live=request.coarse),
        variant=f"scores-{request[SHOW]}",
    )


@PAGE.picture(height=424, still=True)
def roundings(request: PictureRequest) -> Table:
    """Every rounding for this model, up to its target length."""
    return Table(figures.summary(request.spec), TEXTS("table_title"), TEXTS("table"))
