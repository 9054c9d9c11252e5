"""What does position do to the attention of one sentence?"""

from rope_viz.pictures import attention
from rope_viz.ui import page

page.start("Attention", says=attention.maps)
page.controls(attention.SENTENCE)
with page.row():
    page.controls(attention.OFFSET, attention.SHOW, attention.CAUSAL)
page.show(attention.maps)
page.mobile_knobs("base", "factor")
page.legend(
    "Rows ask, columns are looked at; the darker, the more. Framed: the rows of the word that comes twice. Above "
    "each map: whether these rows are equal, and what a move changes."
)
page.next_page_link("rotation", "Now see the turning that does it")

page.section("Sinusoidal and RoPE", says=attention.products)
left, right = page.columns(1, 1)
with left:
    page.show(attention.products)
with right:
    page.show(attention.lengths)

page.section("Linear attention", says=attention.weights)
with page.row():
    page.controls(attention.SPACING, attention.COST)
left, right = page.columns(1, 1)
with left:
    page.show(attention.weights)
with right:
    page.show(attention.costs)
page.picture_sentence(attention.costs)
page.explain("attention")
page.words()
