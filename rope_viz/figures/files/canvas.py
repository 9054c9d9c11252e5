"""A sheet to draw on by Matplotlib: lines, areas, images and texts, in pixels of 1/96 inch from the top left.

Independent of pyplot, of the user's Matplotlib settings and of the date: equal calls give equal bytes.
"""

from __future__ import annotations

import functools
import io
import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from rope_viz.figures.files.colours import parse_rgba
from rope_viz.figures.files.load_matplotlib import load_matplotlib
from rope_viz.figures.files.rich_text import Lines, TextSpan
from rope_viz.figures.files.style import ERRORS
from rope_viz.storage.decode_json import read_own

# Matplotlib uses points of 1/72 inch.
POINT = 0.75
LEADING = 1.25
# From the middle of a text line to its baseline; also from there to the top of a capital. In font sizes.
BASELINE = 0.36
SETTINGS: dict[str, Any] = read_own(__file__, "matplotlib.json")["settings"]
STRIP = 256
"""Rows of pixels that are drawn at once."""
# Matplotlib's settings are global to the process: one drawing at a time.
DRAWING = threading.RLock()
Box = tuple[float, float, float, float]


@contextmanager
def apply_settings() -> Iterator[None]:
    """Apply our Matplotlib settings alone, one thread at a time; raise `ValueError` if Matplotlib is missing."""
    try:
        load_matplotlib()
        import matplotlib
        import matplotlib.figure
        import matplotlib.image
        import matplotlib.patches
    except ImportError:
        raise ValueError(ERRORS("no_matplotlib")) from None
    own = ("backend", "backend_fallback", "interactive", "toolbar", "timezone")
    with DRAWING, warnings.catch_warnings():
        # Silence warnings: glyphs missing in all fonts are drawn as boxes, and deprecated settings keep their defaults.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        warnings.filterwarnings("ignore", category=matplotlib.MatplotlibDeprecationWarning)
        usual: Any = matplotlib.rcParamsDefault
        rules: Any = {key: usual[key] for key in usual if key not in own} | SETTINGS
        with matplotlib.rc_context(rules):
            yield


# Font tables for ligatures, kerning and substitution: applied before a PDF is written, unused inside it.
RULES = ("GSUB", "GPOS", "GDEF", "kern")


@contextmanager
def _plain_fonts() -> Iterator[None]:
    """Drop these tables from a PDF's fonts, because subsetting them took a third of the time."""
    from fontTools import subset

    usual: Any = subset.Options
    before = getattr(usual, "_drop_tables_default", None)
    if before is None:
        yield
        return
    usual._drop_tables_default = [*before, *RULES]
    try:
        with DRAWING:
            yield
    finally:
        usual._drop_tables_default = before


class Canvas:
    """One sheet; later drawings are on top. `below` are further pixels under those that a figure may use."""

    def __init__(
        self, width: float, height: float, *, families: Sequence[str], background: str, below: float = 0.0
    ) -> None:
        from matplotlib.figure import Figure

        self.width, self.height, self.families = width, height, tuple(families)
        face = parse_rgba(background)
        self.figure = Figure(figsize=(width / 96, (height + below) / 96), dpi=96, facecolor=face if face[3] else "none")
        self.axes = self.figure.add_axes((0, 0, 1, 1), frame_on=False, xticks=[], yticks=[], autoscale_on=False)
        self.axes.set(xlim=(0, width), ylim=(height + below, 0))
        self.order = 1.0

    def measure(self, run: TextSpan, size: float) -> float:
        """Return the width of a text run in pixels."""
        return _measure_width(run.text, self.families, run.bold) * size

    def line(
        self,
        x: Any,
        y: Any,
        *,
        colour: str,
        width: float,
        dash: Sequence[float] = (),
        clip: Box | None = None,
        cap: Any = "butt",
    ) -> None:
        """Draw a polyline with gaps at NaN; `dash` holds strokes and gaps in pixels."""
        from matplotlib.lines import Line2D

        style: Any = (0, [max(length, 0.1) * POINT for length in dash]) if dash else "-"
        self._add(
            Line2D(
                np.asarray(x, dtype=float),
                np.asarray(y, dtype=float),
                color=parse_rgba(colour),
                linewidth=width * POINT,
                linestyle=style,
                solid_capstyle=cap,
                solid_joinstyle="round",
            ),
            clip,
        )

    def area(
        self,
        rings: Sequence[Any],
        *,
        fill: str = "",
        edge: str = "",
        width: float = 0.0,
        hatch: str = "",
        clip: Box | None = None,
    ) -> None:
        """Draw closed shapes, each (points, 2), with one fill and edge; a hatch has the edge's colour."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        paths = [Path(np.vstack([ring, ring[:1]]), closed=True) for ring in map(np.asarray, rings) if len(ring) > 1]
        if paths:
            face = parse_rgba(fill) if fill else (0.0, 0.0, 0.0, 0.0)
            look: Any = {
                "facecolor": face,
                "edgecolor": parse_rgba(edge) if edge else "none",
                "linewidth": width * POINT,
            }
            self._add(PathPatch(Path.make_compound_path(*paths), hatch=hatch or None, **look), clip)

    def box(self, box: Box, **look: Any) -> None:
        """Draw a rectangle (left, top, right, bottom)."""
        left, top, right, bottom = box
        self.area([[(left, top), (right, top), (right, bottom), (left, bottom)]], **look)

    def picture(self, pixels: Any, box: Box) -> None:
        """Draw an image (rows, columns, 4) of 8-bit values, first row on top, into a box."""
        left, top, right, bottom = box
        image = _image_class()(self.axes, extent=(left, right, bottom, top), interpolation="none", origin="upper")
        image.set_data(pixels)
        self._add(image, None)

    def markers(
        self, x: Any, y: Any, *, symbol: str, size: float, fill: str, edge: str, width: float, clip: Box | None
    ) -> None:
        from matplotlib.lines import Line2D

        ring = parse_rgba(edge) if edge else parse_rgba(fill)
        look: Any = {"markersize": size * POINT, "markerfacecolor": parse_rgba(fill), "markeredgecolor": ring}
        self._add(Line2D(x, y, linestyle="none", marker=symbol, markeredgewidth=width * POINT, **look), clip)

    def text(self, lines: Lines, x: float, y: float, *, size: float, colour: str, **place: Any) -> Box:
        """Draw lines of text at a point and return their box; see `Canvas.extent` for `place`."""
        left, top = self._corner(lines, size, **place)
        angle = place.get("angle", 0.0)
        turn = math.radians(angle)
        sides, _ = self._sizes(lines, size)
        widest = max(sides)
        for row, (line, wide) in enumerate(zip(lines, sides, strict=True)):
            at = left + (widest - wide) * {"left": 0.0, "center": 0.5, "right": 1.0}[place.get("align", "left")]
            down = top + (row + 0.5) * LEADING * size + BASELINE * size
            for run in line:
                if run.text.strip():
                    self.axes.text(
                        x + at * math.cos(turn) - down * math.sin(turn),
                        y + at * math.sin(turn) + down * math.cos(turn),
                        run.text,
                        fontsize=size * POINT,
                        family=list(self.families),
                        weight="bold" if run.bold else "normal",
                        color=parse_rgba(run.colour or colour),
                        rotation=-angle,
                        rotation_mode="anchor",
                        va="baseline",
                        zorder=self._next(),
                    )
                at += self.measure(run, size)
        return self.extent(lines, x, y, size=size, **place)

    def extent(self, lines: Lines, x: float, y: float, *, size: float, **place: Any) -> Box:
        """Return the box of a text: `across` and `down` name its anchor at the point, `angle` rotates it clockwise.

        `across` is left, center or right, `down` top, middle or bottom, both before rotation; `align` aligns lines.
        """
        left, top = self._corner(lines, size, **place)
        sides, high = self._sizes(lines, size)
        turn = math.radians(place.get("angle", 0.0))
        corners = [(left + dx, top + dy) for dx in (0.0, max(sides)) for dy in (0.0, high)]
        xs = [x + u * math.cos(turn) - v * math.sin(turn) for u, v in corners]
        ys = [y + u * math.sin(turn) + v * math.cos(turn) for u, v in corners]
        return min(xs), min(ys), max(xs), max(ys)

    def size(self, lines: Lines, size: float) -> tuple[float, float]:
        """Return the width and height of lines of text."""
        sides, high = self._sizes(lines, size)
        return max(sides), high

    def write(self, form: str, dpi: int, metadata: Mapping[str, str | None]) -> bytes:
        out = io.BytesIO()
        with _plain_fonts() if form == "pdf" else nullcontext():
            self.figure.savefig(out, format=form, dpi=dpi, metadata=dict(metadata))
        return out.getvalue()

    def _sizes(self, lines: Lines, size: float) -> tuple[list[float], float]:
        return [sum(self.measure(run, size) for run in line) for line in lines], len(lines) * LEADING * size

    def _corner(
        self,
        lines: Lines,
        size: float,
        *,
        across: str = "left",
        down: str = "middle",
        angle: float = 0.0,
        align: str = "left",
    ) -> tuple[float, float]:
        wide, high = self.size(lines, size)
        return (
            -wide * {"left": 0.0, "center": 0.5, "right": 1.0}[across],
            -high * {"top": 0.0, "middle": 0.5, "bottom": 1.0}[down],
        )

    def _next(self) -> float:
        self.order += 1.0
        return self.order

    def _add(self, artist: Any, clip: Box | None) -> None:
        from matplotlib.patches import Rectangle

        artist.set_zorder(self._next())
        self.axes.add_artist(artist)
        if clip is not None:
            left, top, right, bottom = clip
            frame = Rectangle((left, top), right - left, bottom - top, transform=self.axes.transData)
            artist.set_clip_path(frame)
        else:
            artist.set_clip_on(False)


@functools.cache
def _image_class() -> Any:
    """Return the class of our images, made on first use because Matplotlib is imported lazily."""
    from matplotlib.image import AxesImage

    class StripImage(AxesImage):
        """An image that is enlarged a few rows at a time.

        Matplotlib enlarges it at once, in float32 and several copies: 2.5 GB for 50 million pixels.
        """

        def draw(self, renderer: Any) -> None:
            """Draw it: vector formats embed the dots as they are, a png gets the nearest dot at every pixel."""
            if renderer.option_scale_image():
                super().draw(renderer)
                return
            pixels: Any = self.get_array()
            left, right, bottom, top = self.get_extent()
            (x0, y0), (x1, y1) = self.axes.transData.transform([(left, bottom), (right, top)])
            columns, first = _nearest_dots(x0, x1, pixels.shape[1])
            # As Matplotlib does, a half is rounded away from the top left corner of the file.
            rows, low = _nearest_dots(y0, y1, pixels.shape[0], half=0.5 - 1e-8)
            gc = renderer.new_gc()
            for start in range(0, len(rows), STRIP):
                strip = pixels[pixels.shape[0] - 1 - rows[start : start + STRIP]][:, columns]
                renderer.draw_image(gc, first, low + start, np.ascontiguousarray(strip))
            gc.restore()

    return StripImage


def _nearest_dots(start: float, stop: float, count: int, half: float = 0.5) -> tuple[Any, int]:
    """Return the index of the dot at every pixel from `start` to `stop`, and the first pixel.

    `half` is the fraction of a pixel from which an end is rounded up.
    """
    first, last = math.floor(start + half), math.floor(stop + half)
    centres = np.arange(first, max(last, first + 1)) + 0.5
    return np.clip(((centres - start) / (stop - start) * count).astype(int), 0, count - 1), first


@functools.lru_cache(maxsize=4096)
def _measure_width(text: str, families: tuple[str, ...], bold: bool) -> float:
    """Return the width of a text in font sizes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=list(families), size=100, weight="bold" if bold else "normal")
    with DRAWING:
        wide, _, _ = text_to_path.get_text_width_height_descent(text or " ", font, ismath=False)
    return float(wide) / 100.0 if text else 0.0
