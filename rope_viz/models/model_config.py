"""`ModelConfig`: a config.json that has been read, once, into everything that other rooms ask of it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Architecture
from rope_viz.models.catalog import Model, catalog
from rope_viz.models.config_reader import Fields
from rope_viz.models.formats.json_source import describe_source, read_file, refuse_unread, to_config
from rope_viz.models.identity.hf_cache import NAME
from rope_viz.models.identity.identify_model import Identity, TrainedLength, identify_model
from rope_viz.models.layer_patterns import (
    describe_rotated_shares,
    describe_rotating_layers,
    find_layer_window,
    find_rotating_layers,
    find_window,
    resolve_layer_types,
)
from rope_viz.models.long_names import cut_long_names, describe_long_names
from rope_viz.models.no_rope_types import describe_doubt, describe_other_code
from rope_viz.models.rope_config import build_specs, find_main_layer
from rope_viz.models.rope_dicts import RopeDict, find_rope_dicts, list_ropes
from rope_viz.models.rope_parameters import LAYER_TYPES, Layers, resolve_rope_parameters
from rope_viz.models.text_config import Part, find_inside, find_text_part, read_text_fields
from rope_viz.texts import cached_text_property
from rope_viz.texts.sentences import describe_error
from rope_viz.texts.texts import join_items


class HasDict(Protocol):
    """A configuration of transformers."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of the configuration."""


Source: TypeAlias = "Mapping[str, Any] | ModelConfig | os.PathLike[str] | HasDict"
"""What functions take as a config. A path is that of a config.json, of its folder, or of a GGUF file."""


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """A config.json that has been read. Every property is computed when it is first asked for.

    Properties raise `ValueError` with one sentence where the config does not say what they need; `problems` collects
    what RoPE cannot do without. Nothing is refused because of a key that RoPE does not need.
    """

    mapping: Mapping[str, Any]
    known: Model | None = None
    numbers_only: bool = False
    long_names: Mapping[tuple[str, ...], int] = dataclasses.field(default_factory=dict)
    wrapper: str = ""
    changed_from: Identity | None = None
    """What the config was before somebody changed it: a changed config is of the same model."""

    @classmethod
    def read(
        cls, source: Source, *, known: Model | None = None, numbers_only: bool = False, wrapper: str = ""
    ) -> ModelConfig:
        """Return the config of a mapping, a path or a configuration of transformers, or a config itself.

        Raises `ValueError` for anything else and for a file that is no config, `OSError` where there is no such file.

        `known` is the entry of the catalog that the user picked, where the mapping is its config. `numbers_only`: the
        mapping was made from the numbers of an embedding, so it is never recognised as a model. `wrapper` is the type
        at the top of the published file, where the mapping is the language model inside; an entry of the catalog says
        it itself. Names of types that are
        too long are cut, and listed in `long_names`.
        """
        if isinstance(source, ModelConfig):
            return source
        if isinstance(source, os.PathLike):
            path = Path(source)
            source = read_file(path / NAME if path.is_dir() else path).config
        elif not isinstance(source, (Mapping, type)) and callable(getattr(source, "to_dict", None)):
            source = source.to_dict()
        if not isinstance(source, Mapping):
            # A text never names a file: configs of unknown origin must not make a server read one.
            key = "model_config.path" if isinstance(source, str) else "value.config"
            raise ValueError(TEXTS(key, config=short_repr(source)))
        with normalise_errors():
            mapping, long_names = cut_long_names(to_config(source))
        return cls(dict(mapping), known, numbers_only, long_names, wrapper or find_published_wrapper(mapping))

    @functools.cached_property
    def part(self) -> Part:
        """The language model inside the config, which may be the whole config."""
        with normalise_errors():
            part = find_text_part(self.mapping)
        return dataclasses.replace(part, wrappers=(self.wrapper,)) if self.wrapper and not part.wrappers else part

    @property
    def path(self) -> tuple[str, ...]:
        """Where the language model's keys are in the config; () where that is the top, or nowhere."""
        return self.part.path if self.part.is_in_file else ()

    @functools.cached_property
    def text(self) -> Mapping[str, Any]:
        """The language model's part of the file, without class defaults; the whole file where it has none."""
        part = find_inside(self.mapping, self.path)
        return part if isinstance(part, Mapping) else {}

    @property
    def model_type(self) -> str:
        """The model type of the language model, empty where none is named."""
        return self.part.kind

    @property
    def architecture(self) -> Architecture:
        return self.fields.architecture

    @functools.cached_property
    def fields(self) -> Fields:
        """The language model's keys with class defaults behind them. Raises `NoRope` for a model without RoPE."""
        with normalise_errors():
            return read_text_fields(self.part)

    @functools.cached_property
    def rope_parameters(self) -> Layers:
        """The RoPE parameters by layer type, defaults filled in; "" is the only key where all layers share one."""
        with normalise_errors():
            return resolve_rope_parameters(self.fields)

    @functools.cached_property
    def rope_dicts(self) -> tuple[RopeDict, ...]:
        """The rope dicts of the file that are read, in the order of precedence."""
        ropes = list_ropes(self.text)
        # Without one, nothing is asked of the layers, whose parameters may be unreadable.
        return find_rope_dicts(ropes, self.path, self.fields, self.rope_parameters) if ropes else ()

    @functools.cached_property
    def specs(self) -> dict[str, RopeSpec]:
        """The embedding of each layer type, as transformers 5.24.0 computes it; "" where all layers share one."""
        refuse_unread(self.mapping, "rope")
        with normalise_errors():
            return build_specs(self.fields, self.rope_parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Keep the embeddings for another process, which then need not be computed again, and not the records."""
        fields = {each.name for each in dataclasses.fields(self)}
        return {name: value for name, value in vars(self).items() if name in fields or name == "specs"}

    def with_mapping(self, mapping: Mapping[str, Any]) -> ModelConfig:
        """Return a config that differs in nothing that RoPE reads, so its embeddings stay as they were computed."""
        changed = dataclasses.replace(self, mapping=dict(mapping))
        if "specs" in vars(self):
            vars(changed)["specs"] = self.specs
        return changed

    @functools.cached_property
    def main_layer(self) -> str:
        """The layer type that the config is about: that of the picked model, else the usual one."""
        picked = None if self.known is None else self.known.layer
        return picked if picked is not None and picked in self.specs else find_main_layer(self.specs)

    def find_layer(self, name: str | None) -> str:
        """Return the layer type of this name, the main one for None; "" where all layers share one embedding.

        Raises `ValueError` that lists the layer types for an unknown name.
        """
        if not name or ("" in self.specs and name in LAYER_TYPES):
            return self.main_layer
        if "" in self.specs:
            raise ValueError(TEXTS("model_config.one_layer", name=short_repr(name)))
        if name not in self.specs:
            raise ValueError(TEXTS("model_config.layers", layers=join_items(self.specs), name=short_repr(name)))
        return name

    @functools.cached_property
    def start_specs(self) -> dict[str, RopeSpec]:
        """The embeddings that a new scaling method starts from: unscaled ones reach from the trained length."""
        return start_from(self.specs, self.trained_length.length)

    @functools.cached_property
    def limit(self) -> int:
        """max_position_embeddings."""
        return self.fields.required("max_position_embeddings")

    @property
    def original_length(self) -> int:
        """The length that the scaling method in the file divides from; the limit where it names none."""
        return self.specs[self.main_layer].context

    @property
    def has_original_length(self) -> bool:
        """Whether the scaling in the file divides from a length."""
        return self.specs[self.main_layer].scaling.divides_from_length

    @property
    def trained_length(self) -> TrainedLength:
        """The length that a new method starts from, and where it is known from."""
        return self.identity.trained

    @cached_text_property
    def identity(self) -> Identity:
        return self.identify()

    def identify(self, *, known: Model | None = None, trained: int | None = None, layer: str | None = None) -> Identity:
        """Return which model this is: `known` where it was picked from the catalog, else by name and numbers.

        `trained` is the user's own word on the trained length, `layer` the layer type in question.
        """
        known = self.known if known is None else known
        before = self.changed_from
        if before is not None:
            known = before.model
        found = identify_model(
            self.mapping,
            self.fields,
            self.specs,
            known=known,
            trained=trained,
            layer=layer,
            numbers_only=self.numbers_only or (before is not None and known is None),
        )
        return found if before is None else dataclasses.replace(found, how=before.how, signs=before.signs)

    @functools.cached_property
    def layer_types(self) -> list[str] | None:
        """The type of every layer, None where neither the config nor its class says it."""
        return resolve_layer_types(self.fields)

    @functools.cached_property
    def rotating_layers(self) -> list[bool] | None:
        """Whether each layer rotates, None where all do or it is not known."""
        return find_rotating_layers(self.fields)

    @functools.cached_property
    def window(self) -> int | None:
        """The window, in tokens, that every rotating layer keeps to; None where some see everything."""
        return find_window(self.fields)

    def find_layer_window(self, layer: str) -> int | None:
        """Return the window of the layers of one type that rotate; None where some of them see everything."""
        return find_layer_window(self.fields, layer)

    @cached_text_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was assumed, and on layers that rotate otherwise than the rest."""
        texts = [describe_source(self.mapping), *(text for _, text in describe_long_names(self.long_names))]
        for describe in (describe_doubt, describe_other_code, describe_rotating_layers, describe_rotated_shares):
            # A list of layers that cannot be read is a finding of the check, not a reason to say nothing else.
            with contextlib.suppress(ValueError):
                texts.append(describe(self.fields))
        if self.architecture.rope.learned:
            texts.append(TEXTS("learned"))
        return tuple(text for text in texts if text)

    @cached_text_property
    def problems(self) -> tuple[str, ...]:
        """What RoPE cannot be computed without, in sentences; () where it can be computed."""
        try:
            _ = self.specs
        except ValueError as error:
            return (describe_error(error),)
        return ()


def as_model_config(source: Source) -> ModelConfig:
    """Return a config that was read as it is, any other source as `ModelConfig.read` reads it."""
    return source if isinstance(source, ModelConfig) else ModelConfig.read(source)


def find_published_wrapper(config: Mapping[str, Any]) -> str:
    """Return the type of the wrapper in which the published file of an entry of the catalog has its language model."""
    about = config.get("_about")
    wrapper = about.get("wrapper") if isinstance(about, Mapping) else None
    return wrapper if isinstance(wrapper, str) else ""


@functools.cache
def read_catalog_model(id: str) -> ModelConfig:
    """Return the config of a model of the catalog. Raises `ValueError` for an id that is not there."""
    if id not in catalog():
        raise ValueError(TEXTS("model_config.unknown", id=short_repr(id)))
    return ModelConfig.read(catalog()[id].config, known=catalog()[id])


def from_config(config: Source) -> dict[str, RopeSpec]:
    """Return {layer type: embedding} of a config.json; the key is "" where all layers share one embedding.

    Frequencies and attention factors are those that transformers 5.24.0 computes for this config, its oddities
    included. A missing key takes the default of the architecture's class. Keys that do not concern RoPE are ignored,
    as is `_about`. Raises `ValueError` that names the key and what was expected.
    """
    return dict(ModelConfig.read(config).specs)


def start_from(specs: Mapping[str, RopeSpec], length: int) -> dict[str, RopeSpec]:
    """Return the embeddings with this trained length where nothing scales them."""
    return {
        layer: dataclasses.replace(spec, context=length, target=max(spec.target, length))
        if not spec.is_scaled
        else spec
        for layer, spec in specs.items()
    }


@contextlib.contextmanager
def normalise_errors() -> Iterator[None]:
    """Turn recursion and arithmetic errors of hostile configs into `ValueError`."""
    try:
        yield
    except RecursionError:
        raise ValueError(TEXTS("model_config.deep")) from None
    except ArithmeticError:
        raise ValueError(TEXTS("model_config.numbers")) from None
