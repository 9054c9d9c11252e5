"""The page Learn: its step, and its only picture of its own."""

from __future__ import annotations

from rope_viz.embedding.spec import Knob
from rope_viz.figures import learn
from rope_viz.pictures.choices import Number
from rope_viz.pictures.outputs import Figure
from rope_viz.pictures.page import Page
from rope_viz.pictures.picture_request import Now

LAST = 12
STEP = Number(key="learn.step", knob=Knob("Step", 1, LAST, "", integer=True), usual=1)
M = Number(key="learn.m", knob=Knob("Position m", 0, 20, "How often the pair is turned.", integer=True), usual=0)
PAGE = Page("learn", (STEP, M))


@PAGE.picture(M, height=learn.HEIGHT)
def arrow(now: Now) -> Figure:
    """One pair of numbers, turned by its position."""
    m = now[M]
    return Figure(learn.arrow(m), f"The pair (1, 0) turned by {m} radians, as an arrow with its two numbers")
