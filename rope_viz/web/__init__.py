"""All JavaScript: the app serves it, saved HTML files hold some of it; `inline/` is in the page itself."""

from pathlib import Path

FOLDER = Path(__file__).parent
