"""A page as the list of its choices and its pictures."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rope_viz.pictures.outputs import Kind
from rope_viz.pictures.picture_request import Choice, Now

MAIN_HEIGHT = 430
Draw: TypeAlias = Callable[[Now], Kind]
Height: TypeAlias = int | Callable[[Now], int]


def never(now: Now) -> str:
    """The usual `refuses`: there is always something to draw."""
    return ""


def whole(now: Now) -> int:
    """The usual `parts`: it is drawn at once."""
    return 1


@dataclass(frozen=True, eq=False)
class Picture:
    """A function that draws, and what must be known before it has drawn: its address and the room it takes."""

    page: str
    draw: Draw
    uses: tuple[Choice[Any], ...] = ()
    height: Height = MAIN_HEIGHT
    narrow: Height | None = None
    pin: bool = False
    zooms: bool = False
    sets: Choice[Any] | None = None
    config: bool = False
    still: bool = False
    refuses: Callable[[Now], str] = never
    parts: Callable[[Now], int] = whole

    @property
    def name(self) -> str:
        """Its name on the page: that of the function."""
        return self.draw.__name__

    @property
    def address(self) -> str:
        """`<page>/<name>`."""
        return f"{self.page}/{self.name}"

    @functools.cached_property
    def kind(self) -> type[Kind]:
        """Which kind the function gives, by its annotation."""
        found: type[Kind] = typing.get_type_hints(self.draw)["return"]
        return found

    @property
    def about(self) -> str:
        """One line on what it shows: the docstring of the function."""
        return (self.draw.__doc__ or "").strip().splitlines()[0]

    @functools.cached_property
    def depends(self) -> frozenset[str]:
        """The keys of the choices that it uses, and of all that those need."""
        found, left = set[str](), list(self.uses)
        while left:
            choice = left.pop()
            if choice.key not in found:
                found.add(choice.key)
                left += choice.needs
        return frozenset(found)

    def heights(self, now: Now) -> tuple[int, int]:
        """The room it takes in pixels, on a wide and on a narrow screen."""
        wide, narrow = (each(now) if callable(each) else each for each in (self.height, self.narrow or self.height))
        return wide, narrow

    def finished(self, now: Now) -> Now:
        """The same, asked for the whole of what a page draws in parts."""
        return dataclasses.replace(now, part=self.parts(now) - 1)

    def __call__(self, now: Now) -> Kind:
        """The picture of this `now`. Raises `ValueError` with a sentence where there is none."""
        if problem := self.refuses(now):
            raise ValueError(problem)
        return self.draw(now)


@dataclass(frozen=True, eq=False)
class Page:
    """A page's name, its choices, and its pictures by name."""

    name: str
    choices: tuple[Choice[Any], ...] = ()
    pictures: dict[str, Picture] = field(default_factory=dict)
    shows: Callable[[Now, Picture], Mapping[str, str]] | None = None
    """{id: name} of the models in a picture, where they need not be that of the sidebar."""

    def picture(
        self,
        *uses: Choice[Any],
        height: Height = MAIN_HEIGHT,
        narrow: Height | None = None,
        pin: bool = False,
        zooms: bool = False,
        sets: Choice[Any] | None = None,
        config: bool = False,
        still: bool = False,
        refuses: Callable[[Now], str] = never,
        parts: Callable[[Now], int] = whole,
    ) -> Callable[[Draw], Picture]:
        """Decorator: the function below draws a picture of this page, from the model and these choices alone.

        `height` is kept free for it, in pixels, and `narrow` where the screen is (the same unless told); both may
        depend on `Now`. `pin`: it shows the pinned pair. `zooms`: it is drawn anew for the part that was zoomed to
        (`now.seen`). `sets`: a click sets this choice instead of the pin. `config`: it depends on the config.json of
        the model beside the spec. `still`: it takes long, and waits until the hand on a knob rests. `refuses`: why
        there is nothing to draw for this `Now`, in a sentence that then stands in its place. `parts`: how many times
        the browser asks, for `now.part` 0 and so on, each time for more: what takes long is seen coarsely first.
        """

        def add(draw: Draw) -> Picture:
            picture = Picture(self.name, draw, uses, height, narrow, pin, zooms, sets, config, still, refuses, parts)
            self.pictures[picture.name] = picture
            return picture

        return add
