"""File format of sums over a model's q and k: safetensors with the config in its metadata; checked when read.

`layers.<n>.q` is (4, heads, pairs), `layers.<n>.k` (4, key heads, pairs): the sums of `pair_sums.PARTS`. Files of the
same model add up, over texts and over machines that hold different layers.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.embedding.spec import RopeSpec, require_number
from rope_viz.storage.write_file import write_file
from rope_viz.studies.capture_file import (
    MAX_LAYERS,
    SUMS,
    Captured,
    name_tensors,
    read_capture,
    read_layers,
    read_metadata,
)
from rope_viz.studies.pair_sums import PARTS, PairSums
from rope_viz.studies.tensors import TensorFile, encode_tensors, open_tensors
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_items

TEXTS = Texts("studies")

MOST_TOKENS = 1 << 50


@dataclass(frozen=True, eq=False)
class SummedLayer:
    """The sums of one layer, its layer type, the factor on its logits, and the indices of its query heads."""

    sums: PairSums
    kind: str = ""
    scale: float = 1.0
    heads: tuple[int, ...] = ()

    def __add__(self, other: SummedLayer) -> SummedLayer:
        """Return the layer over the tokens of both. Raises `ValueError` for another layer."""
        if (self.kind, self.scale, self.heads) != (other.kind, other.scale, other.heads):
            raise ValueError("sums of different heads, layer types or scales do not add up")
        return SummedLayer(self.sums + other.sums, self.kind, self.scale, self.heads)


@dataclass(frozen=True, eq=False)
class CapturedSums:
    """Sums of a model's layers with checked metadata; they take little memory, so all are read."""

    name: str
    config: Mapping[str, Any]
    specs: Mapping[str, RopeSpec]
    summed: Mapping[int, SummedLayer]

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted(self.summed))

    def spec(self, layer: int) -> RopeSpec:
        return self.specs[self.summed[layer].kind]

    def layer(self, number: int) -> SummedLayer:
        """Return one layer. Raises `ValueError` for a missing one."""
        if number not in self.summed:
            raise ValueError(TEXTS("capture.no_layer", number=number, layers=join_items([*map(str, self.layers)])))
        return self.summed[number]

    def __add__(self, other: CapturedSums) -> CapturedSums:
        """Return the sums of both: layers that both have are added. Raises `ValueError` for another model."""
        if json.dumps(self.config, sort_keys=True) != json.dumps(other.config, sort_keys=True):
            raise ValueError(f"{self.name} and {other.name} have different configs: add files of one model")
        both = {
            number: self.summed[number] + other.summed[number] for number in self.summed.keys() & other.summed.keys()
        }
        return CapturedSums(self.name, self.config, self.specs, {**self.summed, **other.summed, **both})


def add_files(files: Sequence[str | Path]) -> CapturedSums:
    """Return the sums of several files. Raises `ValueError` that names a file which does not fit."""
    found = []
    for file in files:
        try:
            found.append(read_sums(file))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    return functools.reduce(operator.add, found)


def write_sums(path: str | Path, layers: Mapping[int, SummedLayer], *, config: Mapping[str, Any], name: str) -> None:
    """Write the sums of layers with their config."""
    write_file(path, encode_sums(layers, config=config, name=name))


def encode_sums(
    layers: Mapping[int, SummedLayer], *, config: Mapping[str, Any], name: str, dtype: str = "float64"
) -> list[bytes]:
    """Return the content of a file of sums in parts."""
    tensors, about = {}, {}
    for number, layer in sorted(layers.items()):
        for part, values in (("q", layer.sums.q), ("k", layer.sums.k)):
            tensors[f"layers.{number}.{part}"] = values.astype(dtype)
        about[number] = {
            "kind": layer.kind,
            "scale": layer.scale,
            "heads": list(layer.heads),
            "tokens": layer.sums.tokens,
        }
    metadata = {"version": 1, "holds": SUMS, "name": name, "config": dict(config), "layers": about}
    return encode_tensors(tensors, {"rope_viz": json.dumps(metadata, default=str)})


def read_capture_or_sums(source: str | Path | bytes) -> Captured | CapturedSums:
    """Read a capture of whole tensors or of sums. Raises `ValueError` for anything else."""
    file = open_tensors(source, most=2 * MAX_LAYERS)
    return read_sums(source) if read_metadata(file).get("holds") == SUMS else read_capture(source)


def read_sums(source: str | Path | bytes) -> CapturedSums:
    """Read the sums in a safetensors file, from a path or from its bytes. Raises `ValueError`."""
    name, config, specs, summed, _ = read_layers(source, SUMS, read_layer)
    return CapturedSums(name, config, specs, summed)


def read_layer(text: str, entry: Any, specs: Mapping[str, RopeSpec], file: TensorFile) -> SummedLayer:
    """Read the sums of one layer, checked against its embedding."""
    label, names = name_tensors(text, entry, specs, file)
    q, k = (file.entries[name].shape for name in names)
    parts = len(PARTS)
    if len(q) != 3 or len(k) != 3 or (q[0], k[0]) != (parts, parts) or q[2] != k[2] or not k[1] or q[1] % k[1]:
        raise ValueError(TEXTS("capture.sums_shapes", layer=label, parts=parts, q=str(q), k=str(k)))
    if q[2] < specs[entry["kind"]].pairs:
        raise ValueError(TEXTS("capture.pairs", layer=label, pairs=q[2], rotated=specs[entry["kind"]].pairs))
    require_number(entry.get("tokens"), TEXTS("names.tokens", layer=label), least=1, most=MOST_TOKENS, integer=True)
    require_number(entry.get("scale"), TEXTS("names.scale", layer=label), above=0.0, most=1e6)
    heads = entry.get("heads")
    if not isinstance(heads, list) or len(heads) != q[1] or not all(type(head) is int and head >= 0 for head in heads):
        raise ValueError(TEXTS("capture.heads", layer=label))
    sums_q, sums_k = (file.read_tensor(name).astype(np.float64) for name in names)
    for name, values in (("q", sums_q), ("k", sums_k)):
        if not np.isfinite(values).all() or (values[2:] < 0).any():
            raise ValueError(TEXTS("capture.sums", name=name, layer=label))
    sums = PairSums(sums_q, sums_k, int(entry["tokens"]))
    return SummedLayer(sums, entry["kind"], float(entry["scale"]), tuple(heads))
