"""Which pairs does a real model's head use?"""

from rope_viz.pages import heads
from rope_viz.pages.heads.figures import TEXTS
from rope_viz.ui import live_capture, page

page.start(TEXTS("title"), says=heads.jobs)
page.controls(heads.CHOSEN)
page.show(heads.jobs)
page.legend(TEXTS("real.legend", **heads.THRESHOLDS))
page.controls(heads.MEASURED)

page.section(TEXTS("headings.uses"), says=heads.uses)
for column, picture in zip(page.columns(), (heads.uses, heads.changed), strict=True):
    with column:
        page.show(picture)
page.picture_sentence(heads.changed)
is_own = heads.own_model(page.picture_request(heads.PAGE)) is not None
page.paragraph(TEXTS("real.own_caveat" if is_own else "real.caveat"))

page.section(TEXTS("headings.sentence"), says=heads.sentence)
page.controls(heads.ROTATION)
page.show(heads.sentence)

page.section(TEXTS("headings.own"), says=heads.across)
page.controls(heads.FILE)
live_capture.capture_own_text(page.picture_request(heads.PAGE))
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
