"""Which model types and classes a release has, by its own lists (tests/goldens/make_known_types.py)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.models.no_rope_types import letters_of
from rope_viz.runtimes.releases import format_version
from rope_viz.runtimes.texts import TEXTS
from rope_viz.storage.decode_json import read_own


@functools.cache
def read_lists() -> dict[str, Any]:
    """Return {runtime: {version: its types, in the form that the runtime has them}}."""
    found: dict[str, Any] = read_own(__file__, "known_types.json")
    return found


@functools.cache
def list_types(runtime: str, release: str) -> frozenset[str] | None:
    """Return the model types that a release has; None where its list was not read."""
    releases, version = read_lists().get(runtime, {}), format_version(release)
    if version not in releases:
        return None
    if runtime == "mlx-lm":
        listed = releases[version]
        return frozenset(listed["files"]) | {old for old, new in listed["renamed"].items() if new in listed["files"]}
    if runtime != "transformers":
        return frozenset(releases[version]["types"])
    types: set[str] = set()
    for name, changes in releases.items():
        types = (types | set(changes["adds"])) - set(changes["removes"])
        if name == version:
            break
    return frozenset(types)


def has_type(runtime: str, release: str, kind: str) -> bool | None:
    """Return whether a release has a model type by its own list; None where its list was not read."""
    types = list_types(runtime, release)
    return None if types is None else kind in types


@functools.cache
def list_classes(runtime: str, release: str) -> frozenset[str]:
    """Return the letters of the classes that a release lists; empty where it lists types, or its list was not read."""
    listed = read_lists().get(runtime, {}).get(format_version(release), {})
    return frozenset(map(letters_of, listed.get("classes", ())))


def find_listed_class(runtime: str, release: str, config: Mapping[str, Any]) -> str:
    """Return the class of a config's `architectures` that a release lists; empty where it lists none of them."""
    named = config.get("architectures")
    named = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    return next((one for one in named if letters_of(one) in list_classes(runtime, release)), "")


def has_class_names(kind: str) -> bool:
    """Return whether it is known how the classes of a model type are called, so that a list can be searched."""
    return kind not in read_lists()["unnamed"]


def find_missing_wrapper(runtime: str, release: str, wrappers: Sequence[str]) -> str:
    """Return the type of the outermost wrapper where a release's list lacks it; empty where it has it or is unread.

    A runtime looks up only the type at the top of a config. What is inside is up to the class that it finds.
    """
    return wrappers[0] if wrappers and wrappers[0] and has_type(runtime, release, wrappers[0]) is False else ""


def describe_list(runtime: str, release: str) -> str:
    """Return where the list of a release was read."""
    where = TEXTS(f"list.where.{runtime}")
    return TEXTS("list.of_release", runtime=runtime, release=format_version(release), where=where)
