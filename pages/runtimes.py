"""What does each runtime make of this config, what is wrong with it, and how is it said to each of them?"""

from rope_viz.advice import board
from rope_viz.figures.words import runtimes as words
from rope_viz.pictures import runtimes
from rope_viz.ui import configs, page

page.start("Runtimes", says=runtimes.curves)
page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
page.show(runtimes.curves)
page.under("base", "context", "target", "factor")

page.section("Runtime by runtime", says=runtimes.matrix)
page.show(runtimes.matrix)
page.say(f"{words.TABLE} {words.counts()}")

now = page.now(runtimes.PAGE)
page.section("Check", "What is wrong with this config, by how much, and where the rule comes from.")
configs.findings(runtimes.asked(now))

page.section("Export", "This embedding as the keys or flags of a runtime, each sent back through that runtime's rules.")
page.controls(runtimes.TO)
configs.export(runtimes.asked(now), now[runtimes.TO], runtimes.NAMES[now[runtimes.TO]])

page.section("Target length", says=runtimes.options)
page.controls(runtimes.TARGET)
page.show(runtimes.options)
page.controls(runtimes.METHOD)
configs.written(board.extended(runtimes.asked(now), now[runtimes.METHOD], now[runtimes.TARGET]))

page.section("The whole list", says=runtimes.models)
page.controls(runtimes.ALL)
page.show(runtimes.models)
page.explain("runtimes")
