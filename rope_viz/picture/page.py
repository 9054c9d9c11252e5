"""A page as its choices and its pictures."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rope_viz.own_files.config_link import write_config
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.texts import Texts, use_language

if TYPE_CHECKING:
    from rope_viz.picture.outputs import Kind  # with Plotly, which the help of a command does not need

TEXTS = Texts("pictures")
MAIN_HEIGHT = 430
Draw: TypeAlias = "Callable[[PictureRequest], Kind]"
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
    """The choices that it is drawn from, besides the model."""
    height: Height = MAIN_HEIGHT
    """Its reserved height in pixels, and `narrow` that on a narrow screen, if it differs."""
    narrow: Height | None = None
    pin: bool = False
    """It shows the pinned pair."""
    variants: bool = False
    """It shows the pinned curves."""
    zooms: bool = False
    """It is rendered again for `request.visible_range`."""
    sets: Choice[Any] | None = None
    """The choice that a click sets instead of the pin."""
    config: bool = False
    """It depends on the model's config.json, not only on the spec."""
    still: bool = False
    """It is slow, so it is not updated while a knob moves."""
    refuses: Callable[[PictureRequest], str] = never
    """Returns why there is nothing to draw, a sentence shown in its place."""
    parts: Callable[[PictureRequest], int] = whole
    """Returns the number of requests, `request.part` = 0, 1, …, with which a slow picture is refined."""
    choices: tuple[Choice[Any], ...] = ()
    """All choices of its page, in their order."""
    shows: Callable[[PictureRequest, Picture], Mapping[str, str]] | None = None
    """As `Page.shows`."""
    shown_on: str = ""
    """The page that shows it."""
    query: str = ""
    """What opens its place on that page."""
    first: bool = False
    """It is the first picture of its page, although others are listed before it."""
    repeats: bool = False
    """It is a whole page, made of what other pictures show, or another page shows the same."""
    crowded: bool = False
    """It has so many parts that the usual type leaves no room in a thumbnail."""

    @property
    def name(self) -> str:
        return self.draw.__name__

    @property
    def address(self) -> str:
        return f"{self.page}/{self.name}"

    @functools.cached_property
    def kind(self) -> type[Kind]:
        """Return the kind of picture, from the function's return annotation."""
        found: type[Kind] = typing.get_type_hints(self.draw)["return"]
        return found

    @property
    def about(self) -> str:
        """Return a one-line description, for lists; the name of a picture that has none."""
        return TEXTS.entries.get(f"{self.page}.{self.name}", self.name)

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
            request.language,
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
        """Render the picture for a request. Raise `ValueError` with a sentence if there is none.

        Pictures are given to others: they show a user's config as others may see it.
        """
        with use_language(request.language):
            request = request.shared
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
    door: str = ""
    """The part of the app that has its tab, "" for the page at the root address."""
    last: bool = False
    """Its tab comes after those of its door that are listed later."""
    shown_on: str = ""
    """The page that shows its pictures, if not the one of its name, whose address then leads there."""
    query: str = ""
    """What opens their place on that page."""
    method_first: bool = False
    """The scaling method is its point, so the sidebar shows that first."""

    def picture(self, *uses: Choice[Any], **facts: Any) -> Callable[[Draw], Picture]:
        """Decorate a function that draws a picture of this page from the model and these choices only.

        `facts` are fields of `Picture`. Where and with which query it is shown are the page's, if it does not say so.
        """
        own = {
            "choices": self.choices,
            "shows": self.shows,
            "shown_on": self.shown_on or self.name,
            "query": self.query,
        }

        def add(draw: Draw) -> Picture:
            picture = Picture(self.name, draw, uses, **(own | facts))
            self.pictures[picture.name] = picture
            return picture

        return add
