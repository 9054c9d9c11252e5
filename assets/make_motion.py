"""Make the README's animation from the running app; run by hand, with the dev requirements installed.

The script steps the browser's clock, so every frame is drawn and the pace does not depend on the machine.

python assets/make_motion.py [--smallest]: light and dark, or two frames in a temporary folder that show that it runs
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page
from plotly.colors import unlabel_rgb

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from rope_viz.figures.clocks import palette as page_palette  # noqa: E402
from rope_viz.figures.theme import CYCLIC  # noqa: E402
from tests.browser.conftest import Visit  # noqa: E402
from tests.browser.processes import running_browser, running_server  # noqa: E402

ADDRESS = "/rotation?model=yarn-llama-2-7b-128k"
FRAMES, PER_SECOND = 52, 12
SLOW, FAST = 6.0, 500.0  # tokens per second at the first and the last frame
LARGEST = 2_000_000

BY_HAND = """() => {
  window.__waiting = [];
  window.requestAnimationFrame = (then) => window.__waiting.push(then);
  window.__step = (now) => window.__waiting.splice(0).forEach((then) => then(now));
}"""
PACE = """(value) => {
  const pace = document.querySelector('[data-do=speed]');
  pace.value = value;
  pace.dispatchEvent(new Event('input'));
}"""


def main() -> None:
    """Record light and dark, and fail if a file is too large for a README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="two frames, in a temporary folder")
    smallest = parser.parse_args().smallest
    into = Path(tempfile.mkdtemp()) if smallest else HERE
    with running_server() as server, running_browser() as browser:
        for theme in ("light", "dark")[: 1 if smallest else None]:
            options = {"viewport": {"width": 1380, "height": 900}, "color_scheme": theme, "reduced_motion": "reduce"}
            context = browser.new_context(**options)
            frames = record(Visit(context.new_page(), server.url).open(ADDRESS).page, 2 if smallest else FRAMES)
            path = into / f"rotation-{theme}.gif"
            write(frames, path, dark=theme == "dark")
            print(f"{path.name}: {len(frames)} frames of {frames[0].size}, {path.stat().st_size:,} bytes")
            assert path.stat().st_size < LARGEST, "a README's picture should be under 2 MB: fewer frames or colours"
            context.close()


def record(page: Page, count: int) -> list[Image.Image]:
    """Return the canvas frame by frame while the pace rises from slow to fast."""
    page.evaluate(BY_HAND)
    page.locator("[data-do=loop]").click()
    page.locator("[data-do=play]").click()
    box = page.locator(".rv-clocks canvas").bounding_box()
    frames = []
    for index in range(count):
        share = index / (count - 1)
        page.evaluate(PACE, math.log10(SLOW) + share * math.log10(FAST / SLOW))
        page.evaluate("(now) => window.__step(now)", 1000 * (index + 1) / PER_SECOND)
        frames.append(Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB"))
    return frames


def write(frames: list[Image.Image], path: Path, *, dark: bool) -> None:
    """Save with one palette for all frames, so that unchanged pixels cost nothing."""
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in make_palette(dark) for part in colour])
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    drawn[0].save(
        path, save_all=True, append_images=drawn[1:], duration=round(1000 / PER_SECOND), loop=0, optimize=False
    )


def make_palette(dark: bool) -> list[tuple[int, int, int]]:
    """Return the picture's 64 colours: the page's own, blends with their backgrounds, and twelve hues of angle."""
    own = {name: both[dark] for name, both in page_palette().items()}
    base = [parse_rgb(own[name]) for name in ("background", "face", "text", "plain", "rule")]
    rings = [parse_rgb(colour) for colour in own["bands"]]
    hues = [tuple(round(part) for part in unlabel_rgb(colour)) for _, colour in CYCLIC[:-1]]
    face, paper = base[1], base[0]
    found = [
        *base,
        *rings,
        *hues,
        *(blend_colours(hue, face, 0.55) for hue in hues),
        *(blend_colours(hue, face, 0.2) for hue in hues),
    ]
    found += [blend_colours(colour, paper, 0.5) for colour in (*rings, base[2], base[3])]
    found += [blend_colours(base[3], face, share) for share in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.6)]
    return found + [paper] * (64 - len(found))


def blend_colours(one: Sequence[int], other: Sequence[int], share: float) -> tuple[int, int, int]:
    """Blend `share` of one colour over another."""
    red, green, blue = (round(share * a + (1 - share) * b) for a, b in zip(one, other, strict=True))
    return red, green, blue


def parse_rgb(colour: str) -> tuple[int, int, int]:
    """Read #RRGGBB as three numbers."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


if __name__ == "__main__":
    main()
