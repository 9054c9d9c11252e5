"""Figures of attention over one sentence: by encoding, sinusoidal against rotary, and linear attention."""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import Knob, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.cell_text import subscript
from rope_viz.figures.compared import short_label
from rope_viz.figures.heatmap_grid import Heatmap, draw_panels
from rope_viz.studies import attention, linear_attention
from rope_viz.texts import Sentence, Texts

TEXTS = Texts("attention")
VIEWS = TEXTS.group("views")
COSTS = TEXTS.group("cost_views")
TIMED = (128, 512, 2048)
# Most multiply-adds one measurement may take, counting four for each one in the loop over tokens: about half a second.
# Large heads are measured on fewer tokens, or not at all.
TIMED_WORK = 1 << 30
NARROW_HEIGHT = 480
"""Pixels of the maps on a narrow screen: with one slider they fill the first screen of a phone."""
OFFSET = Knob(TEXTS("choices.offset"), 0, 1_000_000, TEXTS("choices.offset_help"), integer=True, unit="tokens")
SPACING = Knob(
    TEXTS("choices.spacing"),
    1,
    1_000_000,
    TEXTS("choices.spacing_help"),
    log=True,
    integer=True,
    unit="tokens",
)
LONGEST_LABEL = 12


@functools.lru_cache(maxsize=32)
def sentence_maps(
    spec: RopeSpec, sentence: str, offset: int, causal: bool
) -> tuple[dict[str, attention.AttentionMap], dict[str, tuple[float, float]]]:
    """Return the four attention maps of a sentence, and how much each changes as it moves from 0 to `offset`."""
    options = {"offset": offset, "causal": causal, "length": spec.target}
    return (
        attention.attention_maps(spec, sentence, **options),  # type: ignore[arg-type]
        attention.shift_differences(spec, sentence, **options),  # type: ignore[arg-type]
    )


def word_labels(sentence: str) -> list[str]:
    """Return the words as unique labels: a repeated word is numbered (Jane₁, Jane₂)."""
    words = attention.split_words(sentence)
    names = [attention.same_word(word) for word in words]
    total, seen = Counter(names), Counter[str]()
    labels: list[str] = []
    for word, name in zip(words, names, strict=True):
        seen[name] += 1
        short = word if len(word) <= LONGEST_LABEL else word[: LONGEST_LABEL - 1] + "…"
        label = theme.plain_text(short) + (subscript(seen[name]) if total[name] > 1 else "")
        # Shortened words, or words typed with a subscript, can still collide; a category axis needs unique labels.
        while label in labels:
            label += "′"
        labels.append(label)
    return labels


def maps(spec: RopeSpec, sentence: str, *, offset: int, causal: bool, shown: str = "weights") -> go.Figure:
    """Draw the four maps on one colour scale, with frames around the rows of the first repeated word."""
    by_encoding, moved = sentence_maps(spec, sentence, offset, causal)
    repeated = attention.repeated_words(sentence)
    values = {name: each.weights if shown == "weights" else each.scores for name, each in by_encoding.items()}
    most = max(float(np.abs(each).max()) for each in values.values())
    labels = word_labels(sentence)
    drawn = []
    for name, each in by_encoding.items():
        lines = []
        if repeated:
            _, first, second = repeated[0]
            lines.append(_describe_rows(attention.row_difference(each, first, second)[shown == "weights"]))
        lines.append(_describe_move(offset, moved[name][shown == "weights"]))
        # Scores are drawn unmasked, so equal rows stay equal; under a causal mask later queries see more keys.
        masked = causal and shown == "weights"
        seen = np.where(attention.visible_keys(len(labels), causal=masked), values[name], np.nan)
        drawn.append(Heatmap(map_label(spec, name), lines, seen))
    if shown == "weights":
        ends, scale = (0.0, math.ceil(most * 10) / 10), theme.SEQUENTIAL
        bar = {"title": {"text": TEXTS("panels.weight"), "side": "top"}}
    else:
        most = math.ceil(most)
        ends, scale = (-most, most), theme.DIVERGING
        bar = {"title": {"text": TEXTS("panels.score"), "side": "top"}}
    frames = repeated[0][1:] if repeated else ()
    return draw_panels(drawn, labels, ends=ends, scale=scale, bar=bar, frames=frames, narrow_height=NARROW_HEIGHT)


def map_label(spec: RopeSpec, name: str) -> str:
    """Return the title of a map; the scaled map is named after its scaling method."""
    if name == "scaled" and not spec.is_scaled:
        return TEXTS("panels.unscaled")
    return TEXTS(f"panels.{name}", method=short_label(spec.scaling.name))


def added_or_multiplied(spec: RopeSpec, *, offset: int, count: int = 64) -> go.Figure:
    """Draw p_m·p_n of the sinusoidal encoding, divided by d/2, next to the mean cosine of RoPE, on one colour scale."""
    both = attention.sinusoidal_dots(spec, count, offset=offset)
    labels = [f"{offset + place}" for place in range(count)]
    drawn = [
        Heatmap(f"pₘ·pₙ ÷ {both.factor:.0f}", [TEXTS("panels.added")], both.dots / both.factor),
        Heatmap(TEXTS("panels.cosine"), [TEXTS("panels.multiplied")], both.mean_cosine),
    ]
    fig = draw_panels(
        drawn,
        labels,
        ends=(-1.0, 1.0),
        scale=theme.DIVERGING,
        bar={"tickvals": [-1, 0, 1]},
        rows=(TEXTS("panels.row"), TEXTS("panels.column")),
        height=340,
        narrow_height=330,
    )
    every = theme.thin_ticks(count, 5)
    ticks = {"tickvals": every, "ticktext": [labels[t] for t in every]}
    fig.update_xaxes(tickangle=0, **ticks)
    fig.update_yaxes(**ticks)
    for name, changes in fig.layout.meta["narrow"].items():
        if "axis" in name:
            changes.update(ticks)
    fig.update_traces(xgap=0, ygap=0)
    return fig


def lengths(spec: RopeSpec, sentence: str, *, offset: int) -> go.Figure:
    """Draw how position changes the norm of each word's vector: sinusoidal added, rotated, rotated and scaled."""
    found = attention.norms(spec, sentence, offset=offset, length=spec.target)
    labels = word_labels(sentence)
    curves = [
        ("sinusoidal", found.added / found.embedded, theme.FURTHER[0], "circle"),
        ("rope", found.rotated / found.projected, theme.PLAIN, "square"),
        ("scaled", found.scaled / found.projected, theme.CURRENT, "diamond"),
    ]
    traces, ends = [], []
    for key, ratio, colour, symbol in curves:
        if key == "scaled" and np.allclose(ratio, 1.0, rtol=0, atol=1e-9):
            continue
        name = TEXTS(f"length_lines.{key}")
        look: dict[str, Any] = {"mode": "lines+markers", "marker": {"size": 6, "symbol": symbol, "color": colour}}
        traces.append(theme.line(labels, ratio, name, colour, width=1, **look))
        ends.append((len(labels) - 1, float(ratio[-1]), name, colour))
    top = max(1.6, math.ceil(10 * max(float(np.max(trace["y"])) for trace in traces)) / 10)
    span = [0.8, top]
    ticks = theme.thin_ticks(len(labels), 20)
    return theme.figure(
        traces,
        x={
            "title": {"text": TEXTS("length_lines.word"), "standoff": 4},
            "type": "category",
            "tickvals": ticks,
            "ticktext": [labels[t] for t in ticks],
            "tickangle": -90,
            "tickfont": {"size": 11},
            "range": [-0.5, len(labels) - 0.5],
        },
        y={"title": TEXTS("length_lines.axis"), "range": span},
        height=340,
        notes=theme.spread_labels(ends, span, log=False, height=290),
        margin={"l": 56, "r": 80, "t": 39, "b": 84},
        # Leave room for the words below the axis, whose length varies.
        meta={"narrow": {"margin": {"b": 100}, "legend": {"y": -0.52}}},
    )


def usual_spacing(spec: RopeSpec) -> int:
    """Return the default spacing: the target length, because words close together get no negative weight."""
    return int(min(spec.target, SPACING.high))


@functools.lru_cache(maxsize=32)
def linear(spec: RopeSpec, sentence: str, spacing: int, causal: bool) -> linear_attention.LinearAttention:
    """Compute linear attention of the sentence, its words `spacing` positions apart."""
    x = attention.embed(sentence, min(spec.head_dim, attention.MAX_WIDTH))
    q, k, v = (attention.project(x, name, spec.head_dim) for name in "qkv")
    places = spacing * np.arange(len(x))
    return linear_attention.linear_attention(spec, q, k, v, positions=places, causal=causal, length=spec.target)


def linear_weights(spec: RopeSpec, sentence: str, *, spacing: int, causal: bool) -> go.Figure:
    """Draw the weights of linear attention, with a minus sign on every negative one."""
    weights = linear(spec, sentence, spacing, causal).weights
    count = len(weights)
    seen = np.where(attention.visible_keys(count, causal=causal), weights, np.nan)
    # A causal row with few keys has weights near 1, which would wash out the colours of the other rows.
    most = min(float(np.abs(weights).max()), 3.0 / count)
    step = 10.0 ** math.floor(math.log10(most))
    most = math.ceil(most / step) * step
    minus = {
        "text": np.where(seen < 0.0, "−", "").tolist(),
        "texttemplate": "%{text}",
        "textfont": {"size": max(6, min(15, 240 // count)), "color": theme.TEXT},
    }
    title = TEXTS("panels.linear", spacing=spacing)
    return draw_panels(
        [Heatmap(title, [TEXTS("panels.minus")], seen, minus)],
        word_labels(sentence),
        ends=(-most, most),
        scale=theme.DIVERGING,
        bar={"title": {"text": TEXTS("panels.weight"), "side": "top"}},
        height=460,
        narrow_height=460,
    )


@functools.lru_cache(maxsize=16)
def timed(head_dim: int) -> tuple[linear_attention.Timing, ...]:
    """Measure both methods once per process; base and scaling do not affect the time."""
    tokens = [n for n in TIMED if n * head_dim * (n + 4 * head_dim) <= TIMED_WORK]
    # Warm up: the first matrix product of a process also starts the threads of the matrix library.
    linear_attention.measure(RopeSpec(head_dim=head_dim), tokens[:1], repeats=1)
    return linear_attention.measure(RopeSpec(head_dim=head_dim), tokens, repeats=1)


def costs(spec: RopeSpec, *, causal: bool, shown: str = "operations", live: bool = False) -> go.Figure:
    """Draw the cost of all pairs and of the running state over the token count: multiply-adds, or measured seconds."""
    size = spec.head_dim
    if shown == "time":
        points = () if live else timed(size)
        x = np.array([each.tokens for each in points])
        pairs, state = np.array([each.pairs for each in points]), np.array([each.state for each in points])
        y: dict[str, Any] = {"title": TEXTS("costs.seconds_axis"), "type": "log", "range": [-4, 1], "dtick": 1}
        ends_x, hover, mode = (100.0, 4096.0), "costs.seconds_hover", "lines+markers"
    else:
        x = np.unique(np.geomspace(16, 1 << 20, 60).astype(np.int64))
        counted = [linear_attention.operations(int(n), size, size, causal=causal) for n in x]
        pairs, state = np.array([float(c.pairs) for c in counted]), np.array([float(c.state) for c in counted])
        y = {"title": TEXTS("costs.operations_axis"), "type": "log", "range": [2, 15], "exponentformat": "power"}
        ends_x, hover, mode = (16.0, float(1 << 20)), "costs.operations_hover", "lines"
    curves = [
        (TEXTS("costs.pairs"), pairs, theme.DIVIDED, "dash"),
        (TEXTS("costs.state"), state, theme.CURRENT, "solid"),
    ]
    traces = [
        theme.line(x, cost, name, colour, dash=dash, mode=mode, hovertemplate=TEXTS(hover, name=name))
        for name, cost, colour, dash in curves
    ]
    ends = [(math.log10(x[-1]), float(cost[-1]), name, colour) for name, cost, colour, _ in curves if cost.size]
    cross = linear_attention.crossover(size, size, causal=causal)
    rules, notes = [], theme.spread_labels(ends, y["range"], log=True, height=460)
    if shown != "time":
        rules.append(theme.rule(cross, "", axis="x", dash="dot"))
        note = {"x": math.log10(cross), "y": 0.02, "yref": "paper", "xanchor": "left", "yanchor": "bottom", "xshift": 3}
        notes.append(
            note | {"text": TEXTS("panels.crossover", crossover=cross), "showarrow": False, "font": {"size": 12}}
        )
    return theme.figure(
        traces,
        x={
            "title": TEXTS("costs.tokens_axis"),
            "type": "log",
            "range": theme.log_range(*ends_x),
            **theme.length_ticks(*ends_x, most=6),
        },
        y=y,
        height=460,
        notes=notes,
        shapes=rules,
        margin={"l": 68, "r": 104, "t": 39, "b": 48},
    )


def _describe_rows(difference: float) -> Sentence:
    return TEXTS("panels.rows_differ", rows=difference) if difference else TEXTS("panels.rows_equal")


def _describe_move(offset: int, change: float) -> Sentence:
    if not offset:
        return TEXTS("panels.not_moved")
    return TEXTS("panels.changed", change=change) if change else TEXTS("panels.unchanged")
