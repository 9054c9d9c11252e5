"""One model: what it is, how to serve it with the context that is needed, and what each runtime computes."""

from rope_viz.ui import model_page

model_page.show()
