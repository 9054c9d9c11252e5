"""Which pairs does a real model's head use?"""

from rope_viz.figures.heads import TEXTS
from rope_viz.pictures import heads
from rope_viz.ui import page

page.start(TEXTS("title"), says=heads.across)
page.controls(heads.FILE)
page.control_row(heads.SHOW, heads.LAYER)
page.show(heads.across)
page.legend(TEXTS("legend"))

page.section(TEXTS("headings.head"), says=heads.distance)
page.controls(heads.HEAD)
page.show(heads.distance)
for column, picture in zip(page.columns(), (heads.attention, heads.pairs), strict=True):
    with column:
        page.show(picture)
page.end("heads")
