"""Repair of texts that are almost JSON: trailing commas, comments, and quotes that are not double quotes.

Nothing else is repaired, so a text that is cut off or is another format stays refused. The page and the command line
both use it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from rope_viz.models import TEXTS
from rope_viz.models.formats.json_source import NotJsonError, Raw, decode_utf8, read_raw
from rope_viz.storage.limits import REPAIRED_CHARACTERS
from rope_viz.texts.texts import join_items, join_list

Kind: TypeAlias = Literal["comma", "comment", "quotes"]
MOST_LINES = 5
# A token is a string, a comment, a comma, a closing bracket, a quote that nothing closes, or a run of the rest.
TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<quotes>'(?:[^'\\\n]|\\.)*'
      |[\u201c\u201d\u201e](?:[^\u201c\u201d\\\n]|\\.)*[\u201c\u201d]
      |\u2018[^\u2018\u2019\n]*\u2019)
    |(?P<comment>[ \t]*(?://[^\r\n]*|\#[^\r\n]*|/\*[\s\S]*?\*/))
    |(?P<comma>,)
    |(?P<closing>[}\]])
    |(?P<open>["'\u201c\u201d\u201e\u2018]|/\*)
    |(?P<space>\s+)
    |(?P<rest>[^\s"'\u201c\u201d\u201e\u2018/\#,}\]]+|/)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Fix:
    """One repaired place of a text; line and column count from 1."""

    kind: Kind
    line: int
    column: int


def repair_syntax(text: str) -> tuple[str, tuple[Fix, ...]]:
    """Return the text with the same number of lines and without the faults repaired here, and where they were.

    The result need not be JSON: other faults stay.
    """
    out: list[str] = []
    fixes: list[Fix] = []
    line, line_start = 1, 0
    last, comma = "{", -1  # the last character that is neither space nor comment; the comma waiting for its successor
    comma_fix = Fix("comma", 0, 0)
    for token in TOKEN.finditer(text):
        kind, word = token.lastgroup, token.group()
        if kind == "open":
            return text, ()  # nothing closes it, so the rest cannot be told apart
        start = token.start() + len(word) - len(word.lstrip())
        at = line, start - line_start + 1
        if kind == "comment":
            fixes.append(Fix("comment", *at))
            block = word.endswith("*/") and "\n" not in word
            out.append(" " if block else "\n" * word.count("\n"))  # the space keeps 1/**/2 from becoming 12
        elif kind == "quotes":
            fixes.append(Fix("quotes", *at))
            out.append(_double_quoted(word[1:-1]))
        else:
            if kind == "closing" and comma >= 0:
                out[comma] = ""
                fixes.append(comma_fix)
            out.append(word)
        if kind == "comma":
            comma, comma_fix = (-1 if last in "{[," else len(out) - 1), Fix("comma", *at)
        elif kind not in ("comment", "space"):
            comma = -1
        if kind not in ("comment", "space"):
            last = word[-1]
        if "\n" in word:
            line += word.count("\n")
            line_start = token.start() + word.rindex("\n") + 1
    return "".join(out), tuple(sorted(fixes, key=lambda fix: (fix.line, fix.column)))


def drop_emptied_lines(text: str, repaired: str) -> str:
    """Return the repaired text without the lines that held only a comment."""
    both = zip(text.split("\n"), repaired.split("\n"), strict=True)
    return "\n".join(after for before, after in both if after.strip() or not before.strip())


def read_lenient(data: str | bytes) -> tuple[Raw, tuple[Fix, ...]]:
    """Read the object of a text that is JSON, or is JSON after a repair; return what was repaired.

    Raises `ValueError` with the reason of the unrepaired text if the repair does not suffice.
    """
    try:
        return read_raw(data), ()
    except NotJsonError as error:
        text = decode_utf8(data) if isinstance(data, bytes) else data
        repaired, fixes = repair_syntax(text) if len(text) <= REPAIRED_CHARACTERS else (text, ())
        if not fixes:
            raise
        try:
            return read_raw(repaired), fixes
        except ValueError:
            raise error from None


def describe_fixes(fixes: Sequence[Fix]) -> str:
    """Return how many faults of each kind there are and in which lines: "1 comment (line 3)"."""
    parts = []
    for kind in get_args(Kind):
        found = [fix.line for fix in fixes if fix.kind == kind]
        if found:
            lines = list(dict.fromkeys(found))
            where = TEXTS("repair.lines", count=len(lines), lines=join_lines(lines))
            parts.append(TEXTS(f"repair.{kind}", count=len(found), where=where))
    return join_items(parts)


def join_lines(lines: Sequence[int]) -> str:
    """Return line numbers as text, at most five: "3, 5 and 9"."""
    shown = [str(line) for line in lines[:MOST_LINES]]
    return TEXTS("repair.more", lines=join_items(shown)) if len(lines) > MOST_LINES else join_list(shown)


def _double_quoted(content: str) -> str:
    """Return the content of a string between double quotes; its own double quotes are escaped."""
    parts = re.findall(r"\\.|[^\\]", content, flags=re.DOTALL)
    return '"' + "".join({"\\'": "'", '"': '\\"'}.get(part, part) for part in parts) + '"'
