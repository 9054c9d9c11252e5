"""A query and a key as two hands on a circle: data for the browser, where the user moves them, and a static figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import clocks, theme
from rope_viz.texts import Sentence, Texts, join

TEXTS = Texts("hands")
WORDS = ("The", "cat", "sat", "on", "the", "mat", "and", "it", "slept")
KEY, QUERY = 1, 7
"""The words whose key and query are shown, which are also their first positions."""
SLOTS = (12, 9)
"""How many positions the ruler shows, on a wide and on a narrow screen."""
HEIGHTS = (336, 523)
"""Pixels: the height without the part next to the page's title, on a wide and on a narrow screen."""
FEW = (25.2, 11.1, 4.9, 2.2)
"""Degrees per position of the pairs shown as four clocks; the second is the pair shown alone."""
HEIGHT = 440
HIDDEN = {"csv": False}


def message(spec: RopeSpec, model: str = "") -> dict[str, Any]:
    """Return the data of the hands: frequencies in radians per position, the pairs to show, the words and the texts.

    `model` is the name of the model, "" for one without a name.
    """
    rates = spec.inv_freq(spec.target)
    few = [nearest_pair(rates, degrees) for degrees in FEW]
    shown = {"headline": str(TEXTS("headline")), **clocks.APP.group("video")}
    found: dict[str, Any] = {
        "inv_freq": rates.tolist(),
        "pair": few[1],
        "few": sorted(set(few)),
        "most": clocks.MAX_PAIRS,
        "words": WORDS,
        "start": {"query": QUERY, "key": KEY},
        "slots": SLOTS,
        "last": max(spec.context, SLOTS[0]) - SLOTS[0],
        "model": model or TEXTS("hands.model"),
        "palette": clocks.palette(),
        "cycle": [],
        "texts": TEXTS.group("hands") | TEXTS.group("player") | TEXTS.group("own") | shown,
    }
    return found | {"title": str(TEXTS("hands.title", **_values(found)))}


def nearest_pair(rates: FloatArray, degrees: float) -> int:
    """Return the pair whose rotation per position is nearest to `degrees`, 0 if no pair rotates."""
    with np.errstate(divide="ignore"):
        return int(np.argmin(np.abs(np.log(rates) - math.log(math.radians(degrees)))))


def describe(message: Mapping[str, Any]) -> Sentence:
    """Return the sentence of the picture: the pair, and angle and score of the two words."""
    values = _values(message)
    distance = TEXTS("hands.distance", count=message["start"]["query"] - message["start"]["key"])
    words = {"query_word": f"“{message['words'][QUERY]}”", "key_word": f"“{message['words'][KEY]}”"}
    return join(TEXTS("hands.one", **values), TEXTS("hands.apart", **values, **words, distance=distance))


def _values(message: Mapping[str, Any]) -> dict[str, Any]:
    step = math.degrees(message["inv_freq"][message["pair"]])
    angle = fold_angle(step * (message["start"]["query"] - message["start"]["key"]))
    score = f"{math.cos(math.radians(angle)):.2f}".replace("-", "−")
    named = {"pair": message["pair"], "model": message["model"]}
    return named | {"step": f"{step:.3g}", "angle": f"{angle:.1f}", "score": score}


def fold_angle(degrees: float) -> float:
    """Return the angle between two hands, 0 to 180 degrees, for any difference of their rotations."""
    return abs((degrees + 180.0) % 360.0 - 180.0)


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all pairs: frequency, the angles of both hands, the angle between them and its cosine."""
    rates, at = np.asarray(message["inv_freq"], dtype=float), message["start"]
    between = np.degrees(rates) * (at["query"] - at["key"])
    return {
        "pair": np.arange(len(rates)),
        "θ (rad/token)": rates,
        f"angle of the query at {at['query']} (degrees)": np.degrees(rates) * at["query"] % 360.0,
        f"angle of the key at {at['key']} (degrees)": np.degrees(rates) * at["key"] % 360.0,
        "angle between (degrees)": np.array([fold_angle(each) for each in between]),
        "its cosine": np.cos(np.radians(between)),
    }


def draw_static(message: Mapping[str, Any]) -> theme.DataFigure:
    """Draw the pair that is shown alone as a static figure: 0 at 3 o'clock, counterclockwise."""
    step, texts, values = message["inv_freq"][message["pair"]], message["texts"], _values(message)
    query, key = (step * message["start"][name] for name in ("query", "key"))
    way = math.remainder(query - key, math.tau)
    wedge, ring = key + way * np.linspace(0, 1, 49), np.linspace(0, math.tau, 181)
    dots = step * np.arange(SLOTS[0])
    quiet: dict[str, Any] = {"hoverinfo": "skip", "meta": HIDDEN}
    area = {"fill": "toself", "fillcolor": theme.tint(theme.CURRENT, 0.1)}
    x, y = np.append(0, 0.42 * np.cos(wedge)), np.append(0, 0.42 * np.sin(wedge))
    circle = theme.line(np.cos(ring), np.sin(ring), "circle", theme.RULE, width=1, **quiet)
    places = theme.line(np.cos(dots), np.sin(dots), "positions", theme.RULE, **quiet)
    traces = [
        circle,
        places | {"mode": "markers", "marker": {"size": 6, "color": theme.RULE}},
        theme.line(x, y, "between", theme.CURRENT, width=0, **quiet) | area,
        theme.line(x[1:], y[1:], "angle", theme.TEXT, width=1.5, **quiet),
    ]
    angle, score = f"<b>{values['angle']}°</b>", f"{texts['cosine'].format(**values)}<b>{values['score']}</b>"
    notes = [_note(0.62, key + way / 2, angle, theme.TEXT, 20), _note(1.3, -math.pi / 2, score, theme.TEXT, 15)]
    for name, at, colour in (("key", key, theme.KEY), ("query", query, theme.QUERY)):
        x, y = np.array([0.0, math.cos(at)]), np.array([0.0, math.sin(at)])
        tip = {"mode": "markers", "marker": {"size": 14, "color": colour}}
        traces.append(theme.line(x, y, name, colour, width=6, **quiet))
        traces.append(theme.line(x[1:], y[1:], f"{name}, tip", colour, **quiet) | tip)
        word = message["words"][KEY if name == "key" else QUERY]
        notes.append(_note(1.14, at, f"<b>{texts[name].format(word=word)}</b>", colour, 15, outside=True))
    hidden = {"visible": False, "showgrid": False, "showspikes": False}
    fig = theme.figure(
        traces,
        x=hidden | {"range": [-1.9, 1.9]},
        y=hidden | {"range": [-1.45, 1.35], "scaleanchor": "x"},
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        notes=notes,
        hovermode=False,
    )
    fig.table = lambda: numbers(message)
    return fig


def _note(reach: float, at: float, text: str, colour: str, size: int, *, outside: bool = False) -> dict[str, Any]:
    """Return a text at an angle; `outside`: begun or ended there, so that it does not cross the circle."""
    place = {"x": reach * math.cos(at), "y": reach * math.sin(at), "showarrow": False}
    side = "center" if not outside or abs(math.cos(at)) < 0.4 else "left" if math.cos(at) > 0 else "right"
    return place | {"text": text, "font": {"size": size, "color": colour}, "xanchor": side, "yanchor": "middle"}
