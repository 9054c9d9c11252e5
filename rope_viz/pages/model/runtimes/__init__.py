"""Pictures of the page Runtimes: how each runtime reads this config."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from rope_viz.advice.plan import runtime_matrix
from rope_viz.advice.plan.runtime_matrix import Asked, Board
from rope_viz.advice.training.make_match import Remedy, find_remedy
from rope_viz.advice.training.match_training import Match
from rope_viz.advice.training.training_matrix import SERVERS, TrainingMatrix, compare_trainers, state_of
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words.common import plain
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.read_upload import is_encoder_only
from rope_viz.models.user_config import Upload
from rope_viz.pages.model.runtimes import figures, words
from rope_viz.picture.choices import Menu, Pick, Switch
from rope_viz.picture.config_cache import cache_by_config
from rope_viz.picture.outputs import ROW, Figure, Grid, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, Now, config_of
from rope_viz.runtimes.axes import AxesAnswer, axes_answers
from rope_viz.runtimes.compare import list_releases
from rope_viz.runtimes.trainers import TRAINERS
from rope_viz.texts import Texts

TEXTS = Texts("model/training")


@functools.cache
def list_cells() -> dict[str, str]:
    """Return {id: label} of every trainer with every server, row by row."""
    return {f"{trainer}_{server}": f"{one.label}, {server}" for trainer, one in TRAINERS.items() for server in SERVERS}


def make_cell_choice(find_matrix: Callable[[Now], TrainingMatrix], needs: tuple[Choice[Any], ...]) -> Menu:
    """Return the choice of a cell; the default is the one with the largest difference. `needs` decide the matrix."""
    return Menu(
        key="runtimes.cell",
        label=TEXTS("cell"),
        entries=lambda now: list_cells(),
        usual=lambda now: "_".join(find_matrix(now).worst or ()),
        check=lambda name: name in list_cells(),
        needs=needs,
    )


AT = Pick(
    key="runtimes.at",
    label="Length",
    options=figures.LENGTHS,
    when=lambda now: runtime_matrix.depends_on_length(now.spec),
)
VLLM = Pick(key="runtimes.vllm", label="My vLLM", options={v: f"vLLM {v}" for v in list_releases()["vllm"]})
SGLANG = Pick(key="runtimes.sglang", label="My SGLang", options={v: f"SGLang {v}" for v in list_releases()["sglang"]})
GRID_HEIGHTS = (745, 920)
"""Pixels of the table of trainers, on a wide and on a narrow screen."""
ALL = Switch(key="runtimes.all", label="Also models on which all runtimes agree")
CELL = make_cell_choice(lambda now: trainings(now), (AT, VLLM, SGLANG))
PAGE = Page("runtimes", (AT, VLLM, SGLANG, ALL, CELL), sees=lambda now: config_and_length(now))


def config_and_length(now: Now) -> Hashable:
    """Return what the page depends on: the embedding in question, and the length that its frequencies depend on."""
    spec = now.start if runtime_matrix.is_unchanged(now.spec, now.start) else now.spec
    return now.layer, spec, now.spec.target if runtime_matrix.depends_on_length(now.spec) else 0


def config_in_question(now: Now) -> Asked:
    """Return the config in question: the model's own, or one made from the knobs."""
    return _config_for(now.spec, now.model, now.layer, now.own)


def sequence_length(now: Now) -> int | None:
    """Return the length of the sequence, None for short ones."""
    return now.spec.target if now[AT] == "target" else None


def answers(now: Now) -> Board:
    """Return every runtime's answer."""
    return _answers(now.spec, now.model, now.layer, now.own, sequence_length(now), now[VLLM], now[SGLANG])


def trainings(now: Now) -> TrainingMatrix:
    """Return every trainer against every server."""
    return _trainings(now.spec, now.model, now.layer, now.own, sequence_length(now), now[VLLM], now[SGLANG])


def chosen_match(now: Now) -> Match:
    """Return the match of the chosen trainer and server."""
    trainer, _, server = now[CELL].partition("_")
    return trainings(now).find(trainer, server)


def chosen_remedy(now: Now) -> Remedy:
    """Return what makes the chosen server compute what was trained."""
    asked = config_in_question(now)
    return find_remedy(chosen_match(now), asked.config, length=sequence_length(now), layer_type=asked.layer or None)


def diffusion(now: Now) -> str:
    """Return why these runtimes do not apply to a diffusion transformer or a lone encoder, "" otherwise."""
    if now.own is None or now.config is None:
        return ""
    drawn = "_class_name" in now.config
    if not drawn and not is_encoder_only(now.config):
        return ""
    one = (
        "a diffusion transformer: it runs in diffusers and similar libraries, not in these runtimes of language models"
        if drawn
        else "an encoder without a language model, and these runtimes are compared for language models only"
    )
    return (
        f"**{plain(now.name)}** is {one}. "
        "The page [Axes](/axes) shows its axes, its frequencies and how to extend it beyond the trained grid."
    )


def unmatched(now: Now) -> str:
    """Return why trainers and servers are not compared, "" where they are."""
    found = diffusion(now)
    return found or (words.summarise(trainings(now)) if trainings(now).problem else "")


def several(now: Now) -> tuple[AxesAnswer, ...]:
    """Return how every runtime handles the axes of the model's own config, () for a model with one axis."""
    return _several(now.model, now.own)


@PAGE.picture(AT, VLLM, SGLANG, pin=True, config=True, refuses=diffusion)
def curves(now: Now) -> Figure:
    """The frequencies of the runtimes that differ, over those of transformers."""
    figure, title = figures.curves(answers(now), now.spec, pin=now.pin)
    return Figure(figure, title, words.agreement(answers(now)), pins="x")


@PAGE.picture(AT, VLLM, SGLANG, config=True, height=430, refuses=diffusion)
def matrix(now: Now) -> Table:
    """Every runtime's answer as text, with its reason and its repair."""
    sentence = words.whose(config_in_question(now), sequence_length(now))
    rows = figures.matrix(answers(now), config_in_question(now).config)
    return Table(rows, "How each runtime reads this config", sentence, words=True)


@PAGE.picture(config=True, height=lambda now: ROW * (len(several(now)) + 2), refuses=diffusion)
def axes(now: Now) -> Table:
    """What each runtime does with the axes of a model that reads images and videos: sections, positions, YaRN."""
    found = several(now)
    title = "What each runtime does with the axes of the positions"
    return Table(figures.several(found), title, words.several(found), words=True)


@PAGE.picture(
    AT, VLLM, SGLANG, CELL, sets=CELL, config=True, height=GRID_HEIGHTS[0], narrow=GRID_HEIGHTS[1], refuses=unmatched
)
def training(now: Now) -> Grid:
    """Every trainer against every server on this config: same, differs, refused or not known."""
    found = trainings(now)
    return Grid(
        figures.training_matrix(found),
        words.TEXTS("title"),
        words.summarise(found),
        states=[state_of(match) for row in found.rows for match in row],
        chosen=list(list_cells()).index(now[CELL]),
    )


APART = 15
"""Number of catalog models that some runtime computes differently; a constant, because counting takes seconds."""


def list_height(now: Now) -> int:
    """Return the height for one row per model; the full list scrolls."""
    return 600 if now[ALL] else 2 + 35 * (APART + 1)


# A short list has no filter field, which on a phone takes a second row below the table.
@PAGE.picture(ALL, height=list_height, narrow=lambda now: list_height(now) - (0 if now[ALL] else 44), still=True)
def models(now: Now) -> Table:
    """The whole list of models against every runtime."""
    rows = figures.model_list(everything=now[ALL])
    return Table(rows, "All models in every runtime", words.model_list())


@cache_by_config(64)
def _several(model: str, own: Upload | None) -> tuple[AxesAnswer, ...]:
    config = config_of(model, own)
    try:
        return () if config is None or has_one_axis(config) else axes_answers(config)
    except ValueError:
        return ()  # the other pictures report an unreadable config


@cache_by_config(64)
def _config_for(spec: RopeSpec, model: str, layer: str, own: Upload | None) -> Asked:
    now = Now(spec, model, layer, own)
    return runtime_matrix.config_for(spec, start=now.start, config=now.config, layer=layer, name=now.name)


@cache_by_config(64)
def _answers(
    spec: RopeSpec, model: str, layer: str, own: Upload | None, length: int | None, vllm: str, sglang: str
) -> Board:
    return runtime_matrix.compare_runtimes(
        _config_for(spec, model, layer, own), length, {"vllm": vllm, "sglang": sglang}
    )


@cache_by_config(64)
def _trainings(
    spec: RopeSpec, model: str, layer: str, own: Upload | None, length: int | None, vllm: str, sglang: str
) -> TrainingMatrix:
    asked = _config_for(spec, model, layer, own)
    releases = {"vllm": vllm, "sglang": sglang}
    return compare_trainers(asked.config, length=length, layer_type=asked.layer or None, releases=releases)
