"""Seeded random weights, strong enough that every layer's attention depends on position, and files to hold them."""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rope_viz.storage.decode_json import decode_json

Float32 = NDArray[np.float32]

SEED = 60
LARGEST = 1 << 30
"""Bytes of the weights of a probe. Most take some megabytes, those with many experts a few hundred."""
STRENGTH = 1.9
"""The standard deviation of what a matrix returns for an input of 1: scores then differ by about its square."""
EXPERT = re.compile(r"\bexperts\.\d+(?=\.)")
SAFETENSORS_TYPES = {"F32": "<f4", "I64": "<i8", "BF16": "<u2"}


def draw_matrix(name: str, shape: tuple[int, ...], seed: int = SEED) -> Float32:
    """Return the weights of a matrix of this name, shape (…, out, in); all experts of a layer have the same ones.

    Whichever experts a router chooses, the answer is then the same.
    """
    alike = "experts" in name and len(shape) > 2
    generator = np.random.default_rng([seed, zlib.crc32(EXPERT.sub("experts.0", name).encode())])
    drawn = generator.standard_normal(shape[1:] if alike else shape, dtype=np.float32)
    found = round_to_bfloat16(drawn * np.float32(STRENGTH / math.sqrt(shape[-1])))
    return np.broadcast_to(found, shape).copy() if alike else found


def draw_vector(name: str, size: int, mean: float = 0.0, seed: int = SEED) -> Float32:
    """Return a bias or the weight of a norm: numbers around a mean."""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return round_to_bfloat16(np.float32(mean) + np.float32(0.2) * generator.standard_normal(size, dtype=np.float32))


def round_to_bfloat16(values: Float32) -> Float32:
    """Return float32 values rounded to bfloat16, so that an engine that loads them as such has the same weights."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32).reshape(values.shape)


def pack_safetensors(tensors: Mapping[str, Float32]) -> Iterable[bytes]:
    """Yield a safetensors file of float32 tensors (https://github.com/huggingface/safetensors, "Format")."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for values in tensors.values():
        yield np.ascontiguousarray(values, dtype="<f4").tobytes()


def read_safetensors(content: bytes) -> dict[str, Float32]:
    """Return the float32 tensors of a safetensors file. Raises `ValueError` where it is none."""
    try:
        (size,) = struct.unpack_from("<Q", content)
        header = decode_json(content[8 : 8 + size], "its header is not JSON")
        found = {}
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] != "F32":
                continue
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(content[first:last], "<f4").reshape(entry["shape"])
    except (struct.error, KeyError, TypeError, ValueError, AttributeError):
        raise ValueError("model.safetensors is not a safetensors file") from None
    return found
