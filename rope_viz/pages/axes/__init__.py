"""Pictures of the page Axes: how models use several position axes for images, videos and prompts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import plotly.graph_objects as go

from rope_viz.embedding.spec import Knob
from rope_viz.models.catalog import catalog
from rope_viz.models.several_axes.text import find_axes
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import Role, Scene
from rope_viz.multi_axis.prompt_syntax import (
    EXAMPLE,
    KINDS,
    MOST_PIECES,
    PromptLayout,
    PromptRules,
    find_prompt_rules,
    lay_out_pieces,
    list_accepted_kinds,
    parse_pieces,
)
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.pages.axes import extrapolation, patch, prompt, words
from rope_viz.pages.axes import figures as axes
from rope_viz.pages.axes.choices import (
    CHANGES,
    MODEL,
    OTHER,
    PART,
    SIDEBAR,
    WHICH,
    compared_scenes,
    frequencies_of_sidebar,
    models,
    scene,
)
from rope_viz.pages.axes.figures import TEXTS
from rope_viz.picture.axis_choice import axis_of, roles
from rope_viz.picture.choices import Number, Pick, Pieces, PositionPair
from rope_viz.picture.outputs import ROW, Clocks, Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.runtimes.axes import axes_answers
from rope_viz.studies.axis_extrapolation import available_methods, extend_axis
from rope_viz.texts import join


@dataclass(frozen=True)
class Patch(Clocks):
    """The pairs of one patch of an image, movable over its grid, packed by `figures.patch`."""

    renderer: ClassVar[str] = "patch"

    def draw_static(self) -> go.Figure:
        return patch.draw_static(self.message)

    def numbers(self) -> Mapping[str, Any]:
        return patch.dial_values(self.message)


ALL: tuple[Choice[Any], ...] = (*WHICH, *CHANGES)
SHOWN: tuple[Choice[Any], ...] = (*ALL, *OTHER)
REACH = Number(key="axes.reach", knob=axes.REACH, usual=32)
SHADES = Pick(
    key="axes.shades",
    label=TEXTS("choices.shades"),
    options=axes.SHADES,
    when=lambda request: len(compared_scenes(request)) > 1,
    needs=SHOWN,
)


def config_of(request: PictureRequest) -> Mapping[str, Any]:
    """Return the config of the page's model."""
    if request[MODEL] != SIDEBAR:
        return axes_catalog()[request[MODEL]].config
    return request.subject.config or {}


def prompt_rules(request: PictureRequest) -> PromptRules | None:
    """Return how the model lays out prompts, or None if it takes no supported ones."""
    return find_prompt_rules(config_of(request))


def label(request: PictureRequest) -> str:
    """Return the name of the page's model."""
    return next(iter(models(request, with_compared=False).values()))


def runtimes_of(request: PictureRequest) -> dict[str, str]:
    """Return the runtimes known to support the model, as name -> label."""
    rules = prompt_rules(request)
    kind = "" if rules is None else rules.kind
    axes = find_axes(kind)
    names = ["transformers", "transformers-4.57", *(() if axes is None else axes.runtimes)]
    return {name: prompt.RUNTIMES[name] for name in names if kind != "glm_image" or name == "transformers"}


def other_runtimes(request: PictureRequest) -> dict[str, str]:
    """Return "none" and the runtimes other than the first, as name -> label."""
    found = {name: label for name, label in runtimes_of(request).items() if name != request[RUNTIME]}
    return {"none": TEXTS("choices.no_runtime")} | found


def prompt_problem(request: PictureRequest) -> str:
    """Return why no prompt can be laid out, "" if one can."""
    rules = prompt_rules(request)
    if rules is None:
        return TEXTS("prompt.no_model")
    try:
        lay_out_prompt(request)
    except ValueError as error:
        return TEXTS("prompt.impossible", problem=str(error))
    return ""


PROMPT = Pieces(
    key="axes.prompt",
    label=TEXTS("choices.prompt"),
    usual=EXAMPLE,
    check=parse_pieces,
    parts=lambda line: [vars(piece) for piece in parse_pieces(line)],
    kinds=lambda request: KINDS if (rules := prompt_rules(request)) is None else list_accepted_kinds(rules),
    count=MOST_PIECES,
)
RUNTIME = Pick(
    key="axes.runtime",
    label=TEXTS("choices.runtime"),
    options=prompt.RUNTIMES,
    offered=runtimes_of,
    needs=WHICH,
)
SECOND = Pick(
    key="axes.second",
    label=TEXTS("choices.second"),
    options={"none": TEXTS("choices.no_runtime"), **prompt.RUNTIMES},
    offered=other_runtimes,
    usual=lambda request: "vllm",
    menu=200,
    needs=(*WHICH, RUNTIME),
)

DIRECTIONS = cast(dict[Role, str], TEXTS.group("extend"))
METHODS = TEXTS.group("methods")
ALONG: Pick[Role] = Pick(
    key="axes.along",
    label=TEXTS("choices.along"),
    options=DIRECTIONS,
    offered=lambda request: {role: DIRECTIONS[role] for role in scene(request).roles},
    usual=lambda request: direction(scene(request)),
    needs=ALL,
)
METHOD = Pick(
    key="axes.method",
    label=TEXTS("choices.method"),
    options=METHODS,
    offered=lambda request: {name: METHODS[name] for name in available_methods(scene(request), request[ALONG])},
    needs=(*ALL, ALONG),
)
GROWTH = Number(
    key="axes.growth",
    knob=extrapolation.GROWTH,
    usual=lambda request: 2.0 if request[ALONG] == "time" else 4.0,
    needs=(ALONG,),
)
AT = PositionPair(
    key="axes.at",
    label=TEXTS("choices.at"),
    usual=lambda request: middle(scene(request)),
    most=1023,
    needs=ALL,
)
FRAME = Number(
    key="axes.frame",
    knob=Knob(TEXTS("choices.frame"), 0, 8191, TEXTS("choices.frame_help"), integer=True),
    usual=0,
    limit=lambda request: scene(request).sides.get("time", 1) - 1,
    when=lambda request: "time" in scene(request).roles and scene(request).sides.get("time", 1) > 1,
    needs=ALL,
)
PAGE = Page(
    "axes",
    (*SHOWN, REACH, SHADES, PROMPT, RUNTIME, SECOND, ALONG, METHOD, GROWTH, AT, FRAME),
    shows=lambda request, picture: models(request, with_compared=OTHER[0] in picture.uses),
    sees=frequencies_of_sidebar,
    door="explore",
    last=True,
)


def direction(of: Scene) -> Role:
    """Return the default direction to extend: time for a video model, else the rows."""
    video = of.part.startswith("transformer") and of.sides.get("time", 1) > 1
    return "time" if "time" in of.roles and video else next((role for role in of.roles if role != "time"), "time")


def middle(of: Scene) -> tuple[int, int]:
    """Return row and column of the patch in the middle of the image."""
    return of.sides.get("row", 1) // 2, of.sides.get("column", 1) // 2


@PAGE.picture(
    *SHOWN,
    REACH,
    SHADES,
    height=axes.HEIGHT,
    narrow=lambda request: axes.narrow_height(len(compared_scenes(request))),
    config=True,
)
def sight(request: PictureRequest) -> Figure:
    """The score of a patch with the patches around it."""
    both, reach = compared_scenes(request), int(request[REACH])
    figure = axes.sight(both, reach, shades=request[SHADES], coarse=request.coarse)
    title = TEXTS("map.title", reach=reach, scenes=axes.join_titles(both))
    return Figure(figure, title, words.describe_map(both, reach), variant="sight")


@PAGE.picture(*SHOWN, height=lambda request: axes.speeds_height(compared_scenes(request)), config=True)
def speeds(request: PictureRequest) -> Figure:
    """Which axis owns which frequencies: a tick for every pair at its wavelength."""
    both = compared_scenes(request)
    title = TEXTS("wavelengths.title", scenes=axes.join_titles(both))
    return Figure(axes.speeds(both), title, words.describe_wavelengths(both))


@PAGE.picture(*WHICH, PROMPT, RUNTIME, SECOND, height=prompt.HEIGHT, zooms=True, config=True, refuses=prompt_problem)
def positions(request: PictureRequest) -> Figure:
    """The positions of every axis along a prompt, in one runtime or two."""
    first, second = lay_out_prompt(request)
    name, other = request[RUNTIME], request[SECOND] if second is not None else ""
    figure = prompt.positions(
        first, name, second, other, view=request.visible_range((0.0, float(first.positions.tokens)))
    )
    sentence = words.describe_prompt(first, name, second, other)
    if "llama.cpp" in (name, other):
        sentence = join(sentence, words.describe_zero_pairs(zero_pairs(request), "llama.cpp"))
    return Figure(figure, TEXTS("prompt.title", model=label(request)), sentence)


@PAGE.picture(
    *WHICH,
    PROMPT,
    RUNTIME,
    SECOND,
    height=lambda request: ROW * (len(parse_pieces(request[PROMPT])) + 1),
    config=True,
    refuses=prompt_problem,
)
def costs(request: PictureRequest) -> Table:
    """The cost of every piece of the prompt, in tokens and in positions."""
    first, second = lay_out_prompt(request)
    found = [(request[RUNTIME], first), *([(request[SECOND], second)] if second is not None else [])]
    return Table(prompt.table(found), TEXTS("prompt.costs_title", model=label(request)))


@PAGE.picture(*ALL, ALONG, METHOD, GROWTH, height=extrapolation.HEIGHT, config=True)
def further(request: PictureRequest) -> Figure:
    """One direction of an image or video extended beyond the trained size, and where its score recurs."""
    of, role = scene(request), request[ALONG]
    done = extend_axis(of, role, request[METHOD], float(request[GROWTH]))
    unit = TEXTS(f"units.{role}")
    title = TEXTS("further.title", scene=axes.title(of), trained=done.trained, unit=unit)
    return Figure(extrapolation.heights(done, unit, coarse=request.coarse), title, words.describe_extension(done))


@PAGE.picture(*ALL, AT, FRAME, sets=AT, height=patch.HEIGHTS[0], narrow=patch.HEIGHTS[1], config=True)
def clocks(request: PictureRequest) -> Patch:
    """The pairs of one patch as clocks, hands coloured by the axis that moves them."""
    of = scene(request)
    row, column = request[AT]
    at: dict[Role, int] = {"row": row, "column": column}
    at = {role: min(place, of.sides.get(role, 1) - 1) for role, place in at.items() if role in of.roles}
    if FRAME.when(request):
        at["time"] = int(request[FRAME])
    return Patch(patch.message(of, at), words.describe_patch(of, at), variant="patch")


def decay_query(request: PictureRequest) -> dict[str, str]:
    """Return the query that makes the page Decay follow the same axis, {} if it has no such axis."""
    known = request[MODEL] == SIDEBAR and request[PART].startswith("text") and request[ALONG] in roles(request)
    return {axis_of("decay").key: request[ALONG]} if known else {}


def lay_out_prompt(request: PictureRequest) -> tuple[PromptLayout, PromptLayout | None]:
    """Return the prompt as laid out in the first runtime, and in the second or None."""
    own = (request[MODEL], request.model, request.own) if request[MODEL] == SIDEBAR else (request[MODEL], "", None)
    first = _lay_out(*own, request[PROMPT], request[RUNTIME])
    return first, None if request[SECOND] == "none" else _lay_out(*own, request[PROMPT], request[SECOND])


@cache_by_config(32)
def _lay_out(axes_model: str, model: str, own: Upload | None, line: str, runtime: str) -> PromptLayout:
    if axes_model != SIDEBAR:
        config = axes_catalog()[axes_model].config
    else:
        config = catalog()[model].config if own is None else own.config
    rules = find_prompt_rules(config)
    assert rules is not None
    return lay_out_pieces(parse_pieces(line), rules, runtime)


def zero_pairs(request: PictureRequest) -> tuple[int, ...]:
    """Return the pairs that have zero frequency in llama.cpp."""
    return _catalog_zero_pairs(request[MODEL]) if request[MODEL] != SIDEBAR else _config_zero_pairs(config_of(request))


@functools.lru_cache(maxsize=64)
def _catalog_zero_pairs(model: str) -> tuple[int, ...]:
    return _config_zero_pairs(axes_catalog()[model].config)


def _config_zero_pairs(config: Mapping[str, Any]) -> tuple[int, ...]:
    found = (answer.still for answer in axes_answers(config) if answer.runtime == "llama.cpp")
    return next(found, ())
