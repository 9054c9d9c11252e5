"""Tensors of a GGUF file as float32, dequantised in NumPy.

The block formats: https://github.com/ggml-org/ggml, src/ggml-common.h. tests/tiny_lm/test_gguf_tensors.py compares
every format bit by bit with the `gguf` package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats.gguf import GgufHeader, read_bytes

Floats: TypeAlias = NDArray[np.float32]
Bytes: TypeAlias = NDArray[np.uint8]

LARGEST = 1 << 33
"""Values of one tensor at most."""


@dataclass(frozen=True)
class BlockFormat:
    """A type of tensor: bytes of one block, values of one block, and the function from (blocks, bytes) to values."""

    name: str
    bytes: int
    values: int
    decode: Callable[[Bytes], Floats]


def read_tensor(header: GgufHeader, name: str) -> Floats:
    """Return a tensor of the file as float32 in NumPy's order (out, in).

    Raises `ValueError` for an unknown tensor, a type that is not supported, and a file that is cut off.
    """
    if name not in header.tensors:
        raise ValueError(f"the GGUF file has no tensor {short_repr(name)}")
    place = header.tensors[name]
    found = FORMATS.get(place.kind)
    if found is None:
        kind = OTHER_TYPES.get(place.kind, f"type {place.kind}")
        raise ValueError(f"{name} is stored as {kind}, which is not supported: convert the model to Q8_0 or Q4_K")
    count = math.prod(place.shape)
    if not 0 < count <= LARGEST or place.shape[-1] % found.values:
        raise ValueError(f"{name} has a shape that {found.name} cannot store: {place.shape}")
    raw = read_bytes(header, name, count // found.values * found.bytes)
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, found.bytes)
    # PyTorch shares memory only with arrays that it may write to.
    return np.require(found.decode(blocks).reshape(place.shape), np.float32, ["C", "W"])


def as_half(raw: Bytes) -> Floats:
    """Return the float16 number in two bytes of each block, (blocks, 1)."""
    return as_numbers(raw, "<f2").astype(np.float32)


def as_numbers(raw: Bytes, dtype: str) -> NDArray[Any]:
    """Return the bytes of each block as numbers."""
    return np.ascontiguousarray(raw).view(dtype)


def take_bits(raw: Bytes, rows: int, width: int) -> Bytes:
    """Return the numbers of `width` bits in (blocks, n) bytes, (blocks, rows, 8 // width, n // rows).

    The lowest bits of each row of bytes come first.
    """
    shifts = np.arange(0, 8, width, dtype=np.uint8).reshape(1, 1, -1, 1)
    parts = raw.reshape(len(raw), rows, 1, -1) >> shifts
    return np.asarray(parts & np.uint8((1 << width) - 1))


def decode_f32(blocks: Bytes) -> Floats:
    """Decode float32."""
    return np.asarray(as_numbers(blocks, "<f4"))


def decode_f16(blocks: Bytes) -> Floats:
    """Decode float16."""
    return as_half(blocks)


def decode_bf16(blocks: Bytes) -> Floats:
    """Decode bfloat16, the upper half of a float32."""
    return np.asarray((as_numbers(blocks, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32))


def decode_q4_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 4 bits with one scale."""
    q = take_bits(blocks[:, 2:], 1, 4).reshape(-1, 32).astype(np.float32) - np.float32(8)
    return as_half(blocks[:, :2]) * q


def decode_q4_1(blocks: Bytes) -> Floats:
    """Decode 32 values of 4 bits with one scale and one offset."""
    q = take_bits(blocks[:, 4:], 1, 4).reshape(-1, 32).astype(np.float32)
    return as_half(blocks[:, :2]) * q + as_half(blocks[:, 2:4])


def fifth_bits(raw: Bytes) -> Bytes:
    """Return bit 4 of 32 values from 4 bytes, (blocks, 32)."""
    return np.unpackbits(raw, axis=1, bitorder="little") << np.uint8(4)


def decode_q5_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 5 bits with one scale."""
    q = take_bits(blocks[:, 6:], 1, 4).reshape(-1, 32) | fifth_bits(blocks[:, 2:6])
    return as_half(blocks[:, :2]) * (q.astype(np.float32) - np.float32(16))


def decode_q5_1(blocks: Bytes) -> Floats:
    """Decode 32 values of 5 bits with one scale and one offset."""
    q = take_bits(blocks[:, 8:], 1, 4).reshape(-1, 32) | fifth_bits(blocks[:, 4:8])
    return as_half(blocks[:, :2]) * q.astype(np.float32) + as_half(blocks[:, 2:4])


def decode_q8_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 8 bits with one scale."""
    return as_half(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


def decode_q2_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 2 bits in 16 groups."""
    scales, q = blocks[:, :16], take_bits(blocks[:, 16:80], 2, 2).reshape(-1, 16, 16)
    scale = as_half(blocks[:, 80:82]) * (scales & 15).astype(np.float32)
    least = as_half(blocks[:, 82:84]) * (scales >> 4).astype(np.float32)
    return scale[:, :, None] * q.astype(np.float32) - least[:, :, None]


def decode_q3_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 3 bits in 16 groups."""
    high = take_bits(blocks[:, :32], 1, 1).reshape(-1, 256).astype(np.int8)
    q = take_bits(blocks[:, 32:96], 2, 2).reshape(-1, 256).astype(np.int8) - (1 - high) * np.int8(4)
    low = take_bits(blocks[:, 96:104], 1, 4).reshape(-1, 16)
    scales = low | (take_bits(blocks[:, 104:108], 1, 2).reshape(-1, 16) << np.uint8(4))
    scale = as_half(blocks[:, 108:110]) * (scales.astype(np.int8) - np.int8(32)).astype(np.float32)
    return scale[:, :, None] * q.reshape(-1, 16, 16).astype(np.float32)


def scales_of_6_bits(raw: Bytes) -> tuple[Floats, Floats]:
    """Return the 8 scales and 8 minima in 12 bytes of Q4_K and Q5_K, each (blocks, 8)."""
    scale, least, rest = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([scale & 63, (rest & 15) | ((scale >> 2) & 48)], axis=1)
    minima = np.concatenate([least & 63, (rest >> 4) | ((least >> 2) & 48)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def decode_k_with_minima(blocks: Bytes, q: Bytes) -> Floats:
    """Return 256 values in 8 groups of Q4_K and Q5_K; `q` is (blocks, 8, 32)."""
    scales, minima = scales_of_6_bits(blocks[:, 4:16])
    scale, least = as_half(blocks[:, :2]) * scales, as_half(blocks[:, 2:4]) * minima
    return scale[:, :, None] * q.astype(np.float32) - least[:, :, None]


def decode_q4_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 4 bits in 8 groups."""
    return decode_k_with_minima(blocks, take_bits(blocks[:, 16:], 4, 4).reshape(-1, 8, 32))


def decode_q5_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 5 bits in 8 groups."""
    high = take_bits(blocks[:, 16:48], 1, 1).reshape(-1, 8, 32)
    low = take_bits(blocks[:, 48:], 4, 4).reshape(-1, 8, 32)
    return decode_k_with_minima(blocks, low | (high << np.uint8(4)))


def decode_q6_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 6 bits in 16 groups."""
    low = take_bits(blocks[:, :128], 2, 4).reshape(-1, 256)
    high = take_bits(blocks[:, 128:192], 2, 2).reshape(-1, 256)
    q = (low | (high << np.uint8(4))).astype(np.int8) - np.int8(32)
    scale = as_half(blocks[:, 208:210]) * as_numbers(blocks[:, 192:208], "<i1").astype(np.float32)
    return scale[:, :, None] * q.reshape(-1, 16, 16).astype(np.float32)


FORMATS = {
    0: BlockFormat("F32", 4, 1, decode_f32),
    1: BlockFormat("F16", 2, 1, decode_f16),
    2: BlockFormat("Q4_0", 18, 32, decode_q4_0),
    3: BlockFormat("Q4_1", 20, 32, decode_q4_1),
    6: BlockFormat("Q5_0", 22, 32, decode_q5_0),
    7: BlockFormat("Q5_1", 24, 32, decode_q5_1),
    8: BlockFormat("Q8_0", 34, 32, decode_q8_0),
    10: BlockFormat("Q2_K", 84, 256, decode_q2_k),
    11: BlockFormat("Q3_K", 110, 256, decode_q3_k),
    12: BlockFormat("Q4_K", 144, 256, decode_q4_k),
    13: BlockFormat("Q5_K", 176, 256, decode_q5_k),
    14: BlockFormat("Q6_K", 210, 256, decode_q6_k),
    30: BlockFormat("BF16", 2, 1, decode_bf16),
}
"""{ggml's type: its format}."""

OTHER_TYPES = {
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""{ggml's type: its name}, of types that are refused."""
