"""What does RoPE do in linear attention?"""

from rope_viz.pages import attention
from rope_viz.ui import page

page.start(page.TEXTS("pages.linear"), says=attention.weights)
page.controls(attention.SENTENCE)
page.control_row(attention.SPACING, attention.COST)
page.show(attention.weights)
page.picture_sentence(attention.costs)
page.show(attention.costs)
page.end("linear")
