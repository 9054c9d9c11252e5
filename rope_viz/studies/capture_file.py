"""File format of a capture: safetensors with the config in its metadata; checked when read.

`layers.<n>.q` is (heads, tokens, head_dim), `layers.<n>.k` (key heads, tokens, head_dim), both before rotation,
rotating dimensions first. The metadata holds one JSON text under `rope_viz`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import RopeSpec, require_number, short_repr
from rope_viz.models.model_config import from_config
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.write_file import write_file
from rope_viz.studies.heads import Heads
from rope_viz.studies.tensors import TensorFile, encode_tensors, open_tensors
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_items, join_list

TEXTS = Texts("studies")

VERSION = 1
SUMS = "sums"
"""What a file holds that has sums over tokens in place of whole tensors."""
MAX_LAYERS = 512
MAX_TOKENS = 1 << 17
LARGEST = 1 << 30
"""Bytes of one layer's q, as float32: computations on it take several times as much."""
DTYPES = {"float16": np.float16, "float32": np.float32}
HALF = float(np.finfo(np.float16).max)

Layer = TypeVar("Layer")


@dataclass(frozen=True, eq=False)
class CapturedLayer:
    """q and k of one layer, and its attention parameters; `heads` are the indices of the captured query heads."""

    q: NDArray[Any]
    k: NDArray[Any]
    kind: str = ""
    scale: float = 1.0
    cap: float | None = None
    window: int | None = None
    sinks: NDArray[Any] | None = None
    heads: tuple[int, ...] = ()

    def as_heads(self, spec: RopeSpec) -> Heads:
        return Heads(self.q, self.k, spec.pairing, self.scale, self.cap, self.window, self.sinks)


@dataclass(frozen=True, eq=False)
class Captured:
    """A capture with checked metadata; layers are read on demand."""

    name: str
    config: Mapping[str, Any]
    specs: Mapping[str, RopeSpec]
    about: Mapping[int, Mapping[str, Any]]
    file: TensorFile

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted(self.about))

    def spec(self, layer: int) -> RopeSpec:
        return self.specs[self.about[layer]["kind"]]

    def layer(self, number: int) -> CapturedLayer:
        """Read one layer as float32. Raises `ValueError` for a missing layer or values that are not finite."""
        if number not in self.about:
            raise ValueError(TEXTS("capture.no_layer", number=number, layers=join_items([*map(str, self.layers)])))
        about = self.about[number]
        q, k = (self.file.read_tensor(f"layers.{number}.{name}").astype(np.float32) for name in "qk")
        for name, values in (("q", q), ("k", k)):
            bad = int(values.size - np.isfinite(values).sum())
            if bad:
                raise ValueError(TEXTS("capture.finite", name=name, number=number, count=f"{bad:,}"))
        sinks = None if about["sinks"] is None else np.array(about["sinks"])
        rest = {key: about[key] for key in ("kind", "scale", "cap", "window")}
        return CapturedLayer(q, k, sinks=sinks, heads=tuple(about["heads"]), **rest)


def write_capture(
    path: str | Path,
    layers: Mapping[int, CapturedLayer],
    *,
    config: Mapping[str, Any],
    name: str,
    dtype: str = "float16",
) -> None:
    """Write layers with their config. Raises `ValueError` for values that float16 cannot hold."""
    write_file(path, encode_capture(layers, config=config, name=name, dtype=dtype))


def encode_capture(
    layers: Mapping[int, CapturedLayer], *, config: Mapping[str, Any], name: str, dtype: str = "float16"
) -> list[bytes]:
    """Return the content of a capture's file in parts. Raises `ValueError` for values that float16 cannot hold."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be {' or '.join(DTYPES)}, got {short_repr(dtype)}")
    tensors = {}
    for number, layer in sorted(layers.items()):
        for part, values in (("q", layer.q), ("k", layer.k)):
            if dtype == "float16" and np.abs(values).max() > HALF:
                raise ValueError(f"{part} of layer {number} has values beyond {HALF:,.0f}: save it as float32")
            tensors[f"layers.{number}.{part}"] = values.astype(DTYPES[dtype])
    about = {
        number: {
            "kind": layer.kind,
            "scale": layer.scale,
            "cap": layer.cap,
            "window": layer.window,
            "sinks": None if layer.sinks is None else [float(sink) for sink in layer.sinks],
            "heads": list(layer.heads),
        }
        for number, layer in sorted(layers.items())
    }
    metadata = {"version": VERSION, "name": name, "config": dict(config), "layers": about}
    return encode_tensors(tensors, {"rope_viz": json.dumps(metadata, default=str)})


def read_capture(source: str | Path | bytes) -> Captured:
    """Read the capture in a safetensors file, from a path or from its bytes.

    Sizes, dtypes and the metadata are checked before any tensor is read. Raises `ValueError`.
    """
    return Captured(*read_layers(source, "", checked))


def read_layers(
    source: str | Path | bytes, holds: str, read: Callable[[str, Any, Mapping[str, RopeSpec], TensorFile], Layer]
) -> tuple[str, Mapping[str, Any], Mapping[str, RopeSpec], dict[int, Layer], TensorFile]:
    """Return name, config, embeddings and layers of a file, and the file; `read` gives a layer of its entry.

    `holds` is `SUMS`, or empty for whole tensors. Raises `ValueError`.
    """
    file = open_tensors(source, most=2 * MAX_LAYERS)
    metadata = read_metadata(file)
    if metadata.get("holds", "") != holds:
        raise ValueError(TEXTS(f"capture.no_{holds or 'tensors'}"))
    config, layers = metadata.get("config"), metadata.get("layers")
    if not isinstance(config, dict) or not isinstance(layers, dict) or not layers:
        raise ValueError(TEXTS("capture.metadata"))
    specs = from_config(config)
    found = {number_of(text): read(text, entry, specs, file) for text, entry in layers.items()}
    if len(file.entries) != 2 * len(found):
        raise ValueError(TEXTS("capture.layers"))
    name = metadata.get("name")
    return name if isinstance(name, str) else TEXTS("capture.unnamed"), config, specs, found, file


def read_metadata(file: TensorFile) -> dict[str, Any]:
    """Return what a file says of its capture. Raises `ValueError` for a file that is none of this version."""
    if "rope_viz" not in file.metadata:
        raise ValueError(TEXTS("capture.none"))
    metadata = decode_json(file.metadata["rope_viz"], TEXTS("capture.no_json"))
    if not isinstance(metadata, dict) or metadata.get("version") != VERSION:
        raise ValueError(TEXTS("capture.version", version=VERSION))
    return metadata


def number_of(text: str) -> int:
    """Parse the index of a layer."""
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise ValueError(TEXTS("capture.layer_name", given=short_repr(text)))
    return int(text)


def name_tensors(text: str, entry: Any, specs: Mapping[str, RopeSpec], file: TensorFile) -> tuple[str, list[str]]:
    """Return what errors call a layer, and the names of its tensors. Raises `ValueError` if the file lacks them."""
    label, names = TEXTS("names.layer", number=text), [f"layers.{text}.{part}" for part in "qk"]
    if not isinstance(entry, dict) or entry.get("kind") not in specs:
        raise ValueError(TEXTS("capture.kind", layer=label, kinds=join_items([*specs]) or TEXTS("names.none")))
    if not all(name in file.entries for name in names):
        raise ValueError(TEXTS("capture.tensors", names=join_list(names)))
    return label, names


def checked(text: str, entry: Any, specs: Mapping[str, RopeSpec], file: TensorFile) -> Mapping[str, Any]:
    """Check the metadata of one layer against its tensors' shapes and its embedding."""
    label, names = name_tensors(text, entry, specs, file)
    spec = specs[entry["kind"]]
    q, k = (file.entries[name].shape for name in names)
    if len(q) != 3 or len(k) != 3 or q[1:] != k[1:] or not math.prod(q) or not k[0] or q[0] % k[0]:
        raise ValueError(TEXTS("capture.shapes", layer=label, q=str(q), k=str(k)))
    if q[1] > MAX_TOKENS or 4 * math.prod(q) > LARGEST:
        raise ValueError(TEXTS("capture.large", layer=label, q=str(q)))
    if q[2] < 2 * spec.pairs:
        raise ValueError(TEXTS("capture.dimensions", layer=label, size=q[2], rotated=2 * spec.pairs))
    require_number(entry.get("scale"), TEXTS("names.scale", layer=label), above=0.0, most=1e6)
    if entry.get("cap") is not None:
        require_number(entry["cap"], TEXTS("names.cap", layer=label), above=0.0, most=1e6)
    if entry.get("window") is not None:
        require_number(entry["window"], TEXTS("names.window", layer=label), least=1, integer=True)
    sinks, heads = entry.get("sinks"), entry.get("heads")
    if sinks is not None:
        if not isinstance(sinks, list) or len(sinks) != q[0]:
            raise ValueError(TEXTS("capture.sinks", layer=label))
        for sink in sinks:
            require_number(sink, TEXTS("names.sinks", layer=label))
    if not isinstance(heads, list) or len(heads) != q[0] or not all(type(head) is int and head >= 0 for head in heads):
        raise ValueError(TEXTS("capture.heads", layer=label))
    keys = ("kind", "scale", "cap", "window", "sinks", "heads")
    return {key: entry.get(key) for key in keys}
