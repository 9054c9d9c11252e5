"""A page as its choices and its pictures."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rope_viz.picture.config_link import write_config
from rope_viz.picture.outputs import Kind
from rope_viz.picture.picture_request import Choice, PictureRequest

MAIN_HEIGHT = 430
Draw: TypeAlias = Callable[[PictureRequest], Kind]
Height: TypeAlias = int | Callable[[PictureRequest], int]


def never(request: PictureRequest) -> str:
    """Never refuse: the default `refuses`."""
    return ""


def whole(request: PictureRequest) -> int:
    """Return 1, the default `parts`: the picture is rendered at once."""
    return 1


def embedding(request: PictureRequest, *, without: tuple[str, ...] = ()) -> Hashable:
    """Return what a page depends on that draws the embedding and its lengths, the default of `Page.sees`.

    `without`: of "pairing", "context", "target" and "attention", what the page does not depend on.
    """
    spec = request.spec
    sizes = (spec.head_dim, spec.rotary_dim, spec.base, "" if "pairing" in without else spec.pairing)
    lengths = (None,) if "target" in without else (None, spec.target)
    frequencies = tuple(spec.inv_freq(length).tobytes() for length in lengths)
    factors = () if "attention" in without else tuple(spec.attention_factor(length) for length in lengths)
    target = 0 if "target" in without else spec.target
    return request.layer, sizes, target, 0 if "context" in without else spec.context, frequencies, factors


@dataclass(frozen=True, eq=False)
class Picture:
    """A draw function with what must be known before it runs: address, choices, height."""

    page: str
    draw: Draw
    uses: tuple[Choice[Any], ...] = ()
    height: Height = MAIN_HEIGHT
    narrow: Height | None = None
    pin: bool = False
    variants: bool = False
    zooms: bool = False
    sets: Choice[Any] | None = None
    config: bool = False
    still: bool = False
    refuses: Callable[[PictureRequest], str] = never
    parts: Callable[[PictureRequest], int] = whole
    choices: tuple[Choice[Any], ...] = ()
    """All choices of its page, in their order."""
    shows: Callable[[PictureRequest, Picture], Mapping[str, str]] | None = None
    """As `Page.shows`."""

    @property
    def name(self) -> str:
        """Return the name on its page, that of the function."""
        return self.draw.__name__

    @property
    def address(self) -> str:
        """Return `<page>/<name>`."""
        return f"{self.page}/{self.name}"

    @functools.cached_property
    def kind(self) -> type[Kind]:
        """Return the kind of picture, from the function's return annotation."""
        found: type[Kind] = typing.get_type_hints(self.draw)["return"]
        return found

    @property
    def about(self) -> str:
        """Return a one-line description: the function's docstring, or its name where Python drops those (`-OO`)."""
        return (self.draw.__doc__ or self.name).strip().splitlines()[0]

    @functools.cached_property
    def depends(self) -> frozenset[str]:
        """Return the keys of the choices that it uses, and of the choices that those need."""
        found, left = set[str](), list(self.uses)
        while left:
            choice = left.pop()
            if choice.key not in found:
                found.add(choice.key)
                left += choice.needs
        return frozenset(found)

    def heights(self, request: PictureRequest) -> tuple[int, int]:
        """Return the height in pixels on a wide and on a narrow screen."""
        wide, narrow = (each(request) if callable(each) else each for each in (self.height, self.narrow or self.height))
        return wide, narrow

    def finished(self, request: PictureRequest) -> PictureRequest:
        """Return the request for the last part, which contains all."""
        return dataclasses.replace(request, part=self.parts(request) - 1)

    def cache_key(self, request: PictureRequest) -> tuple[Hashable, ...]:
        """Return the cache key: equal for all requests that lead to the same picture."""
        own = request.own if self.config else None
        return (
            self.address,
            *request.subject[:3],
            None if own is None else request.held.get("own") or write_config(own),
            request.pin if self.pin else None,
            tuple(request.variants.items()) if self.variants else None,
            request.view if self.zooms else None,
            request.coarse,
            min(request.part, self.parts(request) - 1),
            # Of the needed choices too: the value of a used one may be the same while they differ.
            *(choice.text(request[choice]) for choice in self.choices if choice.key in self.depends),
        )

    def __call__(self, request: PictureRequest) -> Kind:
        """Render the picture for a request. Raise `ValueError` with a sentence if there is none."""
        if problem := self.refuses(request):
            raise ValueError(problem)
        return self.draw(request)


@dataclass(frozen=True, eq=False)
class Page:
    """A page's name, its choices, and its pictures by name."""

    name: str
    choices: tuple[Choice[Any], ...] = ()
    pictures: dict[str, Picture] = field(default_factory=dict)
    shows: Callable[[PictureRequest, Picture], Mapping[str, str]] | None = None
    """{id: name} of the models in a picture, if they may differ from the sidebar's."""
    sees: Callable[[PictureRequest], Hashable] = embedding
    """What the page depends on of the sidebar's model; a control that changes nothing of it is not shown."""

    def picture(
        self,
        *uses: Choice[Any],
        height: Height = MAIN_HEIGHT,
        narrow: Height | None = None,
        pin: bool = False,
        variants: bool = False,
        zooms: bool = False,
        sets: Choice[Any] | None = None,
        config: bool = False,
        still: bool = False,
        refuses: Callable[[PictureRequest], str] = never,
        parts: Callable[[PictureRequest], int] = whole,
    ) -> Callable[[Draw], Picture]:
        """Decorate a function that draws a picture of this page from the model and these choices only.

        `height` is the reserved height in pixels, `narrow` that on a narrow screen (default: the same); both may depend
        on the request. `pin`: it shows the pinned pair. `variants`: it shows the pinned curves. `zooms`: it is rendered
        again for `request.visible_range`. `sets`: a click sets this choice instead of the pin. `config`: it depends on
        the model's config.json, not only on the spec. `still`: it is slow, so it is not updated while a knob moves.
        `refuses`: returns why there is nothing to draw, a sentence shown in its place. `parts`: the number of requests,
        `request.part` = 0, 1, …, with which a slow picture is refined.
        """

        def add(draw: Draw) -> Picture:
            picture = Picture(
                self.name,
                draw,
                uses,
                height,
                narrow,
                pin,
                variants,
                zooms,
                sets,
                config,
                still,
                refuses,
                parts,
                self.choices,
                self.shows,
            )
            self.pictures[picture.name] = picture
            return picture

        return add
