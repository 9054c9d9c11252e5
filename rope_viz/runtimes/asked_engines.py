"""Which whole engines were asked about an architecture and a scaling, and what they answered.

"Executed" means that an engine's rotary code ran, "read" that somebody read it, "asked" that the whole engine was
started with a probe and answered (tools/engines, docs/probe.md). The three are never added up. The data is written from
the answers by tests/goldens/make_asked.py.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from rope_viz.models.config_reader import Fields
from rope_viz.runtimes.releases import RELEASES, format_version
from rope_viz.runtimes.texts import TEXTS
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items, join_list

NEW_KEYS = "rope_parameters"
AS_INTENDED = "as intended"
"""The verdict on an engine that computes what the config means."""


@dataclass(frozen=True)
class AskedEngine:
    """One release of an engine, the config that it was asked about and its keys, the date, and its answer."""

    runtime: str
    release: str
    model_type: str
    scaling: str
    has_new_keys: bool
    config: str
    date: str
    verdict: str


@functools.cache
def list_asked() -> tuple[AskedEngine, ...]:
    """Return all answers, those of the newest releases first."""
    rows = [AskedEngine(*row) for row in read_own(__file__, "asked.json")["rows"]]
    return tuple(sorted(rows, key=lambda one: list(map(int, one.release.split("."))), reverse=True))


def find_asked(runtime: str, release: str, fields: Fields, scaling: str) -> tuple[AskedEngine, ...]:
    """Return the answers of a runtime about this architecture with this scaling, in the same keys.

    Today's rules also stand for the newest release that was asked.
    """
    wanted = {format_version(release)}
    if release == RELEASES[runtime].today[0]:
        wanted.add(find_newest(runtime))
    return tuple(one for one in find_all_asked(runtime, fields, scaling) if one.release in wanted)


def find_all_asked(runtime: str, fields: Fields, scaling: str) -> tuple[AskedEngine, ...]:
    """Return the answers of all releases of a runtime about this architecture with this scaling, in the same keys."""
    key = (runtime, fields.kind, scaling, bool(fields.config.get(NEW_KEYS)))
    return tuple(one for one in list_asked() if (one.runtime, one.model_type, one.scaling, one.has_new_keys) == key)


def find_newest(runtime: str) -> str:
    """Return the newest release of a runtime that was asked; "" where none was."""
    return next((one.release for one in list_asked() if one.runtime == runtime), "")


def name_verdict(verdict: str) -> str:
    """Return a verdict on an engine as words."""
    return TEXTS.group("asked.verdict").get(verdict, verdict)


def describe_asked(asked: tuple[AskedEngine, ...]) -> str:
    """Return the releases that were asked, as words, and the configs of which another answer came; "" for none."""
    if not asked:
        return ""
    releases = join_list([*dict.fromkeys(one.release for one in asked)])
    others = [
        TEXTS("asked.other", config=one.config, verdict=name_verdict(one.verdict))
        for one in asked
        if one.verdict != AS_INTENDED
    ]
    return join_items([TEXTS("asked.releases", releases=releases), *others])
