"""How do models use several position axes for images, videos and prompts, and how far beyond training do they reach?"""

from rope_viz.pictures import axes, axes_model
from rope_viz.ui import page

page.start("Axes", says=axes.sight)
with page.row():
    page.controls(*axes_model.WHICH, *axes_model.OTHER)
page.show(axes.sight)
page.legend("A position has one number for each axis; every pair turns with the axis that it listens to.")
page.next_page_link("rotation", "Now see one axis: how the pairs turn along a text")
with page.row():
    page.controls(axes.REACH, axes.SHADES)

page.section("Who owns which speed", says=axes.speeds)
with page.row():
    page.controls(axes_model.WAY, axes_model.SECTIONS)
page.show(axes.speeds)
with page.row():
    page.controls(*axes_model.BASES, *axes_model.SIDES.values())

page.section("Positions along a prompt", says=axes.positions)
page.controls(axes.PROMPT)
with page.row():
    page.controls(axes.RUNTIME, axes.SECOND)
page.show(axes.positions)
page.show(axes.costs)

page.section("Beyond the grid", says=axes.further)
with page.row():
    page.controls(axes.ALONG, axes.METHOD, axes.GROWTH)
page.show(axes.further)
if axes.alone(page.now(axes.PAGE)):
    page.link("decay", "How the score falls along this axis alone: Decay", more=axes.alone(page.now(axes.PAGE)))

page.section("One patch as clocks", says=axes.clocks)
page.controls(axes.FRAME)
page.show(axes.clocks)
page.explain("axes")
page.words()
