"""What does a scaling method do to every pair of this model, compared with other methods?"""

from rope_viz.pages import scaling
from rope_viz.pages.scaling import words
from rope_viz.pages.scaling.figures import TEXTS
from rope_viz.ui import page

request = page.picture_request(scaling.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=scaling.comparison)
    with page.figure_row():
        page.controls(scaling.SHOW, scaling.AXIS)
        page.more_controls("compare", scaling.EXAMPLE, scaling.COMPARE)
        if scaling.has_variants(request):
            page.pin_row(request, scaling.shown(request, request.spec), scaling.other_methods(request))
    page.show(scaling.comparison)
    page.mobile_knobs("factor", "context", "target", "base")
    page.legend(words.describe_marks(request[scaling.SHOW], others=bool(request[scaling.COMPARE])))
    page.next_page_link("decay", TEXTS("next_page"))

page.section(TEXTS("headings.methods"), says=scaling.methods)
page.show(scaling.methods)
if scaling.needs_maps(request):
    page.section(TEXTS("headings.maps"), says=scaling.maps)
    page.show(scaling.maps)
page.end("scaling")
