"""The ends and the scale of an axis as the reader gives them, with all that lies on the axis moved along."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.figures.files.axes import array_of, numeric, read_axes
from rope_viz.figures.files.style import Style


def apply(data: Sequence[Mapping[str, Any]], layout: dict[str, Any], style: Style) -> bool:
    """Change the layout's axes; whether anything was changed. Raises `ValueError` where an axis has no such values."""
    changed = False
    for letter in "xy":
        low, high = getattr(style, f"{letter}min"), getattr(style, f"{letter}max")
        scale = getattr(style, f"{letter}scale")
        if (low, high, scale) == (None, None, ""):
            continue
        names = [f"{letter}axis"]
        names += [key for key, axis in layout.items() if isinstance(axis, dict) and axis.get("matches") == letter]
        for name in names:
            _change(data, layout, name, low, high, scale)
        changed = True
    return changed


def _change(
    data: Sequence[Mapping[str, Any]],
    layout: dict[str, Any],
    name: str,
    low: float | None,
    high: float | None,
    scale: str,
) -> None:
    letter, short = name[0], name.replace("axis", "")
    axis = dict(layout.get(name) or {})
    shown = read_axes(layout, data).get(short)
    if shown is None:
        return
    if shown.names:
        raise ValueError(f"the {letter} axis of this figure has names, which have no range and no scale")
    was, log = shown.log, scale == "log" if scale else shown.log
    values = np.concatenate([np.zeros(0), *(array_of(trace[letter]).ravel() for trace in _on(data, short))])
    positive = values[np.isfinite(values) & (values > 0)]
    if log and any(end is not None and end <= 0 for end in (low, high)):
        raise ValueError(f"the {letter} axis is logarithmic: {letter}min and {letter}max must be above 0")
    if log and not was and not positive.size:
        raise ValueError(f"the {letter} axis of this figure has no positive values, so it cannot be logarithmic")
    ends = [10.0**end if was else end for end in (shown.low, shown.high)]
    turned = ends[0] > ends[1]
    least, most = sorted(ends)
    least, most = least if low is None else low, most if high is None else high
    if log and least <= 0:
        least = float(positive.min())
    if not least < most:
        whole = " to ".join(f"{end:g}" for end in sorted(ends))
        raise ValueError(f"{letter}min and {letter}max leave nothing of the {letter} axis, which goes from {whole}")
    new = [math.log10(least), math.log10(most)] if log else [least, most]
    axis |= {"range": new[::-1] if turned else new, "type": "log" if log else "linear", "autorange": False}
    for key in ("minallowed", "maxallowed"):
        axis.pop(key, None)
    ticks: Any = np.ravel(axis["tickvals"]) if axis.get("tickvals") is not None else []
    kept = [value for value in ticks if least <= value <= most]
    if log != was or len(kept) < 3:
        # Ticks chosen for the whole of an axis may leave a part of it without.
        for key in ("tickvals", "ticktext", "tickmode", "dtick"):
            axis.pop(key, None)
    if log != was:
        axis["title"] = {**(axis.get("title") or {}), "text": _title((axis.get("title") or {}).get("text", ""), log)}
        layout["annotations"] = [_moved(note, letter, short, log) for note in layout.get("annotations", ())]
    layout[name] = axis


def _on(data: Sequence[Mapping[str, Any]], short: str) -> list[Mapping[str, Any]]:
    mine = [trace for trace in data if (trace.get(f"{short[0]}axis") or short[0]) == short]
    return [trace for trace in mine if trace.get(short[0]) is not None and numeric(trace[short[0]])]


def _moved(note: Mapping[str, Any], letter: str, short: str, log: bool) -> dict[str, Any]:
    """A note's place on a log axis is a power of ten."""
    value = note.get(letter)
    if (note.get(f"{letter}ref") or letter) != short or not isinstance(value, (int, float)):
        return dict(note)
    if not log:
        return {**note, letter: 10.0**value}
    return {**note, letter: math.log10(value)} if value > 0 else {**note, "visible": False}


def _title(words: str, log: bool) -> str:
    bare = re.sub(r" \(log\)$", "", words).replace(", log)", ")")
    if not log:
        return bare
    return f"{bare[:-1]}, log)" if bare.endswith(")") else f"{bare} (log)" if bare else bare
