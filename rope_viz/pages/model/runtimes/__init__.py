"""Pictures of the page Runtimes: how each runtime reads this config."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from rope_viz.advice.plan import runtime_matrix
from rope_viz.advice.plan.runtime_matrix import RuntimeCase, RuntimeMatrix
from rope_viz.advice.training.make_match import Remedy, find_remedy
from rope_viz.advice.training.match_training import SERVERS, Match, TrainingMatrix, compare_trainers, state_of
from rope_viz.figures.words import plain
from rope_viz.models.config_reader import has_one_axis, is_pipeline_part
from rope_viz.models.read_upload import is_encoder_only
from rope_viz.models.spec_url import Subject
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.pages.model.runtimes import figures, history, words
from rope_viz.picture.choices import Menu, Pick, Switch
from rope_viz.picture.outputs import ROW, Figure, Grid, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.runtimes.axes import AxesAnswer, axes_answers
from rope_viz.runtimes.compare import list_releases
from rope_viz.runtimes.history import History
from rope_viz.runtimes.trainers import TRAINERS
from rope_viz.texts import Texts, cache_by_language, join

TEXTS, RUNTIMES = Texts("model/training"), Texts("model/runtimes")


@cache_by_language()
def list_cells() -> dict[str, str]:
    """Return {id: label} of every trainer with every server, row by row."""
    return {f"{trainer}_{server}": f"{one.label}, {server}" for trainer, one in TRAINERS.items() for server in SERVERS}


def make_cell_choice(find_matrix: Callable[[PictureRequest], TrainingMatrix], needs: tuple[Choice[Any], ...]) -> Menu:
    """Return the choice of a cell; the default is the one with the largest difference. `needs` decide the matrix."""
    return Menu(
        key="runtimes.cell",
        label=TEXTS("cell"),
        entries=lambda request: list_cells(),
        usual=lambda request: "_".join(find_matrix(request).worst or ()),
        check=lambda name: name in list_cells(),
        needs=needs,
    )


AT = Pick(
    key="runtimes.at",
    label=RUNTIMES("choices.at"),
    options=figures.LENGTHS,
    when=lambda request: request.spec.scaling.depends_on_length,
)
VLLM = Pick(
    key="runtimes.vllm", label=RUNTIMES("choices.vllm"), options={v: f"vLLM {v}" for v in list_releases()["vllm"]}
)
SGLANG = Pick(
    key="runtimes.sglang",
    label=RUNTIMES("choices.sglang"),
    options={v: f"SGLang {v}" for v in list_releases()["sglang"]},
)
GRID_HEIGHTS = (745, 920)
"""Pixels of the table of trainers, on a wide and on a narrow screen."""
ALL = Switch(key="runtimes.all", label=RUNTIMES("choices.all"))
CELL = make_cell_choice(lambda request: trainings(request), (AT, VLLM, SGLANG))
PAGE = Page(
    "runtimes",
    (AT, VLLM, SGLANG, ALL, CELL),
    sees=lambda request: config_and_length(request),
    shown_on="model",
    query="extend.tab=runtimes",
)


def config_and_length(request: PictureRequest) -> Hashable:
    """Return what the page depends on: the embedding in question, and the length that its frequencies depend on."""
    start = request.subject.start
    spec = start if runtime_matrix.is_unchanged(request.spec, start) else request.spec
    return request.layer, spec, request.spec.target if request.spec.scaling.depends_on_length else 0


def config_in_question(request: PictureRequest) -> RuntimeCase:
    """Return the config in question: the model's own, or one made from the knobs."""
    return _config_for(request.subject)


def sequence_length(request: PictureRequest) -> int | None:
    """Return the length of the sequence, None for short ones."""
    return request.spec.target if request[AT] == "target" else None


def answers(request: PictureRequest) -> RuntimeMatrix:
    """Return every runtime's answer."""
    return _answers(request.subject, sequence_length(request), request[VLLM], request[SGLANG])


def trainings(request: PictureRequest) -> TrainingMatrix:
    """Return every trainer against every server."""
    return _trainings(request.subject, sequence_length(request), request[VLLM], request[SGLANG])


def chosen_match(request: PictureRequest) -> Match:
    """Return the match of the chosen trainer and server."""
    trainer, _, server = request[CELL].partition("_")
    return trainings(request).find(trainer, server)


def chosen_remedy(request: PictureRequest) -> Remedy:
    """Return what makes the chosen server compute what was trained."""
    asked = config_in_question(request)
    return find_remedy(
        chosen_match(request), asked.config, length=sequence_length(request), layer_type=asked.layer or None
    )


def diffusion(request: PictureRequest) -> str:
    """Return why these runtimes do not apply to a diffusion transformer or a lone encoder, "" otherwise."""
    if request.own is None or request.subject.config is None:
        return ""
    drawn = is_pipeline_part(request.subject.config)
    if not drawn and not is_encoder_only(request.subject.config, request.own.model_config):
        return ""
    kind = RUNTIMES("other_kinds.diffusion" if drawn else "other_kinds.encoder", name=plain(request.subject.name))
    return join(kind, RUNTIMES("other_kinds.axes"))


def unmatched(request: PictureRequest) -> str:
    """Return why trainers and servers are not compared, "" where they are."""
    found = diffusion(request)
    return found or (words.summarise(trainings(request)) if trainings(request).problem else "")


def several(request: PictureRequest) -> tuple[AxesAnswer, ...]:
    """Return how every runtime handles the axes of the model's own config, () for a model with one axis."""
    return _several(request.subject.unchanged)


@PAGE.picture(AT, VLLM, SGLANG, pin=True, config=True, refuses=diffusion)
def curves(request: PictureRequest) -> Figure:
    """The frequencies of the runtimes that differ, over those of transformers."""
    figure, title = figures.curves(answers(request), request.spec, pin=request.pin)
    return Figure(figure, title, words.agreement(answers(request)), pins="x")


@PAGE.picture(AT, VLLM, SGLANG, config=True, height=430, refuses=diffusion)
def matrix(request: PictureRequest) -> Table:
    """Every runtime's answer as text, with its reason and its repair."""
    sentence = words.whose(config_in_question(request), sequence_length(request))
    rows = figures.matrix(answers(request), config_in_question(request).config)
    return Table(rows, RUNTIMES("matrix_title"), sentence, words=True)


@PAGE.picture(config=True, height=lambda request: ROW * (len(several(request)) + 2), refuses=diffusion)
def axes(request: PictureRequest) -> Table:
    """What each runtime does with the axes of a model that reads images and videos: sections, positions, YaRN."""
    found = several(request)
    title = RUNTIMES("axes.title")
    return Table(figures.several(found), title, words.several(found), words=True)


@PAGE.picture(
    AT,
    VLLM,
    SGLANG,
    CELL,
    sets=CELL,
    config=True,
    height=GRID_HEIGHTS[0],
    narrow=GRID_HEIGHTS[1],
    refuses=unmatched,
    query="extend.tab=training",
)
def training(request: PictureRequest) -> Grid:
    """Every trainer against every server on this config: same, differs, refused or not known."""
    found = trainings(request)
    return Grid(
        figures.training_matrix(found),
        words.TEXTS("title"),
        words.summarise(found),
        states=[state_of(match) for row in found.rows for match in row],
        chosen=list(list_cells()).index(request[CELL]),
    )


def histories(request: PictureRequest) -> list[History]:
    """Return what every known release of each runtime computes, [] where the runtimes cannot be compared."""
    return _histories(request.subject, sequence_length(request))


def untraced(request: PictureRequest) -> str:
    """Return why there is no time line, "" where there is one."""
    return diffusion(request) or ("" if histories(request) else str(RUNTIMES("history.problem")))


def line_height(request: PictureRequest) -> int:
    """Return the height of the time line."""
    return history.find_height(histories(request))


@PAGE.picture(AT, config=True, height=line_height, refuses=untraced)
def releases(request: PictureRequest) -> Figure:
    """What every known release of each runtime computes from this config, oldest first."""
    found = histories(request)
    return Figure(history.draw(found), RUNTIMES("history.title"), history.summarise(found))


def table_height(request: PictureRequest) -> int:
    """Return the height for one row per span."""
    return ROW * (1 + len(history.tabulate(histories(request))))


@PAGE.picture(AT, config=True, height=table_height, refuses=untraced)
def spans(request: PictureRequest) -> Table:
    """From which release to which each runtime computes what, why, and how that is known."""
    return Table(history.tabulate(histories(request)), RUNTIMES("history.table_title"), words=True)


def list_height(request: PictureRequest) -> int:
    """Return the height for one row per model; the full list scrolls."""
    return 600 if request[ALL] else 2 + 35 * (len(figures.model_list()) + 1)


# The page Who differs? shows the same with its sources. This address is in links and files.
@PAGE.picture(ALL, height=list_height, still=True, repeats=True)
def models(request: PictureRequest) -> Table:
    """The whole list of models against every runtime."""
    rows = figures.model_list(everything=request[ALL])
    return Table(rows, RUNTIMES("models_title"), words.model_list())


@cache_by_config(64)
def _several(subject: Subject) -> tuple[AxesAnswer, ...]:
    config = subject.config
    try:
        return () if config is None or has_one_axis(config) else axes_answers(config)
    except ValueError:
        return ()  # the other pictures report an unreadable config


@cache_by_config(64)
def _config_for(subject: Subject) -> RuntimeCase:
    return runtime_matrix.config_for(subject)


@cache_by_config(64)
def _answers(subject: Subject, length: int | None, vllm: str, sglang: str) -> RuntimeMatrix:
    return runtime_matrix.compare_runtimes(_config_for(subject), length, {"vllm": vllm, "sglang": sglang})


@cache_by_config(64)
def _histories(subject: Subject, length: int | None) -> list[History]:
    return history.trace(_config_for(subject), length)


@cache_by_config(64)
def _trainings(subject: Subject, length: int | None, vllm: str, sglang: str) -> TrainingMatrix:
    asked = _config_for(subject)
    releases = {"vllm": vllm, "sglang": sglang}
    return compare_trainers(asked.config, length=length, layer_type=asked.layer or None, releases=releases)
