"""What does a scaling method do to this model, pair by pair, beside the others?"""

from rope_viz.figures import scaling, words
from rope_viz.ui import choices, page, tables

spec = page.spec()
say = page.start("Scaling")
with page.row():
    shown = choices.pick("Show", scaling.VIEWS, "scaling.show")
    names = choices.several("Compare with", scaling.choices(spec), "scaling.with", scaling.usual(spec))


@page.follow
def picture() -> None:
    """The sentence and the comparison."""
    say(words.scaling(page.spec()))
    curves = scaling.compared(page.spec(), scaling.alternatives(page.spec(), names))
    figure, title = scaling.view(shown, curves, pin=page.pin())
    page.show(figure, f"scaling.{shown}", title, pins="" if shown == "ramp" else "x")


page.section("Side by side", words.attention(spec))
tables.table(scaling.summary(scaling.compared(spec, scaling.alternatives(spec, names))), "methods")
page.explain("scaling")
