"""The page of all models in all runtimes: who computes a rotary embedding differently, and how that is known."""

from __future__ import annotations

from rope_viz.models.catalog import catalog
from rope_viz.pages.differences import figures, words
from rope_viz.pages.differences.figures import RELEASE_IDS, TEXTS, ModelAnswer, list_answers
from rope_viz.picture.choices import Menu, Pick, Switch
from rope_viz.picture.outputs import ROW, Figure, Grid, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.runtimes.verdict_counts import find_state
from rope_viz.texts import cache_by_language
from rope_viz.texts.texts import join_items

EVERY = "all"
MODEL = Pick(
    key="differences.model",
    label=TEXTS("choices.model"),
    options={EVERY: TEXTS("choices.all_models")} | {name: model.name for name, model in catalog().items()},
    menu=280,
)
RUNTIME = Pick(
    key="differences.runtime",
    label=TEXTS("choices.runtime"),
    options={EVERY: TEXTS("choices.all_runtimes")} | RELEASE_IDS,
    menu=220,
)
ALL = Switch(
    key="differences.all",
    label=TEXTS("choices.all"),
    when=lambda request: request[MODEL] == EVERY,
    needs=(MODEL,),
)
CELL = Menu(
    key="differences.cell",
    label=TEXTS("choices.cell"),
    entries=lambda request: list_cells(request),
    usual=lambda request: find_usual_cell(request),
    check=lambda name: name in {one.id for answers in list_answers().values() for one in answers},
    needs=(MODEL, RUNTIME, ALL),
)
TALLEST, TALLEST_NARROW = 540, 840
"""Pixels of the grid at most, as in grid.js; a longer one scrolls."""
PAGE = Page("differences", (MODEL, RUNTIME, ALL, CELL), sees=lambda request: (), door="model")


def list_shown(request: PictureRequest) -> tuple[tuple[ModelAnswer, ...], ...]:
    """Return the rows of the grid: the answers for each model that the filters leave, and for the linked one.

    A runtime that computes no model differently leaves all of them.
    """
    linked = str(request.given.get(CELL.key, "")).partition("_")[0]
    return _list_shown(request[MODEL], request[RUNTIME], request[ALL], linked if linked in list_answers() else "")


# A run of the page needs the rows ten times.
@cache_by_language(256)
def _list_shown(chosen: str, runtime: str, everything: bool, linked: str) -> tuple[tuple[ModelAnswer, ...], ...]:
    if chosen != EVERY:
        return (list_answers()[chosen],)
    left = {model for model, answers in list_answers().items() if any(select(runtime, answers))}
    everything = everything or not left
    return tuple(answers for model, answers in list_answers().items() if everything or model in {*left, linked})


def select(runtime: str, answers: tuple[ModelAnswer, ...]) -> list[ModelAnswer]:
    """Return the answers of a runtime, or of all, that differ."""
    return [one for one in answers if one.differs and runtime in (EVERY, one.release)]


def list_cells(request: PictureRequest) -> dict[str, str]:
    """Return {id: label} of the cells of the grid row by row, followed by the other answers."""
    shown = list_shown(request)
    models = {answers[0].model.id for answers in shown}
    others = [answers for model, answers in list_answers().items() if model not in models]
    return {one.id: join_items((one.model.name, one.name)) for answers in (*shown, *others) for one in answers}


def find_usual_cell(request: PictureRequest) -> str:
    """Return the cell that differs most, of the first model in the grid."""
    answers = list_shown(request)[0]
    return max(select(request[RUNTIME], answers) or answers, key=lambda one: one.distance).id


def chosen_answer(request: PictureRequest) -> ModelAnswer:
    """Return the answer of the chosen cell."""
    model = request[CELL].partition("_")[0]
    return next(one for one in list_answers()[model] if one.id == request[CELL])


def list_rows(request: PictureRequest) -> list[ModelAnswer]:
    """Return the answers of the table: those that differ, and all of a chosen model."""
    if request[MODEL] != EVERY:
        return [one for one in list_answers()[request[MODEL]] if request[RUNTIME] in (EVERY, one.release)]
    return [one for answers in list_answers().values() for one in select(request[RUNTIME], answers)]


@PAGE.picture(
    MODEL,
    RUNTIME,
    ALL,
    CELL,
    sets=CELL,
    height=lambda request: min(58 + 36 * len(list_shown(request)), TALLEST),
    narrow=lambda request: min(152 + 40 * len(list_shown(request)), TALLEST_NARROW),
)
def matrix(request: PictureRequest) -> Grid:
    """Every model of the list in every runtime: agrees, differs, refuses or not known."""
    rows = list_shown(request)
    cells = [one for answers in rows for one in answers]
    ids = [one.id for one in cells]
    return Grid(
        figures.matrix(rows),
        TEXTS("matrix_title"),
        words.summarise(),
        states=[figures.SIGNS[find_state(one.comparison)] for one in cells],
        chosen=ids.index(request[CELL]) if request[CELL] in ids else 0,
        letters=[one.format_letters() for one in cells],
    )


@PAGE.picture(MODEL, RUNTIME, height=lambda request: ROW * (1 + len(list_rows(request))))
def answers(request: PictureRequest) -> Table:
    """What each runtime computes differently, by how much, why, and how that is known."""
    rows = list_rows(request)
    sentence = words.introduce(rows, RUNTIME.options[request[RUNTIME]])
    return Table(figures.answer_table(rows), TEXTS("answers_title"), sentence, words=True)


@PAGE.picture(height=lambda request: figures.find_counts_height(), crowded=True)
def counts(request: PictureRequest) -> Figure:
    """How many models of the list each runtime computes differently, apart by how that is known."""
    return Figure(figures.counts(), TEXTS("counts_title"), words.date_counts())
