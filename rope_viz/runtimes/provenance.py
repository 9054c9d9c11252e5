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
from rope_viz.runtimes.asked_engines import AskedEngine
from rope_viz.runtimes.known_types import describe_list, find_missing_wrapper, has_type
from rope_viz.runtimes.releases import OLDER, format_version
from rope_viz.storage.decode_json import read_own

How: TypeAlias = Literal["executed", "by rule", "not known"]

# Where the general rules of a runtime were read.
RULES_READ = read_own(__file__, "rules_read.json")
# Runtimes whose functions take any architecture: what was read of them holds where the model itself is known.
GENERAL = ("transformers", "paper")


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
    if not record.listed or fields.wrapper:
        return Known("not known", f"the code of {short_repr(fields.wrapper or kind)} was not read")
    at = f"{runtime} {format_version(release)}"
    missing = find_missing_wrapper(runtime, release, fields.wrappers)
    # What llama.cpp does with an unknown wrapper depends on its part: a type that it does not convert is refused.
    if missing and (runtime != "llama.cpp" or "file" in record.runtime(runtime)):
        return find_wrapper_provenance(runtime, release, missing)
    if runtime == "mlx-lm" and not any(fields.config.get(key) for key in ("rope_scaling", "rope_parameters")):
        # It has no configuration classes that fill a scaling in.
        scaling = "default"
    if runtime == "mlx-lm" and find_format(fields.config) == mistral_params.FORMAT:
        return Known("by rule", RULES_READ[runtime])
    ran = record.executed.get(at, {})
    if runtime == "mlx-lm" and ran and not fields.wrappers and not has_type(runtime, release, kind):
        return Known(
            "by rule",
            f"{kind} was executed as the part of a wrapper; alone it is not in {describe_list(runtime, release)}",
        )
    for golden in (name for name, types in ran.items() if scaling in types):
        what = f"the conversion class of {kind}" if golden == "converted.json" else kind
        return Known("executed", f"tests/goldens/{golden}: {what} executed in {at} with {scaling}")
    for golden in ran:
        return Known(
            "by rule", f"tests/goldens/{golden}: {kind} executed in {at} with other types; {scaling} by its rules"
        )
    is_older = (runtime, release) in OLDER
    file = record.runtime(at if is_older else runtime).get("file")
    if is_older and file is not None:
        return find_older_provenance(at, kind, file)
    twin = find_architecture(record.twin) if record.twin else None
    if twin is not None and file is not None and file == twin.runtime(runtime).get("file"):
        for golden in twin.executed.get(at, {}):
            through = f"{kind} uses {file} of {at}, executed with {twin.model_type}"
            return Known("by rule", f"{through}: tests/goldens/{golden}")
    where = RULES_READ[runtime]
    if runtime == "tensorrt-llm":
        tried = record.runtime(runtime).get("tried")
        return Known("by rule", where) if tried else Known("not known", f"{kind} was not tested in {at}")
    if runtime == "transformers" and record.remote_code:
        return Known("by rule", f"it runs the model's own code; read: {record.source}")
    if runtime in GENERAL or file is None:
        return Known("by rule", where)
    if file == "transformers":
        return Known("by rule", f"{where}: it runs {kind} with the code of transformers")
    if record.runtime(runtime).get("read"):
        return Known("by rule", f"{where}; {file} of {at} was read")
    return Known("not known", f"{file} of {at} was not executed with {kind}")


def find_wrapper_provenance(runtime: str, release: str, wrapper: str) -> Known:
    """Return how the answer of a release is known for a wrapper that its own list of types does not have."""
    lacks = f"{short_repr(wrapper)} is not in {describe_list(runtime, release)}"
    if runtime in ("transformers", "mlx-lm"):
        return Known("by rule", lacks)
    # These two ask for a transformers before 5.23.
    if (
        runtime in ("vllm", "sglang")
        and (runtime, release) not in OLDER
        and has_type("transformers", "5.23.0", wrapper)
    ):
        return Known("by rule", f"{lacks}: the code of transformers runs it")
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
            return Known("by rule", f"{kind} uses {file} of {at}, executed with {other}: tests/goldens/{golden}")
    return Known("not known", f"{file} of {at} was not executed with {kind}")
