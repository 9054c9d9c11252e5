"""Choices of the page Axes: a model, one of its parts, and the user's changes to that part."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, cast

from rope_viz.embedding.axes_spec import AxesSpec, place_frequencies
from rope_viz.embedding.axis_sections import WAYS, Anatomy, Way, analyse_spec, rebuild_spec
from rope_viz.embedding.spec import Knob
from rope_viz.models.spec_url import Subject
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import ROLE_OF, Role, Scene, model_scenes
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.pages.axes.figures import TEXTS, name_part
from rope_viz.picture.axis_choice import _sidebar, find_sidebar_scenes
from rope_viz.picture.choices import Borders, Menu, Number, Pick
from rope_viz.picture.picture_request import Choice, PictureRequest

SIDEBAR = "sidebar"
RELEASED = "released"
NOTHING = "none"
FIRST = "qwen2-vl-7b"
NEIGHBOURS = {
    "text": ("qwen3-vl-8b", "qwen2-vl-7b"),
    "vision": ("rope-vit-mixed-b", "rope-vit-axial-b"),
    "transformer": ("hunyuan-video", "flux.1-dev"),
}
PART_MOST = 60
BASE_KNOB = Knob(TEXTS("choices.base"), 2.0, 1e9, TEXTS("choices.base_help"), log=True)


@functools.lru_cache(maxsize=128)
def _catalog_scenes(id: str) -> Mapping[str, Scene]:
    return MappingProxyType(model_scenes(id))


def _models(request: PictureRequest) -> Mapping[str, str]:
    own = {SIDEBAR: TEXTS("choices.sidebar_model", name=request.subject.name)} if find_sidebar_scenes(request) else {}
    return own | {id: model.name for id, model in axes_catalog().items()}


def _is_model(name: str) -> bool:
    return name == SIDEBAR or name in axes_catalog()


def _is_part_name(name: str) -> bool:
    return 0 < len(name) <= PART_MOST and name.isprintable()


MODEL = Menu(
    key="axes.model",
    label=TEXTS("choices.model"),
    entries=_models,
    usual=lambda request: SIDEBAR if find_sidebar_scenes(request) else FIRST,
    check=_is_model,
)


def parts(request: PictureRequest, model: str) -> Mapping[str, Scene]:
    """Return {part: scene} of a model of the menu."""
    return find_sidebar_scenes(request) if model == SIDEBAR else _catalog_scenes(model)


def _labels(names: Mapping[str, Scene]) -> Mapping[str, str]:
    return {name: name_part(name) for name in names}


PART = Menu(
    key="axes.part",
    label=TEXTS("choices.part"),
    entries=lambda request: _labels(parts(request, request[MODEL])),
    usual=lambda request: _default_part(parts(request, request[MODEL])),
    check=_is_part_name,
    width=190,
    needs=(MODEL,),
)
WHICH: tuple[Choice[Any], ...] = (MODEL, PART)


def _default_part(found: Mapping[str, Scene]) -> str:
    """Return the default part: the first with several axes."""
    return next((name for name, scene in found.items() if len(scene.spec.axes) > 1), next(iter(found)))


def released_scene(request: PictureRequest) -> Scene:
    """Return the unchanged part: as released, or with the sidebar's current frequencies."""
    if request[MODEL] == SIDEBAR and request[PART].startswith("text") and request.spec != request.subject.start:
        return _with_frequencies(request.subject, request[PART])
    return parts(request, request[MODEL])[request[PART]]


def frequencies_of_sidebar(request: PictureRequest) -> Hashable:
    """Return what the page depends on of the sidebar's model: nothing while another model is chosen on the page."""
    if request[MODEL] != SIDEBAR:
        return None
    spec = released_scene(request).spec
    return request[PART], spec.weights.tobytes(), spec.factor


@cache_by_config(64)
def _with_frequencies(subject: Subject, part: str) -> Scene:
    """Return a text part of the sidebar's model with its present frequencies, where it has as many pairs."""
    spec = subject.spec
    scene, frequencies = _sidebar(subject.model, subject.own)[part], spec.inv_freq(spec.target)
    axes = scene.spec
    if not axes.is_aligned or len(frequencies) != axes.pairs:
        return scene
    weights = place_frequencies(frequencies, axes.owner.tolist(), len(axes.axes))
    factor = spec.attention_factor(spec.target)
    return dataclasses.replace(scene, spec=dataclasses.replace(axes, weights=weights, factor=factor))


def find_anatomy(request: PictureRequest) -> Anatomy | None:
    """Return how the part's spec is built from axes, or None if that is unknown."""
    return analyse_spec(released_scene(request).spec)


def _can_reallocate(request: PictureRequest) -> bool:
    """True if the pairs can be allocated to the axes in another way."""
    own = find_anatomy(request)
    return own is not None and (own.shared or set(own.ladders) == set(own.counts))


def _ways(request: PictureRequest) -> Mapping[Way, str]:
    own = find_anatomy(request)
    if own is None or not own.shared:
        return {"own": ALL_WAYS["own"]}
    three = len(own.counts) == 3
    ways = {name: ALL_WAYS[name] for name in WAYS if name != "in turn" or three}
    return {"own": ALL_WAYS["own"], **ways} if own.way == "own" else ways


def _way(request: PictureRequest) -> Way:
    own = find_anatomy(request)
    return "own" if own is None else own.way


ALL_WAYS = cast(dict[Way, str], TEXTS.group("ways"))
WAY: Pick[Way] = Pick(
    key="axes.way",
    label=TEXTS("choices.way"),
    options=ALL_WAYS,
    offered=_ways,
    usual=_way,
    when=lambda request: len(_ways(request)) > 1,
    needs=WHICH,
)


def _shares(request: PictureRequest) -> Mapping[str, int]:
    own = find_anatomy(request)
    return {} if own is None else own.counts


SECTIONS = Borders(
    key="axes.sections", label=TEXTS("choices.sections"), shares=_shares, when=_can_reallocate, needs=WHICH
)


def _base(key: str, label: str, find: Callable[[PictureRequest], str | None]) -> Number:
    """Make the slider for a base that `find` locates; bases that the sidebar controls have none."""

    def usual(request: PictureRequest) -> float:
        own, axis = find_anatomy(request), find(request)
        return 10_000.0 if own is None or axis is None else own.ladders[axis].base

    knob = dataclasses.replace(BASE_KNOB, label=label)
    return Number(
        key=key, label=label, knob=knob, usual=usual, when=lambda request: find(request) is not None, needs=WHICH
    )


def _shared_base(request: PictureRequest) -> str | None:
    own = find_anatomy(request)
    if own is None or not own.shared or request[MODEL] == SIDEBAR:
        return None
    return "" if "" in own.ladders else None


def _axis_of(role: Role) -> Callable[[PictureRequest], str | None]:
    def find(request: PictureRequest) -> str | None:
        own = find_anatomy(request)
        return None if own is None else next((axis for axis in own.ladders if ROLE_OF.get(axis) == role), None)

    return find


BASES: Mapping[Number, Callable[[PictureRequest], str | None]] = {
    _base("axes.base", TEXTS("choices.base"), _shared_base): _shared_base,
    _base("axes.base-time", TEXTS("choices.base_time"), _axis_of("time")): _axis_of("time"),
    _base("axes.base-row", TEXTS("choices.base_row"), _axis_of("row")): _axis_of("row"),
    _base("axes.base-column", TEXTS("choices.base_column"), _axis_of("column")): _axis_of("column"),
}
"""Each base's slider, and the function that finds its axis ("" for a shared base)."""


def _side(role: Role, name: str, most: int) -> Number:
    label = TEXTS(f"choices.{name}")
    knob = Knob(label, 1, most, TEXTS("choices.size_help"), log=True, integer=True)
    return Number(
        key=f"axes.{name}",
        label=label,
        knob=knob,
        usual=lambda request: released_scene(request).sides.get(role, 1),
        when=lambda request: role in released_scene(request).roles,
        needs=WHICH,
    )


SIDES: Mapping[Role, Number] = {
    "row": _side("row", "rows", 1024),
    "column": _side("column", "columns", 1024),
    "time": _side("time", "frames", 8192),
}


def _neighbour(model: str, part: str) -> str:
    """Return a model of the same kind that handles its axes differently."""
    kind = next((kind for kind in NEIGHBOURS if part.startswith(kind)), "text")
    return next(name for name in NEIGHBOURS[kind] if name != model)


def _comparisons(request: PictureRequest) -> Mapping[str, str]:
    return {RELEASED: TEXTS("choices.same_released"), NOTHING: TEXTS("choices.no_model")} | {
        id: model.name for id, model in axes_catalog().items()
    }


COMPARED = Menu(
    key="axes.beside",
    label=TEXTS("choices.compare"),
    entries=_comparisons,
    usual=lambda request: _neighbour(request[MODEL], request[PART]),
    check=lambda name: name in (RELEASED, NOTHING) or name in axes_catalog(),
    needs=WHICH,
)
COMPARED_PART = Menu(
    key="axes.beside-part",
    label=TEXTS("choices.compare_part"),
    entries=lambda request: (
        _labels(_catalog_scenes(request[COMPARED])) if request[COMPARED] in axes_catalog() else {"": ""}
    ),
    usual=lambda request: _same_part(request),
    check=lambda name: name == "" or _is_part_name(name),
    when=lambda request: request[COMPARED] in axes_catalog(),
    width=190,
    needs=(PART, COMPARED),
)


def _same_part(request: PictureRequest) -> str:
    """Return the second model's part that matches the first model's part."""
    found = _catalog_scenes(request[COMPARED]) if request[COMPARED] in axes_catalog() else {}
    return next((name for name in found if name == request[PART]), _default_part(found) if found else "")


CHANGES: tuple[Choice[Any], ...] = (WAY, SECTIONS, *BASES, *SIDES.values())
OTHER: tuple[Choice[Any], ...] = (COMPARED, COMPARED_PART)


def scene(request: PictureRequest) -> Scene:
    """Return the part with the user's changes, for an image of the chosen size."""
    plain = released_scene(request)
    own = analyse_spec(plain.spec)
    if own is None:
        changed = plain
    else:
        bases = {find(request): request[base] for base, find in BASES.items() if find(request) is not None}
        moved = {axis: value for axis, value in bases.items() if axis is not None and _is_changed(own, axis, value)}
        sections: tuple[int, ...] = request[SECTIONS]
        wanted: Way = request[WAY]
        counts = dict(zip(own.counts, sections, strict=True)) if _can_reallocate(request) else dict(own.counts)
        way = wanted if own.shared else None
        if moved or counts != dict(own.counts) or way not in (None, own.way):
            new_counts = None if counts == dict(own.counts) else tuple(counts.items())
            changed = dataclasses.replace(plain, spec=_rebuilt(plain.spec, new_counts, way, tuple(moved.items())))
        else:
            changed = plain
    return changed.with_sides({role: int(request[side]) for role, side in SIDES.items() if side.when(request)})


@functools.lru_cache(maxsize=64)
def _rebuilt(
    spec: AxesSpec, counts: tuple[tuple[str, int], ...] | None, way: Way | None, bases: tuple[tuple[str, float], ...]
) -> AxesSpec:
    return rebuild_spec(spec, counts=None if counts is None else dict(counts), way=way, bases=dict(bases) or None)


def _is_changed(own: Anatomy, axis: str, base: float) -> bool:
    return abs(base / min(max(own.ladders[axis].base, BASE_KNOB.low), BASE_KNOB.high) - 1.0) > 1e-12


def compared_scenes(request: PictureRequest) -> list[Scene]:
    """Return the part and, if one is chosen, the part to compare with."""
    first, name = scene(request), request[COMPARED]
    if name == NOTHING:
        return [first]
    if name == RELEASED:
        plain = released_scene(request)
        return [first, dataclasses.replace(plain, name=TEXTS("scenes.released", model=plain.name))]
    return [first, _catalog_scenes(name)[request[COMPARED_PART]]]


def models(request: PictureRequest, *, with_compared: bool) -> dict[str, str]:
    """Return {id: name} of the page's model, and of the compared one if `with_compared`; the sidebar's keeps its id."""
    ids = [
        request[MODEL],
        *([request[COMPARED]] if with_compared and request[COMPARED] not in (NOTHING, RELEASED) else []),
    ]
    return dict((request.model, request.subject.name) if id == SIDEBAR else (id, axes_catalog()[id].name) for id in ids)
