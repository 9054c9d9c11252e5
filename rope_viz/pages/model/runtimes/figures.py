"""Figures and tables of how each runtime handles one config."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.advice.plan import extend, runtime_matrix
from rope_viz.advice.plan.extend import Option
from rope_viz.advice.plan.rank_methods import USUAL
from rope_viz.advice.plan.runtime_matrix import RuntimeAnswer, RuntimeCase, RuntimeMatrix, find_largest_ratio
from rope_viz.advice.training.match_training import SCORE_TOLERANCE, Match, TrainingMatrix, state_of
from rope_viz.embedding.scaling import LABELS, METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import find_peak
from rope_viz.figures import compared, line_styles, method_curves, theme
from rope_viz.figures.line_styles import pin_rule_x
from rope_viz.figures.words import BANDS, footnote, name_band
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes.asked_engines import describe_asked
from rope_viz.runtimes.axes import AxesAnswer
from rope_viz.runtimes.compare import describe_temperature
from rope_viz.runtimes.releases import RELEASES
from rope_viz.runtimes.verdict_counts import find_state
from rope_viz.texts import Sentence, Texts, cache_by_language, join
from rope_viz.texts.line_breaks import wrap_letters
from rope_viz.texts.texts import join_clauses, join_items

TEXTS = Texts("model/training")
RUNTIMES = Texts("runtimes")
TABLE = Texts("model/runtimes")
LENGTHS = TABLE.group("lengths")


def curves(answers: RuntimeMatrix, spec: RopeSpec, *, pin: int | None = None) -> tuple[go.Figure, str]:
    """Draw each differing runtime's frequencies over the reference's; if all agree, scaled over plain frequency."""
    groups = runtime_matrix.group_differing(answers)
    if not groups:
        fig = method_curves.ratios(compared.compared(spec, []), pin=pin)
        return fig, TABLE("curves.same_title")
    reference = answers.rows[0]
    remote = bool(reference.comparison.emulation.remote)
    ref_name = TABLE("curves.own_code") if remote else reference.name
    agreeing = sum(row.comparison.agrees and row.comparison.emulation.supported for row in answers.rows) - (not remote)
    pairs = max(spec.pairs, *(len(values) for _, values in groups))
    pair = np.arange(pairs)
    traces = [
        theme.line(
            pair,
            np.ones(pairs),
            ref_name,
            theme.CURRENT,
            width=2.5,
            hovertemplate=f"{with_others(ref_name, agreeing)}: 1<extra></extra>",
        )
    ]
    peaks = []
    for (rows, values), (colour, dash) in zip(groups, line_styles.take_slots(len(groups)), strict=True):
        names = join_items([row.name for row in rows])
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
        top = find_peak(np.abs(np.log(values)))
        peaks.append((top, float(values[top]), with_others(rows[0].name, len(rows) - 1), colour))
    ends = [1.0, *(y for _, y, _, _ in peaks)]
    low, high = min(0.5, rounded(min(ends) / 1.3, math.floor)), max(2.0, rounded(max(ends) * 1.3, math.ceil))
    ticks = [2.0**e for e in range(round(math.log2(low)), round(math.log2(high)) + 1)]
    fig = theme.figure(
        traces,
        x=theme.pair_axis(pairs),
        y={
            "title": TABLE("curves.axis", reference=reference.name),
            "type": "log",
            "range": theme.log_range(low, high),
            "tickvals": ticks[:: 1 + len(ticks) // 9],
            "ticktext": [times(value) for value in ticks[:: 1 + len(ticks) // 9]],
        },
        shapes=pin_rule_x(pin, spec),
        notes=[
            base_label(with_others(reference.name, agreeing), min(ends) < 0.99),
            *peak_labels(peaks, pairs, low, high),
        ],
        margin={"l": 68, "r": 24, "t": 26, "b": 48},
    )
    largest = join_clauses([TABLE("curves.peak", name=name, ratio=times(y), pair=x) for x, y, name, _ in peaks])
    return fig, TABLE("curves.title", reference=reference.name, peaks=largest)


def with_others(name: str, others: int) -> str:
    """Return a name, with the number of others that have the same line."""
    return TABLE("curves.more", name=name, count=others) if others > 0 else name


def matrix(answers: RuntimeMatrix, config: ModelConfig) -> list[dict[str, str]]:
    """Return a table row per runtime, with a column for the attention temperature of a model that has one."""
    return [
        {
            TABLE("columns.runtime"): row.name,
            TABLE("columns.verdict"): TABLE("columns.reference") if reference(row, answers) else row.verdict,
            TABLE("columns.why"): join(reason(row), remedy(row), tell_asked(row)),
        }
        | _temperature(row, config)
        for row in answers.rows
    ]


def tell_asked(row: RuntimeAnswer) -> str:
    """Return in which releases the whole engine answered, as a sentence; "" where none was asked."""
    found = describe_asked(row.comparison.emulation.known.asked)
    return TABLE("asked", asked=found.capitalize()) if found else ""


def _temperature(row: RuntimeAnswer, config: ModelConfig) -> dict[str, str]:
    emulation = row.comparison.emulation
    found = describe_temperature(config, emulation.runtime, emulation.version)
    return {RUNTIMES("temperature.column"): RUNTIMES(f"temperature.{found}")} if found else {}


def reason(row: RuntimeAnswer) -> str:
    """Return why a runtime's answer is what it is; the file that was not read is a footnote."""
    return f"{TABLE('unread')}{footnote(row.why)}" if row.comparison.how == "not known" else row.why


def reference(row: RuntimeAnswer, answers: RuntimeMatrix) -> bool:
    """Return True if `row` is the reference of the others: the first one, unless unknown or the model's own code."""
    known = row.comparison.how != "not known" and not row.comparison.emulation.remote
    return row is answers.rows[0] and known


def remedy(row: RuntimeAnswer) -> str:
    """Return the fix for a row as a sentence, "" if there is none."""
    if isinstance(row.repair, Sentence) and "why" in row.repair.values:
        return TABLE("no_repair", why=row.repair.values["why"])
    return TABLE("repair", repair=row.repair) if row.repair else ""


@cache_by_language()
def model_list(*, everything: bool = False) -> list[dict[str, str]]:
    """Return the catalog against every runtime, as by `compact`; by default only models with differences."""
    rows = []
    for name, answers in runtime_matrix.compare_catalog():
        if everything or find_largest_ratio(answers.rows) > 1.0:
            cells = {row.name: compact(row) for row in answers.rows}
            rows.append({TABLE("columns.model"): name, **{key: cells[key] for key in sorted(cells, key=order)}})
    # Drop columns without a difference, such as the reference's.
    silent = [key for key in rows[0] if all(row[key] == "·" for row in rows)]
    return [{key: text for key, text in row.items() if key not in silent} for row in rows]


def several(answers: Sequence[AxesAnswer]) -> list[dict[str, str]]:
    """Return how each runtime treats the position axes; a single row for a one-axis model."""
    if not answers:
        return [{TABLE("columns.runtime"): TABLE("axes.all"), TABLE("axes.pairs_column"): TABLE("axes.one_axis")}]
    return [
        {
            TABLE("columns.runtime"): answer.name,
            TABLE("axes.pairs_column"): answer.sections,
            TABLE("axes.against_column"): answer.against,
            TABLE("axes.behind_column"): "-" if answer.behind is None else TABLE("axes.at", position=answer.behind),
            TABLE("axes.times_column"): "-"
            if answer.times is None
            else join_items([f"{time:g}" for time in answer.times]),
            "YaRN": answer.extension or "-",
        }
        for answer in answers
    ]


def options(spec: RopeSpec, target: int) -> list[dict[str, Any]]:
    """Return what each method would do to this model at the target length, a row per method."""
    rows = [
        {
            TABLE("options.method"): LABELS[option.method],
            # Plain RoPE has no factor, whatever the target length.
            TABLE("options.factor"): 1.0 if option.method == "none" else option.factor,
            **{name_band(band): count for band, count in zip(BANDS, count_bands(option), strict=True)},
            TABLE("options.unseen"): option.unseen,
            TABLE("options.attention"): option.attention_factor,
            TABLE("options.logits"): option.logit_factor,
            TABLE("options.negative"): TABLE("options.none")
            if option.first_negative is None
            else f"{option.first_negative:,}",
        }
        for option in runtime_matrix.measure_methods(spec, target)
    ]
    return compared.without_zeros(rows)


def count_bands(option: Option) -> tuple[int, ...]:
    """Return the number of pairs in each band, in the order of `BANDS`."""
    return option.kept, option.blended, option.divided, option.sped, option.still


def methods(asked: RuntimeCase, target: int) -> dict[str, str]:
    """Return the methods that can extend this model, YaRN first."""
    names = sorted(METHODS, key=lambda name: name != USUAL[0])
    return {name: LABELS[name] for name in names if name != "none" and extend.fits(asked.spec, name, target)}


def compact(row: RuntimeAnswer) -> str:
    """Shorten a verdict for a narrow cell: · agrees, ∘ agrees by rule, ? unknown."""
    state = find_state(row.comparison)
    if state == "not known":
        return "?"
    if state == "agrees":
        return "·" if row.comparison.how == "executed" else "∘"
    return row.verdict.replace(" at pair ", " · ").replace("cos and sin", "cos").replace("(by rule)", "∘")


def order(name: str) -> int:
    """Return a runtime's rank in the matrix: serving runtimes first, older releases and the paper last."""
    servers = [runtime.name for key, runtime in RELEASES.items() if key not in ("transformers", "paper")]
    places = (*servers, "transformers 5", "transformers 4.5", "transformers")
    return next((place for place, start in enumerate(places) if name.startswith(start)), len(places))


def explained(row: RuntimeAnswer) -> str:
    """Return the reason and the fix as extra lines of a hover text."""
    out = f"<br>{wrapped(row.why)}" if row.why else ""
    return out + (f"<br>{wrapped(remedy(row))}" if row.repair else "")


def wrapped(text: str, width: int = 64) -> str:
    """Wrap the text at `width` characters and neutralise Plotly's markup."""
    return "<br>".join(wrap_letters(text.replace("<", "‹").replace(">", "›").replace("%{", "% {"), width))


def rounded(value: float, how: Any) -> float:
    """Round to a power of two, with `how` for the exponent (floor or ceil)."""
    return float(2.0 ** how(math.log2(value)))


def times(value: float) -> str:
    """Format a ratio for a tick."""
    return "1" if value == 1 else f"×{value:.3g}" if value > 1 else f"÷{1 / value:.3g}"


def base_label(text: str, below: bool) -> dict[str, Any]:
    """Return the reference's label at its line, on the side with fewer curves."""
    where = {"x": 0, "y": 0.0, "xanchor": "left", "yanchor": "bottom" if below else "top", "showarrow": False}
    return where | {"name": "reference", "text": text, "font": {"color": theme.CURRENT, "size": 13}}


def peak_labels(peaks: list[tuple[int, float, str, str]], pairs: int, low: float, high: float) -> list[dict[str, Any]]:
    """Label each curve with its ratio at its largest deviation; labels that would overlap are shifted apart."""
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


def training_matrix(found: TrainingMatrix) -> list[dict[str, str]]:
    """Return a table row per trainer, a column per server."""
    texts = {
        id(match): format_cell(match) for match in {id(match): match for row in found.rows for match in row}.values()
    }
    servers = [one.name for one in found.emulations]
    return [
        {TEXTS("trainer"): one.name, **{name: texts[id(match)] for name, match in zip(servers, row, strict=True)}}
        for one, row in zip(found.trainings, found.rows, strict=True)
    ]


def format_cell(match: Match) -> str:
    """Return the verdict of a match, with the ratio of frequencies, or else of scores, where it differs."""
    state = state_of(match)
    word = str(TEXTS(f"states.{state}"))
    return f"{word} {format_ratio(match)}" if state == "differs" else word


def format_ratio(match: Match) -> str:
    """Return by how much a training and a server differ, as short as a cell needs it."""
    if match.effect is not None:
        return f"×{match.effect.ratio:.3g}"
    if match.widths_differ:
        return str(TEXTS("other_pairs"))
    ratios = [ratio for ratio in (match.score_ratio, match.score_ratio_unrotated) if ratio is not None]
    ratio = next((one for one in ratios if not math.isclose(one, 1.0, rel_tol=SCORE_TOLERANCE)), None)
    return str(TEXTS("other_pairs")) if ratio is None else str(TEXTS("scores", ratio=ratio))
