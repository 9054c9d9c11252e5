"""Figures of the kernels: error by position of each way to compute angles, and the throughput of each way to rotate."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.line_styles import length_rules
from rope_viz.kernels import error_by_position, exact_table
from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.kernels.tables import METHODS, Method
from rope_viz.studies.scores import scale_samples
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_exponent

TEXTS = Texts("kernels")
FARTHEST = 10_000_000
FLOOR = 1e-8  # the lower end of the error axis, because a log axis has no 0
WINDOWS, QUICK_WINDOWS, WINDOW = 140, 50, 32
SHOWN: dict[Method, tuple[str, str]] = {
    "fixed-point phase": (theme.CURRENT, "solid"),
    "float32 angle": (theme.FURTHER[1], "dash"),
    "bf16 table": (theme.FURTHER[0], "dot"),
    "bf16 positions": (theme.FURTHER[2], "dashdot"),
}

PAIRING_NAMES = cast(dict[Pairing, str], TEXTS.group("pairings"))
DTYPES = {name: name for name in ("float32", "bfloat16", "float16")}
TOKENS = TEXTS.group("tokens")
DEVICES = TEXTS.group("devices")
ROUNDS, HEADS, HEAD_DIM = 15, 32, 128
OURS = "ours"
# Columns of the tables, also used when nothing was measured.
SPEEDS, WAYS, AGREEMENT = (TEXTS.group(f"columns.{name}") for name in ("speeds", "ways", "agreement"))


def workload(pairing: str, dtype: str, tokens: str, device: str) -> dict[str, Any]:
    """Return the workload of a measurement: q of one sequence with 32 heads of 128."""
    size = {"batch": 1, "tokens": int(tokens), "heads": HEADS, "head_dim": HEAD_DIM}
    return {"pairing": pairing, "dtype": dtype, "device": device, **size}


def errors(spec: RopeSpec, *, quick: bool = False) -> go.Figure:
    """Draw the largest error of cos or sin over all pairs by position, for every way to compute the angle."""
    traces, ends, notes = [], [], []
    for method in reversed(METHODS):
        label, (colour, dash) = TEXTS(f"methods.{method}"), SHOWN[method]
        x, y = _errors(spec.inv_freq(spec.target).tobytes(), method, quick)
        hover = f"{label} %{{y:.2~e}}<extra></extra>"
        width = 3 if colour == theme.CURRENT else 2
        traces.append(theme.line(x, y, label, colour, dash=dash, width=width, hovertemplate=hover))
        if method == "bf16 table":
            # This line ends inside another curve: label it where it is separate.
            notes.append(_above(np.log10(1.4), np.log10(max(y[0], FLOOR)), label, colour, 3))
        else:
            ends.append((np.log10(FARTHEST), max(float(y[-1]), FLOOR), label, colour))
    span = theme.log_range(FLOOR, 6.0)
    ticks = [10.0**exponent for exponent in range(-8, 1)]
    return theme.figure(
        traces,
        x={
            "title": TEXTS("errors.position_axis"),
            "type": "log",
            "range": theme.log_range(1, FARTHEST),
            **theme.length_ticks(1, FARTHEST),
        },
        y={
            "title": TEXTS("errors.axis"),
            "type": "log",
            "range": span,
            "tickvals": ticks,
            "ticktext": [f"10{format_exponent(e)}" if e else "1" for e in range(-8, 1)],
        },
        shapes=_align_labels(length_rules(spec, axis="x", stop=FARTHEST)),
        notes=[*theme.spread_labels(ends, span, log=True), *notes],
        margin={"l": 68, "r": 112, "t": 26, "b": 48},
    )


def error_near(spec: RopeSpec, position: int, method: Method) -> float:
    """Return the largest error at the last positions up to this one, because a single one may be exact by chance."""
    positions = np.arange(max(position - WINDOW + 1, 0), position + 1)
    return float(error_by_position(spec.inv_freq(spec.target), positions, method).max())


def error_anywhere(spec: RopeSpec, method: Method, *, quick: bool = False) -> float:
    """Return the largest error in the figure."""
    return float(_errors(spec.inv_freq(spec.target).tobytes(), method, quick)[1].max())


def speeds(report: MeasurementReport) -> go.Figure:
    """Draw a bar per way: median bytes per second, with a tick at the best round and a rule at the copy's median."""
    copy = next((way for way in report.ran if way["name"] == "copy"), None)
    if copy is None:
        nothing = {
            "xref": "paper",
            "yref": "paper",
            "x": 0.5,
            "y": 0.5,
            "text": TEXTS("speeds.empty"),
            "showarrow": False,
        }
        empty = theme.figure([], x={"range": [0, 1]}, y={"range": [0, 1]}, notes=[nothing])
        empty.table = lambda: dict.fromkeys(SPEEDS.values(), ())
        return empty
    ways = sorted((way for way in report.ran if way is not copy), key=lambda way: way["bytes_per_second"])
    ways.append(copy)
    names = [way["name"] for way in ways]
    median = np.array([way["bytes_per_second"] for way in ways]) / 1e9
    best = np.array([report.machine["bytes"] / way["best_s"] for way in ways]) / 1e9
    colours = [theme.CURRENT if name.startswith(OURS) else theme.FURTHER[1] for name in names[:-1]] + [theme.PLAIN]
    hover = [_hover(way, rate, top) for way, rate, top in zip(ways, median, best, strict=True)]
    bar = {"type": "bar", "orientation": "h", "y": names, "hoverinfo": "text", "hovertext": hover}
    bars = bar | {"x": median, "name": SPEEDS["median"], "marker": {"color": colours}, "width": 0.34}
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": best,
        "y": names,
        "name": SPEEDS["best"],
        "marker": {"symbol": "line-ns", "size": 13, "line": {"width": 2, "color": colours}},
        "hoverinfo": "skip",
    }
    fig = theme.figure(
        [bars, marks],
        x={
            "title": TEXTS("speeds.axis"),
            "range": [0, 1.08 * float(best.max())],
            "showspikes": False,
        },
        y={"showticklabels": False, "ticks": "", "showgrid": False, "range": [-0.5, len(ways) - 0.15]},
        height=96 + 46 * len(ways),
        shapes=[theme.rule(float(median[-1]), "", axis="x", dash="dot")],
        notes=[_label(row, way, colour) for row, (way, colour) in enumerate(zip(ways, colours, strict=True))],
        hovermode="closest",
        margin={"l": 20, "r": 20, "t": 12, "b": 48},
    )
    fig.table = lambda: dict(zip(SPEEDS.values(), (names, median, best), strict=True))
    return fig


def ways_table(report: MeasurementReport) -> dict[str, list[Any]]:
    """Return a table row per way: throughput, error, and why it did not run."""
    rows = []
    for way in report.ways.values():
        ran = bool(way["median_s"])
        rows.append(
            (
                way["name"],
                way["bytes_per_second"] / 1e9 if ran else np.nan,
                100 * way["fraction_of_copy"] if ran else np.nan,
                1e3 * way["median_s"] if ran else np.nan,
                1e3 * way["best_s"] if ran else np.nan,
                1e3 * way["host_s"] if way.get("host_s") else np.nan,
                np.nan if way["error"] is None else way["error"],
                way["note"],
            )
        )
    return _columns(tuple(WAYS.values()), rows)


def agreement_table(report: MeasurementReport) -> dict[str, list[Any]]:
    """Return a row per pairing, dtype and backend: the largest difference from float64, and half a rounding step."""
    rows = [
        (PAIRING_NAMES[row["pairing"]], row["dtype"], row["backend"], row["difference"], row["half_step"])
        for row in report.agreement
    ]
    return _columns(tuple(AGREEMENT.values()), rows)


def slowed(ways: Sequence[dict[str, Any]], *, by: float = 1.5) -> bool:
    """Return True if a median is far above its best round, because the machine was busy."""
    return any(way["median_s"] > by * way["best_s"] for way in ways)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


@functools.lru_cache(maxsize=64)
def _errors(raw: bytes, method: Method, quick: bool) -> tuple[FloatArray, FloatArray]:
    ends, positions, exact = _exact(raw, quick)
    return ends, error_by_position(np.frombuffer(raw), positions, method, exact=exact).max(axis=1)


@functools.lru_cache(maxsize=2)
def _exact(raw: bytes, quick: bool) -> tuple[FloatArray, NDArray[np.int64], tuple[FloatArray, FloatArray]]:
    """Return where each window ends, its last positions, and the exact table to compare with."""
    ends = np.unique(np.geomspace(1, FARTHEST, QUICK_WINDOWS if quick else WINDOWS).astype(np.int64))
    # The errors of single positions scatter; the maximum over a window does not.
    inv_freq = np.frombuffer(raw)
    window = np.arange(scale_samples(WINDOW, len(inv_freq), least=4, usual=256))
    positions = np.maximum(ends[:, None] - window, np.append(0, ends[:-1])[:, None] + 1)
    return ends.astype(np.float64), positions, exact_table(inv_freq, positions)


def _hover(way: dict[str, Any], rate: float, best: float) -> str:
    values = {"name": way["name"], "rate": rate, "best": best, "error": way["error"]}
    times = {"median_ms": 1e3 * way["median_s"], "best_ms": 1e3 * way["best_s"]}
    return TEXTS("speeds.hover" if way["error"] is None else "speeds.error_hover", **values, **times)


def _label(row: int, way: dict[str, Any], colour: str) -> dict[str, Any]:
    if way["name"] == "copy":
        text = TEXTS("speeds.copy", rate=way["bytes_per_second"] / 1e9)
    else:
        values = {"name": way["name"], "share": way["fraction_of_copy"]}
        error = {} if way["error"] is None else {"error": _short(way["error"])}
        text = TEXTS("speeds.error_label" if error else "speeds.label", **values, **error)
    return _above(0, row, text, colour, 7)


def _above(x: float, y: float, text: str, colour: str, shift: int) -> dict[str, Any]:
    place = {"x": float(x), "y": float(y), "xanchor": "left", "yanchor": "bottom", "yshift": shift}
    return place | {"text": text, "showarrow": False, "font": {"color": colour, "size": 13}}


def _align_labels(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the labels of rules that are close apart: align the left one to its left, the other to its right."""
    left = min(rules, key=lambda rule: float(rule["x0"]), default=None)

    def side(rule: dict[str, Any]) -> str:
        return "right" if rule is left else "left" if float(rule["x0"]) < FARTHEST**0.75 else "center"

    return [rule | {"label": rule["label"] | {"xanchor": side(rule)}} for rule in rules]


def _short(value: float) -> str:
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g}·10{format_exponent(int(exponent))}"
