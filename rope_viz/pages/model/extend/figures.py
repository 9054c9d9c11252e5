"""Figures of the page Extend: memory by context length, and the table of methods to reach a length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rope_viz.advice.memory.kv_cache import GPU, USED, human
from rope_viz.advice.plan.extension_plan import Memory, Plan
from rope_viz.advice.plan.ways import SUPPORT, Way
from rope_viz.figures import theme
from rope_viz.figures.words.common import footnote
from rope_viz.texts.numbers import format_tokens

LEAST = 1024


def ways(plan: Plan) -> list[dict[str, str]]:
    """Return the table of methods in ranked order, each with its support level and reasons."""
    known: set[str] = set()
    return [
        {"way": f"{number}. {way.title}", "support": SUPPORT[way.rank], "why": " ".join(why(way, known))}
        for number, way in enumerate(plan.advice.ways, start=1)
    ]


def why(way: Way, known: set[str]) -> Iterator[str]:
    """Yield a method's reasons and sourced measurements, except those in `known`; add them to it."""
    for reason in way.reasons:
        fact, colon, meaning = reason.partition(": ")
        yield f"{fact}." if meaning in known else reason
        if colon:
            known.add(meaning)
    for result in way.evidence:
        if result.text not in known:
            yield f"Measured: {result.text}{footnote(result.source)}"
        known.add(result.text)


def memory(estimate: Memory, target: int, trained: int) -> tuple[theme.Figure, str]:
    """Draw the KV cache on top of the weights by length, with the usable memory of one 80 GB GPU."""
    assert estimate.cache is not None
    last = max(4 * target, 4 * trained, 4 * LEAST)
    lengths = np.unique(np.geomspace(LEAST, last, 160).astype(np.int64))
    cached = np.array([estimate.cache.bytes(int(length), estimate.sequences) for length in lengths]) / 1e9
    total, weights = cached + estimate.weights / 1e9, estimate.weights / 1e9
    room = USED * GPU / 1e9
    top = max(float(total[-1]), room) * 1.6
    low = min(weights, room) / 2.0
    traces = [
        theme.line(lengths, total, "with the cache", theme.CURRENT, width=2.5, hovertemplate=HOVER, text=hovers(total)),
        theme.line(lengths, np.full(len(lengths), weights), "weights", theme.PLAIN, dash="dot", hovertemplate=None),
    ]
    ends = [
        (math.log10(last), float(total[-1]), "weights and cache", theme.CURRENT),
        (math.log10(last), weights, "weights", theme.PLAIN),
    ]
    rules = [
        theme.rule(room, "one 80 GB GPU, 90 % of it", dash="dash"),
        theme.rule(target, f"needed {format_tokens(target)}", axis="x", dash="dash"),
    ]
    if trained < target:
        rules.append(theme.rule(trained, f"trained {format_tokens(trained)}", axis="x"))
    fig = theme.figure(
        traces,
        x={
            "title": "length (tokens, log)",
            "type": "log",
            "range": theme.log_range(LEAST, last),
            **theme.length_ticks(LEAST, last),
        },
        y={"title": "memory (GB, log)", "type": "log", "range": theme.log_range(low, top), **gigabytes(low, top)},
        shapes=rules,
        notes=theme.spread_labels(ends, theme.log_range(low, top), log=True),
        margin={"l": 68, "r": 132, "t": 26, "b": 48},
    )
    title = f"Weights {human(estimate.weights)} and cache {human(estimate.cached)} at {target:,} tokens, by length"
    return fig, title


HOVER = "%{text}<extra></extra>"


def hovers(total: np.ndarray) -> list[str]:  # type: ignore[type-arg]
    """Return the hover texts of the totals, which are in GB."""
    return [f"weights and cache {human(value * 1e9)}" for value in total]


def gigabytes(low: float, top: float) -> dict[str, object]:
    """Return ticks at 1, 2 and 5 times powers of ten."""
    steps = [mantissa * 10.0**e for e in range(-3, 7) for mantissa in (1, 2, 5)]
    values = [value for value in steps if low <= value <= top]
    shown = values[:: 1 + len(values) // 9]
    return {"tickvals": shown, "ticktext": [f"{value:g}" for value in shown], "tickmode": "array"}
