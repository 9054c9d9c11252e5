"""Formats in which a model's config comes: JSON, GGUF, params.json, Megatron's arguments."""

from collections.abc import Iterable, Mapping
from typing import Any

from rope_viz.storage.decode_json import read_own

FILE = "_source_file"
"""The key of a config that was read from another kind of file: what that file is, and what else it says."""

SIDE = "_side_files"
"""The key of a config that was read together with the files next to it: what they say."""

NAMES: Mapping[str, Any] = read_own(__file__, "names.json")
"""How each format names what a config.json holds."""

MOST_REMARKS, LONGEST_REMARK = 8, 200
SHOWN = 6


def make_source(format: str, remarks: Iterable[str], unread: Iterable[str]) -> dict[str, Any]:
    """Return what is kept under `FILE` of a format without rules of its own; `unread` are names of keys."""
    return {"format": format, "remarks": list(remarks), "unread": [name for name in unread if isinstance(name, str)]}


def find_format(config: Mapping[str, Any]) -> str:
    """Return what kind of file a config was read from; empty for a config.json."""
    found = config.get(FILE)
    format = found.get("format") if isinstance(found, Mapping) else None
    return format if isinstance(format, str) else ""


def describe_note(source: Mapping[str, Any]) -> str:
    """Return the sentences on such a file; "" for anything else, as a config of unknown origin may hold."""
    format, remarks, unread = (source.get(name) for name in ("format", "remarks", "unread"))
    if not isinstance(format, str) or not is_texts(remarks) or not is_texts(unread):
        return ""
    names = [str(name)[:40] for name in unread or ()]
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    texts = [f"Read from {format[:60]}.", *list(remarks or ())[:MOST_REMARKS]]
    return " ".join([*texts, *([f"Not read: {shown}."] if names else [])])


def is_texts(found: Any) -> bool:
    """True for a list of short texts."""
    return isinstance(found, list) and all(isinstance(each, str) and len(each) <= LONGEST_REMARK for each in found)


def without_source(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config as it is written to a file."""
    return {key: value for key, value in config.items() if key not in (FILE, SIDE)}
