"""The choice of an axis on pages about one axis, for a sidebar model that has several."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec
from rope_viz.embedding.single_axis import along_axis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.axes import LOOKS
from rope_viz.models import spec_url
from rope_viz.multi_axis.image_layouts import ROLE_OF, ROLES, Role
from rope_viz.pictures.axes_model import of_sidebar
from rope_viz.pictures.choices import Pick
from rope_viz.pictures.picture_request import Now

Along: TypeAlias = Literal["all", "time", "row", "column"]

LABELS: dict[Along, str] = {"all": "All axes: text", "time": "Time t", "row": "Rows h", "column": "Columns w"}
PLURAL: dict[Role, str] = {"time": "in time", "row": "down the rows", "column": "across the columns"}


def rotation(now: Now) -> AxesSpec | None:
    """Return the text rotation of the sidebar's model if it has several axes and the sidebar's pairs, else None."""
    found = of_sidebar(now)
    scene = found.get(f"text {now.layer}", found.get("text"))
    if scene is None or len(scene.spec.axes) < 2 or not scene.spec.is_aligned or scene.spec.pairs != now.spec.pairs:
        return None
    return scene.spec


def roles(now: Now) -> dict[Role, list[int]]:
    """Return the pair indices of each direction, {} for a model with one axis."""
    spec = rotation(now)
    if spec is None:
        return {}
    named = {ROLE_OF[axis]: axis for axis in spec.axes if axis in ROLE_OF}
    found = {role: np.flatnonzero(spec.along(named[role])).tolist() for role in ROLES if role in named}
    return {role: pairs for role, pairs in found.items() if pairs}


def axis_of(page: str) -> Pick[Along]:
    """Make a page's choice of an axis."""
    return Pick(
        key=f"{page}.axis",
        label="Along",
        options=LABELS,
        offered=lambda now: {"all": LABELS["all"], **{role: LABELS[role] for role in roles(now)}},
        when=lambda now: bool(roles(now)),
    )


def looked(now: Now, choice: Pick[Along]) -> RopeSpec:
    """Return the spec that applies to a move along the chosen axis."""
    axis = now[choice]
    return now.spec if axis == "all" else along_axis(now.spec, roles(now)[axis])


def axis_sentence(now: Now, choice: Pick[Along]) -> str:
    """Return the start of a page's sentence that names the chosen axis, "" for a model with one axis."""
    found, axis = roles(now), now[choice]
    if not found:
        return one_of(now)
    if axis == "all":
        counts = ", ".join(f"{len(pairs)} {PLURAL[role]}" for role, pairs in found.items())
        return f"Along **text**, where all axes move together (images turn {counts}): "
    one, turning = LOOKS[axis].word, f"{len(found[axis])} of {now.spec.pairs} pairs turn"
    return f"Along the axis **{one}**, where {turning} and the others stand still: "


def one_of(now: Now) -> str:
    """Return a start of the sentence that names the sidebar's axis of an image model, "" for other models."""
    if now.own is None or now.model != spec_url.CUSTOM or now.layer not in ROLE_OF or len(now.own.specs) < 2:
        return ""
    others = [LOOKS[ROLE_OF[axis]].word for axis in now.own.specs if axis != now.layer and axis in ROLE_OF]
    word = LOOKS[ROLE_OF[now.layer]].word
    beside = f" ({', '.join(others)}: choose under Layers)" if others else ""
    return f"Along the axis **{word}**, its {now.spec.pairs} pairs alone{beside}: "
