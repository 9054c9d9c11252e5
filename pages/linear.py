"""What does RoPE do in linear attention?"""

from rope_viz.pages import attention
from rope_viz.pages.registry import title_of
from rope_viz.ui import page

page.start(title_of("linear"), says=attention.weights)
page.controls(attention.SENTENCE)
page.control_row(attention.SPACING, attention.COST)
page.show(attention.weights)
page.picture_sentence(attention.costs)
page.show(attention.costs)
page.end("linear")
