"""How exactly, and how fast, are q and k rotated for real?"""

from rope_viz.pages import kernels
from rope_viz.pages.kernels import words
from rope_viz.pages.kernels.figures import TEXTS
from rope_viz.ui import measurement_button, page

page.start(TEXTS("title"), says=kernels.errors)
page.show(kernels.errors)
page.mobile_knobs("base", "head_dim")
page.legend(TEXTS("legend"))
page.next_page_link("model", TEXTS("next_page"))

page.section(TEXTS("headings.measure"), words.explain_measurement())
page.control_row(kernels.PAIRING, kernels.DTYPE, kernels.TOKENS, kernels.DEVICE, kernels.COMPILE)
report = measurement_button.measurement("kernels", **kernels.workload(page.picture_request(kernels.PAGE)))
if report:
    page.picture_sentence(kernels.speeds)
    page.show(kernels.speeds)
    page.picture_sentence(kernels.ways)
    page.show(kernels.ways)
    page.section(TEXTS("headings.agreement"), says=kernels.agreement)
    page.show(kernels.agreement)
    measurement_button.download(report, "rope-kernels")

page.explain("kernels")
page.section(TEXTS("headings.code"))
page.end("kernels/code")
