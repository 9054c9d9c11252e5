"""How fast does every pair turn, and how often did it go round in training?"""

from rope_viz.figures import frequencies
from rope_viz.figures.words import common as words
from rope_viz.ui import choices, page, tables

spec = page.spec()


@page.follow(page.start("Frequencies"))
def wavelengths(now: page.Now) -> page.Figure:
    """The wavelengths of all pairs."""
    return page.Figure(
        frequencies.wavelengths(now.spec, pin=now.pin),
        "frequencies.wavelengths",
        f"Wavelength of each of {now.spec.pairs} pairs in tokens per turn, before and after scaling",
        sentence=words.frequencies(now.spec),
        pins="x",
    )


page.section(
    "The θᵢ bands", "Every row is a pair, every column a range of positions, drawn as its exact mean. Zoom in."
)
with page.row():
    quantity = choices.pick("Quantity", frequencies.QUANTITIES, "frequencies.show")
    choices.length("frequencies.length", "Positions", spec.target, most=frequencies.MAX_POSITION)


@page.follow()
def heatmap(now: page.Now) -> page.Figure:
    """The bands over positions."""
    stop = now.knob("frequencies.length")
    view = now.view("frequencies.heatmap", (-0.5, stop - 0.5))
    bins = 300 if now.live else 800
    return page.Figure(
        frequencies.heatmap(now.spec, stop=stop, view=view, quantity=quantity, bins=bins, pin=now.pin),
        "frequencies.heatmap",
        f"{quantity} of the angle of every pair over positions 0 to {stop}",
        zooms=True,
        pins="y",
    )


page.section("Every pair", words.ranges(spec))
tables.pairs(spec)
page.explain("frequencies")
