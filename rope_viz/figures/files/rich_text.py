"""Plotly's rich text (bold, colours, line breaks) as lines of runs."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rope_viz.texts.line_breaks import PIECE
from rope_viz.texts.outside_text import printable

TOKEN = re.compile(r"<[^<>]*>|[^<]+|<")
COLOUR = re.compile(r"color:\s*([^;\"']+)")


@dataclass(frozen=True)
class TextSpan:
    """A piece of text with one style; colour "" inherits."""

    text: str
    bold: bool = False
    colour: str = ""


Lines = list[list[TextSpan]]


def parse(words: Any) -> Lines:
    """Parse a text with markup into lines; unknown tags are dropped."""
    lines: Lines = [[]]
    bold, colours = 0, [""]
    for token in TOKEN.findall(printable(str(words))):
        tag = token.lower()
        if tag in ("<br>", "<br/>", "<br />"):
            lines.append([])
        elif tag in ("<b>", "</b>"):
            bold += 1 if tag == "<b>" else -1
        elif tag.startswith("<span"):
            found = COLOUR.search(token)
            colours.append(found[1].strip() if found else colours[-1])
        elif tag == "</span>":
            colours = colours[:-1] or [""]
        elif not (tag.startswith("<") and len(tag) > 1):
            lines[-1].append(TextSpan(html.unescape(token), bold > 0, colours[-1]))
    return lines


def strip_markup(words: Any) -> str:
    """Return a text without markup, its lines joined by spaces."""
    return " ".join("".join(run.text for run in line) for line in parse(words)).strip()


def wrap_lines(lines: Lines, widest: float, measure: Callable[[TextSpan], float]) -> Lines:
    """Wrap lines at spaces to the width `widest`; longer words are not split."""
    out: Lines = []
    for line in lines:
        pieces = [dataclasses.replace(run, text=word) for run in line for word in PIECE.findall(run.text)] or [
            TextSpan("")
        ]
        total = sum(map(measure, pieces))
        # Wrap into lines of about equal length.
        wanted = total / max(1, -(-total // max(widest, 1.0))) if total > widest else widest
        row: list[TextSpan] = []
        used = 0.0
        for piece in pieces:
            more = measure(piece)
            if row and (used + more > widest or used >= wanted):
                out.append(merge_runs(row))
                row, used = [], 0.0
                piece = dataclasses.replace(piece, text=piece.text.lstrip())
                more = measure(piece)
            row.append(piece)
            used += more
        out.append(merge_runs(row))
    return out


def merge_runs(row: list[TextSpan]) -> list[TextSpan]:
    """Merge neighbouring runs of equal style."""
    out: list[TextSpan] = []
    for run in row:
        if out and (out[-1].bold, out[-1].colour) == (run.bold, run.colour):
            out[-1] = dataclasses.replace(run, text=out[-1].text + run.text)
        else:
            out.append(run)
    return out
