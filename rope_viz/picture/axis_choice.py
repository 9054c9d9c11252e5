"""The choice of an axis on pages about one axis, for a sidebar model that has several."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, along_axis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.image_layouts import ROLE_OF, ROLES, Role, Scene, own_scenes
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.picture.choices import Pick
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.texts import join_list

Along: TypeAlias = Literal["all", "time", "row", "column"]

TEXTS = Texts("axis_choice")
LABELS = cast(dict[Along, str], TEXTS.group("axes"))


def rotation(request: PictureRequest) -> AxesSpec | None:
    """Return the text rotation of the sidebar's model if it has several axes and the sidebar's pairs, else None."""
    found = find_sidebar_scenes(request)
    scene = found.get(f"text {request.layer}", found.get("text"))
    if scene is None or len(scene.spec.axes) < 2 or not scene.spec.is_aligned or scene.spec.pairs != request.spec.pairs:
        return None
    return scene.spec


def roles(request: PictureRequest) -> dict[Role, list[int]]:
    """Return the pair indices of each direction, {} for a model with one axis."""
    spec = rotation(request)
    if spec is None:
        return {}
    named = {ROLE_OF[axis]: axis for axis in spec.axes if axis in ROLE_OF}
    found = {role: np.flatnonzero(spec.along(named[role])).tolist() for role in ROLES if role in named}
    return {role: pairs for role, pairs in found.items() if pairs}


def axis_of(page: str) -> Pick[Along]:
    """Make a page's choice of an axis."""
    return Pick(
        key=f"{page}.axis",
        label=TEXTS("label"),
        options=LABELS,
        offered=lambda request: {"all": LABELS["all"], **{role: LABELS[role] for role in roles(request)}},
        when=lambda request: bool(roles(request)),
    )


def looked(request: PictureRequest, choice: Pick[Along]) -> RopeSpec:
    """Return the spec that applies to a move along the chosen axis."""
    axis = request[choice]
    return request.spec if axis == "all" else along_axis(request.spec, roles(request)[axis])


def axis_sentence(request: PictureRequest, choice: Pick[Along]) -> Sentence:
    """Name the chosen axis and count its pairs; empty for a model with one axis."""
    found, axis = roles(request), request[choice]
    if not found:
        return sidebar_axis_sentence(request)
    if axis == "all":
        counts = {role: len(pairs) for role, pairs in found.items()}
        shares = join_list([TEXTS(f"shares.{role}", **{role: count}) for role, count in counts.items()])
        return join(TEXTS("text"), TEXTS("split", shares=shares))
    return TEXTS("one", axis=TEXTS(f"names.{axis}"), turning=len(found[axis]), pairs=request.spec.pairs)


def sidebar_axis_sentence(request: PictureRequest) -> Sentence:
    """Name the sidebar's axis of an image model and the other axes; empty for other models."""
    if (
        request.own is None
        or request.model != spec_url.CUSTOM
        or request.layer not in ROLE_OF
        or len(request.own.specs) < 2
    ):
        return Sentence()
    others = [
        TEXTS(f"names.{ROLE_OF[axis]}") for axis in request.own.specs if axis != request.layer and axis in ROLE_OF
    ]
    return join(
        TEXTS("own", axis=TEXTS(f"names.{ROLE_OF[request.layer]}"), pairs=request.spec.pairs),
        TEXTS("others", others=join_list(others)) if others else "",
    )


def find_sidebar_scenes(request: PictureRequest) -> Mapping[str, Scene]:
    """Return {part: scene} of the sidebar's model, {} if none of its parts has several axes."""
    return _sidebar(request.model, request.own)


@cache_by_config(64)
def _sidebar(model: str, own: Upload | None) -> Mapping[str, Scene]:
    subject = Subject(RopeSpec(), model, own=own)
    config = subject.config
    if config is None or has_one_axis(config):
        return {}
    try:
        found = own_scenes(config, subject.name)
    except ValueError:
        return {}  # a model without several axes belongs to the other pages
    several = any(len(scene.spec.axes) > 1 for scene in found.values())
    return MappingProxyType(found if several else {})
