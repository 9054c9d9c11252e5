"""How fast does every pair turn, and how often did it go round in training?"""

from rope_viz.figures import frequencies, words
from rope_viz.ui import choices, page, tables


@page.follow
def picture() -> None:
    """The sentence and the wavelengths."""
    spec = page.head("Frequencies", words.frequencies(page.spec()))
    title = f"Wavelength of each of {spec.pairs} pairs in tokens per turn, before and after scaling"
    page.show(frequencies.wavelengths(spec, pin=page.pin()), "frequencies.wavelengths", title, pins="x")


spec = page.spec()

page.section(
    "The θᵢ bands", "Every row is a pair, every column a range of positions, drawn as its exact mean. Zoom in."
)
with page.row():
    quantity = choices.pick("Quantity", frequencies.QUANTITIES, "frequencies.show")
    stop = choices.length("frequencies.length", "Positions", spec.target, most=frequencies.MAX_POSITION)
page.show(
    frequencies.heatmap(
        spec,
        stop=stop,
        view=page.view("frequencies.heatmap", (-0.5, stop - 0.5)),
        quantity=quantity,
        bins=300 if page.live() else 800,
        pin=page.pin(),
    ),
    "frequencies.heatmap",
    f"{quantity} of the angle of every pair over positions 0 to {stop}",
    zooms=True,
    pins="y",
)

page.section("Every pair", words.ranges(spec))
tables.pairs(spec)
page.explain("frequencies")
