"""Pictures of the page Axes: how models use several position axes for images, videos and prompts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import Knob
from rope_viz.figures import axes, axis_extrapolation, patch, prompt
from rope_viz.figures.words import axes as words
from rope_viz.models.catalog import catalog
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import ROLES, Role, Scene
from rope_viz.multi_axis.prompt_syntax import LONGEST, USUAL, WHATS, Laid, Reader, lay, pieces, reader, taken
from rope_viz.multi_axis.text import find_axes
from rope_viz.pictures import decay
from rope_viz.pictures.axes_model import CHANGES, MODEL, OTHER, PART, SIDEBAR, WHICH, compared_scenes, models, scene
from rope_viz.pictures.axis_choice import roles
from rope_viz.pictures.choices import Number, Pick, Pieces, Positions
from rope_viz.pictures.outputs import ROW, Figure, Patch, Table
from rope_viz.pictures.page import Page
from rope_viz.pictures.picture_request import Choice, Now
from rope_viz.runtimes.axes import axes_answers
from rope_viz.studies.axis_extrapolation import METHODS, available_methods, extend_axis

ALL: tuple[Choice[Any], ...] = (*WHICH, *CHANGES)
SHOWN: tuple[Choice[Any], ...] = (*ALL, *OTHER)
REACH = Number(key="axes.reach", knob=axes.REACH, usual=32)
SHADES = Pick(
    key="axes.shades", label="Colours", options=axes.SHADES, when=lambda now: len(compared_scenes(now)) > 1, needs=SHOWN
)


def config_of(now: Now) -> Mapping[str, Any]:
    """Return the config of the page's model."""
    if now[MODEL] != SIDEBAR:
        return axes_catalog()[now[MODEL]].config
    return now.config or {}


def prompt_reader(now: Now) -> Reader | None:
    """Return how the model lays out prompts, or None if it takes no supported ones."""
    return reader(config_of(now))


def label(now: Now) -> str:
    """Return the name of the page's model."""
    return next(iter(models(now, beside=False).values()))


def runtimes_of(now: Now) -> dict[str, str]:
    """Return the runtimes known to support the model, as name -> label."""
    read = prompt_reader(now)
    kind = "" if read is None else read.kind
    axes = find_axes(kind)
    names = ["transformers", "transformers-4.57", *(() if axes is None else axes.runtimes)]
    return {name: prompt.RUNTIMES[name] for name in names if kind != "glm_image" or name == "transformers"}


def other_runtimes(now: Now) -> dict[str, str]:
    """Return "none" and the runtimes other than the first, as name -> label."""
    found = {name: label for name, label in runtimes_of(now).items() if name != now[RUNTIME]}
    return {"none": "No other runtime"} | found


def prompt_problem(now: Now) -> str:
    """Return why no prompt can be laid out, "" if one can."""
    read = prompt_reader(now)
    if read is None:
        return (
            "A prompt of text, images and films is laid out for language models that see: choose one above, such as "
            "Qwen2-VL 7B."
        )
    try:
        lay_out_prompt(now)
    except ValueError as error:
        return f"This prompt cannot be laid out: {error}."
    return ""


PROMPT = Pieces(
    key="axes.prompt",
    label="Prompt",
    usual=USUAL,
    check=pieces,
    parts=lambda line: [vars(piece) for piece in pieces(line)],
    kinds=lambda now: WHATS if (read := prompt_reader(now)) is None else taken(read),
    count=LONGEST,
)
RUNTIME = Pick(key="axes.runtime", label="Runtime", options=prompt.RUNTIMES, offered=runtimes_of, menu=200, needs=WHICH)
SECOND = Pick(
    key="axes.second",
    label="Beside it",
    options={"none": "No other runtime", **prompt.RUNTIMES},
    offered=other_runtimes,
    usual=lambda now: "vllm",
    menu=200,
    needs=(*WHICH, RUNTIME),
)

WORDS = {"time": "In time", "row": "Down", "column": "Across"}
ALONG: Pick[Role] = Pick(
    key="axes.along",
    label="Direction",
    options={role: WORDS[role] for role in ROLES},
    offered=lambda now: {role: WORDS[role] for role in scene(now).roles},
    usual=lambda now: direction(scene(now)),
    needs=ALL,
)
METHOD = Pick(
    key="axes.method",
    label="Method",
    options=METHODS,
    offered=lambda now: available_methods(scene(now), now[ALONG]),
    needs=(*ALL, ALONG),
)
GROWTH = Number(
    key="axes.growth",
    knob=axis_extrapolation.GROWTH,
    usual=lambda now: 2.0 if now[ALONG] == "time" else 4.0,
    needs=(ALONG,),
)
AT = Positions(
    key="axes.at",
    label="Row and column",
    usual=lambda now: middle(scene(now)),
    most=1023,
    needs=ALL,
)
FRAME = Number(
    key="axes.frame",
    knob=Knob("Frame", 0, 8191, "The frame of the clip in which the patch lies.", integer=True),
    usual=0,
    limit=lambda now: scene(now).sides.get("time", 1) - 1,
    when=lambda now: "time" in scene(now).roles and scene(now).sides.get("time", 1) > 1,
    needs=ALL,
)
PAGE = Page(
    "axes",
    (*SHOWN, REACH, SHADES, PROMPT, RUNTIME, SECOND, ALONG, METHOD, GROWTH, AT, FRAME),
    shows=lambda now, picture: models(now, beside=OTHER[0] in picture.uses),
)


def direction(of: Scene) -> Role:
    """Return the default direction to extend: time for a video model, else the rows."""
    film = of.part.startswith("transformer") and of.sides.get("time", 1) > 1
    return "time" if "time" in of.roles and film else next((role for role in of.roles if role != "time"), "time")


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
    title = f"The score of a patch with those up to {reach:,} rows and columns away: {axes.named(both)}"
    return Figure(figure, title, words.sight(both, reach), variant="sight")


@PAGE.picture(*SHOWN, height=lambda now: axes.speeds_height(compared_scenes(now)), config=True)
def speeds(now: Now) -> Figure:
    """Which axis owns which frequencies: a tick for every pair at its wavelength."""
    both = compared_scenes(now)
    return Figure(axes.speeds(both), f"The wavelengths of every axis: {axes.named(both)}", words.speeds(both))


@PAGE.picture(*WHICH, PROMPT, RUNTIME, SECOND, height=prompt.HEIGHT, zooms=True, config=True, refuses=prompt_problem)
def positions(now: Now) -> Figure:
    """The positions of every axis along a prompt, in one runtime or two."""
    first, second = lay_out_prompt(now)
    name, other = now[RUNTIME], now[SECOND] if second is not None else ""
    figure = prompt.positions(first, name, second, other, view=now.seen((0.0, float(first.positions.tokens))))
    sentence = words.prompt(first, name, second, other)
    if "llama.cpp" in (name, other):
        sentence = f"{sentence} {words.standing(zero_pairs(now), 'llama.cpp')}".rstrip()
    return Figure(figure, f"Positions along a prompt of {label(now)}, a line for each axis over the tokens", sentence)


@PAGE.picture(
    *WHICH,
    PROMPT,
    RUNTIME,
    SECOND,
    height=lambda now: ROW * (len(pieces(now[PROMPT])) + 1),
    config=True,
    refuses=prompt_problem,
)
def costs(now: Now) -> Table:
    """The cost of every piece of the prompt, in tokens and in positions."""
    first, second = lay_out_prompt(now)
    found = [(now[RUNTIME], first), *([(now[SECOND], second)] if second is not None else [])]
    return Table(prompt.table(found), f"What every piece of the prompt costs {label(now)}, in tokens and in positions")


@PAGE.picture(*ALL, ALONG, METHOD, GROWTH, height=axis_extrapolation.HEIGHT, config=True)
def further(now: Now) -> Figure:
    """One direction of an image or video extended beyond the trained size, and where its score recurs."""
    of, role = scene(now), now[ALONG]
    done = extend_axis(of, role, now[METHOD], float(now[GROWTH]))
    unit = "frames" if role == "time" else of.units
    side = f"{axes.LOOKS[role].word.lower()} beyond {done.trained:,} {unit}"
    title = f"{axes.title(of)}: {side}, cos of every pair, and the score"
    return Figure(axis_extrapolation.heights(done, unit, coarse=now.coarse), title, words.beyond(done, unit))


@PAGE.picture(*ALL, AT, FRAME, sets=AT, height=patch.HEIGHTS[0], narrow=patch.HEIGHTS[1], config=True)
def clocks(now: Now) -> Patch:
    """The pairs of one patch as clocks, hands coloured by the axis that moves them."""
    of = scene(now)
    row, column = now[AT]
    at: dict[Role, int] = {"row": row, "column": column}
    at = {role: min(place, of.sides.get(role, 1) - 1) for role, place in at.items() if role in of.roles}
    if FRAME.when(now):
        at["time"] = int(now[FRAME])
    return Patch(patch.message(of, at), words.patch(of, at), variant="patch")


def alone(now: Now) -> dict[str, str]:
    """Return the query that makes the page Decay follow the same axis, {} if it has no such axis."""
    known = now[MODEL] == SIDEBAR and now[PART].startswith("text") and now[ALONG] in roles(now)
    return {decay.AXIS.key: now[ALONG]} if known else {}


def lay_out_prompt(now: Now) -> tuple[Laid, Laid | None]:
    """Return the prompt as laid out in the first runtime, and in the second or None."""
    own = (now[MODEL], now.model, now.own) if now[MODEL] == SIDEBAR else (now[MODEL], "", None)
    first = _lay_out(*own, now[PROMPT], now[RUNTIME])
    return first, None if now[SECOND] == "none" else _lay_out(*own, now[PROMPT], now[SECOND])


@functools.lru_cache(maxsize=32)
def _lay_out(axes_model: str, model: str, own: Upload | None, line: str, runtime: str) -> Laid:
    if axes_model != SIDEBAR:
        config = axes_catalog()[axes_model].config
    else:
        config = catalog()[model].config if own is None else own.config
    read = reader(config)
    assert read is not None
    return lay(pieces(line), read, runtime)


def zero_pairs(now: Now) -> tuple[int, ...]:
    """Return the pairs that have zero frequency in llama.cpp."""
    return _catalog_zero_pairs(now[MODEL]) if now[MODEL] != SIDEBAR else _config_zero_pairs(config_of(now))


@functools.lru_cache(maxsize=64)
def _catalog_zero_pairs(model: str) -> tuple[int, ...]:
    return _config_zero_pairs(axes_catalog()[model].config)


def _config_zero_pairs(config: Mapping[str, Any]) -> tuple[int, ...]:
    found = (answer.still for answer in axes_answers(config) if answer.runtime == "llama.cpp")
    return next(found, ())
