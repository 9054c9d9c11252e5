"""Output rows and JSON for models with positions on several axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.runtimes.axes import axes_answers

NAMES = ("runtime", "version", "pairs of each axis", "against transformers", "text after a video", "YaRN")


def list_rows(config: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per runtime, [] for a model with one axis; its video has 6 grids of 2 × 2 from position 3."""
    return [
        (
            answer.runtime.split("-4")[0],
            answer.version,
            answer.sections,
            answer.against,
            "-" if answer.behind is None else f"at {answer.behind:g}",
            answer.extension or "-",
        )
        for answer in axes_answers(config)
    ]


def as_dicts(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runtimes' answers as JSON data."""
    return [
        {
            "runtime": answer.runtime.split("-4")[0],
            "version": answer.version,
            "reason": answer.reason,
            "pairs": dict(answer.counts),
            "rotation": None if answer.spec is None else answer.spec.is_rotation,
            "axis": None if answer.spec is None else answer.spec.owner.tolist(),
            "moved": list(answer.moved),
            "still": list(answer.still),
            "text_behind_a_film": answer.behind,
            "times": None if answer.times is None else list(answer.times),
            "yarn": answer.extension,
        }
        for answer in axes_answers(config)
    ]


def merge_axes(listed: list[dict[str, Any]], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Merge the axes' answers into those of the same runtime and version, and append the remaining ones."""
    answers = {(one.pop("runtime"), one.pop("version")): one for one in as_dicts(config)}
    for one in listed:
        found = answers.pop((one["runtime"], one["version"].split(" ")[0]), None)
        if found is not None:
            one["axes"] = found
    return [*listed, *({"runtime": name, "version": version, "axes": one} for (name, version), one in answers.items())]
