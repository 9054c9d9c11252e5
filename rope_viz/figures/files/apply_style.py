"""Apply a file's style to a figure: size, font, colours, labels and axis ranges, still as Plotly data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.figures import theme
from rope_viz.figures.files import colours, lines
from rope_viz.figures.files.axes import array_of, is_numeric, read_axes
from rope_viz.figures.files.style import ERRORS, MOST_PIXELS, USUAL_SIZE, Style, check_distance


def apply_limits(data: Sequence[Mapping[str, Any]], layout: dict[str, Any], style: Style) -> bool:
    """Change the layout's axes, return True if any changed; raise `ValueError` if an axis cannot have such limits."""
    changed = False
    for letter in "xy":
        low, high = getattr(style, f"{letter}min"), getattr(style, f"{letter}max")
        scale = getattr(style, f"{letter}scale")
        if (low, high, scale) == (None, None, ""):
            continue
        axes = {key: axis for key, axis in layout.items() if re.fullmatch(rf"{letter}axis\d*", key)}
        if not any(_has_numbers(axis) for axis in axes.values()):
            raise ValueError(ERRORS("no_axis", axis=letter))
        first = f"{letter}axis"
        linked = bool((layout.get("meta") or {}).get("linked"))
        names = [
            key for key in axes if key == first or linked or _should_follow(axes[key], axes.get(first, {}), letter)
        ]
        ends = [_change_axis(data, layout, name, low, high, scale) for name in names]
        if all(end is not None and not end.in_view for end in ends):
            known = {"low": min(e.low for e in ends if e), "high": max(e.high for e in ends if e)}
            raise ValueError(ERRORS("no_data", axis=letter, **known))
        changed = True
    return changed


def apply_axis_titles(layout: dict[str, Any], style: Style) -> None:
    """Replace the titles of the axes; raise `ValueError` for an axis that the figure does not have."""
    for letter in "xy":
        wanted = getattr(style, f"{letter}title")
        if wanted == "yes":
            continue
        titled = [key for key, axis in layout.items() if key.startswith(f"{letter}axis") and _title_of(axis)]
        if not titled:
            raise ValueError(ERRORS("no_title", axis=letter))
        for key in titled:
            text = "" if wanted == "no" else theme.plain_text(wanted)
            layout[key] = {**layout[key], "title": {**layout[key]["title"], "text": text}}


def _title_of(axis: Mapping[str, Any]) -> str:
    return str((axis.get("title") or {}).get("text") or "")


def _should_follow(axis: Mapping[str, Any], first: Mapping[str, Any], letter: str) -> bool:
    """Return True if the axis of another panel should follow the first one's range."""
    if axis.get("matches") == letter:
        return True
    alike = axis.get("range") is not None and first.get("range") is not None and axis.get("type") == first.get("type")
    return alike and list(axis["range"]) == list(first["range"]) and not axis.get("overlaying")


def _has_numbers(axis: Mapping[str, Any]) -> bool:
    named = axis.get("showticklabels") is not False or (axis.get("title") or {}).get("text")
    return axis.get("visible") is not False and bool(named)


@dataclass(frozen=True)
class Data:
    """The range of an axis's data, and whether any of it is within the new limits."""

    low: float
    high: float
    in_view: bool


def _change_axis(
    data: Sequence[Mapping[str, Any]],
    layout: dict[str, Any],
    name: str,
    low: float | None,
    high: float | None,
    scale: str,
) -> Data | None:
    letter, short = name[0], name.replace("axis", "")
    axis = dict(layout.get(name) or {})
    shown = read_axes(layout, data).get(short)
    if shown is None:
        return None
    if shown.names:
        raise ValueError(ERRORS("named_axis", axis=letter))
    was, log = shown.log, scale == "log" if scale else shown.log
    values = _find_values(data, short)
    positive = values[values > 0]
    cells = any(trace.get("type") in ("heatmap", "bar") for trace in data if _has_axis(trace, short))
    if log and any(end is not None and end <= 0 for end in (low, high)):
        raise ValueError(ERRORS("log_axis", axis=letter))
    if log and not was and not positive.size:
        raise ValueError(ERRORS("no_positive", axis=letter))
    if log and not was and positive.size < values.size and _is_map(data, short):
        raise ValueError(ERRORS("log_map", axis=letter, low=values.min()))
    ends = [10.0**end if was else end for end in (shown.low, shown.high)]
    is_reversed = ends[0] > ends[1]
    least, most = sorted(ends)
    if log != was and not cells:
        # The padding that suits one scale is far too much or too little on the other.
        least, most = _fit_limits(np.append(values, _find_rules(layout, short)), least, most, log=log)
    least, most = least if low is None else low, most if high is None else high
    if log and least <= 0:
        least = float(positive.min())
    if not least < most:
        raise ValueError(ERRORS("nothing_left", axis=letter, low=min(ends), high=max(ends)))
    check_distance(least, most, letter)
    new = [math.log10(least), math.log10(most)] if log else [least, most]
    axis |= {"range": new[::-1] if is_reversed else new, "type": "log" if log else "linear", "autorange": False}
    for key in ("minallowed", "maxallowed"):
        axis.pop(key, None)
    ticks: Any = np.ravel(axis["tickvals"]) if axis.get("tickvals") is not None else []
    visible = [value for value in ticks if least <= value <= most]
    if log != was or len(visible) < 3:
        # Ticks chosen for the full axis may leave too few on a part of it.
        for key in ("tickvals", "ticktext", "tickmode", "dtick"):
            axis.pop(key, None)
    if log != was:
        axis["title"] = {
            **(axis.get("title") or {}),
            "text": _format_title((axis.get("title") or {}).get("text", ""), log),
        }
        layout["annotations"] = [_move_note(note, letter, short, log) for note in layout.get("annotations", ())]
    layout[name] = axis
    if not values.size:
        return None
    # A cell extends half its width beyond its centre.
    wide = 0.5 * float(np.diff(np.unique(values)).min()) if cells and np.unique(values).size > 1 else 0.0
    first, last = float(values.min()), float(values.max())
    return Data(first, last, first - wide <= most and last + wide >= least)


def _find_values(data: Sequence[Mapping[str, Any]], short: str) -> Any:
    """Return all finite values along an axis; bars include 0, maps without coordinates count their cells."""
    found = [np.zeros(0), *(array_of(trace[short[0]]).astype(float).ravel() for trace in _is_numeric_on(data, short))]
    for trace in data:
        if _has_axis(trace, short):
            if trace.get("type") == "bar" and (trace.get("orientation") == "h") == (short[0] == "x"):
                found.append(np.zeros(1))
            elif trace.get("type") == "heatmap" and trace.get(short[0]) is None:
                found.append(np.arange(array_of(trace["z"]).shape[short[0] == "x"], dtype=float))
    values = np.concatenate(found)
    return values[np.isfinite(values)]


def _find_rules(layout: Mapping[str, Any], short: str) -> list[float]:
    letter = short[0]
    shapes = [each for each in layout.get("shapes", ()) if each.get("type") == "line"]
    crossing = [each for each in shapes if (each.get(f"{letter}ref") or letter) == short]
    return [float(each[f"{letter}0"]) for each in crossing if each[f"{letter}0"] == each[f"{letter}1"]]


def _fit_limits(values: Any, least: float, most: float, *, log: bool) -> tuple[float, float]:
    """Return limits on the new scale for the values that were visible on the old one."""
    visible = values[(values >= least) & (values <= most) & ((values > 0) | (not log))]
    if not visible.size:
        return least, most
    low, high = float(visible.min()), float(visible.max())
    if log:
        room = (high / low) ** 0.05 if high > low else 2.0
        return low / room, high * room
    room = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    # Values that start near 0 are shown from 0.
    return (0.0 if 0.0 <= low <= 0.2 * high else low - room), high + room


def _has_axis(trace: Mapping[str, Any], short: str) -> bool:
    return (trace.get(f"{short[0]}axis") or short[0]) == short


def _is_map(data: Sequence[Mapping[str, Any]], short: str) -> bool:
    return any(trace.get("type") == "heatmap" for trace in data if _has_axis(trace, short))


def _is_numeric_on(data: Sequence[Mapping[str, Any]], short: str) -> list[Mapping[str, Any]]:
    traces = [trace for trace in data if _has_axis(trace, short)]
    return [trace for trace in traces if trace.get(short[0]) is not None and is_numeric(trace[short[0]])]


def _move_note(note: Mapping[str, Any], letter: str, short: str, log: bool) -> dict[str, Any]:
    """Convert a note's position between linear and log axes, where it is a power of ten."""
    value = note.get(letter)
    if (note.get(f"{letter}ref") or letter) != short or not isinstance(value, (int, float)):
        return dict(note)
    if not log:
        return {**note, letter: 10.0**value}
    return {**note, letter: math.log10(value)} if value > 0 else {**note, "visible": False}


def _format_title(words: str, log: bool) -> str:
    alone, also, end = (theme.TEXTS.entries[f"scale.{name}"] for name in ("log", "also_log", "end"))
    bare = words.removesuffix(alone).replace(also, end)
    if not log:
        return bare
    return f"{bare.removesuffix(end)}{also}" if bare.endswith(end) else f"{bare}{alone}" if bare else bare


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
    hidden = [name for name, _ in style.hidden]
    lines.colour(sheet.data, sheet.layout, style.colours)
    lines.hide(sheet.data, sheet.layout, hidden)
    lines.relabel(sheet.data, sheet.layout, [each for each in style.labels if each[0] not in hidden])
    if apply_limits(sheet.data, sheet.layout, style):
        lines.follow_ends(sheet.data, sheet.layout)
    apply_axis_titles(sheet.layout, style)
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
    dots = {"width": width * style.dpi / 96, "height": height * style.dpi / 96}
    raise ValueError(ERRORS("many_dots", most=most, **dots))


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
