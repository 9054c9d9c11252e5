"""What does position do to the attention of one sentence?"""

from rope_viz.pages import attention
from rope_viz.pages.attention import words
from rope_viz.pages.attention.figures import TEXTS
from rope_viz.ui import page

request = page.picture_request(attention.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=attention.maps)
    with page.figure_row():
        page.controls(attention.SHOW, attention.SENTENCE)
        page.more_controls("view", attention.OFFSET, attention.CAUSAL)
    page.show(attention.maps)
    page.mobile_knobs("base", "factor")
    page.legend(words.describe_marks(request[attention.SHOW], request[attention.SENTENCE]))
    page.next_page_link("rotation", TEXTS("next_page"))

page.section(TEXTS("headings.products"), says=attention.products)
left, right = page.columns()
with left:
    page.show(attention.products)
with right:
    page.show(attention.lengths)

page.link("linear")
page.end("attention")
