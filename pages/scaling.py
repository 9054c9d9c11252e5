"""How fast does every pair turn, and how often did it go round in training?"""

from rope_viz.figures import frequencies, words
from rope_viz.ui import page

spec = page.head("Frequencies", words.frequencies(page.spec()))
page.show(
    frequencies.wavelengths(spec, pin=page.pin()),
    "frequencies.wavelengths",
    f"Wavelength in tokens of each of {spec.pairs} pairs, logarithmic",
    pins="x",
)
