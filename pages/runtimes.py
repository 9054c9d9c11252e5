"""The page Runtimes: how each runtime reads a config, and what is wrong with it."""

from rope_viz.figures.words import runtimes as words
from rope_viz.pictures import runtimes
from rope_viz.ui import configs, page

page.start("Runtimes", says=runtimes.curves)
now = page.now(runtimes.PAGE)

if runtimes.diffusion(now):
    page.link("axes", "The axes of this model: Axes")
else:
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.show(runtimes.curves)
    page.mobile_knobs("base", "context", "target", "factor")
    page.legend(words.describe_marks(runtimes.answers(now)))
    page.next_page_link("precision", "Next: from which position on rounding matters")

    page.section("Runtime by runtime", says=runtimes.matrix)
    page.show(runtimes.matrix)
    page.paragraph(f"{words.TABLE} {words.counts()}")

if runtimes.several(now):
    page.section("Images and videos", says=runtimes.axes)
    page.show(runtimes.axes)
    page.link("axes", "The position of each token of a prompt, in two runtimes: Axes")

page.section("Check", "What is wrong with this config, by how much, and the source of the rule.")
configs.findings(runtimes.config_in_question(now))

if not runtimes.diffusion(now):
    page.link("extend", "What to write for a longer context, for each runtime: Extend")

page.section("All models", says=runtimes.models)
page.controls(runtimes.ALL)
page.show(runtimes.models)
page.explain("runtimes")
page.words()
