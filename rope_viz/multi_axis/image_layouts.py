"""A rotation as the patches of an image or the frames of a clip meet it: radians per patch down, across and in time.

Axes have other names and other units from model to model, and some count tokens alone: an image of theirs lies in
raster order on one axis, so that a row away is as many positions as the image has columns.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, directions
from rope_viz.models.config_reader import read_model_type
from rope_viz.multi_axis.catalog import AxesModel, axes_catalog, model_parts
from rope_viz.multi_axis.model_axes import from_model, inner_parts, is_diffusion, size_or, vision_part

Role: TypeAlias = Literal["time", "row", "column"]

ROLES: tuple[Role, ...] = ("time", "row", "column")
ROLE_OF: dict[str, Role] = {
    **dict.fromkeys(("t", "frame", "time"), "time"),
    **dict.fromkeys(("h", "row", "height", "y"), "row"),
    **dict.fromkeys(("w", "column", "width", "x"), "column"),
}
ALL_HEADS = " all heads"
COUNTED = "position"  # the axis that counts tokens, image or not
NORMALISED = ("dinov3_vit", "sapiens2", "eomt_dinov3")
SPAN = {"h": 2.0, "w": 2.0}
USUAL: dict[Role, int] = {"time": 16, "row": 32, "column": 32}
MOST = 1 << 14
CONTEXT = 32_768


@dataclass(frozen=True)
class Scene:
    """A part of a model, and an image or clip before it.

    `spec` is the rotation as the model has it, `sides` the patches (of a text part: tokens) of the image by role, and
    `step` how many units of position a patch is on an axis, where it is not one; `span` is set instead for axes on
    which every image, whatever its size, takes up so many units. `note` says where the sides are from. `context` is the
    trained length of a language model in tokens.
    """

    name: str
    part: str
    spec: AxesSpec
    sides: Mapping[Role, int]
    step: Mapping[str, float] = field(default_factory=dict)
    span: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    context: int = CONTEXT

    @property
    def units(self) -> str:
        """What a side counts: tokens where a language model reads the image, else patches."""
        return "tokens" if self.part.startswith("text") else "patches"

    @functools.cached_property
    def steps(self) -> Mapping[str, Mapping[str, float]]:
        """{role: {axis: units}}: by how much the axes of the spec move with one patch in each direction.

        Axes along which no image lies (the text's in FLUX.2) are behind them, by their own names.
        """
        own: dict[str, dict[str, float]] = {}
        for axis in self.spec.axes:
            if axis in ROLE_OF:
                role = ROLE_OF[axis]
                fixed = self.span[axis] / self.sides.get(role, USUAL[role]) if axis in self.span else 1.0
                own.setdefault(role, {})[axis] = self.step.get(axis, fixed)
        if COUNTED in self.spec.axes:
            # Tokens are counted row by row; HunYuan ends each row with a token of its own.
            columns = self.sides.get("column", USUAL["column"]) + ("image" in self.spec.axes)
            own.setdefault("row", {})[COUNTED] = float(columns)
            own.setdefault("column", {})[COUNTED] = 1.0
        others = {axis: {axis: 1.0} for axis in self.spec.axes if axis not in ROLE_OF and axis != COUNTED}
        return {role: own[role] for role in ROLES if role in own} | others

    @functools.cached_property
    def roles(self) -> tuple[Role, ...]:
        """Time, row and column, as far as any pair listens to them."""
        seen = self.seen
        tables = [seen.weights] if seen.second is None else [seen.weights, seen.second]
        heard = np.any(np.concatenate(tables), axis=0)
        return tuple(role for role in ROLES if role in seen.axes and heard[seen.index(role)])

    @functools.cached_property
    def seen(self) -> AxesSpec:
        """The same rotation over "time", "row", "column" in units of patches, then what other axes there are."""
        steps = self.steps
        moves = np.array([[steps[role].get(axis, 0.0) for role in steps] for axis in self.spec.axes])
        second = None if self.spec.second is None else self.spec.second @ moves
        return dataclasses.replace(self.spec, weights=self.spec.weights @ moves, axes=tuple(steps), second=second)

    def sized(self, sides: Mapping[Role, int]) -> Scene:
        """The same before another image or clip."""
        kept = {role: int(min(max(side, 1), MOST)) for role, side in sides.items() if role in ROLES}
        sides = {**self.sides, **kept}
        # What was found out about this scene is kept.
        return self if sides == self.sides else dataclasses.replace(self, sides=sides)


def scenes(id: str) -> dict[str, Scene]:
    """{part: scene} of a model of the list with several axes. Raises `ValueError` by name."""
    parts = model_parts(id)
    model = axes_catalog()[id]
    normal = read_model_type(model.config) in NORMALISED
    step, span = ({}, SPAN) if normal else (model.step, {})
    more = (step, span, model.grid_note, context_of(model.config))
    return {
        part: Scene(model.name, part, spec, sides_of(model, part), *more)
        for part, spec in with_all_heads(parts).items()
    }


def own_scenes(config: Mapping[str, Any], name: str) -> dict[str, Scene]:
    """{part: scene} of a reader's own config; its image is the one the config speaks of, else 32 × 32 patches.

    Raises `ValueError` as `from_model` does.
    """
    parts = from_model(config)
    split = read_by_text(parts)
    merge = merge_of(config)
    found = patches_of(config)
    sides: dict[Role, float] = found or {role: float(side) for role, side in USUAL.items()}
    span = SPAN if read_model_type(config) in NORMALISED else {}
    note = "the image its config speaks of" if found else "its config speaks of no image: 32 × 32 are taken"
    out = {}
    for part, spec in with_all_heads(parts).items():
        share = float(merge) if found and part.startswith("text") else 1.0
        if not found and split and not part.startswith("text"):
            share = 1 / merge
        own = {role: side / (share if role != "time" else 1.0) for role, side in sides.items()}
        out[part] = Scene(name, part, spec, whole(own), {}, span, note, context_of(config))
    return out


def with_all_heads(parts: Mapping[str, AxesSpec]) -> dict[str, AxesSpec]:
    """Where heads differ, first the pairs of all of them together, whose mean is the mean over the heads."""
    out: dict[str, AxesSpec] = {}
    for part, spec in parts.items():
        whole_part, _, head = part.rpartition(" head ")
        if head == "0":
            heads = [each for name, each in parts.items() if name.startswith(f"{whole_part} head ")]
            out[f"{whole_part}{ALL_HEADS}"] = directions(np.concatenate([each.weights for each in heads]), spec.axes)
        out[part] = spec
    return out


def sides_of(model: AxesModel, part: str) -> dict[Role, int]:
    """The sides of a model's usual image for one of its parts: tokens are merged patches.

    The grid in the list is in tokens where the language model has several axes, else in patches.
    """
    merge, text, split = merge_of(model.config), part.startswith("text"), read_by_text(model_parts(model.id))
    share = merge if text and not split else 1 / merge if split and not text else 1.0
    sides: dict[Role, float] = {}
    for axis, extent in model.grid.items():
        if axis in ROLE_OF:
            role = ROLE_OF[axis]
            sides[role] = extent / model.step.get(axis, 1.0) / (1.0 if role == "time" else share)
    return whole(sides)


def read_by_text(parts: Mapping[str, AxesSpec]) -> bool:
    """Whether the language model itself has several axes."""
    return any(part.startswith("text") and len(spec.axes) > 1 for part, spec in parts.items())


def whole(sides: Mapping[Role, float]) -> dict[Role, int]:
    """Sides in whole patches, at least one."""
    return {role: max(1, round(sides[role])) for role in ROLES if role in sides}


def context_of(config: Mapping[str, Any]) -> int:
    """Return the trained length of the language model in tokens, wherever the config has it."""
    inside = inner_parts(config)
    deeper = [part["text_config"] for part in inside if isinstance(part.get("text_config"), Mapping)]
    lengths = (size_or(part.get("max_position_embeddings"), 0) for part in (*deeper, *inside[::-1]))
    return next((length for length in lengths if length), CONTEXT)


def merge_of(config: Mapping[str, Any]) -> int:
    """Return how many patches of a side become one token of the language model."""
    tower = vision_part(config)
    if is_diffusion(config) or tower is config:
        return 1
    usual = {"gemma4": 3, "pixtral": 1, "llava": 1}.get(read_model_type(config), 2)
    found = (size_or(tower.get(key), 0) for key in ("spatial_merge_size", "merge_size", "pooling_kernel_size"))
    return next((merge for merge in found if merge), usual)


def patches_of(config: Mapping[str, Any]) -> dict[Role, float]:
    """Return the sides of the image, in patches, that a config names; none where it names no image."""
    tower = vision_part(config)
    image, patch = size_or(tower.get("image_size"), 0), size_or(tower.get("patch_size"), 0)
    rows, columns = (size_or(config.get(key), 0) / (patch or 1) for key in ("sample_height", "sample_width"))
    if not rows or not columns:
        rows = columns = max(1.0, image // patch) if image and patch else 0.0
    return {"time": float(USUAL["time"]), "row": rows, "column": columns} if rows else {}
