"""The subject of all pages, and as the query part of a link: only what differs from the model is in it."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from rope_viz.embedding.scaling import LABELS, METHODS, parse_factors
from rope_viz.embedding.spec import MAX_LENGTH, PAIRINGS, Knob, RopeSpec, Scaling, knobs, short_repr
from rope_viz.models import TEXTS
from rope_viz.models import catalog as models
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.user_config import Upload
from rope_viz.texts import Sentence, Texts, translate
from rope_viz.texts.sentences import describe_error

Query: TypeAlias = dict[str, str]

DEFAULT_MODEL = "llama-3.1-8b"
CUSTOM = "custom"
SIZES = {"dim": "head_dim", "rot": "rotary_dim", "base": "base", "trained": "context", "target": "target"}
OLD_KEYS = {"extend.trained": "trained", "extend.target": "target"}
"""Keys of page addresses before the page My model shared its two lengths with all pages; they are still read."""
LISTS = {"short": "short_factor", "long": "long_factor"}
NUMBER = re.compile(r"\s*([0-9][0-9_,]*\.?[0-9]*(?:e[+-]?[0-9]{1,3})?)\s*([km]?)\s*", re.IGNORECASE)
# A user's config may name its layer types freely; the link carries the name with the numbers.
LAYER = re.compile(r"[a-zA-Z]\w{0,39}")
UNITS = ({"": 1, "k": 1000, "m": 1000_000}, {"": 1, "k": 1024, "m": 1024 * 1024})


class Subject(NamedTuple):
    """The embedding in question, and the model (its id) and layer type that it started from.

    `own` is the user's config if `model` is "custom". A tuple, so that caches by config find the config in it.
    """

    spec: RopeSpec
    model: str = CUSTOM
    layer: str = ""
    own: Upload | None = None

    @property
    def start(self) -> RopeSpec:
        """Return the spec that the model starts from; an unknown layer starts from the main one."""
        if self.own is None:
            return model_spec(self.model, self.layer)
        return self.own.specs[self.layer if self.layer in self.own.specs else self.own.layer]

    @property
    def unchanged(self) -> Subject:
        return self._replace(spec=self.start)

    @property
    def config(self) -> Mapping[str, Any] | None:
        if self.model == CUSTOM:
            return None if self.own is None else self.own.config
        return catalog()[self.model].config

    @property
    def model_config(self) -> ModelConfig | None:
        if self.model == CUSTOM:
            return None if self.own is None else self.own.model_config
        return read_catalog_model(self.model)

    @property
    def name(self) -> str:
        if self.model == CUSTOM:
            return Texts("app")("custom_model") if self.own is None else translate(self.own.name)
        return catalog()[self.model].name

    @property
    def spec_json(self) -> dict[str, Any]:
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def method_knobs() -> dict[str, Knob]:
    """Return the knobs of all methods by field name; fields of one name share a key in addresses and flags."""
    return {name: item for method in METHODS.values() for name, item in knobs(method).items()}


KEYS = ("model", "layer", *SIZES, "method", *method_knobs(), "truncate", *LISTS, "pairing")


def model_spec(model: str, layer: str = "") -> RopeSpec:
    """Return the spec that a model starts from; an unknown layer starts from the main one."""
    if model == CUSTOM:
        return RopeSpec()
    specs = read_catalog_model(model).start_specs
    return specs.get(layer) or specs[main_layer_of(model)]


def main_layer_of(model: str) -> str:
    """Return the layer type to show first."""
    return models.main_layer(catalog()[model], model_specs(model))


EXAMPLE_FACTOR = 4
"""How many times its length an unscaled model is extended until the user sets a target."""


def with_method(spec: RopeSpec, method: str) -> RopeSpec:
    """Return the spec with this method, its factor set to target over original length.

    A model that has the method already keeps the rest of it: its own bands and attention factor.
    """
    wanted = max(1.0, spec.target / spec.context)
    scaling = spec.scaling if spec.scaling.name == method else METHODS[method]()
    if isinstance(getattr(scaling, "factor", None), float) and wanted > 1.0:
        scaling = scaling.with_factor(wanted)
    return dataclasses.replace(spec, scaling=scaling)


def with_first_method(spec: RopeSpec, method: str, start: RopeSpec) -> RopeSpec:
    """Return an unscaled model with a method that is chosen first: for 4 times its length, or the target that was set.

    `start` is the model as it starts; a target other than its own was set by the user.
    """
    if not spec.is_scaled and spec.target == start.target:
        spec = dataclasses.replace(spec, target=max(spec.target, min(EXAMPLE_FACTOR * spec.context, MAX_LENGTH)))
    return with_method(spec, method)


def resize(spec: RopeSpec, head_dim: int) -> RopeSpec:
    """Return the spec with another head size: the rotated share stays, lists for other pairs are dropped."""
    rotary = max(2, 2 * round(head_dim * spec.rotary_dim / spec.head_dim / 2))
    return with_sizes(spec, head_dim=head_dim, rotary_dim=min(rotary, head_dim))


def with_sizes(spec: RopeSpec, **changes: Any) -> RopeSpec:
    """Return the spec with changed sizes; LongRoPE lists without one number per pair are dropped."""
    bare = dataclasses.replace(spec, scaling=Scaling(), **changes)
    return dataclasses.replace(bare, scaling=spec.scaling.with_pairs(bare.pairs))


def move_knob(spec: RopeSpec, name: str, value: float) -> RopeSpec:
    """Return the spec with one knob, of its sizes or its method, at another value."""
    of_method = knobs(spec.scaling)
    knob = (knobs(spec) | of_method)[name]
    if name == "head_dim":
        return resize(spec, int(value))
    change: dict[str, Any] = {name: int(value) if knob.integer else float(value)}
    if name in of_method:
        return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **change))
    return with_sizes(spec, **change)


def write_query(subject: Subject) -> Query:
    """Return the shortest query that `read_query` turns back into this subject, if it has the user's config too."""
    (spec, model, layer, _), start = subject, subject.start
    out: dict[str, str] = {}
    if model != DEFAULT_MODEL:
        out["model"] = model
    if layer and (model == CUSTOM or layer != main_layer_of(model)):
        out["layer"] = layer
    if spec.head_dim != start.head_dim:
        out["dim"] = str(spec.head_dim)
        start = resize(start, spec.head_dim)
    for key, name in SIZES.items():
        if getattr(spec, name) != getattr(start, name):
            out[key] = format_value(getattr(spec, name))
    if spec.pairing != start.pairing:
        out["pairing"] = spec.pairing
    sized = with_sizes(start, **{name: getattr(spec, name) for name in SIZES.values()})
    if spec.scaling.name != start.scaling.name:
        out["method"] = spec.scaling.name
        sized = with_method(dataclasses.replace(sized, scaling=Scaling()), spec.scaling.name)
    keys = {name: key for key, name in LISTS.items()}
    for item in dataclasses.fields(spec.scaling):
        value = getattr(spec.scaling, item.name)
        if item.init and value != getattr(sized.scaling, item.name):
            out[keys.get(item.name, item.name)] = format_value(value)
    return out


def read_query(params: Mapping[str, str], own: Upload | None = None) -> tuple[Subject, tuple[str, ...]]:
    """Return the subject of a query, with a sentence for everything that could not be read. Never raises.

    `own` is the user's config, if the address carries it.
    """
    problems: list[Sentence] = []
    model = params.get("model", DEFAULT_MODEL)
    if model != CUSTOM and model not in catalog():
        problems.append(TEXTS("link.model", model=short_repr(model), name=catalog()[DEFAULT_MODEL].name))
        model = DEFAULT_MODEL
    layer = params.get("layer", "")
    known = own.specs if own is not None else None if model == CUSTOM else model_specs(model)
    if layer and not (LAYER.fullmatch(layer) if known is None else layer in known):
        problems.append(TEXTS("link.layer", layer=short_repr(layer)))
        layer = ""
    if not layer and known is not None:
        layer = main_layer_of(model) if own is None else own.layer
    subject = Subject(RopeSpec(), model, layer, own)
    return subject._replace(spec=change_spec(subject.start, params, problems)), tuple(problems)


def change_spec(spec: RopeSpec, params: Mapping[str, str], problems: list[Sentence]) -> RopeSpec:
    """Return the spec with the sizes, pairing and method of a query. Append a sentence for each unusable value."""
    for key, name in SIZES.items():
        if key in params:
            spec = _take_size(spec, key, name, params[key], problems)
    if "pairing" in params:
        if params["pairing"] in PAIRINGS:
            spec = dataclasses.replace(spec, pairing=params["pairing"])  # type: ignore[arg-type]
        else:
            problems.append(TEXTS("link.pairing", pairing=short_repr(params["pairing"])))
    return _take_method(spec, params, problems)


def parse_number(written: str, unit: str = "") -> float:
    """Return a number as people write it: 128k, 4M, 1e6, 500_000. Raises `ValueError` for anything else.

    `unit` is that of a `Knob`. k and M are 1,024 and 1,024² for a length ("tokens") and decimal for all else:
    a base of 500k is 500,000.
    """
    match = NUMBER.fullmatch(written[:40])
    if not match or len(written) > 40:
        raise ValueError(TEXTS("link.not_a_number", written=short_repr(written)))
    return float(match[1].replace("_", "").replace(",", "")) * UNITS[unit == "tokens"][match[2].lower()]


def format_value(value: Any) -> str:
    """Return a field's value as it is in an address: the shortest text that parses back to it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(format_value(item) for item in value)
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def clamp_knob(written: str, key: str, knob: Knob, problems: list[Sentence]) -> float | None:
    """Return the number within the knob's range and on its step; None where it is no number. Adds what it changed."""
    try:
        value = parse_number(written, knob.unit)
    except ValueError as error:
        problems.append(TEXTS("link.number", key=key, problem=describe_error(error)))
        return None
    inside = min(max(value, knob.low), knob.high) if math.isfinite(value) else knob.high
    if knob.integer:
        step = int(knob.step or 1)
        inside = step * round(inside / step)
    if inside != value:
        problems.append(TEXTS("link.range", key=key, written=short_repr(written)[1:-1], inside=format_value(inside)))
    return inside


def _take_size(spec: RopeSpec, key: str, name: str, written: str, problems: list[Sentence]) -> RopeSpec:
    value = clamp_knob(written, key, knobs(RopeSpec)[name], problems)
    if value is None:
        return spec
    try:
        if name == "head_dim":
            return resize(spec, int(value))
        return with_sizes(spec, **{name: int(value) if knobs(RopeSpec)[name].integer else value})
    except ValueError as error:
        problems.append(TEXTS("link.ignored", key=key, problem=describe_error(error)))
        return spec


def _take_method(spec: RopeSpec, params: Mapping[str, str], problems: list[Sentence]) -> RopeSpec:
    method = params.get("method", spec.scaling.name)
    if method not in METHODS:
        problems.append(TEXTS("link.method", method=short_repr(method), used=LABELS[spec.scaling.name]))
    elif method != spec.scaling.name:
        try:
            spec = with_method(spec, method)
        except ValueError as error:
            problems.append(TEXTS("link.method_ignored", method=LABELS[method], problem=describe_error(error)))
    for item in dataclasses.fields(spec.scaling):
        key = next((key for key, name in LISTS.items() if name == item.name), item.name)
        if not item.init or key not in params:
            continue
        try:
            value = _knob_value(item, params[key], key, problems)
            spec = dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **{item.name: value}))
        except ValueError as error:
            problems.append(TEXTS("link.ignored", key=key, problem=describe_error(error)))
    return spec


def _knob_value(item: dataclasses.Field[Any], written: str, key: str, problems: list[Sentence]) -> Any:
    if item.name in LISTS.values():
        return parse_factors(written[:20_000])
    if isinstance(item.default, bool):
        if written not in ("yes", "no"):
            raise ValueError(TEXTS("link.yes_or_no", written=short_repr(written)))
        return written == "yes"
    if written == "" and item.default is None:
        return None
    value = clamp_knob(written, key, item.metadata["knob"], problems)
    if value is None:
        raise ValueError(TEXTS("link.no_number"))
    return value
