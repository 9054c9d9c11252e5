"""How are weights converted between the two pairings?"""

from rope_viz.pages import rotation
from rope_viz.pages.registry import title_of
from rope_viz.pages.rotation.figures import TEXTS
from rope_viz.ui import page

page.start(title_of("conversion"), says=rotation.permutation)
page.control_row(rotation.FROM, rotation.LIBRARY, rotation.HEADS)
page.show(rotation.permutation)
page.code(rotation.code(page.picture_request(rotation.PAGE)))

page.section(TEXTS("headings.mistakes"), says=rotation.mistakes)
page.show(rotation.mistakes)
page.words()
