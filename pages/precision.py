"""From which position on does rounding confuse this model, and who rounds where?"""

from rope_viz.figures import precision
from rope_viz.figures.words import precision as words_precision
from rope_viz.ui import choices, page, tables

spec = page.spec()
place = page.start("Precision")
with page.row():
    where = choices.menu("What is rounded", precision.PLACES, "precision.where", width=330)
    choices.length("precision.position", "Up to position", spec.target, least=1)


@page.follow(place)
def errors(now: page.Now) -> page.Figure:
    """The error of every pair by position."""
    position = now.knob("precision.position")
    return page.Figure(
        precision.heatmap(now.spec, where, position=position, live=now.live, pin=now.pin),
        "precision.errors",
        f"{precision.PLACES[where]}: angle error in radians of every pair over positions 1 to 10 million",
        sentence=words_precision.rounding(now.spec, where, position, live=now.live),
        pins="y",
    )


place = page.section("The score as both positions move")
shown = choices.pick("Show", precision.VIEWS, "precision.show")
names = choices.several("Compare with", precision.SHORT, "precision.with", precision.OTHERS)


@page.follow(place)
def scores(now: page.Now) -> page.Figure:
    """The score of two tokens at a fixed distance, wherever they stand."""
    return page.Figure(
        precision.scores(now.spec, where, shown=shown, names=names, live=now.live),
        "precision.scores",
        "Error or drift of one score over the position, by rounding",
        sentence=words_precision.scores(now.spec, where, live=now.live),
    )


page.section("Every rounding", "For this model, up to its target length.")
tables.table(precision.summary(spec), "roundings", height=424)

page.section("Who rounds where", words_precision.practised(where))
page.say(words_precision.practices(where))
page.explain("precision")
