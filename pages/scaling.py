"""What does a scaling method do to this model, pair by pair, beside the others?"""

from rope_viz.figures import scaling
from rope_viz.figures.words import common as words
from rope_viz.ui import choices, page, tables

spec = page.spec()
place = page.start("Scaling")
with page.row():
    shown = choices.pick("Show", scaling.VIEWS, "scaling.show")
    names = choices.several("Compare with", scaling.choices(spec), "scaling.with", scaling.usual(spec))


@page.follow(place)
def comparison(now: page.Now) -> page.Figure:
    """The model's own method beside the others."""
    curves = scaling.compared(now.spec, scaling.alternatives(now.spec, names))
    figure, title = scaling.view(shown, curves, pin=now.pin)
    pins = "" if shown == "ramp" else "x"
    return page.Figure(figure, f"scaling.{shown}", title, sentence=words.scaling(now.spec), pins=pins)


@page.follow(page.section("Side by side"))
def attention(now: page.Now) -> page.Sentence:
    """The attention factor in words."""
    return page.Sentence(words.attention(now.spec))


tables.table(scaling.summary(scaling.compared(spec, scaling.alternatives(spec, names))), "methods")
page.explain("scaling")
