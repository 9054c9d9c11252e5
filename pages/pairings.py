"""Which models use which pairing?"""

from rope_viz.pages import rotation
from rope_viz.pages.registry import title_of
from rope_viz.ui import page

page.start(title_of("pairings"), says=rotation.pairings)
page.badge(rotation.pairing_here(page.picture_request(rotation.PAGE)))
page.show(rotation.pairings)
page.link("conversion")
page.words()
