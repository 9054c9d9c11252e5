"""At which position does rounding start to matter for this model, and which implementation rounds where?"""

from rope_viz.figures.words import precision as words
from rope_viz.pictures import precision
from rope_viz.ui import page

page.start("Precision", says=precision.errors)
with page.row():
    page.controls(precision.WHERE, precision.POSITION)
page.show(precision.errors)
page.mobile_knobs("base", "head_dim")
page.legend(
    "Each line is one rounding by itself; a line that rises grows with the position, a flat one does not. 1 turn "
    "is the worst there is."
)
page.next_page_link("kernels", "Now see how exactly kernels rotate")

page.section("The score as both positions move", says=precision.scores)
page.controls(precision.SHOW, precision.COMPARE)
page.show(precision.scores)

page.section("Every rounding", says=precision.roundings)
page.show(precision.roundings)

where = page.now(precision.PAGE)[precision.WHERE]
page.section("Who rounds where", words.practised(where))
page.paragraph(words.practices(where))
page.explain("precision")
page.words()
