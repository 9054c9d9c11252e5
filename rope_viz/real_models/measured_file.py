"""The JSON file that `rope-viz measure` writes: jobs of a model's heads and its loss by position; checked when read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec, require_number, short_repr
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.real_models import TEXTS
from rope_viz.real_models.band_table import BandTable, read_band_table
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.limits import MEASURED_FILE_BYTES
from rope_viz.storage.read_file import read_limited
from rope_viz.studies.real_model import JOBS, HeadMap, find_head, read_heads
from rope_viz.texts.texts import join_items

KIND, VERSION = "rope-viz measure", 1
METHODS = ("none", "linear", "ntk", "yarn")
"""Methods under which losses are measured."""
LEAST = 256
"""Tokens that a text must have."""
MOST_LAYERS, MOST_HEADS, MOST_TOKENS = 512, 512, 1 << 20
FACTORS = (2, 4)
SCALED = tuple(f"{method} {factor}" for factor in FACTORS for method in METHODS[1:])
"""Names of the rotations that a head with a job was measured under, unless the model is scaled already."""
ALL_ZERO, FIRST_ZERO = "zero", "pairs 0-3 at zero"
"""Names of the rotations with zero frequency in all pairs, and in the first four."""


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A measured model: its heads, and {method: (1, blocks of `block` tokens)} losses in nats under a factor.

    `bands` has what a change of some pairs does to it, where that was measured.
    """

    name: str
    heads: HeadMap
    specs: Mapping[str, RopeSpec]
    kinds: Mapping[int, str]
    losses: Mapping[str, FloatArray]
    block: int
    tokens: int
    factor: float
    bands: BandTable | None = None

    def spec(self, layer: int | None = None) -> RopeSpec:
        main = find_main_layer(self.specs)
        return self.specs[main if layer is None else self.kinds.get(layer, main)]


def read_measured(source: str | Path | bytes) -> MeasuredModel:
    """Read the file, from a path or from its bytes. Raises `ValueError` with a sentence for any other content."""
    content = source if isinstance(source, bytes) else read_limited(source, MEASURED_FILE_BYTES)
    if len(content) > MEASURED_FILE_BYTES:
        raise ValueError(TEXTS("measured.large", most=MEASURED_FILE_BYTES >> 20, size=len(content) / (1 << 20)))
    found = decode_json(content, TEXTS("measured.truncated"))
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(TEXTS("measured.empty"))
    if found.get("version") != VERSION:
        raise ValueError(TEXTS("measured.version", version=VERSION, got=short_repr(found.get("version"))))
    about, rows, loss = (require_object(found, name) for name in ("about", "rows", "loss"))
    specs = from_config(require_object(about, "config"))
    kinds = {
        int(layer): kind
        for layer, kind in require_object(about, "kinds").items()
        if layer.isascii() and layer.isdecimal() and len(layer) < 5 and kind in specs
    }
    for name, most in (("sequences", 1000), ("tokens", MOST_TOKENS)):
        require_number(about.get(name), name, least=1, most=most, integer=True)
    main = find_main_layer(specs)
    for name, row in rows.items():
        check_row(name, row, lambda layer: specs[kinds.get(layer, main)].pairs)
    heads = read_heads({"rows": rows, "about": {name: about[name] for name in ("sequences", "tokens")}})
    layers, count = heads.shape if heads.heads else (0, 0)
    if not rows or len(rows) != layers * count:
        raise ValueError(TEXTS("measured.heads"))
    losses = read_losses(loss)
    # The name is shown: signs that mark up a text are left out.
    model = re.sub(r"[^\w .+()-]", "", str(about.get("model") or ""))
    return MeasuredModel(
        model[:100] or TEXTS("measured.a_model"),
        heads,
        specs,
        kinds,
        losses,
        int(loss["block"]),
        int(loss["tokens"]),
        float(loss["factor"]),
        read_band_table(found["bands"]) if "bands" in found else None,
    )


def require_object(parent: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a JSON object of another. Raises `ValueError` if it is none."""
    found = parent.get(name)
    if not isinstance(found, dict):
        raise ValueError(TEXTS("measured.object", name=name, found=short_repr(found)))
    return found


def check_row(name: str, row: Any, pairs_of: Callable[[int], int]) -> None:
    """Raise `ValueError` for a wrong head: its name, a score, or the number of its pairs."""
    parts = name.removeprefix("L").split("H")
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts):
        raise ValueError(TEXTS("measured.head_name", name=short_repr(name)))
    layer, head = find_head(name)
    if name != f"L{layer}H{head}" or layer >= MOST_LAYERS or head >= MOST_HEADS:
        raise ValueError(TEXTS("measured.head_name", name=short_repr(name)))
    if not isinstance(row, dict) or set(require_object(row, "jobs")) != set(JOBS):
        raise ValueError(TEXTS("measured.jobs", name=name, jobs=join_items(JOBS)))
    pairs = pairs_of(layer)
    for part in ("strength", "margin"):
        check_numbers(row.get(part), pairs, TEXTS("measured.part", part=part, name=name))
    for job, entry in row["jobs"].items():
        if not isinstance(entry, dict):
            raise ValueError(TEXTS("measured.job", job=job, name=name, entry=short_repr(entry)))
        for part in ("score", "share"):
            require_number(entry.get(part), TEXTS("measured.part", part=part, name=name), least=0.0, most=1.01)
        if "margin" in entry:
            check_numbers(entry["margin"], pairs, TEXTS("measured.margin", name=name))
        if "changed" in entry:
            changed = require_object(entry, "changed")
            if not set(changed) <= {ALL_ZERO, FIRST_ZERO, *SCALED}:
                raise ValueError(TEXTS("measured.rotation", name=name))
            label = TEXTS("measured.score", name=name)
            for value in changed.values():
                require_number(value, label, least=0.0, most=1.01)
            if "margin" not in entry or not ({*SCALED} <= set(changed) or not {*SCALED} & set(changed)):
                raise ValueError(TEXTS("measured.scores", name=name))


def check_numbers(values: Any, count: int, name: str) -> None:
    """Raise `ValueError` unless this is a list of so many finite numbers."""
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(TEXTS("measured.list", name=name, count=count))
    for value in values:
        require_number(value, name, least=-1e6, most=1e6)


def read_losses(loss: Mapping[str, Any]) -> Mapping[str, FloatArray]:
    """Return {method: (1, blocks)}. Raises `ValueError` for other methods and wrong numbers."""
    require_number(loss.get("factor"), "factor", least=1.0, most=1e6)
    require_number(loss.get("block"), "block", least=2, most=MOST_TOKENS, integer=True)
    require_number(loss.get("tokens"), "tokens", least=LEAST, most=MOST_TOKENS, integer=True)
    methods = require_object(loss, "methods")
    if "none" not in methods or not set(methods) <= set(METHODS):
        raise ValueError(TEXTS("measured.losses", methods=join_items(METHODS)))
    found = {}
    for method, values in methods.items():
        check_numbers(values, int(loss["tokens"]) // int(loss["block"]), TEXTS("measured.losses_of", method=method))
        found[method] = np.array([values], dtype=float)
    return found
