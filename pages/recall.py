"""Does a model still find what it read?"""

from rope_viz.pages import recall
from rope_viz.pages.recall import choices, real_model
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.ui import live_search, live_text, page

page.start(TEXTS("title"), TEXTS("about"), says=recall.lengths)
page.control_row(choices.COMPARE, choices.UP_TO)
page.show(recall.lengths)
page.legend(TEXTS("legend"))

page.section(TEXTS("headings.real"), says=real_model.real_loss)
page.show(real_model.real_loss)
page.picture_sentence(real_model.real_cost)
page.show(real_model.real_cost)
page.picture_sentence(real_model.short_cost)
page.show(real_model.short_cost)
page.paragraph(TEXTS("real.caveat"))
page.section(TEXTS("headings.real_keys"), says=real_model.real_keys)
page.show(real_model.real_keys)

page.section(TEXTS("headings.live"))
live_text.show_own_losses(page.picture_request(choices.PAGE))

page.section(TEXTS("headings.maps"), says=recall.needle)
page.show(recall.needle)

page.section(TEXTS("headings.switched"), says=recall.switched)
page.control_row(choices.BAND, choices.HOW, choices.FIRST, choices.LAST)
page.show(recall.switched)
page.picture_sentence(recall.carry)
page.controls(choices.AT)
page.show(recall.carry)

page.section(TEXTS("headings.heads"), TEXTS("heads.about"))
for pictures in ((recall.previous, recall.previous_pairs), (recall.finder, recall.finder_pairs)):
    for column, picture in zip(page.columns(), pictures, strict=True):
        with column:
            page.picture_sentence(picture)
            page.show(picture)

page.section(TEXTS("headings.recover"), says=recall.recover)
page.controls(choices.TUNED)
page.show(recall.recover)

page.section(TEXTS("headings.loss"), says=recall.loss)
page.controls(choices.READ_TO)
page.show(recall.loss)
page.section(TEXTS("headings.search"))
live_search.search_frequencies(page.picture_request(choices.PAGE))

page.section(TEXTS("headings.yours"), says=recall.yours)
page.controls(choices.ASKED)
page.show(recall.yours)
page.end("recall")
