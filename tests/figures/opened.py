"""Read figures back from files, for several tests."""

import io
import struct

from rope_viz.figures.files import Style
from tests.figures.drawn import DRAWN

META = {"spec": {"base": 500_000.0}, "view": "θ of llama", "address": "https://host/rope?a=1&b=2"}
# Of every family of figures one: what holds for all forms alike is asked of these.
SOME = ("wavelengths", "attention weights", "bf16-inv-freq", "contributions", "bases", "table", "dials", "speeds")
SVG = "{http://www.w3.org/2000/svg}"
COLUMN = Style.read({"preset": "one-column", "dpi": "72"})


def ratio():
    return DRAWN["ratio"]


def png_chunks(raw):
    """{kind: contents} of a PNG."""
    found, at = {}, 8
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        found.setdefault(kind.decode(), []).append(raw[at + 8 : at + 8 + size])
        at += size + 12
    return found


def png_pixels(raw):
    """A PNG as an array (rows, columns, 4) of 8 bits."""
    import matplotlib.image

    return (matplotlib.image.imread(io.BytesIO(raw)) * 255).round().astype(int)
