"""Pictures of Learn: the story of eight scenes, and a static figure of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import plotly.graph_objects as go

from rope_viz.embedding.spec import Knob
from rope_viz.figures import hands
from rope_viz.pages.learn import figures, scenes
from rope_viz.pages.learn.figures import TEXTS
from rope_viz.picture.choices import Number
from rope_viz.picture.outputs import Clocks, Figure
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest


@dataclass(frozen=True)
class Story(Clocks):
    """The eight scenes of Learn, which the user goes through, packed by `figures.learn`."""

    renderer: ClassVar[str] = "learn"

    def draw_static(self) -> go.Figure:
        return scenes.draw_static(self.message)

    def numbers(self) -> Mapping[str, Any]:
        return scenes.numbers(self.message)


SCENE = Number(key="learn.scene", knob=Knob(TEXTS("choices.scene"), 1, figures.SCENES, "", integer=True), usual=1)
M = Number(key="learn.m", knob=Knob(TEXTS("choices.m"), 0, 20, TEXTS("choices.m_help"), integer=True), usual=6)
PAGE = Page("learn", (SCENE, M), sees=lambda request: None, door="learn")

OLD_KEY, OLD_STEPS = "learn.step", (1, 2, 4, 3, 3, 5, 5, 5, 6, 7, 7, 7)
"""The former key of the address, with values from 1 to 12, and the scene that took over each step."""


def scene_of_step(step: str) -> str:
    """Return the scene that took over a step of a former address, the first one if there was no such step."""
    known = step.isascii() and step.isdecimal() and 1 <= int(step[:4]) <= len(OLD_STEPS)
    return str(OLD_STEPS[int(step) - 1] if known else 1)


@PAGE.picture(SCENE, height=760, narrow=900, repeats=True)
def story(request: PictureRequest) -> Story:
    """Learn RoPE in eight scenes: predict, do, see."""
    message = figures.message(int(request[SCENE])) | {"embed": "scene/"}
    return Story(message)


@PAGE.picture(M, height=scenes.HEIGHT, repeats=True)
def arrow(request: PictureRequest) -> Figure:
    """One pair of numbers, turned by its position."""
    return Figure(*scenes.one_hand(int(request[M])))


@PAGE.picture(query="learn.scene=1")
def scene1(request: PictureRequest) -> Figure:
    """The same word twice: scores without position and with RoPE."""
    return Figure(*scenes.STATIC[1]())


@PAGE.picture(height=scenes.HEIGHT, query="learn.scene=2")
def scene2(request: PictureRequest) -> Figure:
    """One hand on a circle."""
    return Figure(*scenes.STATIC[2]())


@PAGE.picture(height=hands.HEIGHT, query="learn.scene=3")
def scene3(request: PictureRequest) -> Figure:
    """Two hands: only the angle between them counts."""
    return Figure(*scenes.STATIC[3]())


@PAGE.picture(query="learn.scene=4")
def scene4(request: PictureRequest) -> Figure:
    """Fast and slow: the angle between two tokens on four pairs."""
    return Figure(*scenes.STATIC[4]())


@PAGE.picture(query="learn.scene=5")
def scene5(request: PictureRequest) -> Figure:
    """A real head: which of its pairs complete a turn within the original length."""
    return Figure(*scenes.STATIC[5]())


@PAGE.picture(query="learn.scene=6")
def scene6(request: PictureRequest) -> Figure:
    """Beyond the trained length: measured loss by position."""
    return Figure(*scenes.STATIC[6]())


@PAGE.picture(query="learn.scene=7")
def scene7(request: PictureRequest) -> Figure:
    """Three repairs: the share of each pair's frequency that is left."""
    return Figure(*scenes.STATIC[7]())


@PAGE.picture(query="learn.scene=8")
def scene8(request: PictureRequest) -> Figure:
    """The proof: keys found by length of the text."""
    return Figure(*scenes.STATIC[8]())
