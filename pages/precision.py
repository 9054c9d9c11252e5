"""At which position does rounding start to matter for this model, and which implementation rounds where?"""

from rope_viz.pages import precision
from rope_viz.pages.precision import words
from rope_viz.pages.precision.figures import TEXTS
from rope_viz.ui import page

with page.main_figure():
    page.start(TEXTS("title"), says=precision.errors)
    with page.figure_row(has_labels=True):
        page.controls(precision.WHERE, precision.POSITION)
    page.show(precision.errors)
    page.mobile_knobs("base", "head_dim")
    page.legend(TEXTS("legend"))
    page.next_page_link("kernels", TEXTS("next_page"))

page.section(TEXTS("headings.scores"), says=precision.scores)
page.controls(precision.SHOW, precision.COMPARE)
page.show(precision.scores)

page.section(TEXTS("headings.table"), says=precision.roundings)
page.show(precision.roundings)

where = page.picture_request(precision.PAGE)[precision.WHERE]
page.section(TEXTS("headings.practices"), words.list_implementations(where))
page.paragraph(words.format_practices(where))
page.end("precision")
