"""How exactly, and how fast, are q and k rotated for real?"""

from rope_viz.figures.words import kernels as words
from rope_viz.pictures import kernels
from rope_viz.ui import measurement_button, page

page.start("Kernels", says=kernels.errors)
page.show(kernels.errors)
page.mobile_knobs("base", "head_dim")
page.legend("Each line is one way to rotate, its largest error by position; lower is more exact.")
page.next_page_link("runtimes", "Now see what each runtime makes of this config")

page.section("On this machine", words.BEFORE)
with page.row():
    page.controls(kernels.PAIRING, kernels.DTYPE, kernels.TOKENS, kernels.DEVICE, kernels.COMPILE)
report = measurement_button.measurement("kernels", "Measure", **kernels.workload(page.now(kernels.PAGE)))
if report:
    page.picture_sentence(kernels.speeds)
    page.show(kernels.speeds)
    page.picture_sentence(kernels.ways)
    page.show(kernels.ways)
    page.section("Pairings and backends agree", says=kernels.agreement)
    page.show(kernels.agreement)
    measurement_button.download(report, "Download the measurement", "rope-kernels")

page.explain("kernels")
page.section("Use it")
page.explain("kernels_code")
page.words()
