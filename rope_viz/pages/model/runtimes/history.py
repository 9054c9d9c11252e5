"""The time line: what every known release of each runtime computes from the config, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from rope_viz.advice.plan.runtime_matrix import RuntimeCase, explain
from rope_viz.figures import theme
from rope_viz.figures.words import footnote, plain
from rope_viz.runtimes import Emulation
from rope_viz.runtimes.asked_engines import AS_INTENDED, name_verdict
from rope_viz.runtimes.history import History, Span, format_releases, is_next, list_runs, trace_releases
from rope_viz.runtimes.releases import REFERENCE, RELEASES, format_name
from rope_viz.runtimes.verdict_counts import State, find_state
from rope_viz.texts import Texts, join
from rope_viz.texts.texts import join_clauses

TEXTS = Texts("model/runtimes")
MARKS: dict[State, tuple[str, str]] = {
    "agrees": ("circle", theme.KEPT),
    "differs": ("diamond", theme.DIVIDED),
    "refuses": ("square", theme.PLAIN),
    "not known": ("x", theme.RULE),
}
"""{what a release does: its symbol and colour}."""
ANSWERS: dict[str, State] = {AS_INTENDED: "agrees", "something else": "differs", "none of these": "differs"}
"""{what a whole engine answered: what that means for the mark}; anything else is not known."""
LANE, ENDS = 74, 16
LANES = tuple(name for name, runtime in RELEASES.items() if len(runtime.releases) > 1)
"""The runtimes of which more than one release is known."""


@dataclass(frozen=True)
class LaneSpan:
    """Releases of a runtime in a row with one verdict, in full and in short, what it means, and how it is known."""

    runtime: str
    releases: Sequence[str]
    words: str
    brief: str
    state: State
    how: str


def list_lanes(found: Sequence[History]) -> dict[str, list[LaneSpan]]:
    """Return {name: spans}: a lane per runtime with several known releases, and one per config asked of its engine."""
    lanes: dict[str, list[LaneSpan]] = {}
    for history in found:
        name = format_name(history.runtime)
        if history.runtime in LANES:
            lanes[name] = [
                LaneSpan(history.runtime, span.releases, span.words, span.brief, find_state(span.last), span.how)
                for span in history.spans
            ]
        for asked in history.asked_spans:
            state = ANSWERS.get(asked.verdict, "not known")
            shown = name_verdict(asked.verdict)
            lanes.setdefault(str(TEXTS("history.asked", runtime=name, config=asked.config)), []).append(
                LaneSpan(history.runtime, asked.releases, shown, shown, state, "asked")
            )
    return lanes


def trace(asked: RuntimeCase, length: int | None) -> list[History]:
    """Return what every known release computes, [] for a config that the runtimes cannot be compared on."""
    try:
        return trace_releases(asked.config, length=length, layer_type=asked.layer or None)
    except ValueError:
        return []


def find_height(found: Sequence[History]) -> int:
    """Return the height of the time line in pixels."""
    return LANE * len(list_lanes(found)) + ENDS


def draw(found: Sequence[History]) -> go.Figure:
    """Draw the lanes with a mark per release. The spans of a lane have equal widths, whatever their number.

    A mark is filled where the release was executed, hollow where its code was only read, and has a dark edge where the
    whole engine was asked. Between releases that are not neighbours the line is dotted.
    """
    marks: dict[State, list[dict[str, Any]]] = {state: [] for state in MARKS}
    lines: dict[str, list[Any]] = {"solid": [], "dot": [], "solid lanes": [], "dot lanes": []}
    names, verdicts, ends = [], [], []
    lanes = list_lanes(found)
    for lane, (name, spans) in enumerate(reversed(lanes.items())):
        before: dict[str, Any] | None = None
        names.append((0.0, lane + 0.55, name))
        for number, span in enumerate(spans):
            middle = (number + 0.5) / len(spans)
            verdicts.append((middle, lane + 0.22, span.brief))
            ends.append((middle, lane - 0.2, format_ends(span)))
            for place, release in enumerate(span.releases):
                share = 0.5 if len(span.releases) == 1 else 0.15 + 0.7 * place / (len(span.releases) - 1)
                mark = {"x": (number + share) / len(spans), "lane": lane, "how": span.how, "release": release}
                mark["text"] = TEXTS(
                    "history.mark", release=f"{name} {release}", verdict=span.words, known=name_evidence(span.how)
                )
                if before is not None:
                    dash = "solid" if is_next(span.runtime, before["release"], release) else "dot"
                    lines[dash] += [before["x"], mark["x"], None]
                    lines[f"{dash} lanes"] += [lane, lane, None]
                before = mark
                marks[span.state].append(mark)
    traces = [
        {"type": "scatter", "mode": "lines", "x": lines[dash], "y": lines[f"{dash} lanes"], "hoverinfo": "skip"}
        | {"line": {"color": theme.RULE, "width": 1.5, "dash": dash}, "name": str(TEXTS(f"history.lines.{dash}"))}
        for dash in ("solid", "dot")
        if lines[dash]
    ]
    traces += [draw_marks(state, each) for state, each in marks.items() if each]
    traces += [draw_texts(names, "right"), draw_texts(verdicts, "center"), draw_texts(ends, "center", theme.PLAIN)]
    hidden = {"showticklabels": False, "ticks": "", "showgrid": False, "showline": False}
    fig = theme.figure(
        traces,
        x=hidden | {"range": [0.0, 1.0], "showspikes": False},
        y=hidden | {"range": [-0.4, len(lanes) - 0.25]},
        height=find_height(found),
        hovermode="closest",
        margin={"l": 8, "r": 8, "t": 4, "b": 4},
    )
    for trace in fig.data:
        trace.meta = {"csv": False}  # its places are no data
    fig.table = lambda: list_releases(found)
    return fig


def draw_marks(state: State, marks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the marks of one kind as a trace."""
    symbol, colour = MARKS[state]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [mark["x"] for mark in marks],
        "y": [mark["lane"] for mark in marks],
        "name": str(TEXTS(f"history.states.{state.replace(' ', '_')}")),
        "marker": {
            "symbol": symbol,
            "size": 9,
            "color": [theme.BACKGROUND if mark["how"] == "by rule" else colour for mark in marks],
            "line": {"width": 1.5, "color": [theme.TEXT if mark["how"] == "asked" else colour for mark in marks]},
        },
        "hovertext": [mark["text"] for mark in marks],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def draw_texts(texts: Sequence[tuple[float, float, str]], side: str, colour: str = theme.TEXT) -> dict[str, Any]:
    """Return texts (x, y, text) as a trace; `side` is where a text is from its place."""
    x, y, words = zip(*texts, strict=True)
    place = {"type": "scatter", "mode": "text", "x": list(x), "y": list(y), "text": list(words)}
    return place | {"textposition": f"middle {side}", "textfont": {"size": 13, "color": colour}, "hoverinfo": "skip"}


def format_ends(span: LaneSpan) -> str:
    """Return the first and last release of a span, "…" between them where others are left out."""
    if len(list_runs(span.runtime, span.releases)) > 1:
        return f"{span.releases[0]} … {span.releases[-1]}"
    return format_releases(span.runtime, span.releases)


def list_releases(found: Sequence[History]) -> dict[str, list[str]]:
    """Return every mark of the time line with its verdict and how that is known, by column."""
    rows = [
        (name, release, span.words, name_evidence(span.how))
        for name, spans in list_lanes(found).items()
        for span in spans
        for release in span.releases
    ]
    return dict(zip(TEXTS.group("history.columns").values(), map(list, zip(*rows, strict=True)), strict=True))


def tabulate(found: Sequence[History]) -> list[dict[str, str]]:
    """Return a table row per span: its releases, what they compute, how that is known, and why."""
    columns = [str(TEXTS(f"history.{key}")) for key in ("runtime", "releases", "verdict")]
    rows = []
    for history in found:
        name = format_name(history.runtime)
        rows += [
            (
                name,
                "–" if RELEASES[history.runtime].is_one_release else format_releases(history.runtime, span.releases),
                describe(span, history.base),
            )
            for span in history.spans
        ]
        rows += [
            (
                name,
                format_releases(history.runtime, asked.releases),
                str(TEXTS("history.answer", verdict=name_verdict(asked.verdict), config=asked.config)),
            )
            for asked in history.asked_spans
        ]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def describe(span: Span, base: Emulation) -> str:
    """Return what the releases of a span compute, how that is known with its source as a footnote, and why."""
    source = footnote(span.last.emulation.known.source.rstrip("."))
    if span.how == "not known":
        return f"{span.words}{source}"
    found = TEXTS("history.found", verdict=span.words, known=name_evidence(span.how))
    return join(found, explain(span.last, base)) + source


def name_evidence(how: str) -> str:
    """Return how an answer is known, as a label."""
    return TEXTS(f"history.evidence.{how.replace(' ', '_')}")


def summarise(found: Sequence[History]) -> str:
    """Count the runtimes whose known releases compute different things, and name the change nearest to today."""
    changed = [history for history in found if history.changes]
    if not changed:
        return join(TEXTS("history.same", reference=REFERENCE), TEXTS("history.gaps"))
    parts = [plain(history.sentence(format_name(history.runtime))) for history in changed]
    return join(TEXTS("whose.sentence", whose=join_clauses(parts)), TEXTS("history.gaps"))
