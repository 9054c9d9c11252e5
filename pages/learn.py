"""RoPE in eight scenes, each with a picture to move, a prediction and a task."""

from rope_viz.ui import learn_page

learn_page.show()
