"""Write docs/accessibility.md: the accessibility trees of Learn and of one page, from a running server.

python assets/write_accessibility.py http://127.0.0.1:8501
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.processes import running_browser

PLACES = {
    "Learn, scene 1": "/learn",
    "Learn, scene 6": "/learn?learn.scene=6",
    "Frequencies": "/frequencies?model=llama-2-7b",
}
HEAD = """# What a screen reader gets

The accessibility trees of the main area of three pages, as Chromium reports them. `assets/write_accessibility.py`
writes this file.

Keys: Tab moves between controls. On Learn, ← → move words and sliders. On a chart, the arrow keys move from
point to point and the values are announced; + − and 0 zoom, Enter pins. On the clocks, Space plays, ← → step, and ↑ ↓
choose a pair.
"""


def main(url: str) -> None:
    """Visit the pages and write their accessibility trees."""
    parts = [HEAD]
    with running_browser() as browser:
        page = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
        for name, address in PLACES.items():
            page.goto(url + address)
            page.wait_for_selector(".rv-picture[data-drawn]")
            page.wait_for_timeout(2000)
            tree = page.locator("main").aria_snapshot()
            parts.append(f"## {name}\n\n```yaml\n{tree}\n```\n")
    target = Path(__file__).parents[1] / "docs" / "accessibility.md"
    target.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
