"""Join the files of an evaluation's shards into the file of one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import require_number
from rope_viz.evaluation.evaluation_plan import WHOLE, Evaluation, format_shard, read_evaluation
from rope_viz.evaluation.run_evaluation import Plan, finished
from rope_viz.storage.decode_json import decode_json

GRID = {"methods": str, "lengths": int, "depths": float}
"""{property of a shard's record: type of its items}; together with `repeats` they are the questions of all shards."""


@dataclasses.dataclass(frozen=True)
class ShardFile:
    """One file: its name, the plan of its shard and what it holds."""

    name: str
    plan: Plan
    found: Evaluation


def merge_shards(paths: Sequence[str | Path], out: Path) -> dict[str, Any]:
    """Write one file with the answers of all shards, and return its content.

    Raises `ValueError` that names the file if a shard is missing, double, of another evaluation or of another model.
    """
    files = [read_shard_file(path) for path in paths]
    if not files:
        raise ValueError("name the files of the shards to merge")
    first, count = files[0], files[0].plan.shard[1]
    by_number: dict[int, ShardFile] = {}
    for file in files:
        compare(first, file)
        number = file.plan.shard[0]
        if number in by_number:
            label = format_shard(file.plan.shard)
            raise ValueError(f"{by_number[number].name} and {file.name} are both shard {label}: name one of them")
        by_number[number] = file
    missing = [format_shard((number, count)) for number in range(count) if number not in by_number]
    if missing:
        raise ValueError(f"not all shards are named, missing: {', '.join(missing)}")
    about = {method: merge_about([file.plan.about[method] for file in files]) for method in first.plan.methods}
    plan = dataclasses.replace(first.plan, shard=WHOLE, about=about)
    rows = {row.cell: row for file in files for row in file.found.rows}
    return finished(plan, rows, out, out.with_name(out.name + ".journal"))


def read_shard_file(path: str | Path) -> ShardFile:
    """Read one shard. Raises `ValueError` if it is none, or if its answers are not those of its plan."""
    name, data = str(path), Path(path).read_bytes()
    try:
        found = read_evaluation(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if found.shard == WHOLE:
        raise ValueError(f"{name} is a whole evaluation: make shards with `rope-viz evaluate --shard I/N`")
    plan = read_plan(name, decode_json(data, name)["shard"], found)
    wanted = set(plan.cells())
    cells = [row.cell for row in found.rows]
    if len(set(cells)) < len(cells):
        raise ValueError(f"{name} has two answers to one question: run this shard again")
    if set(cells) != wanted:
        lost, foreign = len(wanted - set(cells)), len(set(cells) - wanted)
        raise ValueError(f"{name}: {lost:,} answers are missing and {foreign:,} belong to another shard: run it again")
    for row in found.rows:
        if row.key != plan.key(row.method):
            raise ValueError(f"{name} has answers of another {row.method}: run this shard again")
    return ShardFile(name, plan, found)


def read_plan(name: str, record: Mapping[str, Any], found: Evaluation) -> Plan:
    """Return the plan in the record of a shard. Raises `ValueError` that names the file."""
    try:
        require_number(record.get("repeats"), "repeats", least=1, most=1e6, integer=True)
        grid = {key: tuple(kind(item) for item in record[key]) for key, kind in GRID.items()}
        about = {method: dict(found.about.get(method) or {}) for method in grid["methods"]}
        return Plan(
            **grid,
            repeats=record["repeats"],
            wording=found.wording,
            model=found.model,
            about=about,
            shard=found.shard,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: its record of the shard cannot be read ({error}): run it again") from None


def compare(first: ShardFile, other: ShardFile) -> None:
    """Raise `ValueError` that names the other file if it does not belong to the same evaluation."""
    end = f"{other.name} belongs to another evaluation than {first.name}"
    for name in ("model", "wording", "methods", "lengths", "depths", "repeats"):
        ours, theirs = getattr(first.plan, name), getattr(other.plan, name)
        if ours != theirs:
            raise ValueError(f"{end}: its {name} is {show(theirs)}, not {show(ours)}")
    if first.plan.shard[1] != other.plan.shard[1]:
        raise ValueError(f"{end}: it is one of {other.plan.shard[1]} shards, not of {first.plan.shard[1]}")
    for method in first.plan.methods:
        ours, theirs = first.plan.about[method], other.plan.about[method]
        for key in dict.fromkeys([*ours, *theirs]):
            if key != "url" and ours.get(key) != theirs.get(key):
                raise ValueError(f"{end}: {key} of {method} differs")


def show(value: Any) -> str:
    """Format a property of a plan."""
    return (
        ", ".join(f"{item:,}" if isinstance(item, int) else str(item) for item in value)
        if isinstance(value, tuple)
        else repr(value)
    )


def merge_about(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the description of a method with the addresses of all shards."""
    urls = list(dict.fromkeys(url for part in parts for url in as_list(part.get("url"))))
    return {**parts[0], **({"url": urls[0] if len(urls) == 1 else urls} if urls else {})}


def as_list(url: Any) -> list[str]:
    """Return the addresses of a description as a list."""
    return [] if url is None else [url] if isinstance(url, str) else list(url)
