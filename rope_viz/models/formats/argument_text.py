"""Read the options of a trainer from text: flags of a command line or a shell script, and a simple YAML file."""

from __future__ import annotations

import re
import shlex
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS
from rope_viz.storage.decode_json import decode_json

WORDS = {"true": True, "false": False, "null": None, "none": None, "~": None}
FLAG = re.compile(r"^\s*--[a-zA-Z][\w-]*", re.MULTILINE)
ARRAY = re.compile(r"^\s*\w+=\(|^\s*\)\s*$", re.MULTILINE)
"""The first and the last line of a shell script's array."""
YAML_LINE = re.compile(r"""(?P<indent> *)(?P<key>"[^"]*"|'[^']*'|[\w./-]+) *:(?: +(?P<value>.*))?""")
COMMENT = re.compile(r"(^|\s)#.*$")


def parse_flags(written: str) -> dict[str, Any]:
    """Return {name: value} of flags; one without a value is true. Raise `ValueError` for a word that is no flag."""
    found: dict[str, Any] = {}
    name = ""
    for word in shlex.split(written.replace("\\\n", " ")):
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            found[name] = read_value(value) if sign else True
        elif not name or found[name] is not True:
            raise ValueError(TEXTS("argument_text.no_flag", word=short_repr(word)))
        else:
            found[name] = read_value(word)
    return found


def parse_script(written: str) -> dict[str, Any]:
    """Return {name: value} of the flags in a shell script's arrays; comments and other words are left out."""
    found: dict[str, Any] = {}
    name = ""
    text = "\n".join(COMMENT.sub("", line) for line in ARRAY.sub("", written).splitlines())
    for word in shlex.split(text.replace("\\\n", " ")):
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            found[name] = read_value(value) if sign else True
        elif name and found[name] is True:
            found[name] = read_value(word)
    return found


def parse_yaml(written: str) -> dict[str, Any]:
    """Return the nested keys and single values of a YAML file. Items of lists and texts of several lines are left out.

    Only what the configurations of trainers need: no anchors, no tags, no flow mappings.
    """
    found: dict[str, Any] = {}
    parents: list[tuple[int, dict[str, Any]]] = [(-1, found)]
    for line in written.splitlines():
        match = YAML_LINE.fullmatch(COMMENT.sub("", line).rstrip())
        if match is None:
            continue
        indent, key, value = len(match["indent"]), match["key"].strip("\"'"), (match["value"] or "").strip()
        while parents[-1][0] >= indent:
            parents.pop()
        if value:
            parents[-1][1][key] = read_value(value.strip("\"'"))
        else:
            inner: dict[str, Any] = {}
            parents[-1][1][key] = inner
            parents.append((indent, inner))
    return found


def read_value(written: str) -> Any:
    """Return an object or a list, a number, true, false or null as such, and any other word as text."""
    if written.startswith("{"):
        return decode_json(written, TEXTS("argument_text.not_json", written=short_repr(written)))
    if written.startswith("["):
        try:
            return decode_json(written, "")
        except ValueError:
            return written
    if written.lower() in WORDS:
        return WORDS[written.lower()]
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            continue
    return written


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the options in a text of flags or of YAML; {} where it is neither."""
    try:
        return parse_script(text) if FLAG.search(text) else parse_yaml(text)
    except ValueError:  # an open quotation mark
        return {}
