"""How do models use several position axes for images, videos and prompts, and how far beyond training do they reach?"""

from rope_viz.pages import axes
from rope_viz.pages.axes import choices
from rope_viz.pages.axes.figures import TEXTS
from rope_viz.picture import axis_choice
from rope_viz.ui import page

request = page.picture_request(axes.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=axes.sight)
    with page.figure_row(has_labels=True):
        page.controls(*choices.WHICH, *choices.OTHER)
        page.more_controls("view", axes.REACH, axes.SHADES)
    page.show(axes.sight)
    page.mobile_sliders(axes.REACH)
    if not axis_choice.find_sidebar_scenes(request):
        page.paragraph(TEXTS("example", model=request.subject.name))
    page.legend(TEXTS("legend"))
    page.next_page_link("rotation", TEXTS("next_page"))

page.section(TEXTS("headings.wavelengths"), says=axes.speeds)
page.control_row(choices.WAY, choices.SECTIONS)
page.show(axes.speeds)
page.control_row(*choices.BASES, *choices.SIDES.values())

page.section(TEXTS("headings.prompt"), says=axes.positions)
page.controls(axes.PROMPT)
page.control_row(axes.RUNTIME, axes.SECOND)
page.show(axes.positions)
page.show(axes.costs)

page.section(TEXTS("headings.further"), says=axes.further)
page.control_row(axes.ALONG, axes.METHOD, axes.GROWTH)
page.show(axes.further)
if query := axes.decay_query(request):
    page.link("decay", TEXTS("decay_link"), more=query)

page.section(TEXTS("headings.patch"), says=axes.clocks)
page.controls(axes.FRAME)
page.show(axes.clocks)
page.end("axes")
