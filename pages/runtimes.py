"""What does each runtime make of this config, what is wrong with it, and how is it said to each of them?"""

from rope_viz.advice import board, extend
from rope_viz.figures import runtimes
from rope_viz.figures.words import runtimes as words_runtimes
from rope_viz.ui import choices, configs, page, tables

spec = page.spec()
place = page.start("Runtimes")
ask = configs.asker()
asked = ask(spec)
shown = choices.pick("Length", runtimes.LENGTHS, "runtimes.at") if board.by_length(spec) else "start"


@page.follow(place)
def curves(now: page.Now) -> page.Figure:
    """The frequencies of the runtimes that differ."""
    answers = board.board(ask(now.spec), now.spec.target if shown == "target" else None)
    figure, title = runtimes.curves(answers, now.spec, pin=now.pin)
    return page.Figure(figure, "runtimes.curves", title, sentence=words_runtimes.agreement(answers), pins="x")


length = spec.target if shown == "target" else None
answers = board.board(asked, length)
page.section("Runtime by runtime", words_runtimes.whose(asked, length))
tables.words(runtimes.matrix(answers), alt="What each runtime makes of this config")
page.say(words_runtimes.TABLE)

page.section("Check", "What is wrong with this config, by how much, and where the rule comes from.")
configs.findings(asked)

page.section("Export", "This embedding as the keys or flags of a runtime, each sent back through that runtime's rules.")
configs.export(asked, "runtimes.to")

page.section("Target length")
with page.row():
    target = choices.length("runtimes.target", "I need", max(131_072, spec.target), most=extend.LONGEST // 4)


@page.follow()
def extension(now: page.Now) -> page.Sentence:
    """What it takes to reach the wanted length."""
    return page.Sentence(words_runtimes.extension(now.spec, now.knob("runtimes.target")))


tables.table(runtimes.options(asked, target), "options", height=420)
method = choices.menu("The config to write, by", runtimes.methods(asked, target), "runtimes.method")
configs.written(board.extended(asked, method, target))

page.section("The whole list", words_runtimes.model_list())
everything = choices.switch("Also the models on which all agree", "runtimes.all")
tables.table(runtimes.model_list(everything=everything), "runtimes-models", height=600)
page.explain("runtimes")
