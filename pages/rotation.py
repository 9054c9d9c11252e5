"""What does rotating q and k do, and why does only the distance matter?"""

from rope_viz.pages import rotation
from rope_viz.pages.rotation.figures import TEXTS
from rope_viz.ui import page

request = page.picture_request(rotation.PAGE)
with page.main_figure():
    page.start(TEXTS("title"), says=rotation.turning)
    with page.figure_row():
        page.controls(rotation.SHOW, rotation.PLAIN)
        if request[rotation.SHOW] == "turn":
            page.pin_row(request)
    page.show(rotation.turning)
    page.mobile_knobs("base", "context", "target", "factor")
    page.legend(TEXTS("legend"))
    page.next_page_link("frequencies", TEXTS("next_page"))

page.section(TEXTS("headings.arcs"), says=rotation.arcs)
page.show(rotation.arcs)
page.legend(TEXTS("arcs_legend"))

page.section(TEXTS("headings.matrix"), says=rotation.matrices)
page.control_row(rotation.PART, rotation.M, rotation.N)
page.show(rotation.matrices)
page.show(rotation.laws)

page.section(TEXTS("headings.forms"), says=rotation.forms)
page.controls(rotation.X, rotation.POSITION)
page.show(rotation.forms)
page.show(rotation.rotated)

page.link("conversion")
page.link("pairings")
page.end("rotation")
