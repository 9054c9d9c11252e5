"""Apply the axis limits and scales that the user set, and move everything on these axes along."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.figures.files.axes import array_of, is_numeric, read_axes
from rope_viz.figures.files.style import Style, check_distance


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
            raise ValueError(f"this figure has no {letter} axis, so it can have no range and no scale of one")
        first = f"{letter}axis"
        linked = bool((layout.get("meta") or {}).get("linked"))
        names = [
            key for key in axes if key == first or linked or _should_follow(axes[key], axes.get(first, {}), letter)
        ]
        ends = [_change_axis(data, layout, name, low, high, scale) for name in names]
        if all(end is not None and not end.in_view for end in ends):
            known = " to ".join(f"{end:.6g}" for end in (min(e.low for e in ends if e), max(e.high for e in ends if e)))
            raise ValueError(f"no data in this range of {letter}: the data go from {known}")
        changed = True
    return changed


def _should_follow(axis: Mapping[str, Any], first: Mapping[str, Any], letter: str) -> bool:
    """Return True if the axis of another panel should follow the first one's range."""
    if axis.get("matches") == letter:
        return True
    alike = axis.get("range") is not None and first.get("range") is not None and axis.get("type") == first.get("type")
    return alike and list(axis["range"]) == list(first["range"]) and not axis.get("overlaying")


def _has_numbers(axis: Mapping[str, Any]) -> bool:
    """Return True if an axis is visible and has tick labels or a title."""
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
        raise ValueError(f"the {letter} axis of this figure has names, which have no range and no scale")
    was, log = shown.log, scale == "log" if scale else shown.log
    values = _find_values(data, short)
    positive = values[values > 0]
    cells = any(trace.get("type") in ("heatmap", "bar") for trace in data if _has_axis(trace, short))
    if log and any(end is not None and end <= 0 for end in (low, high)):
        raise ValueError(f"the {letter} axis is logarithmic: {letter}min and {letter}max must be above 0")
    if log and not was and not positive.size:
        raise ValueError(f"the {letter} axis of this figure has no positive values, so it cannot be logarithmic")
    if log and not was and positive.size < values.size and _is_map(data, short):
        raise ValueError(f"the {letter} axis of this map begins at {values.min():g}, so it cannot be logarithmic")
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
        extent = " to ".join(f"{end:g}" for end in sorted(ends))
        raise ValueError(f"{letter}min and {letter}max leave nothing of the {letter} axis, which goes from {extent}")
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
    """Return where lines from shapes cross an axis."""
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
    bare = re.sub(r" \(log\)$", "", words).replace(", log)", ")")
    if not log:
        return bare
    return f"{bare[:-1]}, log)" if bare.endswith(")") else f"{bare} (log)" if bare else bare
