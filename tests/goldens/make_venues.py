"""Write the widths and font sizes of venues that tueplots knows: rope_viz/figures/files/venues.toml.

    python tests/goldens/make_venues.py

A venue with two columns has two entries, "-half" and "-full". The font size is that of the text of a figure.
"""

from __future__ import annotations

import inspect
from importlib.metadata import version
from pathlib import Path

from tueplots import bundles

FILE = Path(__file__).parents[2] / "rope_viz/figures/files/venues.toml"


def read_venues() -> dict[str, tuple[float, float]]:
    """Return {preset: (width in inches, font size in points)}; slides on dark ground have the size of the others."""
    found = {}
    for name, bundle in inspect.getmembers(bundles, inspect.isfunction):
        if name.startswith("_") or name.endswith("dark_bg"):
            continue
        takes = inspect.signature(bundle).parameters
        options = {"usetex": False} if "usetex" in takes else {}
        for column in ("half", "full") if "column" in takes else ("",):
            sizes = bundle(**options, **({"column": column} if column else {}))
            preset = "-".join(filter(None, (name.replace("_", "-"), column)))
            found[preset] = sizes["figure.figsize"][0], sizes["font.size"]
    return found


if __name__ == "__main__":
    lines = [f"# Widths and font sizes of venues, from tueplots {version('tueplots')}; written by make_venues.py."]
    for preset, (width, size) in read_venues().items():
        lines.append(f'{preset} = {{ width = "{25.4 * width:.5g}mm", font_size = "{size:g}pt" }}')
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
