"""Vectors: the user's own from a file or typed, random ones by seed, fixed ones by name. Nothing is unpickled.

npy and npz: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
safetensors: https://github.com/huggingface/safetensors#format (8 bytes of length, a JSON header, the raw data)
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.spec import FloatArray, require_number, short_repr
from rope_viz.studies.tensors import open_tensors
from rope_viz.texts import Texts
from rope_viz.texts.outside_text import clean_text
from rope_viz.texts.texts import join_items

TEXTS = Texts("studies")

Kind: TypeAlias = Literal["iid", "noisy-copy"]

KINDS: tuple[Kind, ...] = ("iid", "noisy-copy")
SUFFIXES = (".npy", ".npz", ".safetensors", ".csv", ".txt")
MAX_BYTES = 32 << 20  # of a file, packed and unpacked
MAX_NUMBERS = 8 << 20  # of all arrays, which take eight bytes each while a picture is computed
MAX_TEXT = 4 << 20
MAX_TENSORS = 256
# The three entries of a .npy header, a Python literal like {'descr': '<f8', 'fortran_order': False, 'shape': (3, 8), }
NPY_DTYPE = re.compile(r"""['"]descr['"]:\s*['"]([<>|=]?(?:f[248]|[iu][1248]|b1))['"]""")
NPY_ORDER = re.compile(r"""['"]fortran_order['"]:\s*(True|False)""")
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
NPY_SHAPE = re.compile(r"""['"]shape['"]:\s*\(([\d\s,]{0,100})\)""")


def read_vectors(name: str, data: bytes) -> dict[str, Array]:
    """Read every array of an uploaded file by name, finite, in its own type. The suffix of `name` decides the format.

    Raises `ValueError` for other files, numbers that are not real, more than 8,388,608 numbers, and above 32 MiB (text:
    4 MiB), unpacked or not.
    """
    found = read_arrays(name, data)
    require_numbers(sum(array.size for array in found.values()))
    return found


def read_arrays(name: str, data: bytes) -> dict[str, Array]:
    """Read every array of a file as `read_vectors` does, without a limit on the number of numbers."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(TEXTS("file.suffix", suffixes=join_items(SUFFIXES), name=short_repr(PurePath(name).name)))
    require_size(len(data), TEXTS("names.file"))
    if suffix == ".npy":
        return {clean_text(PurePath(name).stem): read_npy(data, TEXTS("names.file"))}
    if suffix == ".npz":
        return read_npz(data)
    if suffix == ".safetensors":
        return read_safetensors(data)
    try:
        return {clean_text(PurePath(name).stem): parse_numbers(data.decode("utf-8-sig"))}
    except UnicodeDecodeError:
        raise ValueError(TEXTS("file.no_text")) from None


def parse_numbers(text: str) -> FloatArray:
    """Parse typed numbers: one row to (n,), several to (rows, n); separated by commas, semicolons, tabs or spaces.

    Brackets are ignored, so that a printed list can be pasted, and a first row of names is skipped.
    """
    require_size(len(text), TEXTS("names.text"), MAX_TEXT)
    rows: list[list[float]] = []
    for number, line in enumerate(text.translate(str.maketrans(",;\t[]()", "       ")).splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if not rows and number == 1 and not any(map(is_number, words)):
            continue
        bad = [word for word in words if not is_number(word)]
        if bad:
            raise ValueError(TEXTS("numbers.words", line=number, given=short_repr(bad[0])))
        rows.append([float(word) for word in words])
        if len(rows[-1]) != len(rows[0]):
            raise ValueError(TEXTS("numbers.ragged", line=number, count=len(rows[-1]), first=len(rows[0])))
    if not rows:
        raise ValueError(TEXTS("numbers.none"))
    return to_finite(np.array(rows[0] if len(rows) == 1 else rows), TEXTS("names.text"))


def query_and_key(arrays: Mapping[str, Array], head_dim: int) -> tuple[FloatArray, FloatArray]:
    """Return q and k as float64 from the arrays of a file, both (head_dim,) or both (tokens, head_dim).

    They are the arrays named q and k (or query and key), else the only two arrays, else the two halves of a single
    array whose first axis is 2. Raises `ValueError` that names the arrays found.
    """
    by_name = {name.lower(): array for name, array in arrays.items()}
    found = next(((by_name[q], by_name[k]) for q, k in (("q", "k"), ("query", "key")) if {q, k} <= set(by_name)), None)
    values = list(arrays.values())
    if found is None and len(values) == 2:
        found = values[0], values[1]
    if found is None and len(values) == 1 and values[0].ndim > 1 and values[0].shape[0] == 2:
        found = values[0][0], values[0][1]
    if found is None:
        seen = join_items([f"{name} {array.shape}" for name, array in list(arrays.items())[:4]])
        raise ValueError(TEXTS("file.no_q_and_k", seen=seen or TEXTS("names.nothing")))
    q, k = found
    if q.shape != k.shape or q.ndim not in (1, 2) or q.shape[-1] != head_dim or not q.size:
        raise ValueError(TEXTS("file.shapes", size=head_dim, q=str(q.shape), k=str(k.shape)))
    return q.astype(np.float64), k.astype(np.float64)


def random_vectors(
    head_dim: int, *, seed: int, count: int = 1, kind: Kind = "iid", sigma: float = 1.0, noise: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return random q and k, each (count, head_dim), the same for the same seed.

    "iid": every entry of both is normal with mean 0 and standard deviation `sigma`. "noisy-copy": k is q plus normal
    noise of standard deviation `noise`.
    """
    require_number(head_dim, "head_dim", least=1, most=1 << 13, integer=True)
    require_number(count, "count", least=1, most=1 << 16, integer=True)
    require_number(seed, "seed", least=0, integer=True)
    require_number(sigma, "sigma", least=0.0)
    require_number(noise, "noise", least=0.0)
    if kind not in KINDS:
        raise ValueError(f"kind must be 'iid' or 'noisy-copy', got {short_repr(kind)}")
    random = np.random.default_rng(int(seed))
    q = sigma * random.standard_normal((int(count), int(head_dim)))
    other = random.standard_normal((int(count), int(head_dim)))
    return q, sigma * other if kind == "iid" else q + noise * other


def draw_normals(key: str, *shape: int) -> FloatArray:
    """Return standard normal deviates, float64, of this shape; a key gives the same numbers in every process.

    SHAKE-256 (FIPS 202) and the Box-Muller transform make them independent of PYTHONHASHSEED and NumPy's generators.
    Another machine's logarithm may change the last digit.
    """
    size = math.prod(shape)
    half = (size + 1) // 2
    raw = np.frombuffer(hashlib.shake_256(key.encode()).digest(16 * half), dtype="<u8").astype(np.uint64)
    # 53 bits fill a float64; the half step keeps 0 out of the logarithm.
    uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:half])), 2.0 * math.pi * uniform[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size].reshape(shape)


def parse_vector(text: str | Sequence[float], size: int) -> FloatArray:
    """Parse a vector of `size` numbers from a list, or from text with commas, spaces or lines between them.

    Raises `ValueError` that names the bad entry, or the number of entries.
    """
    words = text.replace(",", " ").replace(";", " ").strip("[]() \n").split() if isinstance(text, str) else list(text)
    numbers = []
    for word in words:
        try:
            number = float(word)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(TEXTS("numbers.no_number", given=short_repr(word))) from None
        require_number(number, TEXTS("names.entry"), least=-1e30, most=1e30)
        numbers.append(number)
    if len(numbers) != size:
        raise ValueError(TEXTS("numbers.vector_size", size=size, count=len(numbers)))
    return np.array(numbers)


def read_npy(data: bytes, label: str) -> Array:
    """Read one array in NumPy's format. The header is matched by regex, because NumPy's own parser evaluates it.

    The claimed size must equal the actual size before anything of that size is allocated.
    """
    has_long_header = data[6:7] in (b"\x02", b"\x03")
    begin = 12 if has_long_header else 10
    end = begin + int.from_bytes(data[8:begin], "little")
    header = data[begin:end].decode("latin-1")
    shape, order = NPY_SHAPE.search(header), NPY_ORDER.search(header)
    if data[:6] != b"\x93NUMPY" or end > len(data) or shape is None or order is None:
        raise ValueError(TEXTS("file.no_npy", name=label))
    kind = NPY_DTYPE.search(header)
    if kind is None:
        raise ValueError(TEXTS("file.dtype", name=label))
    dtype, body = np.dtype(kind[1]), data[end:]
    sizes = [int(size) for size in shape[1].replace(",", " ").split()]
    if len(sizes) > 8 or max(sizes, default=0) > MAX_BYTES or math.prod(sizes) * dtype.itemsize != len(body):
        raise ValueError(
            TEXTS("file.claims", name=label, shape=short_repr(tuple(sizes)), dtype=str(dtype), bytes=len(body))
        )
    return to_finite(np.frombuffer(body, dtype).reshape(sizes, order="F" if order[1] == "True" else "C"), label)


def read_npz(data: bytes) -> dict[str, Array]:
    """Read every array of a .npz file."""
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            require_count(len(members))
            require_size(sum(member.file_size for member in members), TEXTS("names.unpacked"))
            for member in members:
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(TEXTS("file.compression"))
                # A member unpacks to no more than its declared size, whatever the compressed bytes hold.
                with archive.open(member) as stream:
                    name = clean_text(member.filename).removesuffix(".npy")
                    arrays[name] = read_npy(stream.read(member.file_size), short_repr(name))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
        raise ValueError(TEXTS("file.no_npz")) from None
    return arrays


def read_safetensors(data: bytes) -> dict[str, Array]:
    """Read every F16, BF16, F32 or F64 tensor of a safetensors file."""
    file = open_tensors(data, most=MAX_TENSORS)
    return {
        name: to_finite(file.read_tensor(name), TEXTS("names.tensor", name=short_repr(name))) for name in file.entries
    }


def to_finite(values: Array, label: str) -> Array:
    """Return a copy of the values in this machine's byte order; raise `ValueError` if one is not finite."""
    if not np.isfinite(values).all():
        raise ValueError(TEXTS("file.finite", name=label))
    return values.astype(values.dtype.newbyteorder("="))


def require_numbers(count: int) -> None:
    """Raise `ValueError` for more numbers than pictures can be computed from."""
    if count > MAX_NUMBERS:
        raise ValueError(TEXTS("file.many_numbers", most=MAX_NUMBERS, count=count))


def require_size(size: int, label: str, most: int = MAX_BYTES) -> None:
    """Raise `ValueError` above the limit."""
    if size > most:
        raise ValueError(TEXTS("file.large", name=label, most=most >> 20, size=size / (1 << 20)))


def require_count(count: int) -> None:
    """Raise `ValueError` for a file with no or too many arrays."""
    if not 1 <= count <= MAX_TENSORS:
        raise ValueError(TEXTS("file.arrays", most=MAX_TENSORS, count=count))


def is_number(word: str) -> bool:
    """True if `float` can parse it."""
    try:
        float(word)
    except ValueError:
        return False
    return True
