"""Does a model still find what it read?"""

from rope_viz.pictures import recall
from rope_viz.ui import page

page.start("Recall", says=recall.lengths)
with page.row():
    page.controls(recall.COMPARE, recall.UP_TO)
page.show(recall.lengths)
page.legend(
    "Each line is one method: the share of the asked facts that the reader finds in texts of this length; shaded "
    "around it its interval of 95 %. Upright rules: the trained and the target length."
)

page.section("Where in the text", says=recall.needle)
page.show(recall.needle)

page.section("Switch pairs off", says=recall.switched)
with page.row():
    page.controls(recall.BAND, recall.HOW, recall.FIRST, recall.LAST)
page.show(recall.switched)
page.picture_sentence(recall.carry)
page.controls(recall.AT)
page.show(recall.carry)

page.section("The two heads at work")
for pictures in ((recall.previous, recall.previous_pairs), (recall.finder, recall.finder_pairs)):
    for column, picture in zip(page.columns(1, 1), pictures, strict=True):
        with column:
            page.picture_sentence(picture)
            page.show(picture)

page.section("Steps to recover", says=recall.recover)
page.controls(recall.TUNED)
page.show(recall.recover)

page.section("Loss by position, with its floor", says=recall.loss)
page.controls(recall.READ_TO)
page.show(recall.loss)
page.section("Your own model", says=recall.yours)
page.controls(recall.ASKED)
page.show(recall.yours)
page.explain("recall")
page.words()
