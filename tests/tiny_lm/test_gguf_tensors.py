"""Tensors of a GGUF file have the values that the gguf package computes, bit by bit; what cannot be read is refused."""

import base64
import json
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest

from rope_viz.models.formats.gguf import GgufHeader, TensorPlace, read_header
from rope_viz.real_models import gguf_model
from rope_viz.real_models.gguf_model import FORMATS, read_tensor

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "gguf_blocks.json").read_text(encoding="utf-8"))["rows"]


def header_of(path, blocks, kind, shape):
    path.write_bytes(bytes(8) + blocks)
    return GgufHeader(path, {}, {"x": TensorPlace(kind, shape, 8)})


def test_goldens_cover_every_format():
    assert {row["kind"]: name for name, row in GOLDEN.items()} == {kind: each.name for kind, each in FORMATS.items()}


@pytest.mark.parametrize("name", GOLDEN)
def test_blocks_have_the_values_of_the_gguf_package(name, tmp_path):
    row = GOLDEN[name]
    wanted = np.frombuffer(base64.b64decode(row["values"]), "<f4").reshape(2, -1)
    header = header_of(tmp_path / "x", base64.b64decode(row["blocks"]), row["kind"], wanted.shape)
    found = read_tensor(header, "x")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("name", GOLDEN)
def test_many_random_blocks_equal_the_installed_package(name, tmp_path):
    from tests.goldens.make_gguf_blocks import random_blocks

    blocks = random_blocks(name, 500, np.random.default_rng(7))
    wanted = gguf.dequantize(blocks, gguf.GGMLQuantizationType[name])
    header = header_of(tmp_path / "x", blocks.tobytes(), GOLDEN[name]["kind"], wanted.shape)
    np.testing.assert_array_equal(read_tensor(header, "x").view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize(
    ("kind", "shape", "said"),
    [
        (23, (2, 256), "x is stored as IQ4_XS, which is not supported"),
        (77, (2, 256), "x is stored as type 77"),
        (12, (2, 32), "shape that Q4_K cannot store"),
        (0, (0,), "shape that F32 cannot store"),
        (0, (1 << 40, 1 << 40), "shape that F32 cannot store"),
        (0, (1 << 20,), "truncated"),
    ],
)
def test_unreadable_tensor_is_refused_by_name(kind, shape, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        read_tensor(header_of(tmp_path / "x", bytes(64), kind, shape), "x")
    with pytest.raises(ValueError, match="no tensor 'y'"):
        read_tensor(header_of(tmp_path / "x", bytes(64), kind, shape), "y")


@pytest.mark.parametrize("part", [1, 300, 512, 1 << 20])
def test_parts_of_a_tensor_are_decoded_one_after_the_other(part, tmp_path, monkeypatch):
    """Also where a part is smaller than a row, or rows do not fill the last part."""
    from tests.goldens.make_gguf_blocks import random_blocks

    monkeypatch.setattr(gguf_model, "PART", part)
    blocks = random_blocks("Q4_K", 10, np.random.default_rng(1))
    wanted = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q4_K)
    found = read_tensor(header_of(tmp_path / "x", blocks.tobytes(), 12, (5, 1, 512)), "x")
    np.testing.assert_array_equal(found, wanted.reshape(5, 1, 512))
    assert found.flags.writeable


def test_memory_for_decoding_does_not_grow_with_the_tensor(tmp_path):
    count = 8_000_000
    header = header_of(tmp_path / "x", bytes(count // 32 * 34), 8, (count // 1000 // 32, 32_000))
    tracemalloc.start()
    found = read_tensor(header, "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < found.nbytes + count // 32 * 34 + 16 * gguf_model.PART


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_missing_package_is_one_sentence_with_the_command(name, tmp_path, monkeypatch):
    """Only for types with blocks: numbers are read without it."""
    monkeypatch.setitem(sys.modules, "gguf", None)
    row = GOLDEN[name]
    wanted = np.frombuffer(base64.b64decode(row["values"]), "<f4").reshape(2, -1)
    header = header_of(tmp_path / "x", base64.b64decode(row["blocks"]), row["kind"], wanted.shape)
    if name in ("F32", "F16", "BF16"):
        np.testing.assert_array_equal(read_tensor(header, "x"), wanted)
        return
    with pytest.raises(ValueError, match=r"needs the gguf package: pip install 'rope-viz\[gguf\]'"):
        read_tensor(header, "x")


def test_unsupported_type_is_refused_without_the_package_too(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match="x is stored as type 23, which is not supported"):
        read_tensor(header_of(tmp_path / "x", bytes(64), 23, (2, 256)), "x")


def test_package_is_not_imported_before_a_tensor_is_read():
    code = "import sys, rope_viz.real_models.gguf_model as model; assert 'gguf' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def test_a_vocabulary_is_read_only_when_asked_for(tmp_path):
    words = [f"w{number}" for number in range(5000)]
    array = struct.pack("<IIQ", 9, 8, len(words)) + b"".join(text(word) for word in words)
    scores = struct.pack("<IIQ", 9, 6, 5000) + struct.pack("<5000f", *range(5000))
    nested = struct.pack("<IIQ", 9, 9, 1)
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + text("words") + array + text("scores") + scores)
    assert read_header(path).keys == {"words": None, "scores": None}
    assert read_header(path, long_arrays=True).keys == {"words": words, "scores": list(range(5000))}
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("nested") + nested)
    with pytest.raises(ValueError, match="array of unknown type 9"):
        read_header(path)
