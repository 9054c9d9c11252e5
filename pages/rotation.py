"""What does rotating q and k do, and why does only the distance matter?"""

from rope_viz.figures.words import rotation as words_rotation
from rope_viz.ui import algebra, choices, page
from rope_viz.ui.components import clocks

mode = choices.hidden("rotation.show", clocks.MODES)
spec = page.spec()
place = page.start("Rotation")
with page.row():
    choices.pick("Show", clocks.MODES, "rotation.show")
    plain = clocks.has_two_hands(spec, mode) and choices.switch("Hand before scaling", "rotation.plain", default=True)


@page.follow(place)
def turning(now: page.Now) -> page.Clocks:
    """The pairs as clocks."""
    return page.Clocks("rotation.clocks", words_rotation.rotation(now.spec, mode), mode=mode, plain=plain)


algebra.matrix(spec)
algebra.forms(spec)
algebra.converting(spec)
algebra.models()
page.explain("rotation")
