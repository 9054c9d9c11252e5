"""How does the score of a query and a key change with their distance?"""

from rope_viz.figures.words import decay as words
from rope_viz.pictures import decay
from rope_viz.ui import page

page.start("Decay", says=decay.curves)
with page.row():
    page.controls(decay.SHOW, decay.AXIS, decay.LENGTH, decay.LOG)
page.controls(decay.KIND, decay.SOURCE, decay.SEED, decay.TYPED, decay.FILE, decay.COMPARE, decay.MODELS)
page.show(decay.curves)
page.mobile_knobs("base", "context", "target", "factor")
page.legend(
    "High: a query and an equal key that far apart still agree. Upright rules: the trained and the target length."
    " The marks show where a curve first falls below 0."
)
page.next_page_link("attention", "Now see it in the attention of a sentence")
page.controls(decay.BACKEND)

page.section("Pair by pair at one distance", says=decay.pairs)
page.controls(decay.AT)
page.show(decay.pairs)

page.section("The attention map", words.MAP)
with page.row():
    page.controls(decay.WEIGHTS, decay.FIRST)
page.show(decay.attention)

page.section("Which bases hold a context", says=decay.bases)
page.show(decay.bases)
page.explain("decay")
page.words()
