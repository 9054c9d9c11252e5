"""From which position on does rounding confuse this model, and who rounds where?"""

from rope_viz.figures import precision, words_precision
from rope_viz.ui import choices, page, tables

spec = page.spec()
say = page.start("Precision")
with page.row():
    where = choices.menu("What is rounded", precision.PLACES, "precision.where", width=330)
    position = choices.length("precision.position", "Up to position", spec.target, least=1)


@page.follow
def picture() -> None:
    """The sentence and the errors of every pair."""
    say(words_precision.rounding(page.spec(), where, position, live=page.live()))
    page.show(
        precision.heatmap(page.spec(), where, position=position, live=page.live(), pin=page.pin()),
        "precision.errors",
        f"{precision.PLACES[where]}: angle error in radians of every pair over positions 1 to 10 million",
        pins="y",
    )


page.section("The score as both positions move", words_precision.scores(spec, where, live=page.live()))
shown = choices.pick("Show", precision.VIEWS, "precision.show")
names = choices.several("Compare with", precision.SHORT, "precision.with", precision.OTHERS)
page.show(
    precision.scores(spec, where, shown=shown, names=names, live=page.live()),
    "precision.scores",
    "Error or drift of one score over the position, by rounding",
)

page.section("Every rounding", "For this model, up to its target length.")
tables.table(lambda: precision.summary(spec), "roundings", height=424)

page.section("Who rounds where", words_precision.practised(where))
page.say(words_precision.practices(where))
page.explain("precision")
