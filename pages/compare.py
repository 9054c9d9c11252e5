"""What differs between two models: RoPE, frequencies, layers that rotate, and memory."""

from rope_viz.ui import compare_page

compare_page.show()
