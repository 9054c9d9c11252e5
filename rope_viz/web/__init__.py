"""Scripts that turn clocks and move a patch: the app serves them, and a saved HTML file holds them."""

from pathlib import Path

FOLDER = Path(__file__).parent
