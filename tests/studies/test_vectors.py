"""Vectors from files and text are read as written, and anything else raises a clear error."""

import io
import json
import pickle
import struct
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.studies.vectors import KINDS, MAX_BYTES, parse_numbers, query_and_key, random_vectors, read_vectors

RANDOM = np.random.default_rng(3)
Q, K = RANDOM.normal(size=(2, 3, 8))


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **options)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def safetensors(tensors, body=None):
    """A safetensors file by its published layout: length, JSON header, data."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + (data if body is None else body)


def tensor(array, kind="F64", dtype="<f8"):
    return (kind, array.shape, array.astype(dtype).tobytes())


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "i4", "u1", "?"])
def test_npy_reads_what_numpy_wrote(dtype):
    array = (10 * np.abs(Q)).astype(dtype)
    for order in (array, np.asfortranarray(array), array[:, ::2], array[0]):
        (found,) = read_vectors("mine.npy", npy(order)).values()
        assert found.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(found, order.astype(np.float64))


def test_small_types_stay_small_until_q_and_k_are_taken():
    (found,) = read_vectors("mine.npz", npz(both=np.ones((2, 1000, 8), dtype=bool))).values()
    assert found.nbytes == 16_000
    q, k = query_and_key({"both": found}, 8)
    assert q.dtype == k.dtype == np.float64


def test_file_of_too_many_numbers_is_refused():
    # 33 kB of packed zeros, which took 254 MB as float64.
    with pytest.raises(ValueError, match="at most 8,388,608 numbers, got 16,777,216"):
        read_vectors("bomb.npz", npz_packed(q=np.zeros(1 << 24, dtype=bool)))
    assert read_vectors("most.npz", npz_packed(q=np.zeros(1 << 23, dtype=bool)))["q"].nbytes == 1 << 23


def npz_packed(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def test_npz_reads_every_array():
    found = read_vectors("both.npz", npz(q=Q, k=K.astype(np.float32)))
    np.testing.assert_array_equal(found["q"], Q)
    np.testing.assert_array_equal(found["k"], K.astype(np.float32))


def test_safetensors_reads_every_float_type():
    upper = (Q.astype("<f4").view("<u4") >> 16).astype("<u2")
    found = read_vectors(
        "x.SAFETENSORS",
        safetensors(
            {
                "double": tensor(Q),
                "single": tensor(Q, "F32", "<f4"),
                "half": tensor(Q, "F16", "<f2"),
                "brain": ("BF16", Q.shape, upper.tobytes()),
            }
        ),
    )
    np.testing.assert_array_equal(found["double"], Q)
    np.testing.assert_array_equal(found["single"], Q.astype(np.float32))
    np.testing.assert_array_equal(found["half"], Q.astype(np.float16))
    np.testing.assert_array_equal(found["brain"], (upper.astype("<u4") << 16).view("<f4"))
    np.testing.assert_allclose(found["brain"], Q, rtol=2**-7)


def test_bfloat16_values_match_torch():
    torch = pytest.importorskip("torch")
    brain = torch.tensor(Q).to(torch.bfloat16)
    raw = brain.view(torch.int16).numpy().tobytes()
    found = read_vectors("x.safetensors", safetensors({"q": ("BF16", Q.shape, raw)}))["q"]
    np.testing.assert_array_equal(found, brain.double().numpy())


def test_csv_reads_rows_with_or_without_names():
    text = "\n".join(",".join(map(repr, row)) for row in Q.tolist())
    for data in (text, "a,b,c,d,e,f,g,h\r\n" + text.replace("\n", "\r\n"), text.replace(",", ";"), "\ufeff" + text):
        (found,) = read_vectors("mine.csv", data.encode()).values()
        np.testing.assert_array_equal(found, Q)


def test_typed_numbers_may_be_a_pasted_list():
    np.testing.assert_array_equal(parse_numbers(" [0.5, -1e-3 2]\n"), [0.5, -1e-3, 2.0])
    np.testing.assert_array_equal(parse_numbers("[[1, 2],\n [3, 4]]"), [[1.0, 2.0], [3.0, 4.0]])


def test_q_and_k_are_found_by_name_by_number_or_by_row():
    for arrays in (
        {"k": K, "other": Q[:, :2], "q": Q},
        {"Query": Q, "Key": K, "value": K},
        {"first": Q, "second": K},
        {"both": np.stack([Q, K])},
    ):
        q, k = query_and_key(arrays, 8)
        np.testing.assert_array_equal(q, Q)
        np.testing.assert_array_equal(k, K)
    q, k = query_and_key({"rows": np.stack([Q[0], K[0]])}, 8)
    np.testing.assert_array_equal(k, K[0])


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"q": Q},
        {"a": Q, "b": K, "c": K},
        {"q": Q, "k": K[:2]},
        {"q": Q[:, :4], "k": K[:, :4]},
        {"q": Q[None], "k": K},
    ],
)
def test_file_without_q_and_k_error_names_its_arrays(arrays):
    with pytest.raises(ValueError, match="must"):
        query_and_key(arrays, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_random_vectors_are_the_same_for_the_same_seed(kind):
    first, again, other = (random_vectors(64, seed=seed, count=500, kind=kind) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], other[0])
    # Correlation of q and k: 0 for independent ones, 1/√2 for a copy with noise of the same size.
    q, k = first
    expected = 0.0 if kind == "iid" else 0.5**0.5
    assert np.corrcoef(q.ravel(), k.ravel())[0, 1] == pytest.approx(expected, abs=0.03)


class Trap:
    """Unpickling this would print."""

    def __reduce__(self):
        return print, ("unpickled",)


def member(name, data, kind=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        archive.writestr(name, data)
    return stream.getvalue()


def claimed(shape, dtype="<f8"):
    """A .npy header that promises more than follows."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(16)


HUGE = {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 4]}
BAD = {
    "pickle.npy": npy(np.array([Trap()], dtype=object), allow_pickle=True),
    "pickle.npz": member("q.npy", npy(np.array([Trap()], dtype=object), allow_pickle=True)),
    "raw_pickle.npy": pickle.dumps(Trap()),
    "claim.npy": claimed((1 << 40,)),
    "overflow.npy": claimed((1 << 62, 4)),
    "negative.npy": claimed((-1, -2)),
    "complex.npy": npy(Q + 1j),
    "struct.npy": npy(np.zeros(3, dtype=[("a", "f4"), ("b", "f4")])),
    "words.npy": npy(np.array(["a", "b"])),
    "nan.npy": npy(np.array([1.0, np.nan])),
    "empty.npy": b"",
    "short.npy": npy(Q)[:-1],
    "bomb.npz": member("q.npy", bytes(MAX_BYTES + 1)),
    "lzma.npz": member("q.npy", npy(Q), zipfile.ZIP_LZMA),
    "empty.npz": member("x", b"")[:-4],
    "notzip.npz": b"PK\x03\x04" + bytes(50),
    "many.safetensors": safetensors({str(n): tensor(Q[0]) for n in range(300)}),
    "none.safetensors": safetensors({}),
    "short.safetensors": b"\x01\x02",
    "length.safetensors": struct.pack("<Q", 2**63) + b"{}",
    "list.safetensors": struct.pack("<Q", 2) + b"[]",
    "deep.safetensors": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "latin.safetensors": struct.pack("<Q", 4) + b"{\xff\xff}",
    "past.safetensors": safetensors({"q": tensor(Q)}, body=b""),
    "int.safetensors": safetensors({"q": tensor(Q, "I64", "<i8")}),
    "nan.safetensors": safetensors({"q": tensor(Q * np.inf)}),
    **{
        f"entry{n}.safetensors": struct.pack("<Q", len(text)) + text + bytes(64)
        for n, text in enumerate(
            json.dumps({"q": entry}).encode()
            for entry in (
                HUGE,
                7,
                None,
                {},
                {**HUGE, "dtype": ["F32"]},
                {**HUGE, "shape": "12"},
                {**HUGE, "shape": [True]},
                {**HUGE, "shape": [-1, -1]},
                {**HUGE, "shape": [1.0]},
                {**HUGE, "shape": [0] * 40},
                {**HUGE, "data_offsets": [4]},
                {**HUGE, "shape": [1], "data_offsets": [8, 4]},
            )
        )
    },
    "ragged.csv": b"1,2\n3\n",
    "words.csv": b"1,2\n3,x\n",
    "names_only.csv": b"a,b\n",
    "infinite.csv": b"1,inf\n",
    "latin.csv": b"\xe9\xff",
    "empty.txt": b"",
    "long.txt": b"1 " * (3 << 20),
    "large.npy": bytes(MAX_BYTES + 1),
    "model.pt": b"x",
    "noname": b"x",
}


@pytest.mark.parametrize("name", BAD)
def test_unreadable_vectors_raise_a_clear_error(name, capsys):
    with pytest.raises(ValueError, match=r"file|tensor|text|line|must") as caught:
        read_vectors(name, BAD[name])
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


GOOD = {
    "a.npy": npy(Q),
    "a.npz": npz(q=Q, k=K),
    "a.safetensors": safetensors({"q": tensor(Q), "k": tensor(K, "F16", "<f2")}),
    "a.csv": b"1,2,3\n4,5,6\n",
}


@given(
    st.sampled_from(sorted(GOOD)), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6), st.data()
)
@settings(max_examples=600, deadline=None)
def test_a_damaged_file_is_read_or_refused(name, changes, data):
    damaged = bytearray(GOOD[name])
    for where, value in changes:
        damaged[where % len(damaged)] = value
    keep = data.draw(st.integers(0, len(damaged)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            arrays = read_vectors(name, bytes(damaged[: keep or None]))
        except ValueError:
            return
    assert all(array.dtype.kind in "biuf" and np.isfinite(array).all() for array in arrays.values())
