"""What is the frequency of every pair, and how many turns did it make in training?"""

from rope_viz.pictures import frequencies
from rope_viz.ui import page

page.start("Frequencies", says=frequencies.wavelengths)
page.controls(frequencies.AXIS)
page.show(frequencies.wavelengths)
page.mobile_knobs("base", "context", "target", "factor")
page.legend(
    "Each point of a line is a pair; high up are the slow ones. Shaded grey: a turn takes longer than the whole "
    "training. Green, ochre and red columns: what scaling does."
)
page.next_page_link("scaling", "Now see what scaling does to the slow pairs")

page.section(
    "The θᵢ bands", "Every row is a pair, every column a range of positions, drawn as its exact mean. Zoom in."
)
with page.row():
    page.controls(frequencies.QUANTITY, frequencies.LENGTH)
page.show(frequencies.heatmap)

page.section("Every pair", says=frequencies.pairs)
page.show(frequencies.pairs)
page.explain("frequencies")
page.words()
