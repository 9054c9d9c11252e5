"""Files that users drop or name: the stored content is the file's name and data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rope_viz.picture.blob_store import require_size
from rope_viz.picture.choices import Kept
from rope_viz.picture.picture_request import T

LARGEST_JSON = 4 << 20
"""Bytes of a file of numbers that one command wrote. A search of 100 points takes 100 kB."""


def filed(name: str, data: bytes) -> bytes:
    """Join a file's name and data into a stored content."""
    return name.replace("\0", "").encode() + b"\0" + data


def name_of(filed: bytes) -> str:
    """Return the file name of a stored content."""
    return filed.partition(b"\0")[0].decode(errors="replace")


def data_of(filed: bytes) -> bytes:
    """Return the data of a stored content."""
    return filed.partition(b"\0")[2]


def load_file(written: str) -> bytes:
    """Read a file into the form of a stored content."""
    return filed(Path(written).name, load_bytes(written))


def load_bytes(written: str) -> bytes:
    """Read a file whose name does not matter."""
    return Path(written).read_bytes()


def json_file(read: Callable[[bytes], T], *, largest: int = LARGEST_JSON, **more: Any) -> Kept[T]:
    """Make a choice of a JSON file of at most `largest` bytes that `read` decodes."""

    def decode(content: bytes) -> T:
        require_size(content, largest)
        return read(data_of(content))

    return Kept(decode=decode, load=load_file, suffixes=(".json",), largest=largest, **more)
