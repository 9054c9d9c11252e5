"""Apply a file's style to a figure: size, font, colours, labels and axis ranges, still as Plotly data.

Every file form is made from this result, so that they all agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from rope_viz.figures import theme
from rope_viz.figures.files import axis_limits, colours, lines
from rope_viz.figures.files.style import MOST_PIXELS, USUAL_SIZE, Style

WIDTH = 1000.0
# Below this width, at the default font size, the changes of `layout.meta.narrow` apply, as in the browser.
NARROW = 560.0
CSS = {
    "sans": '"Helvetica Neue", Helvetica, Arial, sans-serif',
    "serif": '"Times New Roman", Times, serif',
    "mono": "ui-monospace, monospace",
}


@dataclass
class Sheet:
    """A figure as plain data with a file's style applied, and its size in pixels."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    width: float
    height: float
    style: Style
    title: str

    @property
    def scale(self) -> float:
        """Return the font size relative to that on the page."""
        return self.style.scale


def apply_style(fig: go.Figure, style: Style, title: str = "", *, responsive: bool = False) -> Sheet:
    """Apply a style to a figure; raise `ValueError` if the style does not fit it.

    `responsive` leaves the size to the browser unless the style sets one.
    """
    width = style.width_px(WIDTH)
    remade = getattr(fig, "at_size", None)
    if remade is not None:
        fig = remade(width / style.scale, style.height_px(0.0) / style.scale or None)
    plain = fig.to_plotly_json()
    data, layout = [dict(trace) for trace in plain["data"]], dict(plain["layout"])
    layout.pop("template", None)
    narrow = (layout.get("meta") or {}).get("narrow") or {}
    if width / style.scale < NARROW and not responsive:
        layout = merge_narrow_layout(layout, narrow)
    # A figure redrawn for this width already has its height.
    made = float(layout.get("height") or theme.MAIN_HEIGHT) * style.scale
    height = style.height_px(natural_height(layout, width, style) if remade is None else made)
    style = fit_dpi(style, width, height)
    sheet = Sheet(data, layout, width, height, style, style.title_of(lines.relabel_title(title, data, style.labels)))
    lines.relabel(sheet.data, sheet.layout, style.labels)
    if axis_limits.apply_limits(sheet.data, sheet.layout, style):
        lines.follow_ends(sheet.data, sheet.layout)
    lines.place_labels(sheet.data, sheet.layout, style.legend)
    scale_fonts(sheet)
    apply_colours(sheet)
    return sheet


def fit_dpi(style: Style, width: float, height: float) -> Style:
    """Return the style with a dpi that keeps a png of this size, in pixels of 1/96 inch, within `MOST_PIXELS`.

    The default dpi is lowered for a large size; raise `ValueError` for a dpi that the user set too high.
    """
    most = int(96 * (MOST_PIXELS / (width * height)) ** 0.5)
    if style.dpi <= most:
        return style
    if style.dpi == Style.dpi:
        return replace(style, dpi=most)
    raise ValueError(
        f"{width * style.dpi / 96:,.0f} by {height * style.dpi / 96:,.0f} dots are too many: "
        f"take a dpi of at most {most}, or a smaller size"
    )


def natural_height(layout: Mapping[str, Any], width: float, style: Style) -> float:
    """Return the height for a width: the page's own at full width, shrinking more slowly than the width below."""
    margin = layout.get("margin") or {}
    around = float(margin.get("t", 30) + margin.get("b", 48))
    inside = max(float(layout.get("height") or theme.MAIN_HEIGHT) - around, 20.0)
    title = 2.2 * style.font_px if style.title != "no" else 0.0
    return float(inside * (width / WIDTH) ** 0.5 + around * style.scale + title)


def merge_narrow_layout(layout: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layout with the changes for narrow figures merged, one level deep."""
    out = dict(layout)
    for key, value in changes.items():
        out[key] = {**(out.get(key) or {}), **value} if isinstance(value, Mapping) else value
    return out


def scale_fonts(sheet: Sheet) -> None:
    """Scale all font sizes to the style."""
    scale = sheet.scale
    layout = sheet.layout
    if scale != 1.0:
        layout.update(_scale_values(layout, scale))
        for trace in sheet.data:
            trace.update(_scale_values(trace, scale))
    layout["font"] = {"color": theme.TEXT, **layout.get("font", {})}
    layout["font"] |= {"size": USUAL_SIZE * scale, "family": css(sheet.style)}
    # Set colours that Plotly would otherwise choose itself, so that the style's recolouring reaches them.
    usual = {"tickcolor": theme.RULE, "linecolor": theme.RULE, "gridcolor": theme.GRID, "zerolinecolor": theme.RULE}
    for key, axis in layout.items():
        if re.fullmatch(r"[xy]axis\d*", key):
            layout[key] = {**usual, **axis}


def css(style: Style) -> str:
    """Return the style's font as a CSS font family."""
    return CSS.get(style.font, f'"{style.font}", sans-serif')


def _scale_values(value: Any, scale: float, inside: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            key: item * scale
            if key == "size" and inside.endswith("font") and isinstance(item, (int, float))
            else item
            if key in (*colours.DATA, "text")
            else _scale_values(item, scale, key)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_scale_values(item, scale, inside) for item in value]
    return value


def apply_colours(sheet: Sheet) -> None:
    """Apply the colours of the style."""
    style, layout = sheet.style, sheet.layout
    if style.grey:
        lines.convert_to_grey(sheet.data, sheet.layout)
        _recolour(sheet, colours.to_grey)
    if style.theme == "dark":
        _recolour(sheet, colours.invert_greys if style.grey else colours.to_dark)
    elif style.theme == "transparent":
        ground = str(layout.get("paper_bgcolor", theme.BACKGROUND))
        layout["paper_bgcolor"] = layout["plot_bgcolor"] = colours.CLEAR
        layout["annotations"] = [
            {key: item for key, item in note.items() if key != "bgcolor" or not str(item).startswith(ground)}
            for note in layout.get("annotations", ())
        ]


def _recolour(sheet: Sheet, change: colours.Recolour) -> None:
    sheet.layout = colours.recolour(sheet.layout, change)
    sheet.data = [colours.recolour(trace, change) for trace in sheet.data]
