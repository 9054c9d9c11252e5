"""Pictures of the page Two models: what differs between the model and a second one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from rope_viz.advice.plan.compare_models import ModelComparison, Side, compare_models, default_length
from rope_viz.advice.plan.export import numbers_config
from rope_viz.embedding.spec import MAX_LENGTH, short_repr
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.user_config import Upload
from rope_viz.own_files import config_link
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_link import LinkedConfig
from rope_viz.own_files.outside import HERE, Content, Reader
from rope_viz.pages.compare import figures, words
from rope_viz.pages.compare.words import TEXTS
from rope_viz.picture.choices import length
from rope_viz.picture.outputs import ROW, Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.texts.sentences import remove_period

UNKNOWN_LENGTH = 4096
"""The default length in tokens if a trained length is not known."""
USUAL = ("llama-3.1-8b", "qwen3-8b")
"""The default second model: the first of these that is not the first model."""


@dataclass(frozen=True)
class Second:
    """A second model: the id of one of the catalog, or the value of a link with the config that it carries."""

    name: str
    own: Upload | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondModel(Choice[Second]):
    """A second model: the id of one of the catalog, or a config as the value of an address (`config_link`)."""

    reads_outside: ClassVar[bool] = True

    def default(self, request: PictureRequest) -> Second:
        return Second(next(name for name in USUAL if name != request.model))

    def parse(self, text: str) -> Second:
        return self.read_value(text, HERE)

    def name_content(self, text: str) -> Content[Upload] | None:
        return None if text in catalog() else LinkedConfig(text)

    def read_value(self, text: str, reader: Reader) -> Second:
        if text in catalog():
            return Second(text)
        try:
            own = config_link.read_config(text, reader)
        except ValueError as error:
            if len(text) > 60:
                raise
            value = short_repr(text)
            raise ValueError(TEXTS("choices.invalid", name=self.key, value=value)) from error
        # A link of an older release holds more than is shown to others.
        return Second(config_link.write_config(own) or text, own)

    def text(self, value: Second) -> str:
        return value.name

    def describe(self) -> str:
        return TEXTS("choices.form")


WITH = SecondModel(key="compare.with", label=TEXTS("choices.with"))
LENGTH = length(
    "compare.length",
    TEXTS("choices.length"),
    lambda request: _usual_length(request),
    least=1,
    most=MAX_LENGTH,
    needs=(WITH,),
)
PAGE = Page("compare", (WITH, LENGTH), sees=lambda request: None, door="model")


def second(chosen: Second) -> Side:
    """Return the second model of a choice."""
    if chosen.own is None:
        return Side(catalog()[chosen.name].name, read_catalog_model(chosen.name))
    return Side(chosen.own.name, chosen.own.model_config)


def problem(request: PictureRequest) -> str:
    """Return why the two models cannot be compared, "" if they can."""
    try:
        found(request)
    except ValueError as error:
        return TEXTS("unreadable", problem=remove_period(str(error)))
    return ""


def found(request: PictureRequest) -> ModelComparison:
    """Return the comparison. Raise `ValueError` with one sentence if RoPE of one model cannot be computed."""
    # The config that a link brought holds the comparison, so that it is counted with the link.
    chosen = request[WITH]
    return _compare(request.subject.name, config_of(request), chosen.own or request.own, chosen, request[LENGTH])


def config_of(request: PictureRequest) -> ModelConfig:
    """Return the first model's config; without one, a config made from the numbers of its embedding."""
    return request.subject.model_config or numbers_config(request.spec)


def table_height(request: PictureRequest) -> int:
    """Return the height in pixels of a row per property that differs."""
    return ROW * (2 if problem(request) else 2 + sum(fact.differs for fact in found(request).facts))


@PAGE.picture(WITH, LENGTH, config=True, refuses=problem)
def ratio(request: PictureRequest) -> Figure:
    """The frequencies of a second model over those of the first."""
    both = found(request)
    first, other = (side.name for side in both.sides)
    title = TEXTS("ratio_title", first=first, second=other)
    return Figure(figures.ratio(both), title, words.describe_ratio(both))


@PAGE.picture(WITH, LENGTH, config=True, height=lambda request: table_height(request), refuses=problem, first=True)
def differences(request: PictureRequest) -> Table:
    """What differs between two models: RoPE, lengths, layers that rotate and memory."""
    both = found(request)
    first, other = (side.name for side in both.sides)
    facts = [fact for fact in both.facts if fact.differs]
    columns = {
        TEXTS("columns.property"): [fact.label for fact in facts],
        **{name: [fact.words[index] for fact in facts] for index, name in enumerate((first, other))},
    }
    return Table(columns, TEXTS("table_title", first=first, second=other), words.describe_differences(both), words=True)


@cache_by_config(64)
def _compare(name: str, config: ModelConfig, own: Upload | None, other: Second, length: int) -> ModelComparison:
    return compare_models(Side(name, config), second(other), length=length)


def _usual_length(request: PictureRequest) -> int:
    try:
        return default_length(config_of(request), second(request[WITH]).config)
    except ValueError:
        return UNKNOWN_LENGTH
