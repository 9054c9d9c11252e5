"""Read the header of a GGUF file: its keys and where its tensors are (ggml's docs/gguf.md, versions 2 and 3).

Every length is checked before memory is taken for it. Data of a tensor is read only by name.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.models import TEXTS
from rope_viz.storage.read_file import open_regular
from rope_viz.texts.outside_text import clean_text

MOST_KEYS, MOST_TEXT, MOST_AXES = 100_000, 64 << 20, 8
SHORT_ARRAY = 4096
STRING, ARRAY, FLOAT32 = 8, 9, 0

# {GGUF type: struct code}
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True)
class TensorPlace:
    """A tensor in the file: ggml's type, its shape in NumPy's order (out, in), and its first byte in the file."""

    kind: int
    shape: tuple[int, ...]
    first: int


@dataclass(frozen=True, eq=False)
class GgufHeader:
    """The keys of a GGUF file and the places of its tensors by name. A skipped array has the value None."""

    path: Path
    keys: Mapping[str, Any]
    tensors: Mapping[str, TensorPlace]
    start: int = 0
    """First byte of the tensors' data."""

    @property
    def architecture(self) -> str:
        """Return llama.cpp's name of the architecture. Raises `ValueError` if the file has none."""
        name = self.keys.get("general.architecture")
        if not isinstance(name, str):
            raise ValueError(TEXTS("gguf_file.no_architecture"))
        return name

    def find(self, name: str, default: Any = None) -> Any:
        """Return the value of a key that begins with the architecture's name."""
        return self.keys.get(f"{self.architecture}.{name}", default)


def is_gguf(path: str | Path) -> bool:
    """True for a file that begins as a GGUF file. Raises `OSError` if it cannot be read."""
    with open_regular(path) as file:
        return file.read(4) == b"GGUF"


def read_header(path: str | Path, *, long_arrays: bool = False) -> GgufHeader:
    """Read the header. Arrays of more than 4,096 numbers or texts, such as a vocabulary, are read only if asked for.

    Raises `ValueError` for a file that is no GGUF, is cut off, or is of another version.
    """
    path = Path(path)
    with open_regular(path) as file:
        if file.read(4) != b"GGUF":
            raise ValueError(TEXTS("gguf_file.other_file", name=path.name))
        version, tensors, count = read_number(file, "I"), read_number(file, "Q"), read_number(file, "Q")
        if version not in (2, 3) or count > MOST_KEYS or tensors > MOST_KEYS:
            raise ValueError(TEXTS("gguf_file.version", name=path.name, version=version))
        keys = {}
        for _ in range(count):
            name = read_text(file)
            keys[name] = read_value(file, read_number(file, "I"), long_arrays)
        places = {}
        for _ in range(tensors):
            name, axes = read_text(file), read_number(file, "I")
            if axes > MOST_AXES:
                raise ValueError(TEXTS("gguf_file.axes", axes=axes))
            shape = tuple(read_number(file, "Q") for _ in range(axes))[::-1]
            places[name] = TensorPlace(read_number(file, "I"), shape, read_number(file, "Q"))
        step = keys.get("general.alignment") or 32
        if not isinstance(step, int) or not 1 <= step <= 1 << 20:
            raise ValueError(TEXTS("gguf_file.alignment", step=short_repr(step)))
        start = -(-file.tell() // step) * step
    tensors_by_name = {name: TensorPlace(each.kind, each.shape, start + each.first) for name, each in places.items()}
    return GgufHeader(path, keys, tensors_by_name, start)


def read_bytes(header: GgufHeader, name: str, size: int) -> bytes:
    """Read `size` bytes of a tensor. Raises `ValueError` if the file ends before."""
    if name not in header.tensors:
        raise ValueError(TEXTS("gguf_file.no_tensor", name=short_repr(name)))
    first = header.tensors[name].first
    if first + size > header.path.stat().st_size:
        raise ValueError(TEXTS("gguf_file.truncated"))
    with open_regular(header.path) as file:
        file.seek(first)
        return read_exactly(file, size)


def read_frequency_divisors(header: GgufHeader) -> dict[str, FloatArray]:
    """Return the tensors of divisors of frequencies by name, each (pairs,)."""
    found = {}
    for name, place in header.tensors.items():
        small = len(place.shape) == 1 and place.shape[0] <= SHORT_ARRAY
        if name.startswith(("rope_freqs", "rope_factors")) and place.kind == FLOAT32 and small:
            raw = read_bytes(header, name, 4 * math.prod(place.shape))
            found[name] = np.frombuffer(raw, dtype="<f4").astype(np.float64)
    return found


def summarise_header(header: GgufHeader) -> dict[str, Any]:
    """Return what `gguf_config.config_from_gguf` needs of a header, as JSON data; the browser's script makes the same.

    `tensor_bytes` is None for one of several parts of a model.
    """
    words = ("tokenizer.", "quantize.")
    keys = {name: value for name, value in header.keys.items() if value is not None and not name.startswith(words)}
    embedding = header.tensors.get("token_embd.weight")
    parts = keys.get("split.count") or 1
    found = {
        "keys": keys,
        "divisors": {name: values.tolist() for name, values in read_frequency_divisors(header).items()},
        "tensor_bytes": header.path.stat().st_size - header.start if parts == 1 else None,
        "vocabulary": embedding.shape[0] if embedding is not None and len(embedding.shape) == 2 else None,
        "tied": "output.weight" not in header.tensors if embedding is not None and parts == 1 else None,
    }
    return {"gguf": {name: value for name, value in found.items() if value is not None}}


def read_value(file: BinaryIO, kind: int, long_arrays: bool) -> Any:
    """Read one value; None for an array that is longer than wanted."""
    if kind == STRING:
        return read_text(file)
    if kind == ARRAY:
        return read_array(file, long_arrays)
    if kind not in NUMBERS:
        raise ValueError(TEXTS("gguf_file.value_type", kind=short_repr(kind)))
    return read_number(file, NUMBERS[kind])


def read_array(file: BinaryIO, long_arrays: bool) -> list[Any] | None:
    """Read an array of numbers or texts; None if it is longer than wanted."""
    kind, size = read_number(file, "I"), read_number(file, "Q")
    wanted = long_arrays or size <= SHORT_ARRAY
    if kind == STRING:
        found = []
        for _ in range(size):
            length = read_number(file, "Q")
            raw = read_exactly(file, check_text_length(length))
            if wanted:
                found.append(raw.decode("utf-8", "replace"))
        return found if wanted else None
    if kind not in NUMBERS:
        raise ValueError(TEXTS("gguf_file.array_type", kind=short_repr(kind)))
    step = struct.calcsize(NUMBERS[kind])
    if not wanted:
        file.seek(step * size, 1)
        return None
    if step * size > MOST_TEXT:
        raise ValueError(TEXTS("gguf_file.long_array"))
    return list(struct.unpack(f"<{size}{NUMBERS[kind]}", read_exactly(file, step * size)))


def read_text(file: BinaryIO) -> str:
    """Read a text with its length before it, and replace NUL.

    The texts of arrays keep it: a token of a vocabulary may be one.
    """
    raw = read_exactly(file, check_text_length(read_number(file, "Q")))
    return clean_text(raw.decode("utf-8", "replace"))


def check_text_length(size: int) -> int:
    """Return the length, or raise `ValueError` if it is too long."""
    if size > MOST_TEXT:
        raise ValueError(TEXTS("gguf_file.long_text"))
    return size


def read_number(file: BinaryIO, code: str) -> Any:
    """Read one little-endian number."""
    return struct.unpack(f"<{code}", read_exactly(file, struct.calcsize(f"<{code}")))[0]


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """Read so many bytes. Raises `ValueError` where the file ends before."""
    found = file.read(size)
    if len(found) < size:
        raise ValueError(TEXTS("gguf_file.truncated"))
    return found
