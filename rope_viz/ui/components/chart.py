"""A figure on the page: packed into bytes, drawn by Plotly in a component that keeps its zoom, with its downloads."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from rope_viz.ui.components.component import component

TOOLBAR = 40
View = tuple[float, float]
SHORT = {"float64": "f8", "float32": "f4", "int32": "i4", "int8": "i1", "uint8": "u1"}


def mount(key: str, message: bytes, *, height: int, on_pin: Callable[[int], None]) -> None:
    """Show a packed figure of this height; `on_pin` hears which pair a click pins."""

    def pin_changed() -> None:
        pin = st.session_state[key].get("pin")
        if isinstance(pin, Mapping) and isinstance(pin.get("pair"), int):
            on_pin(pin["pair"])

    show = component("chart", root_class="rv-chart", height=height + TOOLBAR)
    show(key=key, data=message, on_view_change=_nothing, on_pin_change=pin_changed)


def clipped(chart: Any, full: View) -> View | None:
    """The x range that the state of a chart says is zoomed to, None where the whole of `full` is shown."""
    seen = chart.get("view") if isinstance(chart, Mapping) else None
    if not (isinstance(seen, list) and len(seen) == 2 and all(isinstance(v, (int, float)) for v in seen)):
        return None
    low, high = sorted(map(float, seen))
    low, high = max(low, full[0]), min(high, full[1])
    return (low, high) if high > low and (low, high) != full else None


def pack(fig: go.Figure, message: Mapping[str, Any], *, quick: bool = False) -> bytes:
    """The message and the figure as [u32 length][JSON][arrays]: arrays as they lie in memory, named by offset.

    `quick` sends heatmaps in 8 bits, for while a knob moves.
    """
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
    return framed({**message, "figure": figure}, b"".join(arrays))


def framed(message: Mapping[str, Any], arrays: bytes = b"") -> bytes:
    """[u32 length][JSON, blanks up to a multiple of 8][arrays]."""
    header = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % 8)
    return struct.pack("<I", len(header)) + header + arrays


def _nothing() -> None:
    """A state needs a callback to exist; the page reads it on the next run."""
