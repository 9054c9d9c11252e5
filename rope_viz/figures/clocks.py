"""The clocks: every pair of a spec as a dial, as data for the browser, which animates them, and as a still figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.colors

from rope_viz.embedding import spectrum
from rope_viz.embedding.exact_angles import exact_angles
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import line_styles, theme
from rope_viz.figures.compared import Compared
from rope_viz.figures.files.colours import grey_pair, ramp, to_grey
from rope_viz.figures.words import name_band
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.texts import join_items

APP, TEXTS = Texts("app"), Texts("clocks")
MODES = TEXTS.group("modes")
STARTS = {"turn": (0, 0), "score": (1040, 1024)}
MAX_PAIRS = 256  # drawn as dials; the score uses all pairs
LAST_POSITION = 10_000_000
# Height in pixels by mode: (wide, narrow).
HEIGHTS = {"turn": (420, 400), "score": (500, 420)}

COLOURS = {
    "background": theme.BACKGROUND,
    "face": theme.GRID,
    "text": theme.TEXT,
    "rule": theme.RULE,
    "plain": theme.PLAIN,
    "current": theme.CURRENT,
    "query": theme.QUERY,
    "key": theme.KEY,
    "positive": theme.POSITIVE,
    "negative": theme.NEGATIVE,
}


def message(
    spec: RopeSpec,
    *,
    pin: int | None,
    mode: str = "turn",
    plain: bool = True,
    start: tuple[int, int] | None = None,
    variants: Sequence[Compared] = (),
) -> dict[str, Any]:
    """Return the data of the spec's pairs as dials (at most 256); in mode "score", of a query, a key and their score.

    `plain` adds the unscaled hand. `start` holds the initial positions of query and key; unless they are the default
    ones, the animation starts paused. `variants` are further embeddings, each with a hand of its own.
    """
    return packed(spec, mode=mode, plain=plain, variants=variants) | {
        "pin": pin,
        # Start paused at a position that a link asks for.
        "plays": start is None or start == STARTS[mode],
        "start": dict(zip("mn", start or STARTS[mode], strict=True)),
        "heights": heights(mode, len(variants)),
        "speed": 60.0 if mode == "turn" else 2.0,
        "texts": TEXTS.group("canvas") | TEXTS.group("player") | APP.group("video"),
    }


def heights(mode: str, variants: int = 0) -> tuple[int, int]:
    """Return the height in pixels on a wide and on a narrow screen, with a line for the names of variants."""
    wide, narrow = HEIGHTS[mode]
    return wide + (NAMES if variants else 0), narrow + NAMES * variants


def packed(spec: RopeSpec, *, mode: str, plain: bool, variants: Sequence[Compared] = ()) -> dict[str, Any]:
    """Return what the browser needs of a spec: frequencies in radians per position, bands, lengths and colours."""
    scaled, first = spec.inv_freq(spec.target), spec.plain_inv_freq
    changed = bool(np.any(scaled != first))
    return {
        "title": str(title(spec, mode)),
        "mode": mode,
        "most": MAX_PAIRS,
        "first": first.tolist(),
        "scaled": scaled.tolist() if changed else None,
        "plain": plain and changed,
        "bands": spectrum.bands(spec, length=spec.target).kind.tolist(),
        "names": [name_band(kind) for kind in range(len(theme.BAND_COLOURS))],
        "context": spec.context,
        "target": spec.target,
        "variants": [
            {
                "name": each.label,
                "rates": each.inv_freq.tolist(),
                "colour": (each.colour, theme.DARK[each.colour]),
                "dash": each.dash,
                "strokes": line_styles.strokes(each.dash),
            }
            for each in variants
        ],
        "palette": palette(),
        "cycle": [plotly.colors.unlabel_rgb(colour) for _, colour in theme.CYCLIC],
    }


def title(spec: RopeSpec, mode: str) -> Sentence:
    """Return the description of the dials for screen readers, with their keys."""
    count = "some" if spec.pairs > MAX_PAIRS else "one" if spec.pairs == 1 else "all"
    drawn = TEXTS(f"dials.{count}", most=MAX_PAIRS, pairs=spec.pairs, motion=TEXTS(f"dials.{mode}"))
    return join(drawn, TEXTS("dials.keys"))


def has_two_hands(spec: RopeSpec, mode: str) -> bool:
    """Return True if the scaled frequencies differ, so that an unscaled hand can be shown as well."""
    return mode == "turn" and bool(np.any(spec.inv_freq(spec.target) != spec.plain_inv_freq))


def palette() -> dict[str, Any]:
    """Return the colours by meaning, each as (light, dark)."""
    both = {name: (colour, theme.DARK[colour]) for name, colour in COLOURS.items()}
    return both | {"bands": (theme.BAND_COLOURS, [theme.DARK[colour] for colour in theme.BAND_COLOURS])}


def greyed(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message, of these clocks, of a patch or of hands, with greys for colours."""
    palette = {
        name: grey_pair(light) if isinstance(light, str) else tuple(zip(*map(grey_pair, light), strict=True))
        for name, (light, _) in message["palette"].items()
    }
    hands = [{**each, "colour": grey_pair(each["colour"][0])} for each in message.get("variants", ())]
    grey_cycle = [3 * [int(to_grey("rgb({}, {}, {})".format(*colour))[1:3], 16)] for colour in message["cycle"]]
    return {**message, "palette": palette, "cycle": grey_cycle, "variants": hands}


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the dials show at their start positions, a row per pair."""
    return table(message, **message["start"])


def still(message: Mapping[str, Any]) -> theme.DataFigure:
    """Draw the dials at their start positions as a static figure."""
    return draw_still(message, **message["start"], pin=message.get("pin"))


MOST = 256

TAU = 2.0 * math.pi

RADIUS, CELL = 0.42, 1.0

NAMED = 1.28  # height of a cell that has a label under the dial

LEAST_NAMED = 36.0  # pixels; smaller dials get no labels

STEPS = 64

# Dashes as in the browser, in the order of spectrum.BAND_NAMES.
RINGS = ("solid", "4px,3px", "1.5px,3px", "7px,2px", "1px,5px")

SHORTER = 0.5
"""The strokes of a hand over those of a line."""

ASIDE = 262.0

NAMES = 20
"""Pixels: the height of a line with the names of variants."""


# The still figure is drawn from the data that the browser's clocks receive, without a browser.
def draw_still(
    data: Mapping[str, Any],
    m: int,
    n: int = 0,
    *,
    pin: int | None = None,
    width: float = 1000.0,
    height: float | None = None,
) -> theme.DataFigure:
    """Draw all pairs (at most 256) at position m; in mode "score" a query at m, a key at n, and their score by pair.

    `data` is the message sent to the browser's clocks (`clocks.packed`). `width` and `height` are in pixels and decide
    how many dials fit in a row.
    """
    first = np.asarray(data["first"], dtype=float)
    rates = first if data.get("scaled") is None else np.asarray(data["scaled"], dtype=float)
    pair = data.get("mode") == "score"
    count = min(MOST, len(rates))
    at_right = pair and width >= 640
    height = height or min(512.0, max(260.0, 0.8 * width) + (190.0 if pair and not at_right else 0.0))
    room = (width - (ASIDE + 40 if at_right else 16), (0.58 if pair and not at_right else 1.0) * (height - 44))
    columns, named = arranged(count, *room)
    rows, step = -(-count // columns), NAMED if named else CELL
    places = np.arange(count, dtype=np.float64)
    cx: FloatArray = places % columns + 0.5
    cy: FloatArray = -(places // columns * step + 0.5)
    traces = _faces(cx, cy, data, first[:count])
    turn = {name: _turns(at, rates[:count]) for name, at in (("m", m), ("n", n))}
    if pair:
        traces += _pair_hands(cx, cy, turn["m"], turn["n"])
    else:
        before = _turns(m, first[:count]) if data.get("plain") else None
        traces += _variant_hands(cx, cy, m, data.get("variants", ()))
        traces += _hands(cx, cy, turn["m"], before)
    if named:
        traces += _names(cx, cy, m * rates[:count] / TAU)
    notes = _heading(data, m, n, pair, narrow=width < 640)
    wide = {"range": [0, columns], "visible": False, "fixedrange": True}
    high = {"range": [-rows * step, 0], "visible": False, "fixedrange": True, "scaleanchor": "x"}
    shapes = _frame(cx, cy, pin, step) if pin is not None and pin < count else []
    more: dict[str, Any] = {}
    if pair:
        across = (0.0, 1 - ASIDE / width, 1 - (ASIDE - 34) / width, 1.0) if at_right else (0.0, 1.0, 0.0, 1.0)
        up = (0.0, 1.0, 0.0, 1.0) if at_right else (0.42, 1.0, 0.0, 0.3)
        wide |= {"domain": list(across[:2])}
        high |= {"domain": list(up[:2])}
        bars, more = _score(rates, m - n, list(across[2:]), list(up[2:]))
        traces += bars
    fig = theme.figure(
        traces,
        x=wide,
        y=high,
        height=int(height),
        notes=notes,
        shapes=shapes,
        hovermode="closest",
        margin={"l": 8, "r": 16, "t": 44 + (NAMES if data.get("variants") else 0), "b": 44 if pair else 8},
        **more,
    )
    fig.table = lambda: table(data, m, n)
    fig.at_size = lambda wide, high: draw_still(data, m, n, pin=pin, width=wide, height=high)
    return fig


def table(data: Mapping[str, Any], m: int, n: int = 0) -> dict[str, Any]:
    """Return a row per pair, beyond 256 too: band, frequencies and angle; with a key also its angle and the score."""
    first = np.asarray(data["first"], dtype=float)
    rates = first if data.get("scaled") is None else np.asarray(data["scaled"], dtype=float)
    out: dict[str, Any] = {
        "pair": np.arange(len(rates)),
        "band": [spectrum.BAND_NAMES[kind] for kind in data["bands"]],
        "θ plain (rad/token)": first,
        "θ scaled (rad/token)": rates,
        "tokens per turn": spectrum.wavelength(rates),
    }
    if data.get("mode") != "score":
        for each in data.get("variants", ()):
            other = np.asarray(each["rates"], dtype=float)[: len(rates)]
            none = np.full(len(rates) - len(other), np.nan)
            out[f"{each['name']}: θ (rad/token)"] = np.append(other, none)
            out[f"{each['name']}: angle at position {m} (turns)"] = np.append(_turns(m, other), none)
        return out | {f"turns up to position {m}": m * rates / TAU, f"angle at position {m} (turns)": _turns(m, rates)}
    parts = np.cos(TAU * _turns(m - n, rates))
    out |= {
        f"angle of the query at {m} (turns)": _turns(m, rates),
        f"angle of the key at {n} (turns)": _turns(n, rates),
    }
    out |= {"angle between (turns)": _turns(m - n, rates), "its cosine": parts}
    return out | {"sum of cosines up to this pair ÷ pairs": np.cumsum(parts) / len(parts)}


def arranged(count: int, width: float, height: float) -> tuple[int, bool]:
    """Return the number of columns that makes the dials largest, and whether their labels fit.

    Rows that are all full may cost three tenths of the size.
    """

    def best(cell: float) -> tuple[float, int]:
        sizes = {c: min(width / c, height / (-(-count // c)) / cell) for c in range(1, count + 1)}
        columns = max(sizes, key=lambda c: sizes[c] * (0.7 if count % c else 1.0))
        return sizes[columns], columns

    size, columns = best(NAMED)
    if size >= LEAST_NAMED:
        return columns, True
    return best(CELL)[1], False


def _turns(position: int, inv_freq: FloatArray) -> FloatArray:
    """Return the share of a turn each pair has reached, in [0, 1)."""
    return np.asarray(exact_angles(inv_freq, [position])[0] / TAU % 1.0)


def _circle(share: float = 1.0, start: float = 0.0, steps: int = STEPS) -> tuple[FloatArray, FloatArray]:
    angle = TAU * (start + share * np.linspace(0.0, 1.0, steps + 1))
    return np.cos(angle), np.sin(angle)


def _trace(x: Sequence[Any], y: Sequence[Any], **more: Any) -> dict[str, Any]:
    """Join several strokes into one trace, with gaps between them."""
    gaps = [(np.append(a, np.nan), np.append(b, np.nan)) for a, b in zip(x, y, strict=True)]
    base = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": {"csv": False}}
    xs = np.concatenate([a for a, _ in gaps]) if gaps else np.zeros(0)
    ys = np.concatenate([b for _, b in gaps]) if gaps else np.zeros(0)
    return base | {"x": xs.round(5), "y": ys.round(5)} | more


def _faces(cx: FloatArray, cy: FloatArray, data: Mapping[str, Any], first: FloatArray) -> list[dict[str, Any]]:
    """Return grey faces for the angles seen in training, and a ring per dial in the colour and dash of its band."""
    seen = np.minimum(1.0, data["context"] * first / TAU)
    x, y = [], []
    for a, b, share in zip(cx, cy, seen, strict=True):
        cos, sin = _circle(float(share), steps=max(2, round(STEPS * share)))
        middle = [] if share >= 1 else [0.0]
        x.append(a + RADIUS * np.append(middle, cos))
        y.append(b + RADIUS * np.append(middle, sin))
    traces = [_trace(x, y, fill="toself", fillcolor=theme.GRID, line={"width": 0}, name="seen in training")]
    cos, sin = _circle()
    kinds = np.asarray(data["bands"])[: len(cx)]
    width = 1.6 if len(cx) <= 128 else 1.0
    for kind, colour in enumerate(theme.BAND_COLOURS):
        members = np.flatnonzero(kinds == kind)
        if members.size:
            rings = [cx[i] + RADIUS * cos for i in members], [cy[i] + RADIUS * sin for i in members]
            line = {"color": colour, "width": width, "dash": RINGS[kind]}
            traces.append(_trace(*rings, line=line, name=spectrum.BAND_NAMES[kind]))
    return traces


def _hand(cx: Any, cy: Any, turn: Any, reach: float) -> tuple[list[Any], list[Any]]:
    x = [np.array([a, a + reach * RADIUS * math.cos(TAU * t)]) for a, t in zip(cx, turn, strict=True)]
    y = [np.array([b, b + reach * RADIUS * math.sin(TAU * t)]) for b, t in zip(cy, turn, strict=True)]
    return x, y


def _colour(turn: float) -> str:
    red, green, blue, _ = ramp(theme.CYCLIC, np.array([turn]))[0]
    return f"rgb({round(255 * red)}, {round(255 * green)}, {round(255 * blue)})"


def _hands(cx: FloatArray, cy: FloatArray, turn: FloatArray, before: FloatArray | None) -> list[dict[str, Any]]:
    """Return a hand per dial in the colour of its angle, and a short grey one for the unscaled angle."""
    thick = 3.0 if len(cx) <= 128 else 1.6
    out = []
    if before is not None:
        line = {"color": theme.PLAIN, "width": 0.7 * thick}
        out.append(_trace(*_hand(cx, cy, before, 0.58), line=line, name="before scaling"))
    for a, b, at in zip(cx, cy, turn, strict=True):
        out.append(_trace(*_hand([a], [b], [at], 0.8), line={"color": _colour(float(at)), "width": thick}, name="hand"))
    return out


def _variant_hands(
    cx: FloatArray, cy: FloatArray, m: int, variants: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a hand per dial for each variant, as far as it has pairs."""
    thick = 2.0 if len(cx) <= 128 else 1.2
    out = []
    for each in variants:
        turn = _turns(m, np.asarray(each["rates"], dtype=float)[: len(cx)])
        dash = ",".join(f"{SHORTER * length:g}px" for length in each["strokes"])
        line = {"color": each["colour"][0], "width": thick, "dash": dash}
        count = len(turn)
        out.append(_trace(*_hand(cx[:count], cy[:count], turn, 0.8), line=line, name=each["name"]))
    return out


def _pair_hands(cx: FloatArray, cy: FloatArray, query: FloatArray, key: FloatArray) -> list[dict[str, Any]]:
    """Return the hands of query and key, and the angle between them as a wedge in that angle's colour."""
    difference = (query - key) % 1.0
    thick = 2.6 if len(cx) <= 128 else 1.4
    out = []
    for a, b, start, share in zip(cx, cy, key, difference, strict=True):
        way = share - 1 if share > 0.5 else share
        cos, sin = _circle(float(way), float(start), steps=24)
        wedge = a + 0.8 * RADIUS * np.append(0.0, cos), b + 0.8 * RADIUS * np.append(0.0, sin)
        fill = _hex(_colour(float(share)), 0.5)
        out.append(_trace([wedge[0]], [wedge[1]], fill="toself", fillcolor=fill, line={"width": 0}, name="between"))
    for turn, reach, colour, dash, name in (
        (key, 0.72, theme.KEY, "solid", "key"),
        (query, 0.94, theme.QUERY, "solid", "query"),
    ):
        line = {"color": colour, "width": thick, "dash": dash}
        out.append(_trace(*_hand(cx, cy, turn, reach), line=line, name=name))
    return out


def _hex(rgb: str, alpha: float) -> str:
    return theme.tint("#" + "".join(f"{int(part):02X}" for part in rgb[4:-1].split(",")), alpha)


def _names(cx: FloatArray, cy: FloatArray, turns: FloatArray) -> list[dict[str, Any]]:
    """Return the pair number and the count of turns under each dial."""
    base = {"type": "scatter", "mode": "text", "hoverinfo": "skip", "meta": {"csv": False}, "y": cy - 0.5}
    places = {"x": cx - 0.45, "text": [str(i) for i in range(len(cx))], "textposition": "bottom right"}
    counts = {"x": cx + 0.45, "text": [counted(float(each)) for each in turns], "textposition": "bottom left"}
    return [
        base | places | {"name": "pair", "textfont": {"size": 9, "color": theme.PLAIN}},
        base | counts | {"name": "turns", "textfont": {"size": 9, "color": theme.TEXT}},
    ]


def counted(turns: float) -> str:
    """Format a number of turns with as few characters as possible."""
    if turns < 0.005:
        return "0"
    return f"{turns:.2f}" if turns < 1 else str(int(turns)) if turns < 1e5 else f"{turns / 1e6:.2f}M"


def _heading(data: Mapping[str, Any], m: int, n: int, pair: bool, *, narrow: bool) -> list[dict[str, Any]]:
    """Return the annotation above the dials: positions, and the meaning of hands and rings."""

    def coloured(text: str, colour: str) -> str:
        return f'<span style="color:{colour}">{text}</span>'

    if pair:
        distance = f"{m - n:,}".replace("-", "−")
        hands = (
            coloured(TEXTS("canvas.query", m=f"{m:,}"), theme.QUERY),
            coloured(TEXTS("canvas.key", n=f"{n:,}"), theme.KEY),
        )
        heading = f"<b>{'  '.join(hands)}  {TEXTS('canvas.distance', distance=distance)}</b>"
    else:
        heading = f"<b>{TEXTS('canvas.position', m=f'{m:,}')}</b>"
        if not narrow:
            plain = TEXTS("canvas.plain_hand") if data.get("plain") else ""
            heading += coloured(f"   {plain}{TEXTS('dials.face')}", theme.PLAIN)
    kinds = list(data["bands"])
    rings = [
        TEXTS(
            "dials.stroke",
            name=coloured(f"{name_band(kind)} {kinds.count(kind)}", theme.BAND_COLOURS[kind]),
            stroke=stroke,
        )
        for kind, stroke in enumerate(TEXTS.group("ring_strokes").values())
        if kind in kinds
    ]
    if len(rings) > 1:
        heading += f"<br>{TEXTS('dials.rings', rings=join_items(rings))}"
    if variants := data.get("variants"):
        strokes = TEXTS.group("hand_strokes")
        names = [
            TEXTS("dials.stroke", name=coloured(each["name"], each["colour"][0]), stroke=strokes[each["dash"]])
            for each in variants
        ]
        heading += f"<br>{TEXTS('dials.variants', names=join_items(names))}"
    place = {"x": 0, "y": 1, "xref": "x domain", "yref": "y domain", "xanchor": "left", "yanchor": "bottom"}
    return [place | {"text": heading, "align": "left", "showarrow": False, "yshift": 4, "font": {"size": 12}}]


def _frame(cx: FloatArray, cy: FloatArray, pin: int, step: float) -> list[dict[str, Any]]:
    x, y = float(cx[pin]), float(cy[pin])
    box = {"x0": x - 0.49, "x1": x + 0.49, "y0": y + 0.49, "y1": y + 0.49 - (step - 0.02)}
    return [{"type": "rect", "line": {"color": theme.CURRENT, "width": 2}} | box]


def _score(
    rates: FloatArray, distance: int, across: list[float], up: list[float]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a bar per pair for its cosine, the running mean that ends at the score, and their axes."""
    parts = np.cos(TAU * _turns(distance, rates))
    mean = np.cumsum(parts) / len(parts)
    pair = np.arange(len(parts))
    on = {"xaxis": "x2", "yaxis": "y2"}
    colours = np.where(parts < 0, theme.tint(theme.NEGATIVE, 0.6), theme.tint(theme.POSITIVE, 0.6)).tolist()
    bars = on | {"type": "bar", "orientation": "h", "x": parts, "y": pair, "name": "cos (m − n)θᵢ", "width": 0.9}
    bars |= {"marker": {"color": colours}, "hovertemplate": TEXTS("bars.hover")}
    line = theme.line(mean, pair + 0.5, TEXTS("bars.mean"), theme.TEXT, hovertemplate="%{x:.4f}<extra></extra>") | on
    score = f"{mean[-1]:.4f}".replace("-", "−")
    axis = theme.merge_dicts(theme.AXIS, {"domain": across, "anchor": "y2", "range": [-1, 1], "tickvals": [-1, 0, 1]})
    axis = theme.merge_dicts(axis, {"title": TEXTS("bars.title", score=score), "showspikes": False, "zeroline": True})
    axis |= {"zerolinecolor": theme.RULE, "showgrid": False}
    ticks = {"tickvals": theme.thin_ticks(len(parts), 9), "title": theme.TEXTS("axes.pair"), "showgrid": False}
    y_axis = theme.merge_dicts(theme.AXIS, {"domain": up, "anchor": "x2", "range": [len(parts) - 0.5, -0.5]}, ticks)
    return [bars, line], {"xaxis2": axis, "yaxis2": y_axis}
