"""Render a figure as svg, pdf or png: layout first, then drawing from back to front."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping

import plotly.graph_objects as go

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files import axes_frame, colourbars, margins, shape_annotations, traces
from rope_viz.figures.files.apply_style import apply_style
from rope_viz.figures.files.canvas import Canvas, apply_settings
from rope_viz.figures.files.label_placement import Places
from rope_viz.figures.files.layout import start_plan
from rope_viz.figures.files.style import Style

BOXES = "Last Resort"
"""How the names of fonts begin whose glyphs are all placeholder boxes."""


def find_families(style: Style) -> tuple[str, ...]:
    """Return the fonts to draw with: those of the style, then installed ones needed for its title and labels.

    Raise `ValueError` with the characters that no font has.
    """
    from matplotlib.font_manager import FontProperties, findfont

    own = style.families
    words = style.title + "".join(label for _, label in style.labels)
    if not words:
        return own
    files = (str(findfont(FontProperties(family=family))) for family in own)
    lacks = {sign for sign in words if not is_invisible(sign)}.difference(*map(read_characters, files))
    more: list[str] = []
    for name, file in sorted(find_font_files().items()) if lacks else []:
        if found := lacks & read_characters(file):
            more.append(name)
            lacks -= found
    if lacks:
        missing = "".join(sorted(lacks, key=words.index))
        which = f"the sign {missing}" if len(lacks) == 1 else f"the signs {short_repr(missing)}"
        raise ValueError(f"no font of this machine has {which} of a title or label: install one, or take html")
    return (*own, *more)


def is_invisible(sign: str) -> bool:
    """Return True for characters without a glyph of their own: joiners and variation selectors."""
    return unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def find_font_files() -> dict[str, str]:
    """Return {name: file} of the fonts that Matplotlib finds on this machine."""
    from matplotlib.font_manager import fontManager

    return {entry.name: entry.fname for entry in fontManager.ttflist if not entry.name.startswith(BOXES)}


@functools.lru_cache(maxsize=256)
def read_characters(file: str) -> frozenset[str]:
    """Return the characters of a font file."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(file).get_charmap()))


FORMS = ("svg", "png", "pdf")


def draw(fig: go.Figure, form: str, style: Style, title: str, metadata: Mapping[str, str | None]) -> bytes:
    """Return the bytes of the file; raise `ValueError` without Matplotlib, or if the style does not fit the figure."""
    with apply_settings():
        sheet = apply_style(fig, style, title)
        ground = str(sheet.layout.get("paper_bgcolor", "#FFFFFF"))
        canvas = Canvas(sheet.width, sheet.height, families=find_families(style), background=ground)
        plan = start_plan(sheet, canvas, vector=form != "png")
        margins.place_panels(plan)
        places = Places(sheet.width, sheet.height)
        axes_frame.draw_background(plan)
        shape_annotations.draw_shapes(plan, places, below=True)
        axes_frame.draw_zero_lines(plan)
        traces.draw(plan, places)
        axes_frame.draw_axes(plan)
        shape_annotations.draw_shapes(plan, places, below=False)
        colourbars.draw(plan)
        axes_frame.draw_legend(plan)
        shape_annotations.draw_labels(plan, places)
        axes_frame.draw_heading(plan)
        return canvas.write(form, sheet.style.dpi if form == "png" else traces.MAP_DPI, metadata)
