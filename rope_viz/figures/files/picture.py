"""A figure as svg, pdf or png: planned, then drawn from back to front."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from rope_viz.figures.files import colourbars, frame, marks, signs, traces
from rope_viz.figures.files.canvas import Canvas, settings
from rope_viz.figures.files.dress import dressed
from rope_viz.figures.files.place import Places
from rope_viz.figures.files.plan import planned
from rope_viz.figures.files.style import Style

FORMS = ("svg", "png", "pdf")


def draw(fig: go.Figure, form: str, style: Style, title: str, metadata: Mapping[str, str | None]) -> bytes:
    """The bytes of the file. Raises `ValueError` without Matplotlib, and where the style does not fit the figure."""
    with settings():
        sheet = dressed(fig, style, title)
        ground = str(sheet.layout.get("paper_bgcolor", "#FFFFFF"))
        canvas = Canvas(sheet.width, sheet.height, families=signs.families(style), background=ground)
        plan = planned(sheet, canvas, vector=form != "png")
        places = Places(sheet.width, sheet.height)
        frame.ground(plan)
        marks.shapes(plan, places, below=True)
        frame.zero_lines(plan)
        traces.draw(plan, places)
        frame.axes(plan)
        marks.shapes(plan, places, below=False)
        colourbars.draw(plan)
        frame.legend(plan)
        marks.labels(plan, places)
        frame.heading(plan)
        return canvas.write(form, style.dpi if form == "png" else traces.MAP_DPI, metadata)
