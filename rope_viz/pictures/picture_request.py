"""The one value a picture is drawn from, and what all choices in it have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.user_config import Upload

T = TypeVar("T")
View: TypeAlias = tuple[float, float]
NOTHING: Mapping[str, Any] = MappingProxyType({})


def always(now: Now) -> bool:
    """The usual `when`: the choice has a meaning whatever else was chosen."""
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Generic[T]):
    """What all choices have. Where `when` does not hold, the choice has its default, and its widget is not shown.

    `needs` are the other choices that its default, its options and limits, and `when` look at.
    """

    key: str
    label: str
    help: str = ""
    when: Callable[[Now], bool] = always
    needs: tuple[Choice[Any], ...] = ()

    @property
    def name(self) -> str:
        """The key without its page."""
        return self.key.rpartition(".")[2]

    def default(self, now: Now) -> T:
        """The value where none was chosen."""
        raise NotImplementedError

    def parse(self, written: str) -> T:
        """The value of a text. Raises `ValueError` for one that can never be meant."""
        raise NotImplementedError

    def settled(self, value: T, now: Now) -> T:
        """The nearest value that has a meaning beside the rest."""
        return value

    def text(self, value: T) -> str:
        """The text that `parse` reads back."""
        return spec_url.text(value)

    def says(self) -> str:
        """What may be written, for the help of the command line."""
        return ""


@dataclass(frozen=True)
class Now:
    """What a picture may depend on; nothing else. `now[SHOW]` is the value of one of the page's own choices.

    `model` and `layer` name where `spec` started; `own` is a reader's own config, where `model` is "custom". `pin` is
    the pinned pair, `view` the x range that was zoomed to, in the units of the axis (powers of ten on a log axis).
    `coarse` asks for a picture that is quick to draw and to send, for a knob that moves, `part` for more
    than the part before, of pictures that take long. `given` are choices that were
    made, by key. `held` are the names of what is kept because an address cannot hold it: the reader's config ("own"),
    a spec ("spec").
    """

    spec: RopeSpec
    model: str = spec_url.CUSTOM
    layer: str = ""
    own: Upload | None = None
    pin: int | None = None
    given: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    view: View | None = None
    coarse: bool = False
    part: int = 0
    held: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, choice: Choice[T]) -> T:
        """The value of a choice: the one given, as near as the rest allows, or its default."""
        if choice.key not in self._values:
            taken = choice.key in self.given and choice.when(self)
            self._values[choice.key] = choice.settled(self.given[choice.key], self) if taken else choice.default(self)
        return self._values[choice.key]  # type: ignore[no-any-return]

    def seen(self, full: View) -> View | None:
        """The part of `full` that was zoomed to; None where all of it is shown."""
        if self.view is None:
            return None
        low, high = max(self.view[0], full[0]), min(self.view[1], full[1])
        return (low, high) if high > low and (low, high) != full else None

    @property
    def start(self) -> RopeSpec:
        """The spec that the model starts from, the reader's own included."""
        return start(self.model, self.layer, self.own)

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The config.json of the model; None where there are numbers only."""
        return config_of(self.model, self.own)

    @property
    def model_config(self) -> ModelConfig | None:
        """The config of the model as it was read; None where there are numbers only."""
        if self.model == spec_url.CUSTOM:
            return None if self.own is None else self.own.model_config
        return read_catalog_model(self.model)

    @property
    def name(self) -> str:
        """The model's name."""
        if self.model == spec_url.CUSTOM:
            return "Custom" if self.own is None else self.own.name
        return catalog()[self.model].name

    @property
    def spec_json(self) -> dict[str, Any]:
        """The full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def config_of(model: str, own: Upload | None) -> Mapping[str, Any] | None:
    """The config.json of a model of the list or of the reader's own; None where there are numbers only."""
    if model == spec_url.CUSTOM:
        return None if own is None else own.config
    return catalog()[model].config


def start(model: str, layer: str, own: Upload | None) -> RopeSpec:
    """The spec that a model starts from, a reader's own included."""
    if model == spec_url.CUSTOM and own is not None:
        return own.specs[layer if layer in own.specs else own.layer]
    return spec_url.model_spec(model, layer)
