"""Pictures and tables of what the runtimes make of one config."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.advice import extend, runtime_matrix
from rope_viz.advice.runtime_matrix import Asked, Board, Row, worst
from rope_viz.embedding.scaling import LABELS, METHODS
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import line_styles, scaling, theme
from rope_viz.figures.frequencies import pin_rule_x
from rope_viz.runtimes.axes import AxesAnswer
from rope_viz.runtimes.releases import RELEASES

LENGTHS = {"start": "Short sequences", "target": "At the target length"}


def curves(answers: Board, spec: RopeSpec, *, pin: int | None = None) -> tuple[go.Figure, str]:
    """Each differing runtime's frequencies over the reference's; the common speed of each pair where all agree."""
    groups = grouped(answers)
    if not groups:
        fig = scaling.ratios(scaling.compared(spec, []), pin=pin)
        return fig, "Scaled over plain speed of each pair, the same in every runtime that takes the config"
    reference = answers.rows[0]
    remote = bool(reference.comparison.emulation.remote)
    named = "The model's own code" if remote else reference.name
    agreeing = sum(row.comparison.agrees and row.comparison.emulation.supported for row in answers.rows) - (not remote)
    more = f" and {agreeing} more" if agreeing > 0 else ""
    pairs = max(spec.pairs, *(len(values) for _, values in groups))
    pair = np.arange(pairs)
    traces = [
        theme.line(
            pair,
            np.ones(pairs),
            named,
            theme.CURRENT,
            width=2.5,
            hovertemplate=f"{named}{more}: 1<extra></extra>",
        )
    ]
    peaks = []
    for rows, values in groups:
        colour, dash = line_styles.of_runtime(rows[0].name)
        names = ", ".join(row.name for row in rows)
        traces.append(
            theme.line(
                np.arange(len(values)),
                values,
                names,
                colour,
                dash=dash,
                hovertemplate=f"{names}: ×%{{y:.4~g}}{explained(rows[0])}<extra></extra>",
            )
        )
        top = int(np.nanargmax(np.abs(np.log(values))))
        short = rows[0].name if len(rows) == 1 else f"{rows[0].name} and {len(rows) - 1} more"
        peaks.append((top, float(values[top]), short, colour))
    ends = [1.0, *(y for _, y, _, _ in peaks)]
    low, high = min(0.5, rounded(min(ends) / 1.3, math.floor)), max(2.0, rounded(max(ends) * 1.3, math.ceil))
    ticks = [2.0**e for e in range(round(math.log2(low)), round(math.log2(high)) + 1)]
    fig = theme.figure(
        traces,
        x=theme.pair_axis(pairs),
        y={
            "title": f"θᵢ over that of {reference.name} (log)",
            "type": "log",
            "range": theme.log_range(low, high),
            "tickvals": ticks[:: 1 + len(ticks) // 9],
            "ticktext": [times(value) for value in ticks[:: 1 + len(ticks) // 9]],
        },
        shapes=pin_rule_x(pin, spec),
        notes=[base_label(f"{reference.name}{more}", min(ends) < 0.99), *peak_labels(peaks, pairs, low, high)],
        margin={"l": 68, "r": 24, "t": 26, "b": 48},
    )
    names = "; ".join(f"{name} {times(y)} at pair {x}" for x, y, name, _ in peaks)
    return fig, f"Frequency of each pair over that of {reference.name}: {names}"


def grouped(answers: Board) -> list[tuple[list[Row], FloatArray]]:
    """The rows whose frequencies differ, those with equal ones together, and their ratio to the reference per pair."""
    groups: list[tuple[list[Row], FloatArray]] = []
    for row in answers.differing:
        values = ratio(row, answers.rows[0])
        if row.comparison.effect is None or values is None:
            continue
        for rows, known in groups:
            if len(known) == len(values) and np.allclose(known, values, rtol=1e-6, equal_nan=True):
                rows.append(row)
                break
        else:
            groups.append(([row], values))
    return groups


def ratio(row: Row, reference: Row) -> FloatArray | None:
    """A row's frequencies over the reference's, NaN where a pair stands still in one of them."""
    ours, base = row.comparison.emulation.inv_freq, reference.comparison.emulation.inv_freq
    if ours is None or base is None:
        return None
    pairs = min(len(ours), len(base))
    both = (ours[:pairs] > 0) & (base[:pairs] > 0)
    out = np.full(pairs, np.nan)
    out[both] = ours[:pairs][both] / base[:pairs][both]
    return out


def matrix(answers: Board) -> list[dict[str, str]]:
    """One row per runtime, in words."""
    return [
        {
            "runtime": row.name,
            "frequencies and factors": "the reference" if reference(row, answers) else row.verdict,
            "why, and what repairs it": f"{row.why} {remedy(row)}".strip(),
        }
        for row in answers.rows
    ]


def reference(row: Row, answers: Board) -> bool:
    """Whether the others are compared with this row; nothing is compared with what is not known."""
    known = row.comparison.how != "not known" and not row.comparison.emulation.remote
    return row is answers.rows[0] and known


def remedy(row: Row) -> str:
    """What repairs a row, as a sentence."""
    return f"Repaired by: {row.repair}" if row.repair else ""


def model_list(*, everything: bool = False) -> list[dict[str, str]]:
    """The whole list against every runtime, by the signs of `compact`."""
    rows = []
    for name, answers in runtime_matrix.models():
        if everything or worst(answers.rows) > 1.0:
            cells = {row.name: compact(row.verdict) for row in answers.rows}
            rows.append({"model": name, **{key: cells[key] for key in sorted(cells, key=order)}})
    # A column of dots alone, such as the reference's, says nothing.
    silent = [key for key in rows[0] if all(row[key] == "·" for row in rows)]
    return [{key: text for key, text in row.items() if key not in silent} for row in rows]


def several(answers: Sequence[AxesAnswer]) -> list[dict[str, str]]:
    """What each runtime does with the axes of the positions; one row where there is one axis."""
    if not answers:
        return [{"runtime": "all of them", "pairs of each axis": "one axis: every token has one position"}]
    return [
        {
            "runtime": one.name,
            "pairs of each axis": one.sections,
            "against transformers": one.against,
            "text behind the film": "-" if one.behind is None else f"at {one.behind:g}",
            "times of four grids": "-" if one.times is None else ", ".join(f"{time:g}" for time in one.times),
            "YaRN": one.extension or "-",
        }
        for one in answers
    ]


def options(spec: RopeSpec, target: int) -> list[dict[str, Any]]:
    """What each method would do to this model at the target length."""
    rows = [
        {
            "method": LABELS[option.method],
            # Plain RoPE divides nothing, however far it is taken.
            "factor s": 1.0 if option.method == "none" else option.factor,
            "kept": option.kept,
            "blended": option.blended,
            "divided": option.divided,
            "sped up": option.sped,
            "still": option.still,
            "pairs at unseen angles": option.unseen,
            "attention factor": option.attention_factor,
            "logits × (λ)": option.logit_factor,
            "first negative distance": "none" if option.first_negative is None else f"{option.first_negative:,}",
        }
        for option in runtime_matrix.options(spec, target)
    ]
    return scaling.without_zeros(rows)


def methods(asked: Asked, target: int) -> dict[str, str]:
    """Methods that extend this model, YaRN first."""
    names = sorted(METHODS, key=lambda name: name != "yarn")
    return {name: LABELS[name] for name in names if name != "none" and extend.fits(asked.spec, name, target)}


def compact(verdict: str) -> str:
    """A verdict for a narrow cell: a dot for agreement, a ring where it is known by rule only, a question mark."""
    signs = {"agrees": "·", "agrees (by rule)": "∘", "not known": "?"}
    return signs.get(
        verdict, verdict.replace(" at pair ", " · ").replace("cos and sin", "cos").replace("(by rule)", "∘")
    )


def order(name: str) -> int:
    """Runtimes in the order of the matrix: those that serve first, older releases and the paper last."""
    servers = [runtime.name for key, runtime in RELEASES.items() if key not in ("transformers", "paper")]
    places = (*servers, "transformers 5", "transformers 4.5", "transformers")
    return next((place for place, start in enumerate(places) if name.startswith(start)), len(places))


def explained(row: Row) -> str:
    """Why and how to repair it, for the hover, on lines of their own."""
    out = f"<br>{wrapped(row.why)}" if row.why else ""
    return out + (f"<br>{wrapped(remedy(row))}" if row.repair else "")


def wrapped(text: str, width: int = 64) -> str:
    """The text on lines of this width, its marks made harmless for Plotly."""
    lines, line = [], ""
    for word in text.replace("<", "‹").replace(">", "›").replace("%{", "% {").split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "<br>".join([*lines, line])


def rounded(value: float, how: Any) -> float:
    """The next power of two."""
    return float(2.0 ** how(math.log2(value)))


def times(value: float) -> str:
    """A ratio as a tick."""
    return "1" if value == 1 else f"×{value:.3g}" if value > 1 else f"÷{1 / value:.3g}"


def base_label(text: str, below: bool) -> dict[str, Any]:
    """The name of the reference on its own line, on the side where fewer curves are."""
    where = {"x": 0, "y": 0.0, "xanchor": "left", "yanchor": "bottom" if below else "top", "showarrow": False}
    return where | {"name": "reference", "text": text, "font": {"color": theme.CURRENT, "size": 13}}


def peak_labels(peaks: list[tuple[int, float, str, str]], pairs: int, low: float, high: float) -> list[dict[str, Any]]:
    """Each curve's name and ratio at its largest deviation, moved apart where they would lie on each other."""
    pixels = (theme.MAIN_HEIGHT - 74) / math.log10(high / low)
    notes: list[dict[str, Any]] = []
    taken: list[tuple[int, float]] = []
    for x, y, name, colour in sorted(peaks, key=lambda peak: -abs(math.log(peak[1]))):
        side = 1 if y > 1 else -1
        at = math.log10(y) * pixels + 13 * side
        while any(abs(at - other) < 17 and abs(x - place) < pairs / 3 for place, other in taken):
            at += 6 * side
        taken.append((x, at))
        anchor = "left" if x < pairs / 5 else "right" if x > 0.8 * pairs else "center"
        where = {"x": x, "y": math.log10(y), "xanchor": anchor, "yanchor": "middle", "showarrow": False}
        text = f"{name} {times(y)}"
        shift = at - math.log10(y) * pixels
        notes.append(where | {"name": "peak", "text": text, "yshift": shift, "font": {"color": colour, "size": 13}})
    return notes
