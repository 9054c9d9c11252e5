"""Safetensors files: read with every size checked, one tensor at a time, and written. Nothing is unpickled.

The format: https://github.com/huggingface/safetensors#format (8 bytes of length, a JSON header, the raw data)
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import short_repr
from rope_viz.storage.read_file import open_regular
from rope_viz.storage.write_file import write_file
from rope_viz.texts import Texts
from rope_viz.texts.outside_text import clean_json

TEXTS = Texts("studies")

MAX_HEADER = 8 << 20  # bytes of JSON
MAX_AXES = 8
DTYPES: dict[str, np.dtype[Any]] = {
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
NAMES = {np.dtype("<f2"): "F16", np.dtype("<f4"): "F32", np.dtype("<f8"): "F64"}


@dataclass(frozen=True)
class HeaderEntry:
    """One tensor as the header describes it; `first` and `last` are byte offsets in the file."""

    kind: str
    shape: tuple[int, ...]
    first: int
    last: int


@dataclass(frozen=True)
class TensorFile:
    """A checked header; tensors are read on demand."""

    entries: Mapping[str, HeaderEntry]
    metadata: Mapping[str, str]
    source: Path | bytes = field(repr=False)

    def read_tensor(self, name: str) -> NDArray[Any]:
        """Read a tensor in its own dtype, BF16 as float32. Raises `ValueError` for an unknown name or a cut file."""
        if name not in self.entries:
            raise ValueError(TEXTS("tensors.none", name=short_repr(name)))
        entry = self.entries[name]
        if isinstance(self.source, bytes):
            raw = self.source[entry.first : entry.last]
        else:
            with open_regular(self.source) as file:
                file.seek(entry.first)
                raw = file.read(entry.last - entry.first)
        if len(raw) != entry.last - entry.first:
            raise ValueError(TEXTS("tensors.cut", name=short_repr(name)))
        values = np.frombuffer(raw, DTYPES[entry.kind])
        if entry.kind == "BF16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(entry.shape)


def open_tensors(source: str | Path | bytes, *, most: int = 1024) -> TensorFile:
    """Read and check the header of a safetensors file of at most `most` tensors, from a path or its bytes.

    Every size, dtype and offset is checked against the file size before any tensor is read. As the format requires,
    tensors must be contiguous without gaps or overlaps. Raises `ValueError`.
    """
    if isinstance(source, bytes):
        total, head = len(source), source[:8]
    else:
        source = Path(source)
        with open_regular(source) as file:
            total = file.seek(0, os.SEEK_END)
            file.seek(0)
            head = file.read(8)
    size = int.from_bytes(head, "little")
    if len(head) < 8 or size > total - 8:
        raise ValueError(TEXTS("tensors.long_header"))
    if size > MAX_HEADER:
        raise ValueError(TEXTS("tensors.large_header", most=MAX_HEADER >> 20, size=size / (1 << 20)))
    header = parse_header(source[8 : 8 + size] if isinstance(source, bytes) else read_head(source, size))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(TEXTS("tensors.metadata"))
    if not 1 <= len(header) <= most:
        raise ValueError(TEXTS("file.arrays", most=most, count=len(header)))
    entries = {name: check_entry(name, entry, total - 8 - size) for name, entry in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].first, item[1].last)):
        if entry.first != end:
            raise ValueError(TEXTS("tensors.gap", name=short_repr(name)))
        end = entry.last
    if end != total - 8 - size:
        raise ValueError(TEXTS("tensors.rest"))
    begin = 8 + size
    placed = {name: HeaderEntry(e.kind, e.shape, e.first + begin, e.last + begin) for name, e in entries.items()}
    return TensorFile(MappingProxyType(placed), MappingProxyType(metadata), source)


def write_tensors(
    path: str | Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file of float16, float32 or float64 arrays; the same arrays give the same bytes."""
    write_file(path, encode_tensors(tensors, metadata))


def encode_tensors(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> list[bytes]:
    """Return the content of a safetensors file in parts. Raises `ValueError` for arrays of other dtypes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts, end = [], 0
    for name, array in tensors.items():
        if array.dtype.newbyteorder("<") not in NAMES:
            raise ValueError(f"tensor {short_repr(name)} must be float16, float32 or float64, got {array.dtype}")
        raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        kind = NAMES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [end, end + len(raw)]}
        parts.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # aligns the data to 8 bytes
    return [len(text).to_bytes(8, "little") + text, *parts]


def read_head(path: Path, size: int) -> bytes:
    """Read the header's text."""
    with open_regular(path) as file:
        file.seek(8)
        return file.read(size)


def parse_header(text: bytes) -> dict[str, Any]:
    """Parse the header as a JSON object without duplicate names; lone surrogates and NUL in them are replaced."""

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name occurs twice")
        return found

    try:
        header = json.loads(clean_json(text.decode("utf-8")), object_pairs_hook=refuse_duplicates)
    except (ValueError, RecursionError):
        raise ValueError(TEXTS("tensors.no_json")) from None
    if not isinstance(header, dict):
        raise ValueError(TEXTS("tensors.no_object"))
    return header


def check_entry(name: str, entry: Any, body: int) -> HeaderEntry:
    """Check one entry of the header; its offsets count from the end of the header."""
    label = TEXTS("names.tensor", name=short_repr(name))
    if not isinstance(entry, dict):
        raise ValueError(TEXTS("tensors.entry", name=label))
    kind, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(kind, str) or kind not in DTYPES:
        raise ValueError(TEXTS("tensors.kind", name=label, kind=short_repr(kind)))
    if not (is_sizes(shape) and is_sizes(offsets)) or len(offsets) != 2 or len(shape) > MAX_AXES:
        raise ValueError(TEXTS("tensors.offsets", name=label))
    first, last = offsets
    if not first <= last <= body or math.prod(shape) * DTYPES[kind].itemsize != last - first:
        raise ValueError(TEXTS("tensors.claims", name=label, shape=short_repr(shape), kind=kind))
    return HeaderEntry(kind, tuple(shape), first, last)


def is_sizes(value: Any) -> TypeGuard[list[int]]:
    """True for a JSON list of whole numbers that can be sizes."""
    return isinstance(value, list) and all(type(size) is int and 0 <= size < 1 << 48 for size in value)
