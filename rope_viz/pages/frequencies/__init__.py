"""Pictures of the page Frequencies: the frequency of every pair, and its number of turns in training."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.figures import theme
from rope_viz.figures.compared import compared
from rope_viz.figures.wavelengths import wavelengths as draw_wavelengths
from rope_viz.models.variant import Variant
from rope_viz.pages.frequencies import figures, words
from rope_viz.pages.frequencies.figures import TEXTS
from rope_viz.picture.axis_choice import axis_of, axis_sentence, looked
from rope_viz.picture.choices import Pick, length
from rope_viz.picture.outputs import Figure, Table
from rope_viz.picture.page import Page, embedding
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import join

QUANTITY = Pick(key="frequencies.show", label=TEXTS("choices.quantity"), options=figures.QUANTITIES)
LENGTH = length(
    "frequencies.length", TEXTS("choices.length"), lambda request: request.spec.target, most=figures.MAX_POSITION
)
AXIS = axis_of("frequencies")


def drawn_variants(request: PictureRequest) -> Mapping[int, Variant]:
    """Return the pinned curves; none next to the pairs of one axis."""
    return request.variants if request[AXIS] == "all" else {}


PAGE = Page(
    "frequencies",
    (AXIS, QUANTITY, LENGTH),
    sees=lambda request: embedding(request, without=("attention",)),
    door="explore",
)


@PAGE.picture(
    AXIS,
    pin=True,
    variants=True,
    config=True,
    height=lambda request: theme.height_of_bars(1 + len(drawn_variants(request))),
)
def wavelengths(request: PictureRequest) -> Figure:
    """The wavelength of every pair, before and after scaling."""
    spec = looked(request, AXIS)
    sentence = join(axis_sentence(request, AXIS), words.describe_frequencies(spec))
    variants = drawn_variants(request)
    curves = compared(spec, [], variants, current=request.current) if variants else []
    figure = draw_wavelengths(spec, pin=request.pin, curves=curves)
    return Figure(figure, TEXTS("wavelengths_title"), sentence, pins="x")


@PAGE.picture(AXIS, QUANTITY, LENGTH, pin=True, zooms=True, height=380, config=True)
def heatmap(request: PictureRequest) -> Figure:
    """cos, sin or angle of every pair over the positions, as the exact mean of each bin."""
    stop, quantity = request[LENGTH], request[QUANTITY]
    view, bins = request.visible_range((-0.5, stop - 0.5)), 300 if request.coarse else 800
    figure = figures.heatmap(looked(request, AXIS), stop=stop, view=view, quantity=quantity, bins=bins, pin=request.pin)
    return Figure(figure, TEXTS(f"heatmap_titles.{quantity}", last=stop - 1), pins="y")


@PAGE.picture(AXIS, height=320, config=True)
def pairs(request: PictureRequest) -> Table:
    """Every pair's dimensions, frequencies, wavelengths, turns and band in numbers."""
    return Table(figures.pairs(looked(request, AXIS)), TEXTS("pairs_title"), words.describe_ranges(request.spec))
