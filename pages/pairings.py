"""Which models use which pairing?"""

from rope_viz.pages import rotation
from rope_viz.ui import page

page.start(page.TEXTS("pages.pairings"), says=rotation.pairings)
page.badge(rotation.pairing_here(page.picture_request(rotation.PAGE)))
page.show(rotation.pairings)
page.link("conversion", page.TEXTS("pages.conversion"))
page.words()
