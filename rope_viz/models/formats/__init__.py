"""Formats in which a model's config comes: JSON, GGUF, params.json, Megatron's arguments."""

from collections.abc import Iterable, Mapping
from typing import Any

from rope_viz.models import TEXTS
from rope_viz.storage.decode_json import read_own
from rope_viz.texts import join
from rope_viz.texts.texts import join_items

FILE = "_source_file"
"""The key of a config that was read from another kind of file: what that file is, and what else it says."""

SIDE = "_side_files"
"""The key of a config that was read together with the files next to it: what they say."""

NAMES: Mapping[str, Any] = read_own(__file__, "names.json")
"""How each format names what a config.json holds."""

MOST_REMARKS, LONGEST_REMARK = 8, 200
SHOWN = 6


def make_source(format: str, remarks: Iterable[str], unread: Iterable[str]) -> dict[str, Any]:
    """Return what is kept under `FILE` of a format without rules of its own.

    `remarks` are as `describe_remark` takes them, `unread` names of keys.
    """
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
    more = len(names) - SHOWN
    shown = join_items(names[:SHOWN])
    read = TEXTS("source.read", format=TEXTS.group("source.format").get(format, format[:60]))
    rest = TEXTS("source.unread_more" if more > 0 else "source.unread", names=shown, more=more) if names else ""
    return join(read, *map(describe_remark, list(remarks or ())[:MOST_REMARKS]), rest)


def describe_remark(remark: str) -> str:
    """Return the sentence of a remark: the key of an entry, and maybe a value. Any other text is returned as it is."""
    key, _, value = remark.partition(" ")
    return TEXTS(f"remark.{key}", value=value) if key in TEXTS.group("remark") else remark


def is_texts(found: Any) -> bool:
    """True for a list of short texts."""
    return isinstance(found, list) and all(isinstance(each, str) and len(each) <= LONGEST_REMARK for each in found)


def without_source(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config as it is written to a file."""
    return {key: value for key, value in config.items() if key not in (FILE, SIDE)}
