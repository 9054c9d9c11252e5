"""The request that a picture is rendered from, and the base class of its choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import Variant, make_variant
from rope_viz.own_files.outside import Content, Reader
from rope_viz.own_files.shared_config import share_subject
from rope_viz.texts import Translated, current_language

T = TypeVar("T")
View: TypeAlias = tuple[float, float]
NOTHING: Mapping[str, Any] = MappingProxyType({})


def always(request: PictureRequest) -> bool:
    """Return True, the default `when`: the choice always applies."""
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Generic[T]):
    """Base class of the choices. If `when` is false, the choice has its default and no widget.

    `needs` are the other choices that its default, options, limits and `when` depend on. `shared` names the size of the
    spec ("context", "target") with which it is one value: the page's address holds only that size.
    `reads_outside`: a value is a content from outside, or names one.
    """

    reads_outside: ClassVar[bool] = False
    key: str
    label: Translated = Translated()
    help: Translated = Translated("")
    when: Callable[[PictureRequest], bool] = always
    needs: tuple[Choice[Any], ...] = ()
    shared: str = ""

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    def default(self, request: PictureRequest) -> T:
        raise NotImplementedError

    def parse(self, text: str) -> T:
        """Read a value from text. Raise `ValueError` if it can never be valid."""
        raise NotImplementedError

    def name_content(self, text: str) -> Content[Any] | None:
        """Return the content from outside that a text names, None if the text is the value itself."""
        return None

    def read_value(self, text: str, reader: Reader) -> T:
        """Read a value as `parse` does, its content from outside by a reader."""
        return self.parse(text)

    def resolve(self, value: T, request: PictureRequest) -> T:
        """Return the nearest value that the other choices allow."""
        return value

    def text(self, value: T) -> str:
        """Return the text form, which `parse` reads."""
        return spec_url.format_value(value)

    def describe(self) -> str:
        """Describe the accepted text, for the command line's help."""
        return ""


@dataclass(frozen=True)
class PictureRequest:
    """All that a picture may depend on. `request[SHOW]` is the value of one of the page's own choices.

    `pin` is the pinned pair, `view` the zoomed x range in the axis's units (powers of ten on a log axis). `coarse`
    requests a picture that is quick to render and send, for a moving knob; `part` counts the refinements of a slow
    picture. `variants` are the pinned curves by number. `given` holds the choices made, by key. `held` names stored
    contents that an address cannot hold: the user's config ("own"), a spec ("spec"). `language` is that of its texts.
    """

    subject: Subject
    pin: int | None = None
    given: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    view: View | None = None
    coarse: bool = False
    part: int = 0
    held: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    variants: Mapping[int, Variant] = field(default_factory=dict)
    language: str = field(default_factory=current_language)
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, choice: Choice[T]) -> T:
        """Return a choice's value: the given one, adjusted to what is allowed, or the default."""
        if choice.key not in self._values:
            taken = choice.key in self.given and choice.when(self)
            self._values[choice.key] = choice.resolve(self.given[choice.key], self) if taken else choice.default(self)
        return self._values[choice.key]  # type: ignore[no-any-return]

    def visible_range(self, full: View) -> View | None:
        """Return the zoomed part of `full`, None if all of it is shown."""
        if self.view is None:
            return None
        low, high = max(self.view[0], full[0]), min(self.view[1], full[1])
        return (low, high) if high > low and (low, high) != full else None

    @property
    def spec(self) -> RopeSpec:
        return self.subject.spec

    @property
    def model(self) -> str:
        return self.subject.model

    @property
    def layer(self) -> str:
        return self.subject.layer

    @property
    def own(self) -> Upload | None:
        return self.subject.own

    @property
    def current(self) -> Variant:
        """Return the current embedding as a curve that can be pinned."""
        return share_variant(self.subject)

    @property
    def shared(self) -> PictureRequest:
        """Return the request as a picture and everything else that is given to others answers it."""
        subject = share_subject(self.subject)
        return self if subject.own is self.subject.own else dataclasses.replace(self, subject=subject)


def share_variant(subject: Subject) -> Variant:
    """Return an embedding as a curve that can be pinned: addresses hold its name and its layer type."""
    shown = share_subject(subject)
    return make_variant(shown, shown.name)
