"""A static figure of each scene of Learn, for files, reports and link previews."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go

from rope_viz.figures import hands, theme, wavelengths
from rope_viz.figures.hands import fold_angle
from rope_viz.models.catalog import catalog
from rope_viz.pages.learn import figures
from rope_viz.pages.learn.figures import TEXTS
from rope_viz.studies.real_model import read_measurements

HEIGHT = 430
Curves: TypeAlias = Mapping[str, tuple[Any, str, str]]
"""{name: (values, colour, dash)}."""
Drawn: TypeAlias = tuple[go.Figure, str]
"""A figure and its title."""


def draw_static(message: Mapping[str, Any]) -> go.Figure:
    """Draw the scene at which a story opens."""
    return STATIC[int(message["scene"])]()[0]


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the static figure's curves, by column."""
    return dict(draw_static(message).table())


def one_hand(m: int) -> Drawn:
    """Draw the pair of scene 2 rotated by m positions, with its start in grey."""
    numbers, _ = figures.scene_numbers(2)
    angle = m * numbers["rate"]
    x, y = math.cos(angle), math.sin(angle)
    turn = angle / 90 * np.arange(91)
    quiet: dict[str, Any] = {"hoverinfo": "skip", "meta": {"csv": False}}
    traces = [
        theme.line(0.25 * np.cos(turn), 0.25 * np.sin(turn), "mθ", theme.RULE, width=1.5, **quiet),
        theme.line([0.0, 1.0], [0.0, 0.0], TEXTS("static.start"), theme.PLAIN, dash="dot"),
        theme.line([0.0, x], [0.0, y], TEXTS("static.at", position=m), theme.QUERY, width=3.5, mode="lines+markers"),
    ]
    place: dict[str, Any] = {"showarrow": False, "font": {"size": 15, "color": theme.QUERY}}
    # The label is inside the circle, because a phone has no room outside.
    place |= {"xanchor": "right" if x >= 0 else "left", "yanchor": "bottom" if y >= 0 else "top"}
    label = f"{math.degrees(angle):.1f}°"
    axis = {"range": [-1.45, 1.45], "dtick": 1, "zeroline": True, "zerolinecolor": theme.GRID, "showspikes": False}
    fig = theme.figure(
        traces,
        x=axis | {"title": TEXTS("static.first_axis")},
        y=axis | {"title": TEXTS("static.second_axis"), "scaleanchor": "x"},
        height=HEIGHT,
        notes=[place | {"x": x, "y": y, "text": label, "yshift": 6 if y >= 0 else -6}],
        hovermode="closest",
    )
    fig.table = lambda: {"position": [0, m], "first number": [1.0, x], "second number": [0.0, y]}
    values = {"pair": numbers["pair"], "model": numbers["model"], "positions": m, "angle": label}
    return fig, TEXTS("static.rotated", **values)


def _chart(curves: Curves, x: Any, x_axis: dict[str, Any], y_axis: dict[str, Any], **more: Any) -> go.Figure:
    """Draw curves {name: (values, colour, dash)} over x, named at their right ends."""
    traces = [theme.line(x, values, name, colour, dash=dash) for name, (values, colour, dash) in curves.items()]
    ends = [(float(x[-1]), float(values[-1]), name, colour) for name, (values, colour, _) in curves.items()]
    notes = theme.spread_labels(ends, y_axis["range"], log=False)
    fig = theme.figure(traces, x=x_axis, y=y_axis, notes=notes, margin=theme.MARGIN | {"r": 150}, **more)
    named = {x_axis["title"]: x}
    fig.table = lambda: named | {name: values for name, (values, _, _) in curves.items()}
    return fig


def _repeated() -> Drawn:
    numbers, _ = figures.scene_numbers(1)
    words, row = numbers["words"], len(numbers["words"]) - 1
    curves: Curves = {
        TEXTS("static.without"): (np.array(numbers["none"][row]), theme.PLAIN, "dash"),
        TEXTS("static.with"): (np.array(numbers["rope"][row]), theme.CURRENT, "solid"),
    }
    x = np.arange(len(words))
    axis = {"title": TEXTS("static.word"), "tickvals": x.tolist(), "ticktext": list(words)}
    fig = _chart(curves, x, axis, {"title": TEXTS("static.score"), "range": [-2.5, 2.5]})
    return fig, TEXTS("static.repeated", word=words[row], repeated=numbers["repeated"])


def _two_hands() -> Drawn:
    message = hands.message(figures.plain_spec(figures.LLAMA), catalog()[figures.LLAMA].name)
    return hands.draw_static(message), str(message["title"])


def _four_clocks() -> Drawn:
    numbers, _ = figures.scene_numbers(4)
    apart = np.arange(numbers["last"] + 1)
    colours = (theme.PLAIN, *theme.FURTHER[:2], theme.CURRENT)
    curves: Curves = {
        theme.TEXTS("rules.pair", pair=pair): (
            np.array([fold_angle(math.degrees(rate) * at) for at in apart]),
            colour,
            dash,
        )
        for pair, rate, colour, dash in zip(numbers["pairs"], numbers["rates"], colours, theme.DASHES, strict=True)
    }
    fig = _chart(
        curves,
        apart,
        {"title": theme.TEXTS("axes.distance_tokens")},
        {"title": TEXTS("static.angle"), "range": [0, 190]},
    )
    return fig, TEXTS("static.four_clocks")


def _head() -> Drawn:
    name = catalog()[figures.LLAMA].name
    return wavelengths.wavelengths(figures.plain_spec(figures.LLAMA)), TEXTS("static.head", model=name)


def _beyond() -> Drawn:
    loss = read_measurements()["loss"]
    x = loss["bin"] * (np.arange(len(loss["methods"]["none"])) + 0.5)
    curves: Curves = {
        TEXTS("static.none"): (np.array(loss["methods"]["none"]), theme.PLAIN, "solid"),
        TEXTS("static.yarn", factor=2): (np.array(loss["methods"]["yarn"]), theme.CURRENT, "dash"),
    }
    trained = read_measurements()["trained"]
    axis = {"title": TEXTS("static.position"), "range": [0, 2 * trained]} | theme.length_ticks(
        0, 2 * trained, log=False
    )
    shapes = [theme.rule(trained, TEXTS("static.trained"), axis="x")]
    fig = _chart(curves, x, axis, {"title": TEXTS("static.loss"), "range": [2.8, 6.8]}, shapes=shapes)
    return fig, TEXTS("static.beyond")


def _repairs() -> Drawn:
    numbers, _ = figures.scene_numbers(7)
    found = numbers["curves"]["2"]
    looks = {
        "linear": (TEXTS("static.linear"), theme.FURTHER[0]),
        "ntk": (TEXTS("static.ntk"), theme.FURTHER[1]),
        "yarn": ("YaRN", theme.CURRENT),
    }
    curves: Curves = {
        label: (np.array(found[name]["ratio"]), colour, dash)
        for (name, (label, colour)), dash in zip(looks.items(), ("dot", "dash", "solid"), strict=True)
    }
    pairs = np.arange(len(numbers["turns"]))
    axis = theme.pair_axis(len(pairs))
    fig = _chart(curves, pairs, axis, {"title": TEXTS("static.share"), "range": [0.4, 1.05]})
    return fig, TEXTS("static.repairs")


def _proof() -> Drawn:
    found = read_measurements()["passkey"]
    looks = {
        "none": (TEXTS("static.none"), theme.PLAIN, "solid"),
        "linear": (TEXTS("static.linear"), theme.FURTHER[0], "dot"),
        "ntk": (TEXTS("static.ntk"), theme.FURTHER[1], "dash"),
        "yarn": ("YaRN", theme.CURRENT, "solid"),
    }
    curves: Curves = {
        label: (np.array(found["methods"][name]) / np.array(found["questions"]), colour, dash)
        for name, (label, colour, dash) in looks.items()
    }
    x = np.arange(len(found["lengths"]))
    axis = {"title": TEXTS("static.length"), "tickvals": x.tolist(), "ticktext": found["lengths"]}
    fig = _chart(curves, x, axis, {"title": TEXTS("static.found"), "range": [-0.03, 1.05]})
    return fig, TEXTS("static.proof")


STATIC: dict[int, Callable[[], Drawn]] = {
    1: _repeated,
    2: lambda: one_hand(6),
    3: _two_hands,
    4: _four_clocks,
    5: _head,
    6: _beyond,
    7: _repairs,
    8: _proof,
}
"""{scene: draws its figure}."""
