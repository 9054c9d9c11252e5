"""What is the frequency of every pair, and how many turns did it make in training?"""

from rope_viz.pages import frequencies
from rope_viz.pages.frequencies import words
from rope_viz.pages.frequencies.figures import TEXTS
from rope_viz.ui import page

request = page.picture_request(frequencies.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=frequencies.wavelengths)
    with page.figure_row():
        page.controls(frequencies.AXIS)
        if request[frequencies.AXIS] == "all":
            page.pin_row(request)
    page.show(frequencies.wavelengths)
    page.mobile_knobs("base", "context", "target", "factor")
    page.legend(words.describe_marks(request.spec))
    page.next_page_link("scaling", TEXTS("next_page"))

page.section(TEXTS("headings.heatmap"), TEXTS("heatmap_help"))
page.control_row(frequencies.QUANTITY, frequencies.LENGTH)
page.show(frequencies.heatmap)

page.section(TEXTS("headings.pairs"), says=frequencies.pairs)
page.show(frequencies.pairs)
page.end("frequencies")
