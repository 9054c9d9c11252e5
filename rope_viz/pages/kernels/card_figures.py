"""What was measured on a GPU: every way's time as a share of a copy, case by case."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from rope_viz.figures import theme
from rope_viz.kernels.card_files import CardCase, CardMeasurement
from rope_viz.pages.kernels.figures import TEXTS
from rope_viz.texts.numbers import format_exponent
from rope_viz.texts.texts import join_items

OURS = "rope_viz"
CASES, WAYS = TEXTS.group("cases"), TEXTS.group("way_names")
"""The names of the cases and ways in a card's file, as the screen shows them; other names are shown as they are."""
# Ways of a card's file by how their name begins: colour, symbol, and the sign that names it above the plot.
LOOKS: dict[str, tuple[str, str, str]] = {
    "rope_viz": (theme.CURRENT, "circle", "●"),
    "rope_viz, table": (theme.FURTHER[4], "x", "✖"),
    "flash-attention, float32 table": (theme.FURTHER[5], "square", "■"),
    "flash-attention": (theme.FURTHER[0], "star", "★"),
    "Liger, in place": (theme.FURTHER[1], "diamond", "◆"),
    "torch.compile": (theme.FURTHER[2], "triangle-up", "▲"),
    "FLA": (theme.FURTHER[3], "triangle-down", "▼"),
    "eager": (theme.PLAIN, "cross", "✚"),
}
ROW, KEY = 48, 22  # pixels of a case, and of a line above the plot
MOST = 1.45  # a small case can be faster than a copy, which needs a launch too


def find_time(case: CardCase, way: str) -> Any:
    """Return the time of a way, of several forms the one with `out=`; None if it did not run."""
    if way == "rope_viz, table":
        names = [name for name in case.ways if name.startswith(way)]
    else:
        names = [name for name in (f"{way}, out=", way) if name in case.ways]
    return case.ways[names[0]] if names else None


def has_waited(card: CardMeasurement) -> bool:
    """Return whether the measured version waited for the host where it had a table."""
    return any("waited" in name for case in card.cases for name in case.ways)


def list_ways(card: CardMeasurement) -> list[str]:
    """Return the ways that ran on the card in any case."""
    return [way for way in LOOKS if any(find_time(case, way) for case in card.cases)]


def name_case(case: CardCase) -> str:
    """Return a case's name with what distinguishes it."""
    more = [TEXTS(f"cards.{name}") for name in (case.pairing, case.direction) if name in ("interleaved", "backward")]
    return join_items((CASES.get(case.case, case.case), *more))


def height(card: CardMeasurement) -> int:
    """Return the figure's height in pixels."""
    return ROW * len(card.cases) + KEY * len(list_ways(card)) + 78


def shares(card: CardMeasurement) -> go.Figure:
    """Draw a row per case and a mark per way at its share of a copy; the names above the plot have the errors."""
    rows = {name_case(case): len(card.cases) - 1 - row for row, case in enumerate(card.cases)}
    ways = list_ways(card)
    traces, key = [], []
    for place, way in enumerate(ways):
        colour, symbol, sign = LOOKS[way]
        found = [(rows[name_case(case)], case, find_time(case, way)) for case in card.cases]
        found = [item for item in found if item[2]]
        label = TEXTS("cards.table_way") if way == "rope_viz, table" and has_waited(card) else WAYS.get(way, way)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                # Gaps between the points: a written file keeps its labels off the line from one to the next.
                "x": [value for _, _, time in found for value in (time.share_of_copy, None)],
                "y": [value for row, _, _ in found for value in (row, None)],
                "name": label,
                "marker": {"symbol": symbol, "size": 10, "color": colour, "line": {"color": colour, "width": 1.5}},
                "hoverinfo": "text",
                "hovertext": [
                    text
                    for _, case, time in found
                    for text in (
                        TEXTS("cards.hover", case=name_case(case), way=label, share=time.share_of_copy, time=time.us),
                        "",
                    )
                ],
            }
        )
        error = find_error(card, way)
        values = {"sign": sign, "way": label} | ({} if error is None else {"error": format_error(error)})
        text = TEXTS("cards.key" if error is None else "cards.error_key", **values)
        key.append(_text(text, len(rows) + (len(ways) - 1 - place) * KEY / ROW, colour))
    fig = theme.figure(
        list(reversed(traces)),  # ours above the others
        x={
            "title": TEXTS("cards.axis"),
            "range": [0, MOST],
            "tickvals": [0, 0.25, 0.5, 0.75, 1, 1.25],
            "ticktext": ["0", "25", "50", "75", "100", "125"],
            "showspikes": False,
        },
        y={"showticklabels": False, "ticks": "", "showgrid": False, "range": [-0.5, len(rows) + len(ways) * KEY / ROW]},
        height=height(card),
        shapes=[theme.rule(1.0, "", axis="x", dash="dot")],
        notes=[*key, *(_label(case, rows[name_case(case)]) for case in card.cases)],
        hovermode="closest",
        margin={"l": 20, "r": 20, "t": 8, "b": 48},
    )
    fig.table = lambda: list_times(card)
    return fig


def find_error(card: CardMeasurement, way: str) -> float | None:
    """Return the way's relative error in the first case that has one."""
    times = [time for case in card.cases if (time := find_time(case, way))]
    return next((time.relative_error for time in times if time.relative_error is not None), None)


def format_error(error: float) -> str:
    """Return an error as "1.65·10⁻³"."""
    mantissa, exponent = f"{error:.2e}".split("e")
    return f"{float(mantissa):g}·10{format_exponent(int(exponent))}"


def list_times(card: CardMeasurement) -> dict[str, list[Any]]:
    """Return a line per case and way; `row` counts the figure's rows from below."""
    rows = [
        (row, name_case(case), case.dtype, way, time.us, 100 * time.share_of_copy, time.relative_error)
        for row, case in enumerate(reversed(card.cases))
        for way, time in case.ways.items()
    ]
    names = ("row", "case", "dtype", "way", "time (µs)", "% of copy", "relative error")
    return {name: [float("nan") if row[at] is None else row[at] for row in rows] for at, name in enumerate(names)}


def shares_table(card: CardMeasurement) -> dict[str, list[Any]]:
    """Return a row per case: the copy's time, and each way's share of it in percent."""
    columns: dict[str, list[Any]] = {TEXTS("columns.case"): [name_case(case) for case in card.cases]}
    columns[TEXTS("columns.copy")] = [case.ways["copy"].us for case in card.cases]
    for way in list_ways(card):
        times = [find_time(case, way) for case in card.cases]
        columns[TEXTS("columns.share", way=WAYS.get(way, way))] = [
            100 * time.share_of_copy if time else float("nan") for time in times
        ]
    return columns


def _label(case: CardCase, row: int) -> dict[str, Any]:
    ours = find_time(case, OURS)
    text = TEXTS("cards.case", case=name_case(case), share=ours.share_of_copy) if ours else name_case(case)
    return _text(text, row + 0.22, theme.TEXT)


def _text(text: str, y: float, colour: str) -> dict[str, Any]:
    place = {"x": 0, "y": y, "xanchor": "left", "yanchor": "bottom", "text": text}
    return place | {"showarrow": False, "font": {"color": colour, "size": 13}}
