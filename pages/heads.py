"""Which pairs does a real model's head use?"""

from rope_viz.pictures import heads
from rope_viz.ui import page

page.start("Heads", says=heads.across)
page.controls(heads.FILE)
with page.row():
    page.controls(heads.SHOW, heads.LAYER)
page.show(heads.across)
page.legend(
    "Every row is a head, every column a pair, the fast ones on the left; the colour is the quantity chosen above."
)

page.section("One head opened", says=heads.distance)
page.controls(heads.HEAD)
page.show(heads.distance)
for column, picture in zip(page.columns(1, 1), (heads.attention, heads.pairs), strict=True):
    with column:
        page.show(picture)
page.explain("heads")
page.words()
