"""What RoPE is, and where each question is answered."""

from rope_viz.ui import page

page.head("Rotary position embedding", "placeholder")
