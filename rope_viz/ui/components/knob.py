"""A column of live sliders made from knobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from rope_viz.embedding.spec import Knob, require_number
from rope_viz.ui.components.component import component

ROW = 52  # pixels
Changed = Callable[[str, float], None]


def knobs(
    key: str,
    shown: Mapping[str, tuple[Knob, float]],
    changed: Changed,
    *,
    revision: int = 0,
    page: str = "",
    under: bool = False,
    across: bool = False,
) -> None:
    """Show sliders for `shown` (name -> knob and value); call `changed(name, value)` before the next run.

    That happens when a slider is released, a number is typed or a key comes up; until then only the pictures follow.
    `page` names the page that owns the knobs. `under`: show them only on a narrow screen, one at a time at the bottom
    edge. `across`: put them side by side where there is room.
    """

    def take(name: str, value: Any) -> None:
        if name not in shown:
            return
        knob, _ = shown[name]
        try:
            require_number(value, knob.label, least=knob.low, most=knob.high, integer=knob.integer)
        except ValueError:
            return
        changed(name, int(value) if knob.integer else float(value))

    prefix = f"{page}." if page else ""
    rows = [
        {"name": name, "key": prefix + name, "value": value, "revision": revision, **dataclasses.asdict(knob)}
        for name, (knob, value) in shown.items()
    ]
    data = {"knobs": rows, "under": under, "across": across}
    if across:
        data["room"] = ROW, ROW * len(shown)
    mount = component("knob", root_class="rv-knobs", height=ROW if across or under else ROW * len(shown))
    mount(key, data, take)
