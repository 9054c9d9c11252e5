"""Render a figure as svg, pdf or png: layout first, then drawing from back to front."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from rope_viz.figures.files import axes_frame, colourbars, font_fallback, margins, shape_annotations, traces
from rope_viz.figures.files.apply_style import apply_style
from rope_viz.figures.files.canvas import Canvas, apply_settings
from rope_viz.figures.files.label_placement import Places
from rope_viz.figures.files.layout import start_plan
from rope_viz.figures.files.style import Style

FORMS = ("svg", "png", "pdf")


def draw(fig: go.Figure, form: str, style: Style, title: str, metadata: Mapping[str, str | None]) -> bytes:
    """Return the bytes of the file; raise `ValueError` without Matplotlib, or if the style does not fit the figure."""
    with apply_settings():
        sheet = apply_style(fig, style, title)
        ground = str(sheet.layout.get("paper_bgcolor", "#FFFFFF"))
        canvas = Canvas(sheet.width, sheet.height, families=font_fallback.find_families(style), background=ground)
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
