"""A figure on the page: packed into bytes, drawn by Plotly in a component that keeps its zoom, with its downloads."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from rope_viz.figures import theme
from rope_viz.ui.component import component

TOOLBAR = 40
SHORT = {"float64": "f8", "float32": "f4", "int32": "i4", "int8": "i1", "uint8": "u1"}


def chart(
    fig: go.Figure,
    *,
    key: str,
    title: str,
    file: str,
    spec: Mapping[str, Any],
    zooms: bool = False,
    pins: str = "",
    on_pin: Any = None,
    quick: bool = False,
) -> None:
    """Show a figure. `title` is its accessible name, `file` the stem of its downloads, `spec` goes into the JSON.

    `zooms` sends the visible x range back (read it with `view`; the figure's own range stays the whole one, to which
    a reset leads); `pins` names the axis ("x" or "y") whose value is the pair that a click pins; `quick` sends heatmaps
    in 8 bits while a knob moves.
    """
    message = {
        "title": title,
        "file": file,
        "spec": spec,
        "zooms": zooms,
        "pins": pins,
        "twins": theme.DARK,
    }

    def pin_changed() -> None:
        pin = st.session_state[key].get("pin")
        if on_pin is not None and isinstance(pin, Mapping) and isinstance(pin.get("pair"), int):
            on_pin(pin["pair"])

    mount = component("chart", root_class="rv-chart", height=int(fig.layout.height) + TOOLBAR)
    mount(key=key, data=pack(fig, message, quick=quick), on_view_change=_nothing, on_pin_change=pin_changed)


def view(key: str, full: tuple[float, float]) -> tuple[float, float] | None:
    """The x range the reader has zoomed to, None where the whole of `full` is shown."""
    state = st.session_state.get(key)
    seen = state.get("view") if isinstance(state, Mapping) else None
    if not (isinstance(seen, list) and len(seen) == 2 and all(isinstance(v, (int, float)) for v in seen)):
        return None
    low, high = sorted(map(float, seen))
    low, high = max(low, full[0]), min(high, full[1])
    return (low, high) if high > low and (low, high) != full else None


def pack(fig: go.Figure, message: Mapping[str, Any], *, quick: bool = False) -> bytes:
    """The message and the figure as [u32 length][JSON][arrays]: arrays as they lie in memory, named by offset."""
    arrays: list[bytes] = []
    offset = 0

    def put(value: Any, low: float | None = None, high: float | None = None) -> Any:
        nonlocal offset
        if isinstance(value, np.ndarray) and value.dtype.kind in "if" and value.ndim in (1, 2):
            array = value
            ends: list[float] = []
            if quick and low is not None and high is not None:
                steps = np.rint((array - low) * (254.0 / (high - low)))
                array = np.where(np.isnan(steps), 255, np.clip(steps, 0, 254)).astype(np.uint8)
                ends = [low, high]
            elif array.dtype.name not in SHORT:
                array = array.astype(np.int32 if array.dtype.kind == "i" else np.float64)
            raw = np.ascontiguousarray(array).tobytes()
            place = [SHORT[array.dtype.name], offset, array.size, array.shape[1] if array.ndim == 2 else 0, *ends]
            arrays.append(raw + b"\0" * (-len(raw) % 8))
            offset += len(arrays[-1])
            return {"$": place}
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, dict):
            bounds = value.get("zmin"), value.get("zmax")
            return {name: put(item, *bounds) if name == "z" else put(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [put(item) for item in value]
        return value.item() if isinstance(value, np.generic) else value

    figure = {"data": [put(trace.to_plotly_json()) for trace in fig.data], "layout": put(fig.layout.to_plotly_json())}
    header = json.dumps({**message, "figure": figure}, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % 8)
    return struct.pack("<I", len(header)) + header + b"".join(arrays)


def _nothing() -> None:
    """A state needs a callback to exist; the page reads it on the next run."""
