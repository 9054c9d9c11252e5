"""A page as the list of its choices and its pictures."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rope_viz.pictures.choices import Choice
from rope_viz.pictures.kinds import Kind
from rope_viz.pictures.now import Now

MAIN_HEIGHT = 430
Draw: TypeAlias = Callable[[Now], Kind]


@dataclass(frozen=True, eq=False)
class Picture:
    """A function that draws, and what must be known before it has drawn: its address and the room it takes."""

    page: str
    draw: Draw
    uses: tuple[Choice[Any], ...] = ()
    height: int = MAIN_HEIGHT
    narrow: int = 0
    pin: bool = False
    zooms: bool = False
    sets: Choice[Any] | None = None

    @property
    def name(self) -> str:
        """Its name on the page: that of the function."""
        return self.draw.__name__

    @property
    def address(self) -> str:
        """`<page>/<name>`."""
        return f"{self.page}/{self.name}"

    @property
    def kind(self) -> type[Kind]:
        """Which kind the function gives, by its annotation."""
        found: type[Kind] = typing.get_type_hints(self.draw)["return"]
        return found

    @property
    def about(self) -> str:
        """One line on what it shows: the docstring of the function."""
        return (self.draw.__doc__ or "").strip().splitlines()[0]

    def __call__(self, now: Now) -> Kind:
        """The picture of this `now`."""
        return self.draw(now)


@dataclass(frozen=True, eq=False)
class Page:
    """A page's name, its choices in an order in which each depends on earlier ones alone, and its pictures by name."""

    name: str
    choices: tuple[Choice[Any], ...] = ()
    pictures: dict[str, Picture] = field(default_factory=dict)

    def picture(
        self,
        *uses: Choice[Any],
        height: int = MAIN_HEIGHT,
        narrow: int = 0,
        pin: bool = False,
        zooms: bool = False,
        sets: Choice[Any] | None = None,
    ) -> Callable[[Draw], Picture]:
        """Decorator: the function below draws a picture of this page, from the model and these choices alone.

        `height` is kept free for it, in pixels, and `narrow` where the screen is (the same unless told). `pin`: it
        shows the pinned pair. `zooms`: it is drawn anew for the part that was zoomed to (`now.seen`). `sets`: a click
        sets this choice instead of the pin.
        """

        def add(draw: Draw) -> Picture:
            picture = Picture(self.name, draw, uses, height, narrow or height, pin, zooms, sets)
            self.pictures[picture.name] = picture
            return picture

        return add
