"""How an answer is known: the architecture was executed in this runtime, its file there was read, or neither.

The records of model types list under `executed` what was executed, from the goldens (tests/goldens/make_executed.py),
and under `runtimes` which file of a runtime reads the type, from its own registry (tests/goldens/make_served.py).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rope_viz.embedding.spec import short_repr
from rope_viz.models.architecture import all_architectures, find_architecture
from rope_viz.models.config_reader import Fields
from rope_viz.models.formats import find_format, mistral_params
from rope_viz.models.formats.gguf_keys import LOADER
from rope_viz.models.formats.json_source import source_file
from rope_viz.runtimes.asked_engines import AskedEngine
from rope_viz.runtimes.known_types import (
    describe_list,
    find_listed_class,
    find_missing_wrapper,
    has_class_names,
    has_type,
    list_types,
)
from rope_viz.runtimes.releases import MINORS, OLDER, RELEASES, format_version, is_between
from rope_viz.runtimes.texts import TEXTS
from rope_viz.storage.decode_json import read_own

How: TypeAlias = Literal["executed", "by rule", "not known"]

EXECUTED_ON: str = read_own(__file__, "executed_on.json")["date"]
"""The day on which releases were last run."""
# Runtimes whose functions take any architecture: what was read of them holds where the model itself is known.
GENERAL = ("transformers", "paper")
MINOR_GOLDEN = "releases_5.json"
# Runtimes that say in a list which models they have.
LISTING = ("vllm", "sglang", "llama.cpp", "mlx-lm")


@dataclass(frozen=True)
class Known:
    """How one answer is known, and the golden, file or paper that it is known from.

    `asked` are the answers of whole engines, which are never added to what was executed or read.
    """

    how: How
    source: str
    asked: tuple[AskedEngine, ...] = ()


def find_provenance(runtime: str, release: str, fields: Fields, scaling: str) -> Known:
    """Return how the answer of a runtime for this model with this type of scaling is known."""
    record, kind = fields.architecture, fields.kind
    named = source_file(fields.config).get("architecture")
    if runtime == "llama.cpp" and isinstance(named, str) and named not in LOADER["architectures"]:
        return Known("by rule", TEXTS("provenance.not_listed", kind=short_repr(named), release=format_version(release)))
    if not record.listed or fields.wrapper:
        return Known("not known", TEXTS("provenance.unread", kind=short_repr(fields.wrapper or kind)))
    at = f"{runtime} {format_version(release)}"
    only = RELEASES[runtime].find_only_type(release)
    if only not in ("", kind):
        return Known("not known", TEXTS("provenance.only", at=at, only=only))
    missing = find_missing_wrapper(runtime, release, fields.wrappers)
    # What llama.cpp does with an unknown wrapper depends on its part: a type that it does not convert is refused.
    if missing and (runtime != "llama.cpp" or "file" in record.runtime(runtime)):
        return find_wrapper_provenance(runtime, release, missing)
    if runtime == "mlx-lm" and not any(fields.config.get(key) for key in ("rope_scaling", "rope_parameters")):
        # It has no configuration classes that fill a scaling in.
        scaling = "default"
    if runtime == "mlx-lm" and find_format(fields.config) == mistral_params.FORMAT:
        return Known("by rule", TEXTS(f"rules_read.{runtime}"))
    ran = record.executed.get(at, {})
    if runtime == "mlx-lm" and ran and not fields.wrappers and not has_type(runtime, release, kind):
        return Known(
            "by rule",
            TEXTS("provenance.wrapped", kind=kind, list=describe_list(runtime, release)),
        )
    for golden in (name for name, types in ran.items() if scaling in types):
        key = "provenance.converted" if golden == "converted.json" else "provenance.executed"
        return Known("executed", TEXTS(key, golden=golden, kind=kind, at=at, scaling=scaling))
    for golden in ran:
        return Known("by rule", TEXTS("provenance.other_scaling", golden=golden, kind=kind, at=at, scaling=scaling))
    if runtime == "transformers" and release in MINORS:
        return find_minor_provenance(release, fields, scaling)
    is_older = (runtime, release) in OLDER
    file = record.runtime(at if is_older else runtime).get("file")
    if file is None and runtime in LISTING:
        return find_absent_provenance(runtime, release, fields)
    if is_older and file is not None:
        return find_older_provenance(at, kind, file)
    twin = find_architecture(record.twin) if record.twin else None
    if twin is not None and file is not None and file == twin.runtime(runtime).get("file"):
        for golden in twin.executed.get(at, {}):
            values = {"kind": kind, "file": file, "at": at, "other": twin.model_type, "golden": golden}
            return Known("by rule", TEXTS("provenance.other", **values))
    where = TEXTS(f"rules_read.{runtime}")
    if runtime == "tensorrt-llm":
        tried = record.runtime(runtime).get("tried")
        return Known("by rule", where) if tried else Known("not known", TEXTS("provenance.untested", kind=kind, at=at))
    if runtime == "transformers" and record.remote_code:
        return Known("by rule", TEXTS("provenance.own_code", source=record.source))
    if runtime in GENERAL:
        return Known("by rule", where)
    if file == "transformers":
        return Known("by rule", TEXTS("provenance.backend", rules=where, kind=kind))
    if record.runtime(runtime).get("read"):
        return Known("by rule", TEXTS("provenance.read", rules=where, file=file, at=at))
    return Known("not known", TEXTS("provenance.unexecuted", file=file, at=at, kind=kind))


def find_minor_provenance(release: str, fields: Fields, scaling: str) -> Known:
    """Return how the answer of an older minor release of transformers 5 is known.

    Its record lists under "transformers 5" what the release does otherwise than today's, and under `unclear` which
    configs get something else there that no rule says.
    """
    record, kind, at = fields.architecture, fields.kind, f"transformers {release}"
    outer = next(iter(fields.wrappers), "") or kind
    if record.remote_code:
        return Known("by rule", TEXTS("provenance.own_code", source=record.source))
    if has_type("transformers", release, outer) is False:
        return Known("by rule", TEXTS("provenance.absent", kind=outer, list=describe_list("transformers", release)))
    facts = record.runtime("transformers 5")
    if is_between(release, facts.get("not_built")):
        return Known("not known", TEXTS("provenance.not_built", kind=kind, at=at))
    if any(
        is_between(release, span) and asks_for(key, fields, scaling) for key, span in facts.get("unclear", {}).items()
    ):
        return Known("not known", TEXTS("provenance.unclear", golden=MINOR_GOLDEN, at=at))
    ran = record.executed.get("transformers 5", {}).get(MINOR_GOLDEN)
    if ran is None:
        return Known("not known", TEXTS("provenance.unexecuted_type", kind=kind, at=at))
    if scaling in ran:
        return Known("executed", TEXTS("provenance.executed", golden=MINOR_GOLDEN, kind=kind, at=at, scaling=scaling))
    return Known("by rule", TEXTS("provenance.own_rules", golden=MINOR_GOLDEN, kind=kind, at=at, scaling=scaling))


def asks_for(key: str, fields: Fields, scaling: str) -> bool:
    """Return whether a config has what a record calls unclear: a key, a type of scaling, no rope dict, or anything."""
    rope = fields.mapping("rope_parameters") or fields.mapping("rope_scaling") or {}
    if key in ("", "scaled", "no_rope_dict"):
        return {"": True, "scaled": scaling != "default", "no_rope_dict": not rope}[key]
    return key in fields.config or key in rope or key == scaling


def find_absent_provenance(runtime: str, release: str, fields: Fields) -> Known:
    """Return how it is known that a release has no code for a model type: by its own list, where that was read."""
    listed = find_listed_class(runtime, release, fields.config)
    if listed:
        return Known("not known", TEXTS("provenance.listed", kind=listed, list=describe_list(runtime, release)))
    if list_types(runtime, release) is None or not has_class_names(fields.kind):
        return Known(
            "not known", TEXTS("provenance.unknown", runtime=runtime, release=format_version(release), kind=fields.kind)
        )
    return Known("by rule", TEXTS("provenance.absent", kind=fields.kind, list=describe_list(runtime, release)))


def find_wrapper_provenance(runtime: str, release: str, wrapper: str) -> Known:
    """Return how the answer of a release is known for a wrapper that its own list of types does not have."""
    values = {"kind": short_repr(wrapper), "list": describe_list(runtime, release)}
    lacks = TEXTS("provenance.absent", **values)
    if runtime in ("transformers", "mlx-lm"):
        return Known("by rule", lacks)
    # These two ask for a transformers before 5.23.
    if (
        runtime in ("vllm", "sglang")
        and (runtime, release) not in OLDER
        and has_type("transformers", "5.23.0", wrapper)
    ):
        return Known("by rule", TEXTS("provenance.absent_run", **values))
    return Known("not known", lacks)


@functools.cache
def executed_types() -> dict[str, dict[str, frozenset[str]]]:
    """Return {runtime and version: {golden: the model types that it ran}}."""
    found: dict[str, dict[str, set[str]]] = {}
    for kind, record in all_architectures().items():
        for at, goldens in record.executed.items():
            for golden in goldens:
                found.setdefault(at, {}).setdefault(golden, set()).add(kind)
    return {at: {name: frozenset(kinds) for name, kinds in goldens.items()} for at, goldens in sorted(found.items())}


def executed_counts() -> list[tuple[str, str, int]]:
    """Return (runtime, version, how many architectures were executed in it), sorted by name."""
    counts = []
    for at, goldens in executed_types().items():
        name, version = at.split(" ")
        counts.append((name, version, len(frozenset().union(*goldens.values()))))
    return counts


def converted_only() -> frozenset[str]:
    """Return the architectures of llama.cpp whose conversion class was run, and the model itself was not."""
    goldens = next(goldens for at, goldens in executed_types().items() if at.startswith("llama.cpp "))
    others = frozenset().union(*(kinds for name, kinds in goldens.items() if name != "converted.json"))
    return goldens.get("converted.json", frozenset()) - others


def find_older_provenance(at: str, kind: str, file: str) -> Known:
    """Return how an answer of an older release is known where this architecture itself was not run in it."""
    for golden, kinds in executed_types().get(at, {}).items():
        files = {one: all_architectures()[one].runtime(at).get("file") for one in sorted(kinds)}
        other = next((one for one, name in files.items() if name == file), None)
        if other is not None:
            return Known("by rule", TEXTS("provenance.other", kind=kind, file=file, at=at, other=other, golden=golden))
    return Known("not known", TEXTS("provenance.unexecuted", file=file, at=at, kind=kind))
