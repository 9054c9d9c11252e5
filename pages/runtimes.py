"""How does each runtime read this config, and what is wrong with it?"""

from rope_viz.figures.words import runtimes as words
from rope_viz.pictures import runtimes
from rope_viz.ui import configs, page

page.start("Runtimes", says=runtimes.curves)
now = page.now(runtimes.PAGE)

if runtimes.diffusion(now):
    page.link("axes", "Its axes: Axes")
else:
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.show(runtimes.curves)
    page.mobile_knobs("base", "context", "target", "factor")
    page.legend(
        "A flat line at 1 agrees with the reference; a line that leaves it is a runtime whose pair turns faster "
        "(above) or slower (below)."
    )
    page.next_page_link("precision", "Now see from where on rounding matters")

    page.section("Runtime by runtime", says=runtimes.matrix)
    page.show(runtimes.matrix)
    page.paragraph(f"{words.TABLE} {words.counts()}")

if runtimes.several(now):
    page.section("Images and films", says=runtimes.axes)
    page.show(runtimes.axes)
    page.link("axes", "Where each token of a prompt stands, in two runtimes: Axes")

page.section("Check", "What is wrong with this config, by how much, and where the rule comes from.")
configs.findings(runtimes.config_in_question(now))

if not runtimes.diffusion(now):
    page.link("extend", "What to write for a longer context, for each runtime: Extend")

page.section("The whole list", says=runtimes.models)
page.controls(runtimes.ALL)
page.show(runtimes.models)
page.explain("runtimes")
page.words()
