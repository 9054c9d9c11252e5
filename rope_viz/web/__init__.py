"""All JavaScript: the app serves it, saved HTML files hold some of it; `inline/` is in the page itself."""

from pathlib import Path

FOLDER = Path(__file__).parent


def read_inline(name: str) -> str:
    """Return a file that is part of a page, without the end of its last line."""
    return (FOLDER / "inline" / name).read_text(encoding="utf-8").removesuffix("\n")
