"""Make the README's screenshots from the running app; run by hand, with the dev requirements installed.

python assets/make_screenshots.py [--smallest]: all of them, or one in a temporary folder that shows that it runs
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from tests.browser.conftest import Visit  # noqa: E402
from tests.browser.processes import running_browser, running_server  # noqa: E402

SHOTS = {
    "home": "/",
    "scaling": "/scaling?model=qwen3-8b-yarn",
    "frequencies": "/frequencies",
    "decay": "/decay",
    "precision": "/precision",
    "model": "/model?model=qwen3-8b",
}
SIZE = {"width": 1440, "height": 900}


def main() -> None:
    """Save one picture per page and theme in full colour: a palette would lose small labels and light tints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one picture, in a temporary folder")
    smallest = parser.parse_args().smallest
    into = Path(tempfile.mkdtemp()) if smallest else HERE
    with running_server() as server, running_browser() as browser:
        for name, address in list(SHOTS.items())[: 1 if smallest else None]:
            for theme in ("light", "dark")[: 1 if smallest else None]:
                context = browser.new_context(viewport=SIZE, color_scheme=theme, reduced_motion="reduce")
                visit = Visit(context.new_page(), server.url).open(address)
                path = into / f"{name}-{theme}.png"
                visit.page.screenshot(path=path)
                Image.open(path).convert("RGB").save(path, optimize=True)
                print(f"{path.name}: {path.stat().st_size:,} bytes")
                context.close()


if __name__ == "__main__":
    main()
