"""How does the score of a query and a key change with their distance?"""

from rope_viz.pages import decay
from rope_viz.pages.decay.words import TEXTS
from rope_viz.ui import page

request = page.picture_request(decay.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=decay.curves)
    with page.figure_row():
        page.controls(decay.SHOW)
        page.more_controls("axis", decay.AXIS, decay.LENGTH, decay.LOG)
        page.more_controls("compare", decay.COMPARE)
        if decay.has_variants(request):
            page.pin_row(request, others=decay.other_methods(request))
    page.controls(decay.KIND, decay.SOURCE, decay.SEED, decay.TYPED, decay.FILE)
    page.show(decay.curves)
    page.mobile_knobs("base", "context", "target", "factor")
    page.legend(TEXTS(f"legends.{request[decay.SHOW]}"))
    page.next_page_link("attention", TEXTS("next_page"))
    page.controls(decay.BACKEND)

page.section(TEXTS("headings.pairs"), says=decay.pairs)
page.controls(decay.AT)
page.show(decay.pairs)

page.section(TEXTS("headings.map"), TEXTS("map_title"))
page.control_row(decay.WEIGHTS, decay.FIRST)
page.show(decay.attention)

if decay.temperature_of(request) is not None:
    page.section(TEXTS("headings.temperature"), says=decay.temperature)
    page.show(decay.temperature)

page.section(TEXTS("headings.bases"), says=decay.bases)
page.show(decay.bases)

page.section(TEXTS("headings.reach"), says=decay.reach)
page.show(decay.reach)
page.legend(TEXTS("reach.legend", most=decay.base_lengths.MOST))

page.section(TEXTS("headings.packing"), says=decay.distances)
page.control_row(decay.DOCUMENTS, decay.FORM)
page.show(decay.distances)
page.legend(TEXTS("packing.legend"))
page.controls(decay.PACKED)
page.end("decay")
