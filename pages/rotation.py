"""What does rotating q and k do, and why does only the distance matter?"""

from rope_viz.pictures import rotation
from rope_viz.ui import page

page.start("Rotation", says=rotation.turning)
with page.row():
    page.controls(rotation.SHOW, rotation.PLAIN)
page.show(rotation.turning)
page.mobile_knobs("base", "context", "target", "factor")
page.legend(
    "Each dial is one pair, its hand at the angle mθᵢ. Grey face: angles seen in training. Ring: kept, blended or"
    " divided by scaling. Below: the pair, and its turns since position 0."
)
page.next_page_link("frequencies", "Now see how fast every pair turns")

page.section("The matrix", says=rotation.matrices)
with page.row():
    page.controls(rotation.PART, rotation.M, rotation.N)
page.show(rotation.matrices)
page.show(rotation.laws)

page.section("One vector, four ways", says=rotation.forms)
page.controls(rotation.X, rotation.POSITION)
page.show(rotation.forms)
page.show(rotation.rotated)

page.section("Converting weights", says=rotation.permutation)
with page.row():
    page.controls(rotation.FROM, rotation.LIBRARY, rotation.HEADS)
page.show(rotation.permutation)
page.code(rotation.code(page.now(rotation.PAGE)))

page.section("When it is forgotten", says=rotation.mistakes)
page.show(rotation.mistakes)

page.section("Which models use which", says=rotation.pairings)
page.badge(rotation.pairing_here(page.now(rotation.PAGE)))
page.show(rotation.pairings)
page.explain("rotation")
page.words()
