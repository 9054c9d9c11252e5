"""A rotation over the patches of an image or the frames of a video: radians per patch down, across and in time.

Names and units of axes differ between models. Some count tokens alone, row by row.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, mix_axes
from rope_viz.models.config_reader import read_model_type
from rope_viz.models.several_axes.model_axes import (
    find_inner_parts,
    find_vision_part,
    from_model,
    is_diffusion,
    read_size_or,
)
from rope_viz.multi_axis.catalog import axes_catalog, model_parts

Role: TypeAlias = Literal["time", "row", "column"]

ROLES: tuple[Role, ...] = ("time", "row", "column")
ROLE_OF: dict[str, Role] = {
    **dict.fromkeys(("t", "frame", "time"), "time"),
    **dict.fromkeys(("h", "row", "height", "y"), "row"),
    **dict.fromkeys(("w", "column", "width", "x"), "column"),
}
ALL_HEADS = " all heads"
COUNTED = "position"  # the axis that counts all tokens
NORMALISED = ("dinov3_vit", "sapiens2", "eomt_dinov3")
SPAN = {"h": 2.0, "w": 2.0}
USUAL: dict[Role, int] = {"time": 16, "row": 32, "column": 32}
MOST = 1 << 14
CONTEXT = 32_768


@dataclass(frozen=True)
class Scene:
    """A part of a model with an image or video.

    `spec` is the rotation as the model has it, `sides` the patches (text: tokens) of the image by role, `step` the
    units of position per patch on an axis where that is not one; `span` is set instead for axes on which every image
    has so many units. `note` is the source of the sides, `context` the trained length of a language model in tokens.
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
        """Return the unit of a side: tokens if a language model reads the image, else patches."""
        return "tokens" if self.part.startswith("text") else "patches"

    @functools.cached_property
    def steps(self) -> Mapping[str, Mapping[str, float]]:
        """Return {role: {axis: units}}: how far one patch in each direction moves along the axes of the spec.

        Axes of text alone (FLUX.2) follow under their own names.
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
        """Time, row and column, if any pair follows them."""
        spec = self.role_spec
        both = spec.weights if spec.second is None else np.concatenate([spec.weights, spec.second])
        return tuple(role for role in ROLES if role in spec.axes and np.any(both[:, spec.index(role)]))

    @functools.cached_property
    def role_spec(self) -> AxesSpec:
        """The same rotation over "time", "row" and "column" in units of patches, then over the other axes."""
        steps = self.steps
        moves = np.array([[steps[role].get(axis, 0.0) for role in steps] for axis in self.spec.axes])
        second = None if self.spec.second is None else self.spec.second @ moves
        return dataclasses.replace(self.spec, weights=self.spec.weights @ moves, axes=tuple(steps), second=second)

    def with_sides(self, sides: Mapping[Role, int]) -> Scene:
        """Return the scene with an image or video of other sides."""
        bounded = {role: int(min(max(side, 1), MOST)) for role, side in sides.items() if role in ROLES}
        sides = {**self.sides, **bounded}
        # The same object keeps its cached properties.
        return self if sides == self.sides else dataclasses.replace(self, sides=sides)


def model_scenes(id: str) -> dict[str, Scene]:
    """Return {part: scene} of a catalog model with several axes. Raises `ValueError` that names an unknown model."""
    parts, model = model_parts(id), axes_catalog()[id]
    merge = read_merge(model.config)
    # The catalog's grid is in tokens if the language model has several axes, else in patches.
    shares = (1.0, 1 / merge) if has_text_axes(parts) else (merge, 1.0)
    extents = {axis: extent / model.step.get(axis, 1.0) for axis, extent in model.grid.items()}
    sides = {ROLE_OF[axis]: extent for axis, extent in extents.items() if axis in ROLE_OF}
    return make_scenes(parts, model.name, model.config, sides, shares, model.step, model.grid_note)


def own_scenes(config: Mapping[str, Any], name: str) -> dict[str, Scene]:
    """Return {part: scene} of a user's config; the image is the one in the config, else 32 × 32 patches.

    Raises `ValueError` as `from_model` does.
    """
    parts, found, merge = from_model(config), read_patches(config), read_merge(config)
    shares = (merge, 1.0) if found else (1.0, 1 / merge if has_text_axes(parts) else 1.0)
    note = "the image its config speaks of" if found else "its config speaks of no image: 32 × 32 are taken"
    return make_scenes(parts, name, config, found or USUAL, shares, {}, note)


def make_scenes(
    parts: Mapping[str, AxesSpec],
    name: str,
    config: Mapping[str, Any],
    sides: Mapping[Role, float],
    shares: tuple[float, float],
    step: Mapping[str, float],
    note: str,
) -> dict[str, Scene]:
    """Return a scene for every part; `shares` divide rows and columns for text parts and for the others."""
    step, span = ({}, SPAN) if read_model_type(config) in NORMALISED else (step, {})
    found = {}
    for part, spec in add_all_heads(parts).items():
        share = shares[0] if part.startswith("text") else shares[1]
        divided = {role: sides[role] / (1.0 if role == "time" else share) for role in ROLES if role in sides}
        rounded = {role: max(1, round(side)) for role, side in divided.items()}
        found[part] = Scene(name, part, spec, rounded, step, span, note, read_context(config))
    return found


def add_all_heads(parts: Mapping[str, AxesSpec]) -> dict[str, AxesSpec]:
    """Return the parts; before heads that differ, add a part with the pairs of all heads, for their mean."""
    out: dict[str, AxesSpec] = {}
    for part, spec in parts.items():
        whole_part, _, head = part.rpartition(" head ")
        if head == "0":
            heads = [each for name, each in parts.items() if name.startswith(f"{whole_part} head ")]
            out[f"{whole_part}{ALL_HEADS}"] = mix_axes(np.concatenate([each.weights for each in heads]), spec.axes)
        out[part] = spec
    return out


def has_text_axes(parts: Mapping[str, AxesSpec]) -> bool:
    """Return True if the language model itself has several axes."""
    return any(part.startswith("text") and len(spec.axes) > 1 for part, spec in parts.items())


def read_context(config: Mapping[str, Any]) -> int:
    """Return the trained length of the language model in tokens, from whichever part of the config has it."""
    inside = find_inner_parts(config)
    deeper = [part["text_config"] for part in inside if isinstance(part.get("text_config"), Mapping)]
    lengths = (read_size_or(part.get("max_position_embeddings"), 0) for part in (*deeper, *inside[::-1]))
    return next((length for length in lengths if length), CONTEXT)


def read_merge(config: Mapping[str, Any]) -> int:
    """Return how many patches per side become one token of the language model."""
    tower = find_vision_part(config)
    if is_diffusion(config) or tower is config:
        return 1
    usual = {"gemma4": 3, "pixtral": 1, "llava": 1}.get(read_model_type(config), 2)
    found = (read_size_or(tower.get(key), 0) for key in ("spatial_merge_size", "merge_size", "pooling_kernel_size"))
    return next((merge for merge in found if merge), usual)


def read_patches(config: Mapping[str, Any]) -> dict[Role, float]:
    """Return the sides of the config's image in patches; empty if it has none."""
    tower = find_vision_part(config)
    image, patch = read_size_or(tower.get("image_size"), 0), read_size_or(tower.get("patch_size"), 0)
    rows, columns = (read_size_or(config.get(key), 0) / (patch or 1) for key in ("sample_height", "sample_width"))
    if not rows or not columns:
        rows = columns = max(1.0, image // patch) if image and patch else 0.0
    return {"time": float(USUAL["time"]), "row": rows, "column": columns} if rows else {}
