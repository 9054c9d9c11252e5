"""What does a scaling method do to every pair of this model, compared with other methods?"""

from rope_viz.pictures import scaling
from rope_viz.ui import page

page.start("Scaling", says=scaling.comparison)
with page.row():
    page.controls(scaling.SHOW, scaling.AXIS)
page.controls(scaling.COMPARE)
page.show(scaling.comparison)
page.mobile_knobs("factor", "context", "target", "base")
page.legend(
    "1 is a pair's full speed, 1/s the whole slowing. Columns: what the model's own method keeps, blends and "
    "divides. The other lines are other methods at the same factor."
)
page.next_page_link("decay", "Now see what that does to the score")

page.section("Side by side", says=scaling.methods)
page.show(scaling.methods)
page.explain("scaling")
page.words()
