"""Safetensors files survive writing and reading, also by the official library; inconsistent ones are refused."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.studies.tensors import MAX_HEADER, open_tensors, write_tensors

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([1.5, -2.0], dtype=np.float16),
    "b": np.array(7.25),
    "none": np.empty((0, 4), dtype=np.float32),
}


def raw(header, body=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + body


def entry(first, last, shape=None, kind="F32"):
    return {"dtype": kind, "shape": [(last - first) // 4] if shape is None else shape, "data_offsets": [first, last]}


def test_written_tensors_are_read_back(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, ARRAYS, {"who": "me"})
    for source in (path, path.read_bytes()):
        file = open_tensors(source)
        assert dict(file.metadata) == {"who": "me"}
        assert set(file.entries) == set(ARRAYS)
        for name, array in ARRAYS.items():
            found = file.read_tensor(name)
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)


def test_safetensors_library_reads_and_writes_the_same(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    write_tensors(tmp_path / "ours.safetensors", ARRAYS, {"who": "me"})
    found = library.load_file(tmp_path / "ours.safetensors")
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in ARRAYS.items()}
    library.save_file(ARRAYS, tmp_path / "theirs.safetensors")
    file = open_tensors(tmp_path / "theirs.safetensors")
    assert {name: file.read_tensor(name).tolist() for name in file.entries} == {
        n: a.tolist() for n, a in ARRAYS.items()
    }


def test_bfloat16_is_the_upper_half_of_a_float32():
    values = np.array([1.0, -3.140625, 2.0**-100], dtype="<f4")
    body = (values.view("<u4") >> 16).astype("<u2").tobytes()
    file = open_tensors(raw({"x": entry(0, 6, [3], "BF16")}, body))
    np.testing.assert_array_equal(file.read_tensor("x"), values)


def test_missing_tensor_is_named():
    with pytest.raises(ValueError, match="no tensor 'x'"):
        open_tensors(raw({"y": entry(0, 4)}, bytes(4))).read_tensor("x")


def test_file_cut_after_opening_is_reported(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, ARRAYS)
    file = open_tensors(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cut after it was opened"):
        file.read_tensor("b")


BAD = {
    "empty": b"",
    "short": b"\x01\x02",
    "past the end": struct.pack("<Q", 2**63) + b"{}",
    "not json": raw(b"{a}"),
    "not text": raw(b"{\xff\xff}"),
    "a list": raw([]),
    "deep": raw(b"[" * 200_000),
    "nothing": raw({}),
    "metadata": raw({"__metadata__": {"a": 1}, "x": entry(0, 4)}, bytes(4)),
    "a name twice": raw(b'{"x": ' + json.dumps(entry(0, 4)).encode() + b', "x": 1}', bytes(4)),
    "whole numbers": raw({"x": entry(0, 4, kind="I32")}, bytes(4)),
    "kind of lists": raw({"x": {**entry(0, 4), "dtype": ["F32"]}}, bytes(4)),
    "overlap": raw({"x": entry(0, 8), "y": entry(4, 12)}, bytes(12)),
    "gap": raw({"x": entry(0, 4), "y": entry(8, 12)}, bytes(12)),
    "late start": raw({"x": entry(4, 8)}, bytes(8)),
    "bytes to spare": raw({"x": entry(0, 4)}, bytes(8)),
    "bytes missing": raw({"x": entry(0, 8)}, bytes(4)),
    "shape": raw({"x": entry(0, 8, [3])}, bytes(8)),
    "huge shape": raw({"x": entry(0, 8, [2**40, 2**40])}, bytes(8)),
    "negative": raw({"x": entry(0, 8, [-1, -2])}, bytes(8)),
    "true": raw({"x": entry(0, 4, [True])}, bytes(4)),
    "many axes": raw({"x": entry(0, 4, [1] * 40)}, bytes(4)),
    "three offsets": raw({"x": {**entry(0, 4), "data_offsets": [0, 2, 4]}}, bytes(4)),
    "backwards": raw({"x": {**entry(0, 4), "data_offsets": [4, 0]}}, bytes(4)),
    "a number": raw({"x": 7}, bytes(4)),
    "many": raw({str(n): entry(0, 0) for n in range(1025)}),
}


@pytest.mark.parametrize("name", BAD)
def test_inconsistent_file_raises_a_clear_error(name, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(BAD[name])
    for source in (BAD[name], path):
        with pytest.raises(ValueError, match=r"file|tensor|header") as caught:
            open_tensors(source)
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


def test_a_header_larger_than_any_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "x.safetensors"
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", MAX_HEADER + 1))
        file.truncate(MAX_HEADER + 100)
    with pytest.raises(ValueError, match="header must be at most 8 MiB"):
        open_tensors(path)


def test_only_floats_are_written(tmp_path):
    with pytest.raises(ValueError, match="'n' must be float16, float32 or float64, got int64"):
        write_tensors(tmp_path / "x", {"n": np.arange(3)})


@given(st.binary(max_size=60), st.integers(0, 200))
def test_arbitrary_bytes_never_crash_the_parser(noise, at):
    good = raw({"x": entry(0, 8), "y": entry(8, 12)}, bytes(12))
    broken = good[:at] + noise + good[at + len(noise) :]
    try:
        file = open_tensors(broken)
    except ValueError:
        return
    for name in file.entries:
        assert file.read_tensor(name).size >= 0
