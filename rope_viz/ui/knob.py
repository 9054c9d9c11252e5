"""A column of live sliders made from knobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from rope_viz.spec import Knob, require_number
from rope_viz.ui.component import component

Changed = Callable[[str, float, bool], None]


def knobs(key: str, shown: Mapping[str, tuple[Knob, float]], changed: Changed, *, revision: int = 0) -> None:
    """Sliders for `shown` (name -> knob and value). `changed(name, value, done)` is called before the next run.

    While a slider is dragged `done` is False; it is True once, on release, on a typed value or when a key comes up.
    """

    def at_changed() -> None:
        at = st.session_state[key]["at"]
        name = str(at.get("name")) if isinstance(at, Mapping) else ""
        if name not in shown:
            return
        knob, _ = shown[name]
        try:
            require_number(at.get("value"), knob.label, least=knob.low, most=knob.high, integer=knob.integer)
        except ValueError:
            return
        value = at["value"]
        changed(name, int(value) if knob.integer else float(value), at.get("done") is True)

    data = {"knobs": [_row(name, knob, value, revision) for name, (knob, value) in shown.items()]}
    mount = component("knob", root_class="rv-knobs", height=62 * len(shown))
    mount(key=key, data=data, on_at_change=at_changed)


def _row(name: str, knob: Knob, value: float, revision: int) -> dict[str, Any]:
    return {
        "name": name,
        "label": knob.label,
        "help": knob.help,
        "low": knob.low,
        "high": knob.high,
        "step": knob.step,
        "log": knob.log,
        "integer": knob.integer,
        "unit": knob.unit,
        "value": value,
        "revision": revision,
    }
