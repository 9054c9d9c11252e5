"""The frame around every page; `rope_viz/picture/read_address.py` lists them."""

from pathlib import Path

from rope_viz.ui import app_shell

app_shell.run(Path(__file__).parent)
