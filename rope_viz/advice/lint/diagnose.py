"""Why a text cannot be read as a config: all problems at once, with their lines, and the repaired text.

The syntax is read leniently, so that a trailing comma does not hide what is wrong behind it.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from rope_viz.advice.lint import Finding, check, make_repairs
from rope_viz.advice.lint.lint_context import TEXTS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.formats.json_repair import Fix, Kind, drop_emptied_lines, repair_syntax
from rope_viz.models.formats.json_source import NotJsonError, decode_utf8, find_key_lines, read_raw
from rope_viz.models.read_upload import read_upload
from rope_viz.models.user_config import complete_config
from rope_viz.storage.limits import REPAIRED_CHARACTERS
from rope_viz.texts import Sentence
from rope_viz.texts.outside_text import clean_json, printable
from rope_viz.texts.sentences import describe_error, end_sentence, make_sentence

MOST_LINES = 4000
"""Lines of a file whose changes are shown; comparing longer files takes too long."""
AROUND = 2


@dataclass(frozen=True)
class Problem:
    """One reason why the text is no config, and what to do. `lines` count from 1; empty if no line is known."""

    reason: str
    to_do: str
    lines: tuple[int, ...] = ()
    column: int = 0
    key: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All problems of a text; `text` is "" if the file holds none, `repaired` is "" without a repair."""

    problems: tuple[Problem, ...]
    text: str = ""
    repaired: str = ""

    @functools.cached_property
    def changes(self) -> str:
        """Return the repair as a diff with one line around each change, "" for a long file."""
        before, after = self.text.splitlines(), self.repaired.splitlines()
        if not self.repaired or max(len(before), len(after)) > MOST_LINES:
            return ""
        lines = [*difflib.unified_diff(before, after, n=1, lineterm="")][2:]
        return printable("\n".join(line[:200] for line in lines))

    @functools.cached_property
    def excerpt(self) -> str:
        """Return the numbered lines around the first problem, "" if its line is unknown."""
        first = next((problem.lines[0] for problem in self.problems if problem.lines), 0)
        shown = [*enumerate(self.text.splitlines(), start=1)][max(first - 1 - AROUND, 0) : first + AROUND]
        return printable("\n".join(f"{number:>4}  {line[:200]}" for number, line in shown)) if first else ""


def diagnose(data: str | bytes, current: RopeSpec, name: str) -> Diagnosis:
    """Return why `data` is refused as a config; `current` and `name` are as in `read_upload`."""
    fixes: tuple[Fix, ...] = ()
    try:
        raw = read_raw(data)
        text = fixed = raw.text
    except NotJsonError as error:
        text = decode_utf8(data) if isinstance(data, bytes) else data
        text = clean_json(text.removeprefix("\ufeff"))
        fixed, fixes = repair_syntax(text) if len(text) <= REPAIRED_CHARACTERS else (text, ())
        try:
            raw = read_raw(fixed)
        except ValueError as left:
            return Diagnosis((*describe_syntax(fixes), describe_refusal(left if fixes else error)), text)
    except ValueError as error:
        return Diagnosis((describe_refusal(error),))
    found = find_errors(raw.config, current)
    repaired, repairs = write_repaired(raw.config, text)
    listed = {one.rule for one in found}
    found += [one for one in repairs if one.rule not in listed]
    places = find_key_lines(fixed)
    problems = [*describe_syntax(fixes), *(describe_finding(one, places) for one in found)]
    refusal = find_refusal(fixed, current, name)
    if refusal is not None and not found:
        problems.append(describe_refusal(refusal))
    candidates = (repaired, drop_emptied_lines(text, fixed))
    accepted = (one for one in candidates if one and one != text and find_refusal(one, current, name) is None)
    return Diagnosis(tuple(problems), text, next(accepted, ""))


def find_refusal(text: str, current: RopeSpec, name: str) -> ValueError | None:
    """Return the error with which a text is refused as the user's config, None if it is accepted."""
    try:
        read_upload(text, current, name)
    except ValueError as error:
        return error
    return None


def find_errors(config: Mapping[str, Any], current: RopeSpec) -> list[Finding]:
    """Return the check's errors in a config, and the note that a model has no RoPE."""
    try:
        found = check(complete_config(dict(config), current)[0])
    except ValueError:
        return []
    return [one for one in found if one.severity == "error" or one.rule == "no-rope"]


def write_repaired(config: Mapping[str, Any], text: str) -> tuple[str, tuple[Finding, ...]]:
    """Return the config after every repair, as `rope-viz check --repair` makes them, indented as `text`, and those.

    The text is empty if nothing was repaired.
    """
    try:
        repaired, made = make_repairs(config)
    except ValueError:
        return "", ()
    if not made:
        return "", ()
    indent = re.search(r'\n([ \t]+)["\']', text)
    return json.dumps(repaired, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n", made


def describe_syntax(fixes: Sequence[Fix]) -> list[Problem]:
    """Return one problem for each kind of fault."""
    problems = []
    for kind in get_args(Kind):
        places = [fix for fix in fixes if fix.kind == kind]
        if places:
            lines = tuple(dict.fromkeys(fix.line for fix in places))
            column = places[0].column if len(places) == 1 else 0
            problems.append(Problem(TEXTS(f"syntax.{kind}"), TEXTS(f"syntax.repair.{kind}"), lines, column))
    return problems


def describe_finding(found: Finding, places: Mapping[str, tuple[int, int]]) -> Problem:
    """Return a finding as a problem, with the line of its key."""
    key = found.key
    if key not in places:
        # The message names the key, or begins with it.
        values = found.message.values if isinstance(found.message, Sentence) else {}
        named = values.get("name") or values.get("key") or found.message.split(" ")[0]
        key = next((path for path in places if path.rpartition(".")[2] == named), key)
    line, column = places.get(key, (0, 0))
    to_do = TEXTS(
        "to_do.no-rope" if found.rule == "no-rope" else "to_do.key" if found.repaired is None else "to_do.repair"
    )
    begins_with_key = found.message.split(" ")[0] == key.rpartition(".")[2]
    reason = end_sentence(found.message) if begins_with_key else make_sentence(found.message)
    return Problem(reason, to_do, (line,) if line else (), column, key)


def describe_refusal(error: ValueError) -> Problem:
    """Return the error of a reader as a problem, with its line if it is known."""
    lines, column = ((error.line,), error.column) if isinstance(error, NotJsonError) else ((), 0)
    return Problem(make_sentence(describe_error(error)), TEXTS("to_do.file"), lines, column)
