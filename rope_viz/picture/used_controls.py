"""Which controls of the model a page depends on; the sidebar shows only those."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import PAIRINGS, Knob, RopeSpec, knobs, lists, switches
from rope_viz.models import spec_url
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest

LAYER, METHOD, PAIRING = "layer", "method", "pairing"
TOGETHER = ("mscale", "mscale_all_dim")
"""Fields that count only if both are set, so each is tried with the other."""


def find_used_controls(page: Page, request: PictureRequest, layers: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the controls that change something on the page, moved from their present values.

    Names: fields of the spec and of its method, "pairing", "method", and "layer" for one of `layers`.
    """
    before, subject = page.sees(request), request.subject
    used = {choice.shared for choice in page.choices if choice.shared}

    def changes(spec: RopeSpec, layer: str = request.layer) -> bool:
        return page.sees(dataclasses.replace(request, subject=subject._replace(spec=spec, layer=layer))) != before

    for name, moves in list_moves(request.spec).items():
        if any(changes(spec) for spec in make_valid(moves)):
            used.add(name)
    starts = {layer: subject._replace(layer=layer).start for layer in layers if layer != request.layer}
    if any(changes(spec, layer) for layer, spec in starts.items()):
        used.add(LAYER)
    return frozenset(used)


def list_moves(spec: RopeSpec) -> dict[str, list[Callable[[], RopeSpec]]]:
    """Return {control: ways to move it}; a move raises `ValueError` where the spec cannot have the value."""
    moves: dict[str, list[Callable[[], RopeSpec]]] = {}
    for name, knob in (knobs(spec) | knobs(spec.scaling)).items():
        together = tuple(other for other in TOGETHER if name in TOGETHER and other != name)
        moves[name] = [functools.partial(_move, spec, name, value, together) for value in pick_values(spec, name, knob)]
    moves[PAIRING] = [functools.partial(_replaced, spec, pairing=pairing) for pairing in PAIRINGS]
    moves[METHOD] = [functools.partial(_with_method, spec, method) for method in METHODS]
    for name in switches(spec.scaling):
        moves[name] = [functools.partial(_with_scaling, spec, **{name: not getattr(spec.scaling, name)})]
    for name in lists(spec.scaling):
        divisors = tuple(1.5 * value for value in getattr(spec.scaling, name) or (1.0,) * spec.pairs)
        moves[name] = [functools.partial(_with_scaling, spec, **{name: divisors})]
    return moves


def make_valid(moves: list[Callable[[], RopeSpec]]) -> Iterator[RopeSpec]:
    """Yield the specs of those moves that are possible."""
    for move in moves:
        try:
            yield move()
        except (ValueError, ArithmeticError):
            continue


def pick_values(spec: RopeSpec, name: str, knob: Knob) -> list[float]:
    """Return values of a control to try: half and double the present one, and the ends of its range."""
    present = getattr(spec, name, getattr(spec.scaling, name, None))
    near = [] if present is None else [present / 2, present * 2]
    step = knob.step or 1
    values = [min(max(value, knob.low), knob.high) for value in (*near, knob.low, knob.high)]
    return [int(step * round(value / step)) if knob.integer else float(value) for value in values]


@functools.lru_cache(4096)
def _move(spec: RopeSpec, name: str, value: float, together: tuple[str, ...]) -> RopeSpec:
    for other in together:
        if getattr(spec.scaling, other, None) is None:
            spec = _with_scaling(spec, **{other: 1.0})
    return spec_url.move_knob(spec, name, value)


# A run tries some fifty specs, and the same ones on each page.
_replaced = functools.lru_cache(4096)(dataclasses.replace)
_with_method = functools.lru_cache(4096)(spec_url.with_method)


@functools.lru_cache(4096)
def _with_scaling(spec: RopeSpec, **changes: object) -> RopeSpec:
    return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **changes))  # type: ignore[arg-type]
