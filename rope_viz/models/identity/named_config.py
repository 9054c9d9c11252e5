"""Find a config by a name, as the public functions of Python and the command line take it.

`ModelConfig.read` takes no text on purpose: a server must not open a file because an address or a config names it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from rope_viz.embedding.spec import short_repr
from rope_viz.models.catalog import Model, catalog, find_by_name
from rope_viz.models.identity.hf_cache import find_in_cache
from rope_viz.models.model_config import ModelConfig, Source

AnySource: TypeAlias = "Source | str"
"""A config, or the name of one: a file, a folder, a GGUF file, an id of the list or of the local cache."""
P = ParamSpec("P")
R = TypeVar("R")


def exists(name: str) -> bool:
    """Return whether a text is the path of a file or a folder."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long, or with a null byte
        return False


def find_listed(name: str) -> Model | None:
    """Return the model of the list that a name means: its id, or its id on the Hub if the local cache lacks it."""
    if exists(name):
        return None
    if name in catalog():
        return catalog()[name]
    return find_by_name(name) if find_in_cache(name) is None else None


def find_source(source: AnySource) -> Source:
    """Return the config that a name means; anything but a text unchanged. Raises `ValueError` for an unknown name."""
    if not isinstance(source, str):
        return source
    if source and exists(source):
        return Path(source)
    listed = find_listed(source)
    if listed is not None:
        return ModelConfig.read(listed.whole, known=listed)
    cached = find_in_cache(source)
    if cached is None:
        raise ValueError(
            f"{short_repr(source)}: no such file, and no such model in the list or in the local Hugging Face cache"
        )
    return cached


def takes_names(function: Callable[Concatenate[Source, P], R]) -> Callable[Concatenate[AnySource, P], R]:
    """Return a function of a config that also takes its name."""

    @functools.wraps(function)
    def call(config: AnySource, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(read_source(config), *args, **kwargs)

    return cast("Callable[Concatenate[AnySource, P], R]", call)


def read_source(source: AnySource) -> ModelConfig:
    """Return the config of a name, or of what `ModelConfig.read` takes. Raises `ValueError` and `OSError` likewise."""
    return ModelConfig.read(find_source(source))
