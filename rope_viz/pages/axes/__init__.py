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
from rope_viz.picture.choices import Number, Pick, Pieces, Positions
from rope_viz.picture.config_cache import cache_by_config
from rope_viz.picture.outputs import ROW, Clocks, Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, Now
from rope_viz.runtimes.axes import axes_answers
from rope_viz.studies.axis_extrapolation import available_methods, extend_axis
from rope_viz.texts import join


@dataclass(frozen=True)
class Patch(Clocks):
    """The pairs of one patch of an image, movable over its grid, packed by `figures.patch`."""

    renderer: ClassVar[str] = "patch"

    def draw_static(self) -> go.Figure:
        """Draw it for a file that does not move."""
        return patch.draw_static(self.message)

    def numbers(self) -> Mapping[str, Any]:
        """Return its numbers by column."""
        return patch.dial_values(self.message)


ALL: tuple[Choice[Any], ...] = (*WHICH, *CHANGES)
SHOWN: tuple[Choice[Any], ...] = (*ALL, *OTHER)
REACH = Number(key="axes.reach", knob=axes.REACH, usual=32)
SHADES = Pick(
    key="axes.shades",
    label=TEXTS("choices.shades"),
    options=axes.SHADES,
    when=lambda now: len(compared_scenes(now)) > 1,
    needs=SHOWN,
)


def config_of(now: Now) -> Mapping[str, Any]:
    """Return the config of the page's model."""
    if now[MODEL] != SIDEBAR:
        return axes_catalog()[now[MODEL]].config
    return now.config or {}


def prompt_rules(now: Now) -> PromptRules | None:
    """Return how the model lays out prompts, or None if it takes no supported ones."""
    return find_prompt_rules(config_of(now))


def label(now: Now) -> str:
    """Return the name of the page's model."""
    return next(iter(models(now, with_compared=False).values()))


def runtimes_of(now: Now) -> dict[str, str]:
    """Return the runtimes known to support the model, as name -> label."""
    rules = prompt_rules(now)
    kind = "" if rules is None else rules.kind
    axes = find_axes(kind)
    names = ["transformers", "transformers-4.57", *(() if axes is None else axes.runtimes)]
    return {name: prompt.RUNTIMES[name] for name in names if kind != "glm_image" or name == "transformers"}


def other_runtimes(now: Now) -> dict[str, str]:
    """Return "none" and the runtimes other than the first, as name -> label."""
    found = {name: label for name, label in runtimes_of(now).items() if name != now[RUNTIME]}
    return {"none": TEXTS("choices.no_runtime")} | found


def prompt_problem(now: Now) -> str:
    """Return why no prompt can be laid out, "" if one can."""
    rules = prompt_rules(now)
    if rules is None:
        return TEXTS("prompt.no_model")
    try:
        lay_out_prompt(now)
    except ValueError as error:
        return TEXTS("prompt.impossible", problem=str(error))
    return ""


PROMPT = Pieces(
    key="axes.prompt",
    label=TEXTS("choices.prompt"),
    usual=EXAMPLE,
    check=parse_pieces,
    parts=lambda line: [vars(piece) for piece in parse_pieces(line)],
    kinds=lambda now: KINDS if (rules := prompt_rules(now)) is None else list_accepted_kinds(rules),
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
    usual=lambda now: "vllm",
    menu=200,
    needs=(*WHICH, RUNTIME),
)

DIRECTIONS = cast(dict[Role, str], TEXTS.group("extend"))
METHODS = TEXTS.group("methods")
ALONG: Pick[Role] = Pick(
    key="axes.along",
    label=TEXTS("choices.along"),
    options=DIRECTIONS,
    offered=lambda now: {role: DIRECTIONS[role] for role in scene(now).roles},
    usual=lambda now: direction(scene(now)),
    needs=ALL,
)
METHOD = Pick(
    key="axes.method",
    label=TEXTS("choices.method"),
    options=METHODS,
    offered=lambda now: {name: METHODS[name] for name in available_methods(scene(now), now[ALONG])},
    needs=(*ALL, ALONG),
)
GROWTH = Number(
    key="axes.growth",
    knob=extrapolation.GROWTH,
    usual=lambda now: 2.0 if now[ALONG] == "time" else 4.0,
    needs=(ALONG,),
)
AT = Positions(
    key="axes.at",
    label=TEXTS("choices.at"),
    usual=lambda now: middle(scene(now)),
    most=1023,
    needs=ALL,
)
FRAME = Number(
    key="axes.frame",
    knob=Knob(TEXTS("choices.frame"), 0, 8191, TEXTS("choices.frame_help"), integer=True),
    usual=0,
    limit=lambda now: scene(now).sides.get("time", 1) - 1,
    when=lambda now: "time" in scene(now).roles and scene(now).sides.get("time", 1) > 1,
    needs=ALL,
)
PAGE = Page(
    "axes",
    (*SHOWN, REACH, SHADES, PROMPT, RUNTIME, SECOND, ALONG, METHOD, GROWTH, AT, FRAME),
    shows=lambda now, picture: models(now, with_compared=OTHER[0] in picture.uses),
    sees=frequencies_of_sidebar,
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
    narrow=lambda now: axes.narrow_height(len(compared_scenes(now))),
    config=True,
)
def sight(now: Now) -> Figure:
    """The score of a patch with the patches around it."""
    both, reach = compared_scenes(now), int(now[REACH])
    figure = axes.sight(both, reach, shades=now[SHADES], coarse=now.coarse)
    title = TEXTS("map.title", reach=reach, scenes=axes.join_titles(both))
    return Figure(figure, title, words.describe_map(both, reach), variant="sight")


@PAGE.picture(*SHOWN, height=lambda now: axes.speeds_height(compared_scenes(now)), config=True)
def speeds(now: Now) -> Figure:
    """Which axis owns which frequencies: a tick for every pair at its wavelength."""
    both = compared_scenes(now)
    title = TEXTS("wavelengths.title", scenes=axes.join_titles(both))
    return Figure(axes.speeds(both), title, words.describe_wavelengths(both))


@PAGE.picture(*WHICH, PROMPT, RUNTIME, SECOND, height=prompt.HEIGHT, zooms=True, config=True, refuses=prompt_problem)
def positions(now: Now) -> Figure:
    """The positions of every axis along a prompt, in one runtime or two."""
    first, second = lay_out_prompt(now)
    name, other = now[RUNTIME], now[SECOND] if second is not None else ""
    figure = prompt.positions(first, name, second, other, view=now.visible_range((0.0, float(first.positions.tokens))))
    sentence = words.describe_prompt(first, name, second, other)
    if "llama.cpp" in (name, other):
        sentence = join(sentence, words.describe_zero_pairs(zero_pairs(now), "llama.cpp"))
    return Figure(figure, TEXTS("prompt.title", model=label(now)), sentence)


@PAGE.picture(
    *WHICH,
    PROMPT,
    RUNTIME,
    SECOND,
    height=lambda now: ROW * (len(parse_pieces(now[PROMPT])) + 1),
    config=True,
    refuses=prompt_problem,
)
def costs(now: Now) -> Table:
    """The cost of every piece of the prompt, in tokens and in positions."""
    first, second = lay_out_prompt(now)
    found = [(now[RUNTIME], first), *([(now[SECOND], second)] if second is not None else [])]
    return Table(prompt.table(found), TEXTS("prompt.costs_title", model=label(now)))


@PAGE.picture(*ALL, ALONG, METHOD, GROWTH, height=extrapolation.HEIGHT, config=True)
def further(now: Now) -> Figure:
    """One direction of an image or video extended beyond the trained size, and where its score recurs."""
    of, role = scene(now), now[ALONG]
    done = extend_axis(of, role, now[METHOD], float(now[GROWTH]))
    unit = TEXTS(f"units.{role}")
    title = TEXTS("further.title", scene=axes.title(of), trained=done.trained, unit=unit)
    return Figure(extrapolation.heights(done, unit, coarse=now.coarse), title, words.describe_extension(done))


@PAGE.picture(*ALL, AT, FRAME, sets=AT, height=patch.HEIGHTS[0], narrow=patch.HEIGHTS[1], config=True)
def clocks(now: Now) -> Patch:
    """The pairs of one patch as clocks, hands coloured by the axis that moves them."""
    of = scene(now)
    row, column = now[AT]
    at: dict[Role, int] = {"row": row, "column": column}
    at = {role: min(place, of.sides.get(role, 1) - 1) for role, place in at.items() if role in of.roles}
    if FRAME.when(now):
        at["time"] = int(now[FRAME])
    return Patch(patch.message(of, at), words.describe_patch(of, at), variant="patch")


def decay_query(now: Now) -> dict[str, str]:
    """Return the query that makes the page Decay follow the same axis, {} if it has no such axis."""
    known = now[MODEL] == SIDEBAR and now[PART].startswith("text") and now[ALONG] in roles(now)
    return {axis_of("decay").key: now[ALONG]} if known else {}


def lay_out_prompt(now: Now) -> tuple[PromptLayout, PromptLayout | None]:
    """Return the prompt as laid out in the first runtime, and in the second or None."""
    own = (now[MODEL], now.model, now.own) if now[MODEL] == SIDEBAR else (now[MODEL], "", None)
    first = _lay_out(*own, now[PROMPT], now[RUNTIME])
    return first, None if now[SECOND] == "none" else _lay_out(*own, now[PROMPT], now[SECOND])


@cache_by_config(32)
def _lay_out(axes_model: str, model: str, own: Upload | None, line: str, runtime: str) -> PromptLayout:
    if axes_model != SIDEBAR:
        config = axes_catalog()[axes_model].config
    else:
        config = catalog()[model].config if own is None else own.config
    rules = find_prompt_rules(config)
    assert rules is not None
    return lay_out_pieces(parse_pieces(line), rules, runtime)


def zero_pairs(now: Now) -> tuple[int, ...]:
    """Return the pairs that have zero frequency in llama.cpp."""
    return _catalog_zero_pairs(now[MODEL]) if now[MODEL] != SIDEBAR else _config_zero_pairs(config_of(now))


@functools.lru_cache(maxsize=64)
def _catalog_zero_pairs(model: str) -> tuple[int, ...]:
    return _config_zero_pairs(axes_catalog()[model].config)


def _config_zero_pairs(config: Mapping[str, Any]) -> tuple[int, ...]:
    found = (answer.still for answer in axes_answers(config) if answer.runtime == "llama.cpp")
    return next(found, ())
